"""Measurements under everything that goes wrong: wrong calls, damage, editions, parents, kills, two at once, a full disk."""

import errno
import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from mia_book import publishing
from mia_book.publishing import measurements as machinery
from mia_book.publishing import writing
from mia_lib import published, store
from mia_lib.errors import MiaError
from mia_lib.published.reading import DEFINITIONS

CALLS: list[int] = []  # numbers of models that were measured


def squares(index: range, scale: float = 1.0, source: str = "none") -> dict[str, np.ndarray]:
    """Model m says m * scale of five records."""
    CALLS.extend(index)
    numbers = np.array(index)[:, None]
    return {
        "margin": (numbers * scale + np.arange(5)).astype(np.float16),
        "members": (numbers + np.arange(5)) % 2 == 0,
    }


def roots(index: range) -> dict[str, np.ndarray]:
    return {"root": np.sqrt(PARENT(index=index).margin.astype(np.float32))}


RECIPE = {"epochs": 3, "learning_rate": 0.5}


def trained(index: range, recipe: dict = RECIPE, asked: int = 2) -> dict[str, np.ndarray]:
    """Model m says by what it was trained."""
    return {"recipe": np.array([[recipe["epochs"], recipe["learning_rate"], asked]] * len(index))}


def made(function=squares, name="toy/squares", **settings):
    return publishing.measurement(
        name, **{"probe": {"index": range(2)}, "chunk": 2, "block": 4, **settings}
    )(function)


PARENT, CHILD = made(), made(roots, "toy/roots")


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """A cache and a folder of published pieces of its own for each test, and the toys as what is known."""
    monkeypatch.setenv("MIA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MIA_PUBLISHED", str(tmp_path / "published"))
    register(monkeypatch, PARENT, CHILD)
    CALLS.clear()
    warnings.simplefilter("error")


def measured(call, *given, **named) -> list[int]:
    """Numbers of the models that a call measures."""
    CALLS.clear()
    call(*given, **named)
    return list(CALLS)


def forgotten(pattern: str = "*.*") -> None:
    """What the working cache had is gone."""
    [one.unlink() for one in writing.cache().rglob(pattern) if one.is_file()]


def register(monkeypatch, *toys):
    monkeypatch.setattr(machinery, "catalogue", lambda: {one.name: one for one in toys})


def manifests() -> list[Path]:
    return sorted(set(published.folder().rglob("*.json")) - {published.folder() / DEFINITIONS})


def test_a_bank_is_measured_once_and_grows_by_what_is_missing():
    bank = PARENT(3)
    assert CALLS == [0, 1, 2] and len(bank) == 3
    assert bank.margin.tolist() == squares(range(3))["margin"].tolist()
    # sums in half precision are wrong
    assert (bank.margin.dtype, bank.arrays["margin"].dtype) == (np.float32, np.float16)
    assert bank.members.dtype == bool
    assert bank.members.tolist() == squares(range(3))["members"].tolist()
    assert measured(PARENT, 3, scale=1.0) == []  # a default given or left out is the same piece
    assert measured(PARENT, index=range(2, 5)) == [3, 4]
    assert PARENT(index=range(2, 5)).margin[:, 0].tolist() == [2, 3, 4]
    assert measured(PARENT, 2, scale=2.0) == [0, 1] and PARENT(2, scale=2.0).margin[1, 0] == 2
    with pytest.raises(
        AttributeError, match="toy/squares has no array 'loss', but margin, members"
    ):
        bank.loss  # noqa: B018


def test_a_recipe_is_one_argument_of_the_function_and_its_fields_are_parameters(monkeypatch):
    """A user, a manifest and a file name have them by name."""
    one = made(trained, "toy/trained", learning_rate=0.25)
    register(monkeypatch, one)
    assert one.usual() == {"epochs": 3, "learning_rate": 0.25, "asked": 2}
    bank = one(1, epochs=5)
    assert bank.recipe.tolist() == [[5, 0.25, 2]]
    assert bank.parameters == {"epochs": 5, "learning_rate": 0.25, "asked": 2}
    [path] = one.publish(range(1), {"epochs": 5})
    assert path.name == "trained-epochs-5-000-000.json"
    assert json.loads(path.read_text())["parameters"] == bank.parameters
    assert published.load("toy/trained", epochs=5).recipe.tolist() == bank.recipe.tolist()
    for wrong in ({"epoch": 5}, {"recipe": {"epochs": 5}}):
        with pytest.raises(MiaError, match="parameter of toy/trained"):
            one(1, **wrong)
    with pytest.raises(MiaError, match="takes index first"):
        made(trained, "toy/trained", momentum=0.9)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"models": 2, "scal": 2.0}, "Did you mean 'scale'"),
        ({"models": 2, "scale": float("nan")}, "plain values"),
        ({"models": 2, "source": Path("x")}, "plain values"),
        *(
            (wrong, "index")
            for wrong in (
                {},
                {"models": 2, "index": range(2)},
                {"index": range(0)},
                {"index": 3},
                {"index": range(-2, 0)},
                {"index": "ab"},
            )
        ),
    ],
)
def test_a_wrong_call_is_refused_before_anything_is_measured(wrong, said):
    with pytest.raises(MiaError, match=said):
        PARENT(**wrong)
    assert CALLS == []
    with pytest.raises(MiaError, match="takes index first"):
        made(probe={"index": range(2), "seed": 1})


def test_published_blocks_are_read_before_anything_is_measured_and_each_is_written_once(
    tmp_path, monkeypatch
):
    written = PARENT.publish(range(6), {})
    assert [path.name for path in written] == ["squares-000-003.json", "squares-004-005.json"]
    manifest = json.loads(written[0].read_text())
    assert manifest["parameters"] == {"scale": 1.0, "source": "none"}
    assert manifest["edition"] == 1
    assert "code" not in manifest
    assert {
        "device",
        "seconds",
        "peak_memory_mb",
        "versions",
        "date",
        "commit",
        "sha256",
    } <= manifest.keys()
    before = [path.stat().st_mtime_ns for path in written]
    assert set(measured(PARENT.publish, range(6), {})) <= {0, 1}  # the probe's
    forgotten()
    assert measured(PARENT, 6) == []
    assert PARENT(6).margin[5, 0] == 5
    assert PARENT.publish(range(6), {}) == []
    assert [path.stat().st_mtime_ns for path in written] == before
    assert [path.name for path in PARENT.publish(range(8), {"scale": 1.0})] == [
        "squares-006-007.json"
    ]
    assert published.ls().set_index("name").loc["toy/squares", "models"] == 8
    assert PARENT.publish(range(2), {"scale": 0.5})[0].name == "squares-scale-0.5-000-001.json"
    assert published.load("toy/squares", 1, ["margin"], scale=0.5).arrays.keys() == {"margin"}
    for usual in (
        {},
        {"scale": 1.0},
    ):  # another set beside it changes nothing for who asks for none
        assert published.load("toy/squares", **usual).margin.shape == (8, 5)
    for call, said in (
        (lambda: published.load("toy/square"), "Did you mean 'toy/squares'"),
        (lambda: published.load("toy/squares", scal=2), "Did you mean 'scale'"),
        (
            lambda: published.load("toy/squares", 9, scale=1.0),
            "8 models of toy/squares are published.*`mia publish toy/squares --models 9` measures",
        ),
        (
            lambda: published.load("toy/squares", 3, scale=0.5),
            "`mia publish toy/squares --models 3 -p scale 0.5` measures",
        ),
        (lambda: published.load("toy/squares", 2, ["loss"], scale=1.0), "arrays = 'loss'"),
    ):
        with pytest.raises(MiaError, match=said):
            call()
    monkeypatch.setenv("GIT_DIR", str(tmp_path))  # as of a book that came as a ZIP file
    for source in ("a/b", "a b"):  # written alike in a name
        [path] = PARENT.publish(range(2), {"source": source})
        assert json.loads(path.read_text())["commit"] == ""
    assert len(manifests()) == 6
    assert published.load("toy/squares", source="a/b").margin.shape == (2, 5)
    for source in ("a/b", "a b"):
        PARENT.publish(range(1), {"source": source, "scale": 2.0})
    with pytest.raises(MiaError, match="6 sets of parameters, of which 2 have {'scale': 2.0}"):
        published.load("toy/squares", scale=2.0)


def test_a_damaged_piece_is_said_and_never_served():
    [path] = PARENT.publish(range(4), {})
    data = path.with_suffix(".npz")
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(content)
    with pytest.raises(MiaError, match="damaged.*Bring it back"):
        published.load("toy/squares")
    with pytest.warns(UserWarning, match="damaged"):
        assert measured(PARENT, 4) == []  # the working cache had it
    with pytest.warns(UserWarning, match="damaged"):
        assert PARENT.publish(range(4), {}) == [path]  # and so it is whole again
    assert published.load("toy/squares").margin[3, 0] == 3
    data.unlink()
    forgotten("*.npz")
    with pytest.warns(UserWarning, match="damaged"):
        assert measured(PARENT, 1) == [0]


def test_another_edition_is_not_served(monkeypatch):
    PARENT.publish(range(2), {})
    with monkeypatch.context() as patch:
        patch.setattr("mia_lib.training.EDITION", 99)
        assert PARENT.available(PARENT.complete({})) == []
    register(monkeypatch, made(edition=2))
    machinery.define(newer := made(edition=2))
    assert newer.available(PARENT.complete({})) == [] and published.ls().empty


def test_a_probe_that_gives_something_else_stops_publishing_until_the_edition_is_raised(
    monkeypatch,
):
    PARENT.publish(range(2), {})

    def changed(index: range, scale: float = 1.0, source: str = "none"):
        return {
            name: array + np.float16(0.1) if array.dtype != bool else array
            for name, array in squares(index).items()
        }

    assert "margin is apart by 0.098" in made(changed).check_probe()  # beyond the last digit
    with pytest.raises(MiaError, match="raise its edition"):
        made(changed).publish(range(4), {})
    again = made(changed, edition=2)
    register(monkeypatch, again)
    assert [path.name for path in again.publish(range(2), {})] == ["squares-000-001.json"]
    assert published.load("toy/squares").margin[0, 0] == np.float16(0.1)
    assert again.check_probe() == ""
    with pytest.raises(MiaError, match="No probe of edition 1"):
        PARENT.check_probe()
    assert (
        publishing.differences(
            {"a": np.float16([-2.2, -2.2, -2.199])}, {"a": np.float16([-2.2, -2.199, -2.199])}
        )
        == ""
    )
    one, other = (
        {name: np.arange(1000) == row for name in ("members", "correct")} for row in (-1, 3)
    )
    assert publishing.differences(one, other) == "members is another in 0.1% of its entries"
    assert (
        publishing.differences({"steps": np.zeros((3, 0), int)}, {"steps": np.zeros((3, 0), int)})
        == ""
    )


def test_what_was_made_from_a_piece_goes_when_that_is_measured_anew(monkeypatch):
    grandchild = made(lambda index: {"root": np.sqrt(CHILD(index=index).root)}, "toy/fourth")
    with pytest.raises(
        MiaError, match="toy/squares, of which the same is not published. Publish that first"
    ):
        CHILD.publish(range(4), {})  # two chunks in the cache, one published block
    [mine] = PARENT.publish(range(4), {})
    CALLS.clear()
    [path] = CHILD.publish(range(4), {})
    assert set(CALLS) <= {0, 1}  # the probe's
    [named] = json.loads(path.read_text())["parents"]
    assert (named["name"], named["sha256"]) == (
        "toy/squares",
        json.loads(mine.read_text())["sha256"],
    )
    PARENT.publish(range(8), {})  # more models change nothing
    grandchild.publish(range(2), {})
    assert CHILD.available({}) and grandchild.available({})
    register(monkeypatch, made(edition=2), CHILD, grandchild)
    assert CHILD.available({}) == [] and grandchild.available({}) == [], "and what was made of it"
    register(monkeypatch, PARENT, CHILD, grandchild)
    mine.unlink()
    forgotten("squares*")
    assert CHILD.available({}) == []


def test_a_number_is_the_same_parameter_however_it_is_written():
    PARENT.publish(range(2), {"scale": 2})
    PARENT.publish(range(4), {"scale": np.float32(2.0)})
    assert measured(PARENT, 4, scale=np.int64(2)) == []
    assert len(published.load("toy/squares", scale=2)) == 4
    PARENT(1, scale=1.0)
    assert measured(PARENT, 1, scale=True) == [0]  # a yes is no number


FORM = {"dtype": "float16", "shape": [4, 5]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (None, "damaged"),
        ({"index": [0, 5]}, "index is"),
        ({"index": [0, 4, 2]}, "damaged"),
        ({"sha256": 3}, "sha256 is 3"),
        ({"file": "/etc/hosts"}, "not beside it"),
        ({"file": ""}, "not beside it"),
        ({"file": "a\0b"}, "not beside it"),
        ({"seconds": float("nan")}, "seconds is nan"),
        ({"seconds": -1}, "seconds is -1"),
        ({"bytes": 10**400}, "bytes is 1000"),
        ({"device": "<img src=x>"}, "device is"),
        ({"device": "\x1b[2J"}, "device is"),
        ({"date": "[1](javascript:x)"}, "date is"),
        ({"parents": [{"name": [], "edition": 1, "sha256": ""}]}, "made from"),
        ({"arrays": {}}, "holds margin, members"),
        ({"arrays": {"margin": FORM}}, "holds margin, members"),
        (
            {"arrays": {"margin": FORM | {"shape": [4, 6]}, "members": FORM | {"dtype": "bool"}}},
            "margin is",
        ),
        (
            {"arrays": {"margin": FORM, "members": {"dtype": "bool", "shape": [4, 50]}}},
            "members is",
        ),
    ],
)
def test_a_manifest_that_was_edited_by_hand_is_said_and_its_models_are_measured_anew(change, said):
    [path] = PARENT.publish(range(4), {})
    forgotten()
    path.write_text(
        json.dumps(json.loads(path.read_text()) | change) if change else path.read_text()[:40]
    )
    with pytest.warns(UserWarning, match=said):
        assert measured(PARENT, 4) == [0, 1, 2, 3]
    with pytest.warns(UserWarning, match=said):
        PARENT.publish(range(4), {})
    assert len(published.load("toy/squares")) == 4


def test_a_manifest_of_more_models_than_memory_holds_is_left_out():
    [path] = PARENT.publish(range(4), {})
    huge = json.loads(path.read_text()) | {"index": [0, 10**12]}
    huge["arrays"] = {
        name: form | {"shape": [10**12, *form["shape"][1:]]}
        for name, form in huge["arrays"].items()
    }
    path.with_name(f"squares-000-{10**12 - 1}.json").write_text(
        json.dumps(huge | {"file": f"squares-000-{10**12 - 1}.npz"})
    )
    with pytest.warns(UserWarning, match="index is"):
        assert published.ls()["models"].tolist() == [4]


def test_a_piece_that_is_said_to_come_from_itself_is_not_used():
    PARENT.publish(range(2), {})
    [path] = CHILD.publish(range(2), {})
    forgotten()
    of_child = json.loads(path.read_text())
    for mine in (path, manifests()[1]):  # of itself; of its own child
        was = json.loads(mine.read_text())
        mine.write_text(
            json.dumps(
                was | {"parents": [{key: of_child[key] for key in ("name", "edition", "sha256")}]}
            )
        )
        with pytest.warns(UserWarning, match="made from itself.*not used"):
            assert CHILD.available({}) == [] and "toy/roots" not in set(published.ls()["name"])
        mine.write_text(json.dumps(was))
    path.write_text("[" * 100_000)
    with pytest.warns(UserWarning, match="damaged"):
        assert published.ls()["name"].tolist() == ["toy/squares"]


@pytest.mark.parametrize(
    "damage",
    [
        "[]",
        "{",
        '{"toy/squares": 5}',
        '{"toy/squares": {}}',
        '{"toy/squares": {"edition": 1, "training_edition": 1, "defaults": null}}',
        '{"toy/*": {"edition": 1, "training_edition": 1, "defaults": {}}}',
        '{"/etc/toy": {"edition": 1, "training_edition": 1, "defaults": {}}}',
    ],
)
def test_damaged_definitions_are_named(damage):
    PARENT.publish(range(2), {})
    path = published.folder() / DEFINITIONS
    sound = path.read_bytes()
    path.write_text(damage)
    for call in (published.ls, lambda: published.load("toy/squares")):
        with pytest.raises(MiaError, match="definitions.json .*Run `mia sync`"):
            call()
    with pytest.raises(MiaError, match="definitions.json"):
        PARENT.publish(range(2, 4), {})
    path.write_bytes(sound)
    assert len(published.load("toy/squares")) == 2


def test_parents_that_many_are_made_from_are_asked_once(monkeypatch):
    """A chain in which each names its parent twice was walked through in 2^24 ways."""
    [path] = PARENT.publish(range(4), {})
    sound = json.loads(path.read_text())
    for k in range(24):
        before = [{"name": "toy/squares", "edition": 1, "sha256": f"{k - 1:064}"}] * 2 * (k > 0)
        manifest = {**sound, "sha256": f"{k:064}", "file": f"squares-{k}-000-003.npz"}
        path.with_name(f"squares-{k}-000-003.json").write_text(
            json.dumps(manifest | {"parents": before})
        )
    answers, asked = publishing.Measurement.answers, []

    def counted(*given, **named):
        asked.append(given)
        assert len(asked) < 1000
        return answers(*given, **named)

    monkeypatch.setattr(publishing.Measurement, "answers", counted)
    assert len(publishing.groups()[0][2]) == 25
    assert published.ls()["models"].tolist() == [4]


def test_of_nothing_that_is_published_the_columns_are_listed():
    assert published.ls()["name"].tolist() == []


def test_a_probe_that_is_damaged_or_gone_stops_publishing():
    PARENT.publish(range(2), {})
    whole = PARENT.probe_path.read_bytes()
    for content in (b"", b"junk", whole[:50]):
        PARENT.probe_path.write_bytes(content)
        with pytest.raises(MiaError, match="probe .* cannot be read.*Bring it back"):
            PARENT.publish(range(4), {})
    PARENT.probe_path.unlink()
    with pytest.raises(MiaError, match="Bring .* back, or raise its edition"):
        PARENT.publish(range(4), {})


def test_the_users_own_file_is_known_by_its_content_and_may_not_be_edited_while_it_is_measured(
    tmp_path, monkeypatch
):
    own = tmp_path / "mine.csv"
    for text in ("1,2", "1,3"):
        own.write_text(text)
        assert measured(PARENT, 1, source=str(own)) == [0]
        assert measured(PARENT, 1, source=str(own)) == []
    monkeypatch.chdir(tmp_path)
    assert measured(PARENT, 1, source="cifar10") == [0]
    (tmp_path / "cifar10").write_text("a folder of the reader's with a file of that name")
    assert measured(PARENT, 1, source="cifar10") == []

    def editing(index: range, source: str = ""):
        own.write_text("1,4")
        return {"margin": np.zeros((len(index), 1))}

    with pytest.raises(MiaError, match="was edited while"):
        made(editing, "toy/editing")(1, source=str(own))
    assert not list(writing.cache().rglob("editing*.json"))


def test_what_the_users_own_module_imports_is_known_by_its_content_and_a_package_too(
    tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_package").mkdir()
    seen = []
    for path, text in (
        ("my_package/__init__.py", ""),
        ("my_helper.py", "depth = 2"),
        ("my_package/sizes.py", "width = 3"),
        ("my_package/nets.py", "import torch\nfrom .sizes import width\nimport my_helper"),
        ("my_package/sizes.py", "width = 4"),
        ("my_helper.py", "depth = 3"),
    ):
        (tmp_path / path).write_text(text)
        if (tmp_path / "my_package" / "nets.py").exists():
            seen.append(
                machinery._own_content({"architecture": "my_package.nets:Net(2)"})["architecture"]
            )
    assert len(set(seen)) == 3 and "my_package" not in sys.modules
    assert (
        machinery._own_content(
            {"architecture": "batchnorm_cnn:24,48,96", "dataset": "cifar10", "seed": 0}
        )
        == {}
    )


def test_a_published_piece_names_no_code_that_is_not_known_by_its_hash(tmp_path, monkeypatch):
    code, mine = f"subprocess:getoutput('touch {tmp_path}/ran')", "my_followed:net"
    [path] = PARENT.publish(range(2), {})
    forgotten()
    sound = json.loads(path.read_text())
    path.write_text(json.dumps(sound | {"parameters": {"scale": 1.0, "source": code}}))
    with pytest.warns(UserWarning, match="source is .*getoutput.* runs no such code"):
        assert publishing.groups() == []
    claimed = {"parameters": {"scale": 1.0, "source": code}, "own": {"source": "0" * 64}}
    path.write_text(json.dumps(sound | claimed))
    assert publishing.groups() == []
    assert measured(PARENT, 1, source=code) == [0] and measured(PARENT, 1, source=code) == []
    with pytest.raises(MiaError, match="runs no such code"):
        PARENT.publish(range(2), {"source": code})
    of_the_book = "mia_book.pages.runner:run('x', None, None, 'out', root='book')"  # anybody's
    own = machinery._own_content({"source": of_the_book})
    claimed = {"parameters": {"scale": 1.0, "source": of_the_book}, "own": own}
    path.write_text(json.dumps(sound | claimed))
    with pytest.warns(UserWarning, match="source is .*runner:run.* runs no such code"):
        assert own and publishing.groups() == []
    path.unlink()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "os:system('.x')").touch()  # a file by the name of code
    with pytest.raises(MiaError, match="runs no such code"):
        PARENT.publish(range(2), {"source": "os:system('.x')"})
    (tmp_path / "my_followed.py").write_text("def net(): pass")
    PARENT.publish(range(2), {"source": mine})
    assert published.load("toy/squares", source=mine).parameters["source"] == mine


def test_other_code_retrains_in_the_working_cache_and_leaves_published_pieces_alone(monkeypatch):
    PARENT.publish(range(2), {})
    PARENT(4)
    monkeypatch.setattr(store, "code_of", lambda rooms, *modules: "edited")
    assert measured(PARENT, 4) == [2, 3]


def test_files_and_the_whole_are_limited(monkeypatch):
    for limit, said in (
        ("FILE_LIMIT", "limit of a published file"),
        ("TOTAL_LIMIT", "is the limit"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(writing, limit, 10)
            with pytest.raises(MiaError, match=said):
                PARENT.publish(range(2), {})
    assert manifests() == []
    monkeypatch.setattr(writing, "TOTAL_LIMIT", 100_000)
    # of a process that was killed
    (published.folder() / ".writing-1-x").write_bytes(bytes(200_000))
    assert len(PARENT.publish(range(2), {})) == 1


def test_on_a_full_disk_nothing_finished_is_lost_and_nothing_half_is_left(monkeypatch):
    write = store.write

    def full(path, data):
        if path.name.startswith("squares-004"):
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, data)

    with (
        monkeypatch.context() as patch,
        pytest.raises(MiaError, match="No space left.*finished before is kept"),
    ):
        patch.setattr(store, "write", full)
        PARENT(6)
    assert measured(PARENT, 6) == [4, 5] and PARENT(6).margin[5, 0] == 5
    assert not [path for path in writing.cache().rglob(".writing*")]


SCRIPT = """
import sys, time, os
import numpy as np
from mia_book import publishing
from mia_book import publishing
from mia_lib import published
from mia_book.publishing import measurements as machinery

def slow(index: range):
    time.sleep(0.1)
    with open(sys.argv[1], "a+") as log:
        print(*index, file=log, flush=True)
        log.seek(0)
        if len(log.readlines()) == 4:
            os.kill(os.getpid(), 9)
    return {"margin": np.array(index, float)[:, None]}

one = publishing.measurement("toy/slow", probe={"index": range(1)}, chunk=1, block=6)(slow)
machinery.catalogue = lambda: {"toy/slow": one}
if __name__ == "__main__":
    one.publish(range(6), {})
"""


def processes(tmp_path, count: int) -> list[int]:
    """Exit codes of processes that publish at once. Whichever measures for the fourth time, probes included, is killed."""
    (tmp_path / "slow.py").write_text(SCRIPT)
    repository = str(Path(published.__file__).parents[2])
    started = [
        subprocess.Popen(
            [sys.executable, str(tmp_path / "slow.py"), str(tmp_path / "log")],
            env=os.environ | {"PYTHONPATH": repository},
        )
        for _ in range(count)
    ]
    return [one.wait(timeout=600) for one in started]


def test_where_one_was_killed_in_the_middle_of_a_block_two_at_once_go_on_and_measure_each_model_once(
    tmp_path,
):
    assert processes(tmp_path, 1) == [-signal.SIGKILL] and manifests() == []
    assert processes(tmp_path, 2) == [0, 0]
    before, anew = np.split(np.loadtxt(tmp_path / "log", int), [4])
    assert before.tolist() == [0, 0, 1, 2], (
        "the probe and three models, of which the last was not finished"
    )
    assert sorted(anew) == [0, 0, 2, 3, 4, 5], "the probe of each, and what was not finished, once"
    assert [path.name for path in manifests()] == ["slow-000-005.json"]


def test_models_are_measured_as_long_as_there_is_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(machinery.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(machinery.time, "perf_counter", lambda: now[0])

    def slow(index: range):
        now[0] += 10 * len(index)
        return {"margin": np.zeros((len(index), 1))}

    one = made(slow, "toy/slow")
    register(monkeypatch, one)
    one.keep_probe()
    now[0] = 0.0
    written = one.publish(range(8), {}, until=85.0, each=10.0)
    assert [path.name for path in written] == ["slow-000-003.json", "slow-004-005.json"]
    assert now[0] == 80  # the probe, and three chunks


def test_the_cost_is_scaled_from_the_nearest_piece(monkeypatch):
    def study(index: range, records: int = 100, epochs: int = 10, width: int = 1):
        return {"margin": np.zeros((len(index), 1))}

    def seconds(of, models, **settings):
        return of.seconds(models, one.complete(settings))

    one = made(study, "toy/study")
    assert seconds(one, 1) is None and "nothing tells" in one.cost_in_words(1, one.complete({}))
    for settings, took in (({}, 8.0), ({"width": 2}, 80.0)):
        [path] = one.publish(range(4), settings)
        path.write_text(json.dumps(json.loads(path.read_text()) | {"seconds": took}))
        forgotten("*")
    assert seconds(one, 3) == pytest.approx(6)
    assert seconds(one, 1, records=200, epochs=30) == pytest.approx(2 * 2 * 3)
    assert seconds(one, 1, records=200, width=2) == pytest.approx(20 * 2)
    # nothing of this name is there, but of what asks the same
    longer = made(study, "toy/study-longer", epochs=40)
    register(monkeypatch, one, longer)
    assert longer.seconds(1, longer.complete({})) == pytest.approx(2 * 4)
    asked = made(study, "toy/study", cost=lambda parameters: parameters["width"] ** 3)
    assert seconds(asked, 1, width=4, records=200) == pytest.approx(20 * 8)
    monkeypatch.setenv("MIA_MOST_SECONDS", "30")
    with pytest.raises(
        MiaError,
        match="about 40 s here. A run measures at most 30 s unasked: `--preset quick` .* `--yes`",
    ):
        one(index=[5, 6], width=2)
    assert len(one(index=[5], width=2)) == 1  # 20 s are few enough


def test_a_file_is_of_one_device(monkeypatch):
    PARENT(2)
    circumstances = writing.circumstances
    monkeypatch.setattr(writing, "circumstances", lambda: circumstances() | {"device": "a card"})
    written = PARENT.publish(range(4), {})
    assert sorted(
        (path.name, json.loads(path.read_text())["device"] == "a card") for path in written
    ) == [("squares-000-001.json", False), ("squares-002-003.json", True)]


def test_models_that_were_found_count_with_what_they_took(monkeypatch):
    spec = {"kind": "model", "m": 1, "code": "x"}
    store.keep(spec, {"w": np.zeros(1)}, seconds=30.0)

    def asks(index: range):
        store.look_up(spec), store.look_up(spec)
        return {"margin": np.zeros((len(index), 1))}

    monkeypatch.setattr(machinery.time, "perf_counter", lambda: 0.0)
    [manifest] = made(asks, "toy/asks")(1).manifests
    assert manifest["seconds"] == pytest.approx(30 / writing.processes(), rel=0.005)
