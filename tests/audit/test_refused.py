"""Bad input to an audit, refused before any work: what was given and what to do are said."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.torch import save_file
from torch import nn

from mia_lib import audit, models
from mia_lib.audit import files, inputs, options
from mia_lib.audit.command import audit_model
from mia_lib.audit.options import AuditOptions
from mia_lib.data import Dataset
from mia_lib.errors import MiaError
from mia_lib.training import TrainConfig

WEIGHTS = np.random.default_rng(1).standard_normal((6, 3)).astype(np.float32)
CLASSES = ("a", "b", "c")


def records(count: int, seed: int, name: str = "records", **changes) -> Dataset:
    chance = np.random.default_rng(seed)
    given = {
        "x": chance.standard_normal((count, 6)).astype(np.float32),
        "y": chance.integers(3, size=count),
        "n_train": count,
        "classes": CLASSES,
    } | changes
    return Dataset(name, **given)


MEMBERS, OTHERS, PUBLIC = records(60, 2), records(60, 3), records(80, 4)
IMAGES = [
    Dataset(
        "images",
        np.random.default_rng(k).integers(0, 255, (60, 8, 8, 1), dtype=np.uint8),
        np.random.default_rng(k).integers(3, size=60),
        60,
        CLASSES,
    )
    for k in (5, 6)
]
RECIPE = TrainConfig("mlp:8", epochs=1)
LABELS = {row.tobytes(): label for row, label in zip(MEMBERS.x, MEMBERS.y, strict=True)}


def logits(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) @ WEIGHTS


def probabilities(x: np.ndarray) -> np.ndarray:
    p = np.exp(logits(x))
    return p / p.sum(1, keepdims=True)


def of_pixels(scaling: str | None = None) -> dict:
    """Images and a network of them."""
    made = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    made = made if scaling is None else models.set_input_scaling(made, scaling)
    return {"members": IMAGES[0], "non_members": IMAGES[1], "model": made.eval()}


def mixed(one: Dataset, other: Dataset, count: int = 2) -> Dataset:
    """`one` with some records of `other` in it."""
    return replace(one, x=np.concatenate([other.x[:count], one.x[count:]]))


CASES = [  # what is given differently, and what the message says
    # the model
    ({"model": nn.Linear}, "is a class"),
    ({"model": "model.pt"}, "is text"),
    ({"model": {"weight": torch.zeros(2)}}, "state_dict"),
    ({"model": pickle.dumps(1)}, "pickle"),
    (
        {"model": SimpleNamespace(predict_proba=probabilities), "outputs": "logits"},
        "allowed is 'probabilities'",
    ),
    ({"model": 3}, "cannot be called"),
    (
        {"model": torch.export.export(nn.Linear(6, 3), (torch.zeros(2, 6),)).module()},
        "give the program itself",
    ),
    ({"model": nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.5))}, "Call model.eval()"),
    ({"model": lambda x: np.nan * logits(x)}, "NaN or infinity"),
    (
        {
            "model": nn.Linear(6, 3)
            .apply(lambda layer: nn.init.constant_(layer.bias, np.nan))
            .eval()
        },
        "model, a network, asked about records 0 to 31 of 32, answered with NaN or infinity",
    ),
    ({"model": nn.Linear(7, 3).eval()}, "does not take"),
    # its outputs: one or two of those that `signals.from_function` refuses, and what an audit alone sees
    ({"model": nn.Sequential(nn.Linear(6, 1), nn.Sigmoid()).eval()}, "concatenate([1 - s, s]"),
    ({"model": lambda x: logits(x)[:, :2], "columns": ["a", "z"]}, "['a', 'z']: each"),
    (
        {
            "members": replace(MEMBERS, classes=tuple("123")),
            "non_members": replace(OTHERS, classes=tuple("123")),
            "model": lambda x: logits(x)[:, :2],
            "columns": [1, 2],
        },
        "columns=['1', '2'] or ['2', '3']",
    ),
    ({"outputs": "labels", "columns": CLASSES}, "which have no columns: leave it out"),
    ({"model": lambda x: (logits(x), x)}, "lambda x: model(x)[0]"),
    ({"model": lambda x: {"scores": logits(x)}}, "lambda x: model(x)['scores']"),
    ({"model": probabilities}, "Give outputs = 'probabilities'"),
    ({"outputs": "probabilities"}, "outputs = 'logits'"),
    ({"model": lambda x: np.ones((len(x), 3)) * [1, 2, 4]}, "are the same for all"),
    (
        {"model": lambda x: logits(x) + np.random.default_rng().random((len(x), 3))},
        "from one call to the",
    ),
    ({"model": lambda x: logits(x) - logits(x).sum(0)}, "other records of its batch"),
    ({"model": nn.Linear(6, 3).to(torch.bfloat16).eval()}, "give model.float()"),
    ({"model": lambda x: np.where(x[:, :1] > 0, -np.inf, logits(x))}, "NaN or infinity"),
    (  # wrong about its own members more often than a guess: not the model that it is taken for
        {"model": lambda x: 9 * np.eye(3)[[LABELS.get(row.tobytes(), 0) - 1 for row in x]]},
        "columns of its outputs",
    ),
    ({"model": lambda x: 1 / 0}, "failed: ZeroDivisionError"),
    # records
    ({"members": MEMBERS.x}, "data.from_arrays"),
    ({"non_members": MEMBERS.take(np.zeros(60, bool))}, "non_members has 0 records"),
    ({"public": records(30, 4)}, "public has 30 records"),
    ({"members": records(60, 2, y=np.zeros(60, int), classes=("a",))}, "1 class"),
    ({"non_members": records(60, 3, x=np.zeros((60, 5), np.float32))}, "records of shape (5,)"),
    ({"non_members": replace(OTHERS, x=(10 * OTHERS.x).astype(int))}, "gives membership away"),
    (
        {"non_members": replace(OTHERS, classes=("a", "c", "b"))},
        "in the order a, c, b, members a, b, c",
    ),
    (
        {"non_members": replace(OTHERS, classes=("a", "b", "d"))},
        "lacks c, and has d, which members lack",
    ),
    ({"non_members": mixed(OTHERS, MEMBERS)}, "2 records of non_members are in members"),
    ({"non_members": replace(mixed(OTHERS, MEMBERS, 1), y=(OTHERS.y + 1) % 3)}, "1 records of"),
    (
        {"non_members": replace(MEMBERS, x=MEMBERS.x.astype(np.float64))},
        "60 records of non_members",
    ),
    ({"public": mixed(PUBLIC, OTHERS)}, "2 records of public are in non_members"),
    (of_pixels(), "scaling is missing"),
    (of_pixels() | {"scaling": "0 to 1", "recipe": RECIPE}, "recipe.scaling = '-1 to 1'"),
    (
        of_pixels("0 to 1") | {"recipe": replace(RECIPE, scaling="0 to 255")},
        "model was trained with scaling = '0 to 1', and recipe.scaling = '0 to 255'",
    ),
    # numbers
    ({"minutes": 0}, "minutes = 0: Input should be greater than 0"),
    ({"minutes": 0.001}, "too small for anything"),
    ({"confidence": 95}, "confidence = 95: Input should be less than 1. Confidence of all"),
    ({"name": " "}, "What the page calls the model"),
    ({"fpr": 0.001}, "Give at least 1000 non-members"),
    ({"fpr": 0}, "fpr = 0: Input should be greater than 0"),
    ({"delta": 2}, "delta = 2: Input should be less than or equal to 1"),
    ({"fpr": ()}, "fpr = (): Tuple should have at least 1 item"),
    ({"without": ["curvatur"]}, "Did you mean 'curvature'"),
    ({"minuts": 5}, "field = 'minuts' is not known. Did you mean 'minutes'"),
    ({"outputs": "labels", "without": ["0-1"]}, "without = '0-1' is not known"),
    # groups and recipe
    ({"groups": np.zeros(60)}, "must be a pair"),
    ({"groups": (np.zeros(60), np.zeros(59))}, "groups of non_members have shape (59,)"),
    ({"groups": (np.zeros(60), np.zeros(60))}, "leave groups out"),
    ({"ids": np.arange(120)}, "ids must be a pair"),
    ({"ids": (np.arange(60), np.arange(59))}, "ids have shapes (60,) and (59,)"),
    ({"recipe": {"architecture": "mlp"}}, "a training.TrainConfig is needed"),
    ({"keep": 5}, "the name of a folder"),
    ({"keep": __file__}, "the name of a folder"),
]


@pytest.mark.parametrize("changes, said", CASES)
def test_refused(changes, said, tmp_path):
    asked = {
        "model": logits,
        "members": MEMBERS,
        "non_members": OTHERS,
        "keep": str(tmp_path / "answers"),
    } | changes
    with pytest.raises(MiaError) as refused:
        audit.audit(asked.pop("model"), asked.pop("members"), asked.pop("non_members"), **asked)
    assert said in str(refused.value)


@pytest.mark.parametrize("whole", [False, True])
def test_records_that_are_there_before_are_left_out_on_request(whole):
    """Twice in a set, of both sets (it is a member then), or public and judged; groups and numbers go with the records. Token
    ids, which float32 cannot tell apart, are as they are."""

    def table(of: Dataset) -> Dataset:
        return replace(of, x=(1e6 * of.x).astype(np.int64) + 2**40) if whole else of

    members = mixed(records(70, 2), records(70, 2).take(np.arange(69, -1, -1)), 1)
    wide = records(90, 9)
    others = mixed(mixed(wide, wide.take(np.arange(89, -1, -1)), 1), members.take(np.arange(1, 70)))
    sets, public = (table(members), table(others)), table(mixed(PUBLIC, members))
    groups, asked = (np.arange(70) % 2, np.arange(90) % 3), set()

    def model(x):
        asked.add(x.dtype.name)
        return logits((x - 2**40) / 1e6 if whole else x)

    found = inputs.check_inputs(
        model, *sets, AuditOptions(deduplicate=True, groups=groups, public=public)
    )
    assert found.left_out == {"members": 1, "non_members": 2, "public": 2}
    assert asked == {"int64" if whole else "float32"}
    assert len(found.members) == 69 and len(found.non_members) == 88 and len(found.public) == 78
    rows = found.rows[:69], found.rows[69:]
    assert_array_equal(
        found.pool.x, np.concatenate([of.x[kept] for of, kept in zip(sets, rows, strict=True)])
    )
    kept = np.concatenate([of[kept] for of, kept in zip(groups, rows, strict=True)])
    assert_array_equal(found.groups, kept.astype(str))
    with pytest.raises(MiaError, match="--deduplicate on the command line"):
        inputs.check_inputs(model, *sets, AuditOptions())


def test_what_is_misspelt_is_said_before_pytorch_is_imported(tmp_path):
    """By a process of its own, which then has not loaded what takes seconds."""
    (tmp_path / "m.npz").write_bytes(b"")
    rest = ["my:predict", "--members", "m.npz", "--non-members", "m.npz"]
    typos = {
        "outputs = 'label'": [*rest, "--outputs", "label"],
        "scaling = '0 to 2'": [*rest, "--scaling", "0 to 2"],
        "confidence = 95.0": [*rest, "--confidence", "95"],
        "fpr = 5.0": [*rest, "--fpr", "5"],
        "minutes = 0.0": [*rest, "--minutes", "0"],
        "n.npz: there is no such file": [*rest, "--public", "n.npz"],
        "~nobody-here/n.npz: there is no such file": [*rest, "--public", "~nobody-here/n.npz"],
        "can be no path": [*rest, "-o", "x" * 300],
        "MODEL is missing": ["--members", "m.npz"],
        "is not empty": [*rest, "-o", "."],
        "makes no use of --score:": [*rest, "--score", "a"],
        "--plan makes": [*rest, "--plan", "--fail-on", "leak"],
        "seed = -1": [*rest, "--device", "cpu", "--seed", "-1"],
    }
    code = (
        "import json, sys\nfrom typer.testing import CliRunner\nfrom mia_book.pages.cli import app\n"
        "for said, words in json.load(sys.stdin).items():\n"
        "    done = CliRunner().invoke(app, ['audit', *words])\n"
        "    assert done.exit_code == 2 and said in ' '.join(done.output.split()), done.output\n"
        "assert not {'torch', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
    )
    # a card needs PyTorch
    unset = {name: value for name, value in os.environ.items() if not name.startswith("MIA_")}
    unset["MIA_WORKERS"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(typos),
        cwd=tmp_path,
        env=unset,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_classes_of_files_keep_their_order_and_fewer_that_are_numbers_are_not_guessed_at():
    """Classes 0, 1, 2, 4 that were numbered anew would be taken for 0, 1, 2, 3 of a file that has five."""
    one = records(60, 2, classes=("good", "bad", "ugly"))
    other = records(60, 3, classes=("good", "bad", "ugly"))
    assert files.same_classes({"a": one, "b": other})["a"].classes == ("good", "bad", "ugly")
    found = files.same_classes(
        {"a": one, "b": replace(other, y=np.minimum(other.y, 1), classes=("bad", "ugly"))}
    )["b"]
    assert found.classes == one.classes and (found.y == np.minimum(other.y, 1) + 1).all()
    some = replace(other, y=np.minimum(other.y, 1), classes=("0", "2"))
    assert (
        files.same_classes({"a": replace(one, classes=("0", "1", "2")), "b": some})["b"].y
        == 2 * some.y
    ).all()
    five, four = (records(60, 2, y=np.arange(60) % k, classes=tuple("01234"[:k])) for k in (5, 4))
    with pytest.raises(
        MiaError,
        match=r"--non-members has 4 classes, numbered 0 to 3, .* has 5: .*classes=classes\)",
    ):
        files.same_classes({"members": five, "non-members": four})
    assert (
        files.same_classes({"members": five, "non-members": five})["members"].classes
        == five.classes
    )


def test_answers_for_which_there_is_no_folder_are_kept_in_memory(tmp_path, capsys):
    within_a_file = Path(text(tmp_path / "file", "")) / "answers"
    target = inputs.check_inputs(logits, MEMBERS, OTHERS, AuditOptions(keep=within_a_file)).target
    assert_array_equal(target.ask(MEMBERS.x, again=False), logits(MEMBERS.x))
    assert "answers cannot be made (Not a directory)" in capsys.readouterr().err


def test_answers_are_kept_where_an_endpoint_fails(tmp_path, monkeypatch):
    """A call that failed goes on from there."""
    monkeypatch.setattr("mia_lib.audit.target.BATCH", 40)
    asked = []

    def endpoint(x, most):
        asked.append(len(x))
        if len(asked) > most:
            raise ConnectionError("503 Service Unavailable")
        return logits(x)

    with pytest.raises(MiaError, match="503.*goes on there") as told:
        audit.audit(lambda x: endpoint(x, 7), MEMBERS, OTHERS, keep=tmp_path)
    assert f"keep='{tmp_path}'" in str(told.value)
    asked.clear()
    found = inputs.check_inputs(
        lambda x: endpoint(x, 99), MEMBERS, OTHERS, AuditOptions(keep=tmp_path)
    )
    asked.clear()
    assert_array_equal(found.target.ask(found.pool.x, again=False), logits(found.pool.x))
    assert asked == [40]  # the last third
    asked.clear()
    # nobody asked for them to be kept
    with pytest.raises(MiaError, match="In an audit keep is the folder") as told:
        audit.audit(lambda x: endpoint(x, 7), MEMBERS, OTHERS)
    assert len(list(Path(re.search(r"keep='(.*)'", str(told.value))[1]).glob("*.npz"))) == 1


def test_kept_answers_of_a_model_that_changed_a_little(tmp_path):
    def ask(model):
        found = inputs.check_inputs(
            model, MEMBERS, OTHERS, AuditOptions(keep=tmp_path, public=PUBLIC)
        )
        found.target.scalars(found.pool), found.target.scalars(PUBLIC)

    def remembers(of):  # answers some records from memory
        return lambda x: np.where(np.isin(x[:, :1], of.x[::4, :1]), 9 * np.eye(3)[0], logits(x))

    ask(logits)
    ask(lambda x: logits(x) * (1 + 1e-7))  # another batch, another rounding
    for change in (remembers(MEMBERS), remembers(PUBLIC), lambda x: logits(x).round(3)):
        with pytest.raises(MiaError, match="of another model"):
            ask(change)


def test_the_logarithm_of_zero_is_a_number_like_others():
    """Where a class has no probability logits are -inf; signals are those of `from_probabilities`, with their floor."""
    with np.errstate(divide="ignore"):
        made = [
            inputs.check_inputs(one, MEMBERS, OTHERS, AuditOptions(outputs=kind)).target
            for one, kind in ((lambda x: np.log(_coarse(x)), "logits"), (_coarse, "probabilities"))
        ]
        found, expected = (one.scalars(MEMBERS) for one in made)
    assert (_coarse(MEMBERS.x) == 0).any()
    assert all(np.isfinite(found[name]).all() for name in expected if name != "outputs")
    assert_allclose(found["loss"], expected["loss"], rtol=1e-5)


def _coarse(x: np.ndarray) -> np.ndarray:
    p = np.where(probabilities(x) < 0.1, 0, probabilities(x))
    return p / p.sum(1, keepdims=True)


def test_too_few_references_are_none_the_plan_says_why_and_a_rate_twice_is_one():
    two = audit.plan(
        logits, MEMBERS, OTHERS, recipe=RECIPE, references=2, minutes=60, public=PUBLIC
    )
    assert two.state("LiRA") == "does not fit"
    assert "references = 2 was asked for, and 4 are needed" in str(two)
    assert (
        audit.plan(logits, MEMBERS, OTHERS, recipe=RECIPE, references=5, minutes=60).references == 4
    )  # in pairs
    assert AuditOptions(fpr=(0.05, 0.05)).rates == (0.05,)
    assert set(options.SCALINGS) == set(models.SCALINGS)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A call of `mia audit` on files, into the folder "found"."""
    monkeypatch.chdir(tmp_path)
    usual = {
        "options": AuditOptions(minutes=1, without=["curvature"]),
        "model": f"{__name__}:logits",
        "members": saved(tmp_path, "m.npz", MEMBERS),
        "non_members": saved(tmp_path, "n.npz", OTHERS),
        "output": Path("found"),
    }
    return lambda **others: audit_model(**usual | others)


def test_a_finished_audit_is_not_lost(run, tmp_path):
    run()
    run(plan=True)
    before = (tmp_path / "found" / "audit.json").read_bytes()
    with pytest.raises(
        MiaError, match="holds an audit that was finished: give a new folder, such as -o found_2"
    ):
        run()
    assert (tmp_path / "found" / "audit.json").read_bytes() == before


def test_an_audit_of_which_a_step_failed_says_so_by_its_exit_code_and_the_same_command_tries_it_again(
    run, tmp_path, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr("mia_lib.audit.execution.score_inputs", lambda *given: {}["a worker died"])
        text, code = run()
        assert code == 1
        assert (
            "control without the model failed: KeyError: 'a worker died'.\nThe same command tries"
            in text
        )
        text, code = run(
            options=AuditOptions(minutes=1, without=["curvature", "control without the model"]),
            output=Path("left_out"),
        )
        assert code == 0 and "failed" not in text
    other = saved(tmp_path, "other.npz", PUBLIC)
    with pytest.raises(
        MiaError, match="This could not be saved: another audit finished in found meanwhile"
    ):
        run(members=other)
    assert run()[1] == 0
    with pytest.raises(MiaError, match="holds an audit that was finished"):
        run()


def test_an_audit_that_was_killed_while_it_wrote_goes_on_in_its_folder(run, tmp_path, monkeypatch):
    """The numbers may be there, or a part of a file, but not the page, which comes last."""
    text, _ = run()
    assert "Send on audit.html alone" in text
    assert "Send on this page alone" in (tmp_path / "found" / "audit.html").read_text()
    (tmp_path / "found" / "audit.html").unlink()
    (tmp_path / "found" / ".writing-1-ab").touch()
    with monkeypatch.context() as patch:
        patch.setattr(
            "mia_lib.audit.attacks.score", lambda *given: pytest.fail("its scores are kept")
        )
        run()
    assert {path.name for path in (tmp_path / "found").iterdir()} == {
        "answers",
        "audit.html",
        "audit.json",
    }


def build() -> nn.Module:
    return nn.Linear(6, 3)


def broken() -> nn.Module:
    return {}["width"]


def saved(folder, name: str, of: Dataset, **more):
    arrays = {"x": of.x, "y": of.y, "classes": np.array(of.classes)} | more
    np.savez(folder / name, **{name: array for name, array in arrays.items() if array is not None})
    return str(folder / name)


FILES = [  # what the command line names, made in a folder, and what the message says
    (lambda f: {"members": None}, "--members is missing"),
    (lambda f: {"model": "numpy"}, "write my_module:name"),
    (lambda f: {"model": "net.onnx"}, "as by onnxruntime"),
    (lambda f: {"model": "net.ts"}, "torch.jit.load"),
    (lambda f: {"model": "no_such_module_here:predict"}, "there is no module no_such_module_here"),
    (lambda f: {"model": "numpy:lingspace"}, "Did you mean 'linspace'?"),
    (lambda f: {"model": "forest.pkl"}, "weights_only=True"),
    (lambda f: {"model": "w.safetensors"}, "--state w.safetensors"),
    (lambda f: {"state": text(f / "w.pt", "x")}, "w.pt is a pickle"),
    (lambda f: {"state": text(f / "bad.safetensors", "x" * 20)}, "is no safetensors file"),
    (lambda f: {"state": weights(f, nn.Linear(5, 3))}, "size mismatch for weight"),
    (
        lambda f: {"model": f"{__name__}:broken"},
        "broken fails when it is called (KeyError: 'width')",
    ),
    (lambda f: {"model": "torch.nn:Linear"}, "cannot be called without arguments"),
    (lambda f: {"model": "torch.nn:Identity", "state": None}, "without weights"),
    (lambda f: {"model": str(f / "m.pt2"), "state": None}, "there is no such file"),
    (lambda f: {"model": text(f / "m.pt2", "no zip"), "state": None}, "is code"),
    (lambda f: {"members": text(f / "m.pkl", "x")}, "is a pickle"),
    (
        lambda f: {"members": saved(f, "o.npz", MEMBERS, y=np.full(60, "a", object))},
        "y.astype(str)",
    ),
    (lambda f: {"members": saved(f, "x.npz", MEMBERS, y=None, classes=None)}, "has no array y"),
    (lambda f: {"members": text(f / "x.npy", "")}, "is a single array"),
    (lambda f: {"members": saved(f, "l.npz", MEMBERS, y=MEMBERS.x[:, 0])}, "are for classifiers"),
    (
        lambda f: {"members": saved(f, "n.npz", MEMBERS, x=np.full((60, 6), np.nan, np.float32))},
        "missing",
    ),
    (lambda f: {"groups": "region"}, "has no array region (it has x, y, classes)"),
    (lambda f: {"recipe": text(f / "r.yaml", "architecture: mlp\nepoch: 3")}, "'epochs'"),
    (lambda f: {"recipe": text(f / "r.yaml", "epochs: 3")}, "names no architecture"),
    (
        lambda f: {
            "recipe": text(f / "r.yaml", f"architecture: subprocess:getoutput('touch {f}/ran')")
        },
        "--trust",
    ),
    (lambda f: {"recipe": text(f / "r.json", "[1]")}, "holds a list"),
    (lambda f: {"output": f / "members.npz"}, "is a file"),
    (lambda f: {"output": f / "members.npz" / "new"}, "cannot be written"),
]


def text(path, content: str) -> str:
    path.write_text(content)
    return str(path)


def weights(folder, of: nn.Module) -> str:
    save_file(of.state_dict(), folder / "w.safetensors")
    return str(folder / "w.safetensors")


@pytest.mark.parametrize("make, said", FILES)
def test_refused_files(make, said, tmp_path):
    asked = {
        "model": f"{__name__}:build",
        "members": saved(tmp_path, "members.npz", MEMBERS),
        "public": None,
        "groups": None,
        "non_members": saved(tmp_path, "others.npz", OTHERS),
        "state": weights(tmp_path, nn.Linear(6, 3)),
        "recipe": None,
        "output": tmp_path / "new",
    } | make(tmp_path)
    with pytest.raises(MiaError) as refused:
        audit_model(AuditOptions(), **asked)
    assert said in str(refused.value) and not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "content",
    ["architecture: mlp\nlearning_rate: 1e-5", '{"architecture": "mlp", "learning_rate": 1e-05}'],
)
def test_numbers_of_a_recipe_may_have_exponents(content, tmp_path):
    assert files.recipe(text(tmp_path / "recipe", content)) == TrainConfig(
        "mlp", learning_rate=1e-5
    )


def test_a_recipe_names_a_module_with_consent(tmp_path):
    own = f"{__name__}:build"
    path = text(tmp_path / "recipe", f"architecture: {own}")
    assert files.recipe(path, trust=True) == TrainConfig(own)
