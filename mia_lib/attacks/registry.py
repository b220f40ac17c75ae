"""The attacks by name: what each needs, which signals it reads, and its scores from them.

To add one, write its score function where the others are (`mia_lib.attacks`), declare what it needs, and add an entry to
`ATTACKS`. An audit, a chapter or a class then runs it by name on whatever shows it signals, see `TargetSignals`; a figure
draws it as its entry says. What takes many queries, a trained model or a Hessian is a signal, too. CONTRIBUTING.md shows it
with Attack S.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np

from mia_lib.attacks import (
    Needs,
    baselines,
    bayes,
    bayesian,
    calibration,
    feasibility,
    iha,
    needs,
    per_class,
)
from mia_lib.attacks import curvature as by_curvature
from mia_lib.checks import check_numbers
from mia_lib.errors import MiaError, check_choice, check_type

POPULATION = 2000  # public records of RMIA, at most
AUTHORS_A = {"cifar10": 0.3, "cifar100": 0.6}  # of RMIA's offline form, as its authors set it
OFFLINE_A = AUTHORS_A["cifar10"]
OFFLINE_FACTOR = 0.33  # of BASE's offline form, LeakPro's
TEMPERATURES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # of the soft minimum, to choose from
SHARES = (0.0, 0.3, 0.6, 0.9, 1.0)  # that either is chosen from
LOG_ODDS = "logit_scaled_confidence"
SIGNALS = {  # signal, called as in `mia_lib.signals` -> the least access to the target that gives it, of `attacks.ACCESS`
    "correctness": "label",
    "boundary_distance": "label",
    "loss": "loss",
    LOG_ODDS: "loss",
    "curvature": "loss",
    "least_loss": "output vector",
    "hinge": "output vector",
    "probabilities": "output vector",
    "quantile_position": "output vector",
    "gradient_norm": "parameters",
    "stationarity": "parameters",
    "iha": "parameters",
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
        values = read_signal("values", self.values, signal, slice(1, None))
        return values, self.reference_members.copy()

    def public(self, signal: str, most: int | None = None) -> np.ndarray:
        return read_signal("public_values", self.public_values, signal, 0)[:most]

    def public_references(self, signal: str, most: int | None = None) -> np.ndarray:
        return read_signal("public_values", self.public_values, signal, slice(1, None))[:, :most]


def read_signal(
    argument: str, values: Mapping[str, np.ndarray], signal: str, rows: int | slice | np.ndarray
) -> np.ndarray:
    """Signal of the models `rows`, from arrays with a row for each model: a copy, for an attack may
    write into what it is given. A loss that is not there is computed, as cross-entropy, from the
    log odds; another signal that is not there raises `MiaError`."""
    if signal in values:
        array = check_numbers(f"{argument}[{signal!r}]", values[signal])[rows]
        return array if array.base is None else array.copy()
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
        look: colour, line and marker in all figures, such as "blue -- ^", by the names of
            `drawing.COLORS` and `drawing.LINES` or matplotlib's; "" if it has none of its own.
        options: plain values, which distinguish it from other attacks by the same function.
        also: name that a paper gives it -> its look under that name.
        public: whether it reads signals of public records, too, or learns from them.
        knows_membership: whether it is told who is a member: to take a record's own gradient out, or by the Hessian of the
            members. Its AUC is then no measure of what the model kept of a record, and it is set apart.
        constants: option -> the values from which `View.rehearse` chooses it by attacking the attacker's own models.
        least_references: fewest references with which it runs; 0 if as few do as its kind of
            references allows.
        comparison: where the comparison of all attacks has it: nowhere (""), in its "tables", or there and, with every number
            of references, in its "figure".
        audit_order: its place in the order in which an audit runs attacks; 0 if no audit runs it.
        obstacle: function of `audit.inputs.AuditInputs` and `audit.attacks.MeasuredCosts` that says
            why the attack is not possible, "" if it is.
        queries: function of these inputs: queries for each record, besides the one for the outputs.
        seconds: function of inputs and costs: seconds that the attack takes, without those of the
            references, which are counted once.
    """

    name: str
    source: str
    needs: Needs
    signals: tuple[str, ...]
    scorer: Callable[..., np.ndarray]
    look: str = ""
    options: Mapping[str, str | float | bool | None] = field(default_factory=dict)
    also: Mapping[str, str] = field(default_factory=dict)
    public: bool = False
    knows_membership: bool = False
    constants: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    least_references: int = 0
    comparison: Literal["", "tables", "figure"] = "tables"
    audit_order: int = 0
    obstacle: Callable[[Any, Any], str] = lambda inputs, costs: ""
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


def score(
    attack: str | Callable[[TargetSignals], np.ndarray], view: TargetSignals, **options
) -> np.ndarray:
    """Scores [N] of an attack, higher for members, from the signals that it sees, such as
    `ArraySignals`: by its name in `ATTACKS`, with `options` in place of the entry's, or of a
    function of the view. An unknown name and a signal that is not there are refused."""
    if callable(attack):
        return attack(view, **options)
    remedy = "Scores that are there are compared by metrics.compare."
    check_type(
        "attack", attack, str, f"Give the name of an attack, or a function of the view. {remedy}"
    )
    return ATTACKS[check_choice("attack", attack, ATTACKS)].score(view, **options)


def _signal_of(argument: str) -> str:
    own = argument.removeprefix("reference_")
    return {"signal": LOG_ODDS, "correct": "correctness"}.get(own, own)


def by_names(attack: Callable, view: TargetSignals, **options) -> np.ndarray:
    """Scores of a function whose arguments are named for what they are given: `labels`,
    `reference_members`, a signal of `SIGNALS` for the target's (`signal` for the log odds,
    `correct` for correctness), `reference_loss` and the like for those of the references; `options`
    are its other arguments."""
    arguments = {}
    for name in inspect.signature(attack).parameters:
        signal = _signal_of(name)
        if name == "labels":
            arguments[name] = view.labels
        elif signal in SIGNALS and not name.startswith("reference_"):
            arguments[name] = view.own(signal)
        elif signal in SIGNALS:
            arguments[name], arguments["reference_members"] = view.references(signal)
    return attack(**arguments, **options)


def _calibrated_loss(view: TargetSignals) -> np.ndarray:
    reference_loss, members = view.references("loss")
    return calibration.calibrate(-view.own("loss"), -reference_loss, members)


def _by_log_curvature(attack: Callable, view: TargetSignals, **options) -> np.ndarray:
    reference_values, members = view.references("curvature")
    log = by_curvature.log_curvature
    return attack(log(view.own("curvature")), log(reference_values), members, **options)


def _rmia(
    view: TargetSignals, a: float | None, gamma: float = 2.0, population: int | None = POPULATION
) -> np.ndarray:
    reference_loss, members = view.references("loss")
    public = view.public("loss", population), view.public_references("loss", population)
    own, references, public, public_references = (
        np.exp(-loss) for loss in (view.own("loss"), reference_loss, *public)
    )
    return baselines.rmia(own, references, members, public, public_references, gamma, a)


@needs("loss", "none", "nothing")
def _curvature(curvature: np.ndarray) -> np.ndarray:
    return -by_curvature.log_curvature(curvature)


CITATIONS = {
    "carlini2022membership": "Carlini et al. 2022",
    "watson2022importance": "Watson et al. 2022",
    "suri2024parameters": "Suri et al. 2024",
    "zarifzadeh2024low": "Zarifzadeh et al. 2024",
    "ravikumar2024curvature": "Ravikumar et al. 2024",
    "bertran2023scalable": "Bertran et al. 2023",
    "sablayrolles2019white": "Sablayrolles et al. 2019",
    "ye2022enhanced": "Ye et al. 2022",
    "song2021systematic": "Song and Mittal 2021",
    "yeom2018privacy": "Yeom et al. 2018",
    "choquette2021label": "Choquette-Choo et al. 2021",
    "lassila2025practical": "Lassila et al. 2025",
    "brannvall2026exponential": "Brännvall 2026",
}
(
    LIRA,
    WATSON,
    SURI,
    RMIA,
    CURVATURE,
    BERTRAN,
    SABLAYROLLES,
    YE,
    SONG,
    YEOM,
    CHOQUETTE,
    LASSILA,
    BRANNVALL,
) = CITATIONS
# LiRA's one spread for all, worth four references
WITHIN: dict = {"spread": "within", "mean_weight": 0.0, "shape": 3.0}


def _entry(
    name: str,
    source: str,
    function: Callable,
    look: str = "",
    *,
    references: str | None = None,
    scorer: Callable = by_names,
    **fields,
) -> Attack:
    """An `Attack` with the threat model that its function declares and the signals that its
    arguments name; `references` replaces the declared ones where the options ask for fewer.
    `fields` are others of `Attack`."""
    declared = function.needs  # type: ignore[attr-defined]
    declared = declared if references is None else replace(declared, references=references)
    read = dict.fromkeys(map(_signal_of, inspect.signature(function).parameters))
    signals = tuple(signal for signal in read if signal in SIGNALS)
    return Attack(name, source, declared, signals, partial(scorer, function), look, **fields)


def _as_it_is(
    name: str, source: str, needs: Needs, signal: str, look: str = "", sign: int = 1, **fields
) -> Attack:
    """An `Attack` whose score is a signal of the target, or with sign -1 its negative."""

    def scorer(view: TargetSignals) -> np.ndarray:
        return sign * view.own(signal)

    return Attack(name, source, needs, (signal,), scorer, look, **fields)


def _curved(name: str, function: Callable, look: str, **fields) -> Attack:
    """An `Attack` by the logarithm of the curvature, with a spread of each record."""
    fields |= {"scorer": _by_log_curvature, "least_references": 4}
    return _entry(name, CURVATURE, function, look, **fields)


_ENTRIES = (
    _entry("0-1", YEOM, baselines.gap, "black : s", also={"Gap": "black : X"}, audit_order=4),
    _entry(
        "MALT",
        SABLAYROLLES,
        bayes.malt,
        "blue -- ^",
        also={"Orig": "blue -- H", "Yeom": "black dots ^", "LOSS": "blue : o"},
        comparison="figure",
        audit_order=1,
    ),
    _as_it_is(
        "confidence",
        WATSON,
        calibration.SIGNALS["confidence"],
        "least_loss",
        sign=-1,
        audit_order=3,
    ),
    _entry("modified entropy", SONG, baselines.modified_entropy, audit_order=2),
    _entry(
        "curvature",
        CURVATURE,
        _curvature,
        "pink - >",
        comparison="",
        audit_order=11,
        obstacle=feasibility.lack_of_curvature,
        queries=feasibility.queries_of_curvature,
        seconds=lambda inputs, costs: costs.curve * feasibility.PROBES * len(inputs.pool),
    ),
    _as_it_is(
        "gradient norm",
        WATSON,
        calibration.SIGNALS["gradient norm"],
        "gradient_norm",
        sign=-1,
        audit_order=10,
        obstacle=feasibility.lack_of_gradients,
        seconds=lambda inputs, costs: costs.gradient * len(inputs.pool),
    ),
    _as_it_is(
        "quantile regression",
        BERTRAN,
        Needs("output vector", "none", "public records that the target was not trained on"),
        "quantile_position",
        "green -- 8",
        public=True,
        audit_order=9,
        obstacle=feasibility.lack_of_regression,
        seconds=lambda inputs, costs: (
            len(inputs.public) * (costs.answer + costs.regression * feasibility.EPOCHS)
        ),
    ),
    _as_it_is(
        "boundary distance",
        CHOQUETTE,
        Needs("label", "none", "nothing"),
        "boundary_distance",
        audit_order=12,
        obstacle=feasibility.lack_of_boundary,
        queries=lambda inputs: inputs.options.queries,
        seconds=lambda inputs, costs: costs.answer * inputs.options.queries * len(inputs.pool),
    ),
    _as_it_is(
        "IHA",
        SURI,
        iha.scores.needs,
        "iha",
        "black - *",
        knows_membership=True,
        audit_order=13,
        obstacle=feasibility.lack_of_hessian,
        seconds=feasibility.seconds_of_hessian,
    ),
    _as_it_is(
        "gradient alone",
        SURI,
        iha.stationarity.needs,
        "stationarity",
        "pink -. D",
        knows_membership=True,
        audit_order=14,
        obstacle=feasibility.lack_of_hessian,
    ),
    _entry("Attack S", YE, per_class.attack_s, comparison=""),
    _entry("Attack R", YE, baselines.attack_r, "green dots *"),
    Attack(
        "calibrated loss",
        WATSON,
        calibration.calibrate.needs,
        ("loss",),
        _calibrated_loss,
        "pink dash-dots p",
        also={"Cal.": "red - s"},
        comparison="figure",
        audit_order=8,
    ),
    _entry(
        "MAST (softmin)",
        SABLAYROLLES,
        bayes.mast,
        "red dots P",
        references="out only",
        options={"estimator": "softmin"},
        constants={"temperature": TEMPERATURES},
    ),
    _entry(
        "LiRA, offline",
        LIRA,
        baselines.lira_offline,
        "pink dots H",
        options={"fixed_variance": True},
        comparison="figure",
        audit_order=6,
    ),
    _entry(
        "LiRA, offline, as released",
        LIRA,
        baselines.lira_offline,
        options={"fixed_variance": True, "variant": "released_code"},
    ),
    Attack(
        "RMIA, offline",
        RMIA,
        Needs("loss", "out only", baselines.rmia.needs.knows),
        ("loss",),
        _rmia,
        "orange dashes <",
        {"a": OFFLINE_A},
        public=True,
        constants={"a": SHARES},
        comparison="figure",
    ),
    _entry(
        "BASE, offline",
        LASSILA,
        bayesian.base,
        "orange : D",
        references="out only",
        options={"factor": OFFLINE_FACTOR},
        constants={"factor": SHARES},
    ),
    _entry(
        "BaVarIA, offline",
        BRANNVALL,
        bayesian.bavaria_offline,
        "green dashes X",
        comparison="figure",
    ),
    _entry("BaVarIA, t, offline", BRANNVALL, bayesian.bavaria_offline, options={"predictive": "t"}),
    _entry("BaVarIA, prior within, offline", BRANNVALL, bayesian.bavaria_offline, options=WITHIN),
    _entry(
        "MAST (best split)",
        SABLAYROLLES,
        bayes.mast,
        "red - o",
        options={"estimator": "best_split"},
        also={"MAST": "red - o"},
    ),
    _entry(
        "LiRA",
        LIRA,
        baselines.lira_online,
        "sky - h",
        options={"fixed_variance": True},
        comparison="figure",
        audit_order=5,
    ),
    _entry(
        "LiRA, own spreads",
        LIRA,
        baselines.lira_online,
        "sky dashes h",
        least_references=4,
        comparison="figure",
    ),
    Attack(
        "RMIA",
        RMIA,
        baselines.rmia.needs,
        ("loss",),
        _rmia,
        "orange - <",
        {"a": None},
        public=True,
        comparison="figure",
        audit_order=7,
    ),
    _entry("BASE", LASSILA, bayesian.base),
    _entry("BaVarIA", BRANNVALL, bayesian.bavaria_online, "green - X", comparison="figure"),
    _entry("BaVarIA, t", BRANNVALL, bayesian.bavaria_online, options={"predictive": "t"}),
    _entry(
        "BaVarIA, prior within",
        BRANNVALL,
        bayesian.bavaria_online,
        options=WITHIN,
    ),
    _curved("Curv, log ratio", by_curvature.nll, "red - P"),
    _curved(
        "Curv ZO LR",
        by_curvature.likelihood_ratio,
        "orange -- v",
        options={"variant": "released_code"},
    ),
    _curved("Curv ZO NLL", by_curvature.nll, "pink - v", options={"variant": "released_code"}),
)
ATTACKS = {attack.name: attack for attack in _ENTRIES}
_BY_PLACE = sorted(_ENTRIES, key=lambda attack: attack.audit_order)
IN_AUDITS = {attack.name: attack for attack in _BY_PLACE if attack.audit_order}  # as they run
