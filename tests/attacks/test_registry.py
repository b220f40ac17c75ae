"""The registry: an entry scores as its score function does, reads what it declares, and is whose it says."""

import doctest
import unicodedata
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mia_lib import membership, signals
from mia_lib.attacks import (
    ACCESS,
    baselines,
    bayes,
    bayesian,
    calibration,
    curvature,
    per_class,
    registry,
)
from mia_lib.attacks.registry import ATTACKS, CITATIONS, LOG_ODDS, SIGNALS, ArraySignals
from mia_lib.errors import MiaError

RNG = np.random.default_rng(5)
LABELS = RNG.integers(0, 3, 90)
MEMBERS = np.r_[
    [np.arange(90) < 45], membership.balanced_halves(90, 8)
]  # the target's, and those of its references
INSIDE = MEMBERS[1:]


def values(labels, members) -> dict[str, np.ndarray]:
    logits = RNG.normal(size=(9, len(labels), 3))
    logits[:, np.arange(len(labels)), labels] += 1 + members
    of_outputs = signals.scalars(logits, labels)
    return {
        name: of_outputs[name].astype(float)
        if name in of_outputs
        else RNG.exponential(size=members.shape)
        for name in SIGNALS
    } | {"probabilities": np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)}


V, PUBLIC = values(LABELS, MEMBERS), values(RNG.integers(0, 3, 40), np.zeros((9, 40), bool))
VIEW = ArraySignals(V, INSIDE, PUBLIC, LABELS)
LOSS, ODDS, CURVATURE = (
    (V[name][0], V[name][1:], INSIDE) for name in ("loss", LOG_ODDS, "curvature")
)
LOG_CURVATURE = (*map(curvature.log_curvature, CURVATURE[:2]), INSIDE)
RMIA = [
    np.exp(-one) for one in (V["loss"][0], V["loss"][1:], PUBLIC["loss"][0], PUBLIC["loss"][1:])
]
RMIA.insert(2, INSIDE)


DIRECT = {
    "0-1": baselines.gap(V["correctness"][0]),
    "MALT": bayes.malt(V["loss"][0]),
    "confidence": -V["least_loss"][0],
    "curvature": -LOG_CURVATURE[0],
    "gradient norm": -V["gradient_norm"][0],
    "quantile regression": V["quantile_position"][0],
    "boundary distance": V["boundary_distance"][0],
    "IHA": V["iha"][0],
    "gradient alone": V["stationarity"][0],
    "modified entropy": baselines.modified_entropy(V["probabilities"][0], LABELS),
    "Attack S": per_class.attack_s(V["loss"][0], LABELS, V["loss"][1:], INSIDE),
    "Attack R": baselines.attack_r(*LOSS),
    "calibrated loss": calibration.calibrate(-V["loss"][0], -V["loss"][1:], INSIDE),
    "MAST (softmin)": bayes.mast(*LOSS, "softmin"),
    "MAST (best split)": bayes.mast(*LOSS),
    "LiRA, offline": baselines.lira_offline(*ODDS, True),
    "LiRA, offline, as released": baselines.lira_offline(*ODDS, True, variant="released_code"),
    "LiRA": baselines.lira_online(*ODDS, True),
    "LiRA, own spreads": baselines.lira_online(*ODDS),
    "RMIA": baselines.rmia(*RMIA),
    "RMIA, offline": baselines.rmia(*RMIA, a=0.3),
    "BASE": bayesian.base(*LOSS),
    "BASE, offline": bayesian.base(*LOSS, 0.33),
    **{
        f"BaVarIA{name}{form}": score(*ODDS, **options)
        for form, score in (("", bayesian.bavaria_online), (", offline", bayesian.bavaria_offline))
        for name, options in (
            ("", {}),
            (", t", {"predictive": "t"}),
            (", prior within", {"spread": "within", "mean_weight": 0, "shape": 3}),
        )
    },
    "Curv, log ratio": curvature.nll(*LOG_CURVATURE),
    "Curv ZO LR": curvature.likelihood_ratio(*LOG_CURVATURE, "released_code"),
    "Curv ZO NLL": curvature.nll(*LOG_CURVATURE, "released_code"),
}


@dataclass
class Recording:
    """A view that notes what is read of whom."""

    view: ArraySignals
    read: dict[str, set[str]] = field(
        default_factory=lambda: {"own": set(), "references": set(), "public": set()}
    )
    labels: np.ndarray = field(default_factory=lambda: LABELS)

    def __getattr__(self, name):
        def reader(signal, *most, **named):
            self.read[name.removesuffix("_references")].add(signal)
            return getattr(self.view, name)(signal, *most, **named)

        return reader


@pytest.mark.parametrize("name", ATTACKS)
def test_an_entry_scores_as_its_function_and_reads_what_it_declares(name):
    attack, view = ATTACKS[name], Recording(VIEW)
    assert_array_equal(attack.score(view), DIRECT[name])
    reads = set(attack.signals)
    assert view.read == {
        "own": reads,
        "references": reads if attack.takes_references else set(),
        # That of a quantile regression is fitted to public records before it is a signal.
        "public": reads if attack.public and attack.takes_references else set(),
    }
    assert max(ACCESS.index(SIGNALS[signal]) for signal in reads) == ACCESS.index(
        attack.needs.access
    )


@pytest.mark.parametrize(
    "name", [name for name, one in ATTACKS.items() if one.needs.references == "out only"]
)
@pytest.mark.filterwarnings("ignore:reference_:UserWarning")
def test_who_declares_references_without_the_record_does_not_look_at_others(name):
    [signal] = ATTACKS[name].signals
    changed = V[signal].copy()
    if name.startswith(
        "BaVarIA"
    ):  # of which it knows how they are spread over all records, and not whose they are
        changed[1:][INSIDE] = RNG.permutation(changed[1:][INSIDE])
    else:
        changed[1:][INSIDE] *= 0.5
    assert_allclose(registry.score(name, replace(VIEW, values={signal: changed})), DIRECT[name])


def test_a_name_that_a_paper_gives_an_attack_is_of_no_other():
    names = [name for one in ATTACKS.values() for name in (one.name, *one.also)]
    assert len(set(names)) == len(names)


def test_every_attack_is_cited_by_the_first_author_and_year_of_its_key(repo):
    bibliography = (repo / "book" / "references.bib").read_text(encoding="utf-8")
    assert {one.source for one in ATTACKS.values()} <= {*CITATIONS, ""}  # of this book
    for key, text in CITATIONS.items():
        first = (
            unicodedata.normalize("NFKD", text.split()[0].split("-")[0].lower())
            .encode("ascii", "ignore")
            .decode()
        )
        assert key.startswith(first + text[-4:]) and f"{{{key}," in bibliography


def test_margins_alone_are_enough_for_what_reads_losses_and_options_stand_in_place_of_the_entrys():
    margins = ArraySignals({LOG_ODDS: V[LOG_ODDS]}, INSIDE, {LOG_ODDS: PUBLIC[LOG_ODDS]})
    for name in ("MALT", "MAST (softmin)", "RMIA, offline", "LiRA"):
        assert_allclose(registry.score(name, margins), DIRECT[name], atol=1e-6)
    assert_array_equal(
        registry.score("LiRA", VIEW, fixed_variance=False), DIRECT["LiRA, own spreads"]
    )
    few = baselines.rmia(*RMIA[:3], RMIA[3][:10], RMIA[4][:, :10])
    assert_array_equal(registry.score("RMIA", VIEW, population=10), few)
    with pytest.raises(TypeError, match="multiple values.*signal"):
        registry.score("LiRA", VIEW, signal="loss")
    with pytest.raises(
        MiaError,
        match="values has no 'probabilities', which the attack reads, but logit_scaled_confidence",
    ):
        registry.score("modified entropy", margins)
    with pytest.raises(MiaError, match="public_values has no 'loss'.*nothing"):
        registry.score("RMIA", replace(margins, public_values={}))
    with pytest.raises(MiaError, match="Did you mean 'LiRA'"):
        registry.score("LIRA", margins)


def test_the_example_of_the_docstring():
    assert doctest.testmod(registry) == (0, 2)
