"""An audit of a language model by what it says of each token: what it finds, and every way to give it something else."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from mia_lib import audit, data
from mia_lib.attacks import text
from mia_lib.audit import tokens as of_tokens
from mia_lib.cli import app
from mia_lib.data import readers
from mia_lib.errors import MiaError
from mia_lib.signals import tokens

N = 150
WORDS = np.array("and but the sea sky sun moon light dark day night said went came".split())


def answers(seed, lead=0.0, **further):
    """What a model says of N records, `lead` nats a token more likely than usual, and of them one reference."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, 30, N)
    usual = np.repeat(rng.normal(3, 0.5, N), lengths) + rng.exponential(1, lengths.sum())
    noise = rng.normal(0, 0.1, (2, lengths.sum()))
    ends = np.cumsum(lengths)[:-1]
    return {
        "log_prob": np.split(-usual + lead + noise[0], ends),
        "mean": np.split(np.full(len(usual), -4.0), ends),
        "variance": np.split(np.ones(len(usual)), ends),
        "reference_log_prob": [np.split(-usual + noise[1], ends)],
        "text": [f"{seed} {k} " + " ".join(rng.choice(WORDS, 12)) for k in range(N)],
        **further,
    }


def without(given, *names):
    return {name: value for name, value in given.items() if name not in names}


def aucs(report):
    return {attack.name: attack.auc.value for attack in report.result.attacks}


def test_a_leak_is_found_by_the_reference_and_none_where_there_is_none():
    leaking = audit.audit_tokens(answers(1, 0.3), answers(2))
    assert leaking.leak and leaking.result.best.attack == "calibrated loss"
    found = aucs(leaking)
    assert list(found) == ["loss", "Min-K%", "Min-K%++", "zlib", "calibrated loss"]
    assert found["calibrated loss"] > 0.95 > found["loss"] > 0.5
    assert not audit.audit_tokens(answers(1), answers(2)).leak


def test_attacks_follow_from_what_is_there():
    plain = [
        without(answers(k, 0.3), "mean", "variance", "reference_log_prob", "text") for k in (1, 2)
    ]
    assert list(aucs(audit.audit_tokens(*plain))) == ["loss", "Min-K%"]
    rng = np.random.default_rng(0)
    several = [answers(k) for k in (1, 2)]
    for one in several:
        one["reference_members"] = np.arange(N) % 2 == np.arange(6)[:, None] % 2
        flat = np.concatenate(one["log_prob"])
        one["reference_log_prob"] = [
            np.minimum(flat + rng.normal(0, 0.1, len(flat)), 0) for _ in range(6)
        ]
    found = aucs(audit.audit_tokens(*several))
    assert {"LiRA", "BASE", "MAST (best split)"} < {*found}


def test_numbers_one_after_the_other_are_those_in_lists_and_tokens_that_do_not_count_are_left_out():
    lists = without(answers(1, 0.3), "text")
    lengths = [len(row) for row in lists["log_prob"]]
    flat = {name: np.concatenate(lists[name]) for name in ("log_prob", "mean", "variance")}
    flat |= {
        "lengths": lengths,
        "reference_log_prob": np.concatenate(lists["reference_log_prob"][0])[None],
    }
    one, two = of_tokens.read(lists, "lists"), of_tokens.read(flat, "flat")
    np.testing.assert_array_equal(one.log_prob, two.log_prob)
    np.testing.assert_allclose(one.reference_loss, two.reference_loss)
    prompt = [np.arange(n) >= 2 for n in lengths]
    counted = of_tokens.read({**lists, "counted": prompt}, "counted")
    shorter = of_tokens.read({"log_prob": [row[2:] for row in lists["log_prob"]]}, "shorter")
    np.testing.assert_array_equal(counted.log_prob, shorter.log_prob)
    np.testing.assert_array_equal(counted.offsets, shorter.offsets)
    assert np.allclose(
        text.loss(counted.log_prob, counted.offsets), text.loss(shorter.log_prob, shorter.offsets)
    )


@pytest.mark.parametrize(
    "change, message",
    [
        ({"log_prob": [[0.5, 0.2]] * N}, "seem to be probabilities"),
        ({"log_prob": [[1.5, 2.0]] * N}, "at most 0"),
        ({"log_prob": [[-1.0, np.nan]] * N}, "finite|NaN"),
        ({"log_prob": [[-1.0, -np.inf]] * N}, "finite|NaN|infin"),
        ({"log_prob": [[-1.0, 0.0]] * N}, "padding or a masked prompt"),
        ({"log_prob": np.zeros((N, 4)) - 1}, "of padded rows give a list"),
        ({"log_prob": np.zeros(9) - 1}, "lengths say how many"),
        ({"log_prob": [[None, -1.0]] * N}, "as endpoints give for the first token"),
        ({"log_prob": [None, -1.0] * N, "lengths": [2] * N}, "as endpoints give for the first"),
        ({"reference_log_prob": np.zeros(9) - 1}, r"of a single one give reference_log_prob\[None\]"),
        ({"lengths": [3] * N}, "one number a predicted token"),
        ({"lengths": [0] * N}, "whole numbers from 1"),
        ({"mean": None}, "mean and variance belong together"),
        ({"mean": [[1.0]] * N}, "one number a predicted token"),
        ({"text": ["one"]}, "1 texts"),
        ({"text": "a" * N}, "a list of texts is needed"),
        ({"text": ["one"] * (N - 1) + [None]}, f"no text, the first is number {N - 1}, None"),
        ({"text": [b"one"] * N}, "decode bytes"),
        ({"reference_log_prob": []}, "of one at least"),
        ({"reference_log_prob": {"base": 1}}, "a row for each reference is needed"),
        ({"reference_members": np.ones((2, N), bool)}, "a row for each of the references"),
        ({"reference_members": np.ones((1, N), bool)}, "in the training set of every reference"),
        ({"counted": "none"}, "have no token that counts"),
        ({"counted": "labels"}, "counted.* holds other values than True and False, such as -100"),
        ({"counted": "backwards"}, "Do the rows stand in another order"),
        ({"logprob": []}, "'logprob', which is none of"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_by_its_name(change, message):
    wrong = answers(1) | change
    if change.get("mean", 0) is None:
        del wrong["mean"]
    if change.get("counted") == "none":
        wrong["counted"] = [np.zeros(len(row), bool) for row in wrong["log_prob"]]
    if change.get("counted") == "labels":
        wrong["counted"] = [np.where(row > -3, 17, -100) for row in wrong["log_prob"]]
    if change.get("counted") == "backwards":
        wrong["counted"] = [np.ones(len(row), bool) for row in wrong["log_prob"][::-1]]
    if (
        "log_prob" in change
        and np.ndim(change["log_prob"]) < 2
        or np.shape(change.get("log_prob")) == (N, 4)
    ):
        wrong = {name: change[name] for name in ("log_prob", "lengths") if name in change}
    other = answers(2)
    if "reference_members" in change:
        other["reference_members"] = change["reference_members"]
    with pytest.raises(MiaError, match=message):
        audit.audit_tokens(wrong, other)


def test_members_and_others_have_the_same_and_share_no_text():
    with pytest.raises(MiaError, match="Only one of members and non_members has mean"):
        audit.audit_tokens(answers(1), without(answers(2), "mean", "variance"))
    with pytest.raises(MiaError, match="Only one of members and non_members has counted"):
        counted = [np.arange(len(row)) > 0 for row in answers(1)["log_prob"]]
        audit.audit_tokens({**answers(1), "counted": counted}, answers(2))
    message = (
        "150 records of non_members are in members, too, by text, such as number 0: .* Is one file"
    )
    with pytest.raises(MiaError, match=message):
        audit.audit_tokens(answers(1), {**answers(2), "text": answers(1)["text"]})
    plain = {"log_prob": answers(1)["log_prob"]}
    with pytest.raises(MiaError, match="Is one file given for both"):
        audit.audit_tokens(plain, {"log_prob": plain["log_prob"][::-1]})


def rows_of(given, rows):
    """Of `answers` these records, in this order."""
    taken = {
        name: [values[row] for row in rows]
        for name, values in given.items()
        if name != "reference_log_prob"
    }
    [reference] = given["reference_log_prob"]
    return {**taken, "reference_log_prob": [[reference[row] for row in rows]]}


def test_a_text_that_is_there_twice_is_refused_or_left_out(tmp_path):
    members, others = answers(1, 0.3), answers(2)
    # a member twice, a non-member twice, and a member among the others
    both = {
        name: [*others[name], members[name][7]] for name in without(others, "reference_log_prob")
    }
    [of_others], [of_members] = others["reference_log_prob"], members["reference_log_prob"]
    both["reference_log_prob"] = [[*of_others, of_members[7]]]
    more = rows_of(members, [*range(N), 3]), rows_of(both, [*range(N + 1), 5])
    with pytest.raises(MiaError, match="members holds 1 records .* by text, such as number 150"):
        audit.audit_tokens(*more)
    with pytest.raises(MiaError, match="non_members holds 1 records .* such as number 151"):
        audit.audit_tokens(members, more[1])
    with pytest.raises(MiaError, match="1 records of non_members are in members, too, by text"):
        audit.audit_tokens(members, both)
    nameless = [without(given, "text") for given in more]
    with pytest.raises(
        MiaError, match="members holds 1 .* by the log probabilities of their tokens"
    ):
        audit.audit_tokens(*nameless)
    ids = [f"text {k}" for k in range(2 * N + 3)]
    clean = audit.audit_tokens(members, others)
    for given in (more, nameless):
        report = audit.audit_tokens(*given, deduplicate=True, ids=ids)
        assert dict(report.inputs.left_out) == {"members": 1, "non_members": 2}
        for name in ("loss", "Min-K%++", "calibrated loss"):
            np.testing.assert_allclose(report.scores[name], clean.scores[name])
        said = " ".join(report.text("shows"))
        assert "Left out, as records that were there before by content: 1 of members, 2 of" in said
        assert report.inputs.ids.tolist() == [*ids[:N], *ids[N + 1 : 2 * N + 1]]
    for name, given in zip(("in", "out"), more, strict=True):
        flat = {"log_prob": np.concatenate(given["log_prob"]), "text": np.array(given["text"])}
        np.savez(tmp_path / f"{name}.npz", lengths=[len(row) for row in given["log_prob"]], **flat)
    files = ["--tokens", str(tmp_path / "in.npz"), "--non-members", str(tmp_path / "out.npz")]
    asked = ["audit", *files, "-o", str(tmp_path / "audit")]
    refused = CliRunner().invoke(app, asked)
    assert refused.exit_code == 2 and "--deduplicate on the command line" in refused.output
    assert CliRunner().invoke(app, [*asked, "--deduplicate"]).exit_code == 0


def test_references_that_know_more_members_than_others_are_refused():
    rng = np.random.default_rng(0)
    several = [answers(k) for k in (1, 2)]
    for one, known in zip(several, (3, 2), strict=True):
        flat = np.concatenate(one["log_prob"])
        one["reference_log_prob"] = [flat - rng.exponential(0.1, len(flat)) for _ in range(5)]
        one["reference_members"] = np.argsort(rng.random((5, N)), 0) < known
    with pytest.raises(MiaError, match="5 references 3 were trained on a member on average, and 2"):
        audit.audit_tokens(*several)


def test_what_is_none_is_left_out_and_rows_may_be_tensors_or_a_column():
    plain = answers(1)
    empty = dict.fromkeys(("mean", "variance", "counted", "reference_log_prob", "text"))
    rows = of_tokens.read({"log_prob": plain["log_prob"]}, "rows").log_prob
    for log_prob in (
        pd.Series(plain["log_prob"], index=np.arange(N) + 5),
        [torch.tensor(row) for row in plain["log_prob"]],
    ):
        made = of_tokens.read({"log_prob": log_prob, **empty}, "rows")
        np.testing.assert_array_equal(made.log_prob, rows)
        assert made.mean is None and made.texts is None
    coarse = [torch.tensor(row).bfloat16() for row in plain["log_prob"]]
    np.testing.assert_allclose(
        of_tokens.read({"log_prob": coarse}, "rows").log_prob, rows, rtol=0.01
    )
    with pytest.raises(MiaError, match="Only one of members and non_members has counted"):
        counted = [np.arange(len(row)) > 0 for row in plain["log_prob"]]
        audit.audit_tokens({**plain, "counted": counted}, {**answers(2), "counted": None})


def test_a_mean_that_is_none_of_the_models_own_distribution_is_warned_of():
    flat = {**answers(2), "mean": [4 * row for row in answers(2)["mean"]]}
    with pytest.warns(UserWarning, match="the sum of p log p over the vocabulary"):
        audit.audit_tokens(answers(1), flat)


def test_log_probabilities_that_are_shifted_are_warned_of():
    shifted = {**answers(2), "log_prob": [4 * row - 5 for row in answers(2)["log_prob"]]}
    with pytest.warns(UserWarning, match="shifted by one token"):
        audit.audit_tokens(answers(1), shifted)


def test_a_difference_of_words_or_of_lengths_decides_nothing():
    other = {**answers(2, -0.3), "text": ["yesterday " + one for one in answers(2)["text"]]}
    report = audit.audit_tokens(answers(1), other)
    assert report.leak is None and "without the model" in report.answer
    longer = without(answers(3), "text", "mean", "variance", "reference_log_prob")
    longer["log_prob"] = [np.tile(row, 3) for row in longer["log_prob"]]
    report = audit.audit_tokens(
        without(answers(1), "text", "mean", "variance", "reference_log_prob"), longer
    )
    assert report.leak is None


def test_a_model_of_transformers_is_asked_in_a_few_lines():
    readers.import_torchvision()  # which transformers does, too, also where its extension does not fit
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=50,
        n_positions=32,
        n_embd=16,
        n_layer=1,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config)
    rng = np.random.default_rng(0)
    ids = [rng.integers(0, 50, rng.integers(5, 20)) for _ in range(120)]
    said = tokens.model_statistics(model, data.from_tokens(ids, "mine", 50).x)
    for k, row in enumerate(ids):
        with torch.no_grad():
            log_p = model(torch.tensor(row)[None]).logits[0, :-1].log_softmax(-1)
        own = log_p.gather(-1, torch.tensor(row[1:, None]))[:, 0].numpy()
        here = slice(*said.offsets[k : k + 2])
        np.testing.assert_allclose(said.log_prob[here], own, rtol=1e-4, atol=1e-5)
    first = {"log_prob": said.log_prob[: said.offsets[60]], "lengths": np.diff(said.offsets)[:60]}
    rest = {"log_prob": said.log_prob[said.offsets[60] :], "lengths": np.diff(said.offsets)[60:]}
    assert len(audit.audit_tokens(first, rest).scores["loss"]) == 120


def test_the_command_line_takes_two_files(tmp_path):
    for name, given in (("in", answers(1, 0.3)), ("out", answers(2))):
        arrays = {key: np.concatenate(given[key]) for key in ("log_prob", "mean", "variance")}
        arrays |= {"reference_log_prob": np.concatenate(given["reference_log_prob"][0])[None]}
        lengths = [len(row) for row in given["log_prob"]]
        np.savez(tmp_path / f"{name}.npz", **arrays, lengths=lengths, text=np.array(given["text"]))
    asked = ["audit", "--tokens", str(tmp_path / "in.npz"), "-o", str(tmp_path / "audit")]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 2 and "--non-members is missing" in result.output
    others = ["--non-members", str(tmp_path / "out.npz"), "--groups", "source"]
    result = CliRunner().invoke(app, [*asked, *others])
    assert result.exit_code == 2 and "makes no use of --groups" in result.output
    result = CliRunner().invoke(app, [*asked, "--non-members", str(tmp_path / "out.npz")])
    assert result.exit_code == 0, result.output
    numbers = json.loads((tmp_path / "audit" / "audit.json").read_text())
    assert numbers["leak"] and numbers["headline"]["attack"] == "calibrated loss"
    page = (tmp_path / "audit" / "audit.html").read_text()
    page = " ".join(page.split())
    assert "the log probability that the model gives to each" in page
    assert "Whether the model recites texts that it was trained on was not tested." in page
    assert "Numbers count the texts of members as they were given, from 0" in page
    for attack in numbers["attacks"]:
        assert f"<dt><strong>{attack['name']}</strong></dt>" in page
