"""Verdicts that follow from every setting, and attacks that learn their constants on the attacker's own models."""

import numpy as np
import pandas as pd
import pytest
from toys import toy_bank

from mia_book.evidence import claims, rules, settings
from mia_book.evidence.settings import ALIKE, OPEN, STANDS, TURNED, Attack, setting
from mia_lib import metrics
from mia_lib.metrics import Interval, by_repetition

RNG = np.random.default_rng(0)
NUMBERS = {
    STANDS: Interval(0.1, 0.05, 0.15),
    TURNED: Interval(-0.1, -0.15, -0.05),
    OPEN: Interval(0.0, -0.2, 0.2),
    ALIKE: Interval(0.0, -0.001, 0.001),
}


def made(*marks: str) -> list[settings.Setting]:
    """Settings with these marks; those of the paper's own regime are written with a star."""
    return [
        setting({"data": str(k)}, NUMBERS[mark.strip("*")], mark.endswith("*"), same=0.01)
        for k, mark in enumerate(marks)
    ]


@pytest.mark.parametrize(
    ("marks", "verdict"),
    [
        ([STANDS + "*", STANDS, OPEN], "reproduced"),
        ([STANDS, OPEN], "reproduced"),
        ([STANDS, ALIKE], "reproduced"),
        ([OPEN + "*", STANDS], "inconclusive"),
        ([STANDS + "*", TURNED], "depends"),
        ([STANDS, TURNED], "depends"),
        ([STANDS + "*", TURNED + "*"], "depends"),
        ([TURNED + "*", STANDS], "contradicted"),
        ([TURNED, OPEN], "contradicted"),
        ([OPEN + "*", TURNED], "contradicted"),
        ([ALIKE, ALIKE], "no difference"),
        ([ALIKE, OPEN], "inconclusive"),
        ([OPEN], "inconclusive"),
    ],
)
def test_a_verdict_follows_from_all_settings(marks, verdict):
    found = made(*marks)
    assert [one.mark for one in found] == [mark.strip("*") for mark in marks]
    assert settings.verdict_of(found) == verdict and verdict in claims.VERDICTS


def test_what_the_answer_hangs_on_is_named_where_one_column_tells():
    def of(data, references, mark):
        return setting({"data": data, "references": references}, NUMBERS[mark], False)

    found = [of("a", "6", TURNED), of("a", "30", STANDS), of("b", "6", TURNED), of("b", "30", OPEN)]
    assert settings.deciding(found) == "references: it stands with 30, and is turned with 6"
    assert settings.deciding([*found, of("b", "6", STANDS)]) == ""
    assert settings.deciding(found[1:2]) == ""
    assert settings.count(found) == "stands in 1 of 4 settings, turned in 2"


def test_intervals_of_many_settings_hold_together():
    """Of a coin, hardly ever is one of twenty settings decided; each by itself at 95 % would be in most worlds."""
    claim = {"rule": "{a | auc} - 0.5", "settings": ["data"], "where": {}}
    decided = alone = 0
    for _ in range(60):
        frame = pd.concat(
            by_repetition({"a": {"auc": 0.5 + 0.1 * RNG.normal(size=16)}}, data=str(k))
            for k in range(20)
        )
        found = rules.settings_of(claim, frame)
        decided += any(one.mark != OPEN for one in found)
        alone += any(
            metrics.estimate(frame, "a", "auc", data=str(k)).interval().low > 0.5 for k in range(20)
        )
    assert decided <= 9 < alone  # 3 expected of 60; one-sided alone, 20 or so


def test_a_setting_that_does_not_say_so_is_not_the_papers_own():
    """In a frame with others that do, the column is there and its value is missing."""
    claim = {"rule": "{a | auc} - 0.5", "settings": ["data"], "where": {}}
    of = {"a": {"auc": 0.6 + 0.01 * RNG.normal(size=16)}}
    frame = pd.concat(
        [
            by_repetition(of, data="its", own=True),
            by_repetition(of, data="no", own=False),
            by_repetition(of, data="unsaid"),
        ]
    )
    found = {
        one.values["data"]: one.own for one in rules.settings_of(claim, frame, claims.OWN_DATA)
    }
    assert found == {"its": True, "no": False, "unsaid": False}


def test_constants_are_learned_for_the_metric_that_is_judged_and_never_on_the_target():
    attacks = {
        "released": Attack("MAST (softmin)"),
        "learned": Attack("MAST (softmin)", learned=True),
        "malt": Attack("MALT"),
    }
    names = ("accuracy", "auc", "tpr_at_fpr=0.01")
    frame, chosen = settings.attack(
        toy_bank(2.0, n=600, noise=0.5, seed=1), 4, 8, attacks, names, {"data": "toy"}, 5
    )
    assert set(frame["metric"]) == set(names) and set(frame["data"]) == {"toy"}
    assert set(chosen["attack"]) == {"learned"} and len(chosen) == 4 * len(names)
    values = frame.set_index(["attack", "metric"])["value"]
    assert values["learned", "auc"] >= values["released", "auc"] - 0.01
    assert values["learned", "accuracy"] > values["malt", "accuracy"] > 0.5
    turned = toy_bank(2.0, n=600, noise=0.5, seed=1)
    turned.arrays["members"][0] ^= turned.arrays["members"].any(
        0
    )  # the target alone had the others
    again = settings.attack(turned, 1, 8, attacks, names, {}, 5)[1]
    assert again["value"].tolist() == chosen["value"][: len(names)].tolist()


def test_every_setting_is_drawn_with_its_mark():
    figure = settings.specification({"C1": made(STANDS + "*", TURNED, OPEN)}, {"C1": 0.02})
    [axis] = [one for one in figure.axes if one.has_data()]
    assert len(axis.get_yticks()) == 3
    assert any("(paper)" in label.get_text() for label in axis.get_yticklabels())


def test_a_setting_is_in_the_papers_regime_only_if_the_run_is(monkeypatch):
    frame = by_repetition(
        {
            "MAST": {"accuracy": 0.9 + 0.01 * RNG.normal(size=16)},
            "MALT": {"accuracy": np.full(16, 0.8)},
        },
        study="settings",
        data="Table 2",
        references=30,
        own=True,
    )
    theirs = {"dataset": "cifar10", "architecture": "tanh_cnn", "members": 15000, "epochs": 50}
    shown = []
    monkeypatch.setattr(rules.figures, "show", lambda figure, **words: shown.append(words))
    for run, data, own in (
        (theirs, claims.OWN_DATA, True),
        (theirs | {"dataset": "fashion_mnist_20k"}, claims.STAND_IN, False),
    ):
        run = {"Table 2": run}
        found = rules.judge("bayes", "C11", frame, run)
        assert (found.verdict, found.data, found.settings[0].own) == ("reproduced", data, own)
        rules.show_settings("bayes", {"C11": "lead", "A5": "LiRA"}, frame, "lead", run)
        assert ("hollow: the paper" in shown[-1]["caption"]) == own
        counts = "lead, stands in 1 of 1 settings; LiRA, stands in 0 of 0 settings."
        assert shown[-1]["alt"].endswith(counts)
