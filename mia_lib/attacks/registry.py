"""The attacks by name: what each needs, which signals it reads, and its scores from them.

To add one, write its score function where the others are (`mia_lib.attacks`), declare what it needs, and add an entry to
`ATTACKS`. An audit, a chapter or a class then runs it by name on whatever shows it signals, see `TargetSignals`. Attacks that
train models or compute gradients are entries of the same kind where that is done, in `mia_lib.audit.attacks`. CONTRIBUTING.md
shows it with Attack S.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from mia_lib.attacks import Needs, baselines, bayes, bayesian, calibration, per_class
from mia_lib.attacks import curvature as by_curvature
from mia_lib.checks import check_numbers
from mia_lib.errors import MiaError, check_choice

POPULATION = 2000  # public records of RMIA, at most
OFFLINE_A = 0.3  # of RMIA's offline form, the authors' for CIFAR-10
OFFLINE_FACTOR = 0.33  # of BASE's offline form, LeakPro's
TEMPERATURES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # of the soft minimum, to choose from
SHARES = (0.0, 0.3, 0.6, 0.9, 1.0)  # that either is chosen from
LOG_ODDS = "logit_scaled_confidence"
SIGNALS = {  # signal, called as in `mia_lib.signals` -> the least access to the target that gives it, of `attacks.ACCESS`
    "correctness": "label",
    "loss": "loss",
    LOG_ODDS: "loss",
    "curvature": "loss",
    "least_loss": "output vector",
    "hinge": "output vector",
    "probabilities": "output vector",
    "gradient_norm": "parameters",
}


class TargetSignals(Protocol):
    """Signals of one target and its references that an attack sees: of N records that it judges and
    of Q public ones.

    Every signal is a name of `SIGNALS`. A scorer computes in the precision that it is shown.
    """

    @property
    def labels(self) -> np.ndarray:
        """True classes, int [N]."""

    def own(self, signal: str) -> np.ndarray:
        """Signal of the target for each judged record, [N]; probabilities [N, K]."""

    def references(self, signal: str) -> tuple[np.ndarray, np.ndarray]:
        """Signal of all references for each judged record, [R, N] or [R, N, K], and whether each
        reference was trained on it, bool [R, N]."""

    def public(self, signal: str, most: int | None = None) -> np.ndarray:
        """Signal of the target for the first `most` public records, or all when None, [Q]."""

    def public_references(self, signal: str, most: int | None = None) -> np.ndarray:
        """Signal of all references for the same public records, [R, Q]."""


@dataclass(frozen=True, eq=False)
class ArraySignals:
    """Signals that lie in arrays, a row a model and the target's first, such as the margins of a published bank.

    >>> margin = np.array([[3.0, -1.0], [1.0, 0.0]])  # log(p / (1 - p)), of the target and one reference
    >>> score("MALT", ArraySignals({"logit_scaled_confidence": margin})).round(3).tolist()
    [-0.049, -1.313]

    Attributes:
        values: signal -> [1 + R, N], probabilities [1 + R, N, K]; the cross-entropy loss follows from
            "logit_scaled_confidence".
        reference_members: whether reference r was trained on record i, bool [R, N].
        public_values: signal -> [1 + R, Q] of records that no model was trained on.
        labels: true classes, int [N], of attacks that read them.
    """

    values: Mapping[str, np.ndarray]
    reference_members: np.ndarray = field(default_factory=lambda: np.empty((0, 0), bool))
    public_values: Mapping[str, np.ndarray] = field(default_factory=dict)
    labels: np.ndarray = field(default_factory=lambda: np.empty(0, int))

    def own(self, signal: str) -> np.ndarray:
        """See `TargetSignals`, as all that follows; a signal that is not there raises `MiaError`."""
        return read_signal("values", self.values, signal, 0)

    def references(self, signal: str) -> tuple[np.ndarray, np.ndarray]:
        return read_signal("values", self.values, signal, slice(1, None)), self.reference_members

    def public(self, signal: str, most: int | None = None) -> np.ndarray:
        return read_signal("public_values", self.public_values, signal, 0)[:most]

    def public_references(self, signal: str, most: int | None = None) -> np.ndarray:
        return read_signal("public_values", self.public_values, signal, slice(1, None))[:, :most]


def read_signal(
    argument: str, values: Mapping[str, np.ndarray], signal: str, rows: int | slice | np.ndarray
) -> np.ndarray:
    """Signal of the models `rows`, from arrays with a row for each model. A loss that is not there
    is computed, as cross-entropy, from the log odds; another signal that is not there raises
    `MiaError`."""
    if signal in values:
        return check_numbers(f"{argument}[{signal!r}]", values[signal])[rows]
    if signal == "loss" and LOG_ODDS in values:
        return np.logaddexp(0, -read_signal(argument, values, LOG_ODDS, rows).astype(np.float64))
    raise MiaError(
        f"{argument} has no {signal!r}, which the attack reads, but {', '.join(values) or 'nothing'}."
    )


@dataclass(frozen=True)
class Attack:
    """An attack that can be run by its name.

    Attributes:
        name: what pages call it.
        source: its authors' paper, a key of `CITATIONS` and of the bibliography, or "" for this
            book's.
        needs: its threat model, as declared by its score function.
        signals: names of `SIGNALS` that it reads, of the target and of references alike.
        scorer: function that gives scores [N], higher for members, from `TargetSignals` and the
            options.
        options: plain values, which distinguish it from other attacks by the same function.
        public: whether it reads signals of public records, too.
        audits: whether it is told who is a member: to take a record's own gradient out, or by the Hessian of the members. Its
            AUC is then no measure of what the model kept of a record, and it is set apart.
        constants: option -> the values from which `View.rehearse` chooses it by attacking the attacker's own models.
        obstacle: function that says why the attack is not possible with `audit.inputs.AuditInputs`,
            "" if it is.
        queries: function of these inputs: queries for each record, besides the one for the outputs.
        seconds: function of these inputs and `audit.attacks.MeasuredCosts`: seconds that the attack
            takes, without those of the references, which are counted once.
    """

    name: str
    source: str
    needs: Needs
    signals: tuple[str, ...]
    scorer: Callable[..., np.ndarray]
    options: Mapping[str, str | float | bool | None] = field(default_factory=dict)
    public: bool = False
    audits: bool = False
    constants: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    obstacle: Callable[[Any], str] = lambda inputs: ""
    queries: Callable[[Any], int] = lambda inputs: 0
    seconds: Callable[[Any, Any], float] = lambda inputs, costs: 0.0

    @property
    def citation(self) -> str:
        """Authors and year of the source."""
        return CITATIONS.get(self.source, "")

    @property
    def takes_references(self) -> bool:
        """True if the attack compares with models that are trained for it."""
        return self.needs.references != "none"

    def score(self, view: TargetSignals, **options) -> np.ndarray:
        """Scores [N] of the records in `view`, higher for members; `options` replace the
        entry's."""
        return self.scorer(view, **{**self.options, **options})


def score(name: str, view: TargetSignals, **options) -> np.ndarray:
    """Scores [N] of an attack by its name in `ATTACKS`, higher for members, from the signals that
    it sees, such as `ArraySignals`; `options` replace the entry's. An unknown name and a signal
    that is not there are refused."""
    return ATTACKS[check_choice("name", name, ATTACKS)].score(view, **options)


def run(attack: str | Callable[[TargetSignals], np.ndarray], view: TargetSignals) -> np.ndarray:
    """Scores [N] of an attack by its name, or of a function of `TargetSignals`."""
    return score(attack, view) if isinstance(attack, str) else attack(view)


def by_names(attack: Callable, view: TargetSignals, **options) -> np.ndarray:
    """Scores of a function whose arguments are named for what they are given: `labels`,
    `reference_members`, a signal of `SIGNALS` for the target's (`signal` for the log odds,
    `correct` for correctness), `reference_loss` and the like for those of the references; `options`
    are its other arguments."""
    arguments = {}
    for name in inspect.signature(attack).parameters:
        signal = {"signal": LOG_ODDS, "correct": "correctness"}.get(
            own := name.removeprefix("reference_"), own
        )
        if name == "labels":
            arguments[name] = view.labels
        elif signal in SIGNALS and own == name:
            arguments[name] = view.own(signal)
        elif signal in SIGNALS:
            arguments[name], arguments["reference_members"] = view.references(signal)
    return attack(**arguments, **options)


def _negative(view: TargetSignals, signal: str) -> np.ndarray:
    return -view.own(signal)


def _calibrated_loss(view: TargetSignals) -> np.ndarray:
    reference_loss, inside = view.references("loss")
    return calibration.calibrate(-view.own("loss"), -reference_loss, inside)


def _by_log_curvature(attack: Callable, view: TargetSignals, **options) -> np.ndarray:
    reference_values, inside = view.references("curvature")
    log = by_curvature.log_curvature
    return attack(log(view.own("curvature")), log(reference_values), inside, **options)


def _rmia(
    view: TargetSignals, a: float | None, gamma: float = 2.0, population: int | None = POPULATION
) -> np.ndarray:
    reference_loss, inside = view.references("loss")
    public_loss, public_reference_loss = (
        view.public("loss", population),
        view.public_references("loss", population),
    )
    return baselines.rmia(
        np.exp(-view.own("loss")),
        np.exp(-reference_loss),
        inside,
        np.exp(-public_loss),
        np.exp(-public_reference_loss),
        gamma,
        a,
    )


def _curvature(view: TargetSignals) -> np.ndarray:
    return -by_curvature.log_curvature(view.own("curvature"))


LIRA, WATSON, SURI, RMIA = (
    "carlini2022membership",
    "watson2022importance",
    "suri2024parameters",
    "zarifzadeh2024low",
)
CURVATURE, BERTRAN, SABLAYROLLES = (
    "ravikumar2024curvature",
    "bertran2023scalable",
    "sablayrolles2019white",
)
YE, SONG, YEOM, CHOQUETTE = (
    "ye2022enhanced",
    "song2021systematic",
    "yeom2018privacy",
    "choquette2021label",
)
LASSILA, BRANNVALL = "lassila2025practical", "brannvall2026exponential"
CITATIONS = {
    LIRA: "Carlini et al. 2022",
    WATSON: "Watson et al. 2022",
    SURI: "Suri et al. 2024",
    RMIA: "Zarifzadeh et al. 2024",
    CURVATURE: "Ravikumar et al. 2024",
    BERTRAN: "Bertran et al. 2023",
    SABLAYROLLES: "Sablayrolles et al. 2019",
    YE: "Ye et al. 2022",
    SONG: "Song and Mittal 2021",
    YEOM: "Yeom et al. 2018",
    CHOQUETTE: "Choquette-Choo et al. 2021",
    LASSILA: "Lassila et al. 2025",
    BRANNVALL: "Brännvall 2026",
}
# LiRA's one spread for all, worth four references
WITHIN: dict = {"spread": "within", "mean_weight": 0.0, "shape": 3.0}
REGRESSION = Needs(
    "output vector", "none", "public records that the target was not trained on"
)  # of quantiles


def _entry(
    name: str,
    source: str,
    function: Callable,
    signal: str = "loss",
    *,
    references: str | None = None,
    scorer: Callable = by_names,
    public: bool = False,
    constants: Mapping[str, tuple[float, ...]] | None = None,
    **options,
) -> Attack:
    """An `Attack` with the threat model that its function declares; `references` replaces the
    declared ones where the options ask for fewer."""
    declared = function.needs  # type: ignore[attr-defined]
    declared = declared if references is None else replace(declared, references=references)
    return Attack(
        name,
        source,
        declared,
        (signal,),
        partial(scorer, function),
        options,
        public,
        constants=constants or {},
    )


ATTACKS = {
    attack.name: attack
    for attack in (
        _entry("0-1", YEOM, baselines.gap, "correctness"),
        _entry("MALT", SABLAYROLLES, bayes.malt),
        Attack(
            "curvature", CURVATURE, Needs("loss", "none", "nothing"), ("curvature",), _curvature
        ),
        Attack(
            "confidence",
            WATSON,
            calibration.SIGNALS["confidence"],
            ("least_loss",),
            _negative,
            {"signal": "least_loss"},
        ),
        _entry("modified entropy", SONG, baselines.modified_entropy, "probabilities"),
        Attack(
            "gradient norm",
            WATSON,
            calibration.SIGNALS["gradient norm"],
            ("gradient_norm",),
            _negative,
            {"signal": "gradient_norm"},
        ),
        _entry("Attack S", YE, per_class.attack_s),
        _entry("Attack R", YE, baselines.attack_r),
        Attack("calibrated loss", WATSON, calibration.calibrate.needs, ("loss",), _calibrated_loss),
        _entry(
            "MAST (softmin)",
            SABLAYROLLES,
            bayes.mast,
            references="out only",
            constants={"temperature": TEMPERATURES},
            estimator="softmin",
        ),
        _entry("MAST (best split)", SABLAYROLLES, bayes.mast, estimator="best_split"),
        _entry("LiRA, offline", LIRA, baselines.lira_offline, LOG_ODDS, fixed_variance=True),
        _entry(
            "LiRA, offline, as released",
            LIRA,
            baselines.lira_offline,
            LOG_ODDS,
            fixed_variance=True,
            variant="released_code",
        ),
        Attack(
            "RMIA, offline",
            RMIA,
            Needs("loss", "out only", baselines.rmia.needs.knows),
            ("loss",),
            _rmia,
            {"a": OFFLINE_A},
            public=True,
            constants={"a": SHARES},
        ),
        _entry("LiRA", LIRA, baselines.lira_online, LOG_ODDS, fixed_variance=True),
        _entry("LiRA, own spreads", LIRA, baselines.lira_online, LOG_ODDS),
        Attack("RMIA", RMIA, baselines.rmia.needs, ("loss",), _rmia, {"a": None}, public=True),
        _entry("BASE", LASSILA, bayesian.base),
        _entry(
            "BASE, offline",
            LASSILA,
            bayesian.base,
            references="out only",
            factor=OFFLINE_FACTOR,
            constants={"factor": SHARES},
        ),
        _entry("BaVarIA", BRANNVALL, bayesian.bavaria_online, LOG_ODDS),
        _entry("BaVarIA, t", BRANNVALL, bayesian.bavaria_online, LOG_ODDS, predictive="t"),
        _entry("BaVarIA, prior within", BRANNVALL, bayesian.bavaria_online, LOG_ODDS, **WITHIN),
        _entry("BaVarIA, offline", BRANNVALL, bayesian.bavaria_offline, LOG_ODDS),
        _entry(
            "BaVarIA, t, offline", BRANNVALL, bayesian.bavaria_offline, LOG_ODDS, predictive="t"
        ),
        _entry(
            "BaVarIA, prior within, offline",
            BRANNVALL,
            bayesian.bavaria_offline,
            LOG_ODDS,
            **WITHIN,
        ),
        _entry(
            "Curv, log ratio", CURVATURE, by_curvature.nll, "curvature", scorer=_by_log_curvature
        ),
        _entry(
            "Curv ZO LR",
            CURVATURE,
            by_curvature.likelihood_ratio,
            "curvature",
            scorer=_by_log_curvature,
            variant="released_code",
        ),
        _entry(
            "Curv ZO NLL",
            CURVATURE,
            by_curvature.nll,
            "curvature",
            scorer=_by_log_curvature,
            variant="released_code",
        ),
    )
}
