"""Results of the chapter on input loss curvature (Ravikumar et al. 2024, section 6): tidy frames of what was measured.

A row is an attack, a metric and a target. Signals are arrays [M, N] or, with A views of each record, [M, N, A]; the target's
partner, which was trained on the other half of the records, is never among its references.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats

from mia_book.chapters.curvature import theory
from mia_book.chapters.curvature.measure import FLOOR, KINDS, SHIFTED_MEANS
from mia_book.publishing import catalogue
from mia_lib import signals
from mia_lib.attacks import baselines, bayes, calibration
from mia_lib.attacks import curvature as attack
from mia_lib.errors import MiaError
from mia_lib.game import Game
from mia_lib.metrics import by_repetition, by_target
from mia_lib.published import Bank

NLL, LR, RATIO, CURVATURE = "Curv ZO NLL", "Curv ZO LR", "Curv, log ratio", "log curvature"
RELEASED = "LiRA, as released"
TRUE = "LiRA, true class"
FIXED = "LiRA, one spread"
EVEN = "Curv, one spread"
TIED = "Curv, tied"  # one variance for both hypotheses, of each record
PAPER = {
    NLL: NLL,
    LR: LR,
    RELEASED: "Carlini et al. (2022)",
    "Yeom": "Yeom et al. (2018)",
    "MAST": "Sablayrolles et al. (2019)",
    "Watson": "Watson et al. (2022)",
    "Attack R": "Ye et al. (2022)",
    "Song and Mittal": "Song and Mittal (2021)",
}
METRICS = ("auc", "balanced_accuracy", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001", "tpr_at_fpr=0.0001")
FEW = ("auc", "tpr_at_fpr=0.01")
# -> views of curvature and LiRA; the other attacks see the image alone
PROTOCOLS = {"one view": 1, "as released": 2}
QUANTILE = 1e-4  # level of attack R in the released code
ITERATIONS = 10  # differences whose mean is the curvature, each of four losses
MEMORISED = "memorised"  # networks that know their members by heart, `measure.memorised`
POPULATION = 2000  # records that no model was trained on, with which RMIA compares, at most


def measured(dataset: str, models: int, asked: int, **recipe) -> tuple[Bank, Bank | None]:
    """The curvature of records under the models of a small bank, and the bank: the log odds of all records.

    Args:
        dataset: of a published bank, or any set, whose models are then trained; or `MEMORISED`, which has no bank.
        models: how many.
        asked: records, as for `measure.curvatures`; half of them in float64, too, and of a quarter the Hessian.
        recipe: of the models, as for `papers.banks.models_of`.
    """
    if dataset == MEMORISED:
        return catalogue()["curvature/memorised"](models), None
    name, known = dataset if dataset in ("cifar10", "cifar100") else "cifar100", catalogue()
    how = {
        "asked": asked,
        "precisely": asked // 2,
        "exactly": asked // 4,
        "views": 2,
        "shifted": True,
    }
    curved = known[f"curvature/{name}-small"](models, dataset=dataset, **how, **recipe)
    return curved, known[f"bank/{name}-small"](models, dataset=dataset, **recipe)


def attacked(curved: Bank, targets: int, references: int) -> Game:
    """The first models of pairs, each with the first models of other pairs as references.

    Raises:
        MiaError: more targets than pairs; fewer than 4 references, an odd number, or more than models of other pairs.
    """
    if references < 4 or references % 2:
        raise MiaError(
            f"references = {references}: an even number of them is needed, 4 at least, for two values of each kind."
        )
    return Game(curved.members, {}, {}, range(0, 2 * targets, 2), references, "first")


def of_other_sizes(
    random: Sequence[int], coresets: Sequence[int], models: int
) -> tuple[Bank, int, dict[tuple[str, int], Bank]]:
    """The references of Figures 6 and 7, models of the small bank on CIFAR-100; how many records each was trained on; and
    eight targets, (kind, size) -> of `measure.sizes`.

    Args:
        random, coresets: sizes of the targets' training sets. models: references.
    """
    known = catalogue()
    references = known["curvature/cifar100-small"](models)
    half = int(known["bank/cifar100-small"](1).members.sum())
    return (
        references,
        half,
        {
            (kind, size): known["curvature/sizes"](8, kind=kind, size=size)
            for kind, sizes in zip(KINDS, (random, coresets), strict=True)
            for size in sizes
        },
    )


def pairs(game: Game) -> list[tuple[int, np.ndarray]]:
    """Number of each target and of its references."""
    return [(view.target, view.models) for view in game]


def against(
    games: Iterable[tuple[int, np.ndarray]], members: np.ndarray, score
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Scores [T, N] of attacks by name, and the targets' members, bool [T, N].

    Args:
        games: target and references, such as `pairs` of a game. members: bool [M, N].
        score: (target, references, members of these [R, N]) -> name -> [N].
    """
    games = list(games)
    rows = [score(target, references, members[references]) for target, references in games]
    attacked_members = members[[target for target, _ in games]]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}, attacked_members


def released_ratio(
    signal: np.ndarray, target: int, references: np.ndarray, inside: np.ndarray
) -> np.ndarray:
    """Score [N] of the rule that the released code calls LR, from log curvature, or from log odds
    for its LiRA, [M, N] or [M, N, A]."""
    return attack.likelihood_ratio(signal[target], signal[references], inside, "released_code")


def curvature_attacks(
    log: np.ndarray, target: int, references: np.ndarray, inside: np.ndarray
) -> dict[str, np.ndarray]:
    """Scores [N] of log curvature [M, N, A]: both released rules, and log-likelihood ratio."""
    nll, ratio = (
        attack.nll(log[target], log[references], inside, variant)
        for variant in ("released_code", "paper")
    )
    return {NLL: nll, LR: released_ratio(log, target, references, inside), RATIO: ratio}


def lira(
    log_odds: np.ndarray,
    target: int,
    references: np.ndarray,
    inside: np.ndarray,
    one_spread: bool = False,
) -> np.ndarray:
    """LiRA's score [N] of log odds [M, N] or [M, N, A]."""
    return baselines.lira_online(log_odds[target], log_odds[references], inside, one_spread)


def methods(
    curved: Bank, game: Game, views: int, bank: Bank | None = None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Scores [T, N] of all attacks, with the curvature in float32 as it is released, and the
    targets' members. RMIA is among them with a `bank` that has records which no model was trained
    on."""
    log, true, top = (array[..., :views] for array in (curved.released, curved.true, curved.top))
    loss = signals.loss_of(curved.true[..., 0])

    def score(t: int, others: np.ndarray, inside: np.ndarray) -> dict[str, np.ndarray]:
        of_curvature = curvature_attacks(log, t, others, inside)
        return {
            NLL: of_curvature[NLL],
            LR: of_curvature[LR],
            RELEASED: released_ratio(top, t, others, inside),
            "Yeom": bayes.malt(loss[t]),
            "MAST": bayes.mast(loss[t], loss[others], inside, "middle"),
            "Watson": calibration.calibrate(-loss[t], -loss[others], inside),
            "Attack R": baselines.attack_r(loss[t], loss[others], inside, QUANTILE),
            "Song and Mittal": -curved.entropy[t].astype(float),
            RATIO: of_curvature[RATIO],
            "LiRA, largest class": lira(top, t, others, inside),
            "LiRA, released rule": released_ratio(true, t, others, inside),
            TRUE: lira(true, t, others, inside),
            FIXED: lira(true, t, others, inside, one_spread=True),
            **rmia(bank, t, others, loss.shape[1]),
            CURVATURE: -log[t, :, 0].astype(float),
        }

    return against(pairs(game), curved.members, score)


def rmia(
    bank: Bank | None, target: int, references: np.ndarray, asked: int
) -> dict[str, np.ndarray]:
    """RMIA's score of the first `asked` records; empty if all records trained some model."""
    outside = [] if bank is None else bank.untrained[:POPULATION]
    if bank is None or not len(outside):
        return {}
    both = [target, *references]
    p, elsewhere = (
        np.exp(-signals.loss_of(bank.margin[both][:, rows])) for rows in (slice(asked), outside)
    )
    return {
        "RMIA": baselines.rmia(
            p[0], p[1:], bank.members[references, :asked], elsewhere[0], elsewhere[1:]
        )
    }


def table_1(
    data: str, curved: Bank, bank: Bank | None, game: Game, draws: int = 100
) -> tuple[pd.DataFrame, dict[str, np.ndarray], np.ndarray]:
    """Study "methods", for Tables 1 to 5, by data and protocol of `PROTOCOLS`; scores as released;
    and the targets' members."""
    frames = []
    for protocol, views in PROTOCOLS.items():
        scores, members = methods(curved, game, views, bank)
        frames.append(
            by_target(
                scores, members, METRICS, draws=draws, study="methods", data=data, protocol=protocol
            )
        )
    return pd.concat(frames, ignore_index=True), scores, members


def queries(
    data: str, curved: Bank, bank: Bank | None, game: Game, draws: int = 100
) -> pd.DataFrame:
    """Study "queries", with a column of that name: attacks on the records whose curvature is known in float64."""
    log, members = curved.precise, curved.members[:, : curved.precise.shape[1]]
    true, shifted = (array[:, : members.shape[1]] for array in (curved.true, curved.shifted))
    loss = signals.loss_of(true[..., 0])

    def score(t: int, others: np.ndarray, inside: np.ndarray) -> dict[tuple[str, int], np.ndarray]:
        scores = {("Yeom", 1): bayes.malt(loss[t])}
        for views in range(1, log.shape[-1] + 1):
            seen, count = log[..., :views], 4 * ITERATIONS * views
            scores |= {
                (name, count): values
                for name, values in curvature_attacks(seen, t, others, inside).items()
            }
            scores[TIED, count] = attack.nll(seen[t], seen[others], inside, tied=True)
            scores[EVEN, count] = lira(seen, t, others, inside, one_spread=True)
        of_views = {views: true[..., :views] for views in range(1, true.shape[-1] + 1)}
        of_views |= {count: shifted[..., place] for place, count in enumerate(SHIFTED_MEANS)}
        for count, log_odds in of_views.items():
            scores |= {
                (name, count): lira(log_odds, t, others, inside, name == FIXED)
                for name in (TRUE, FIXED)
            }
        return scores | {
            (name, 1): values for name, values in rmia(bank, t, others, members.shape[1]).items()
        }

    scores, inside = against(pairs(game), members, score)
    return pd.concat(
        [
            by_target(
                {name: values}, inside, FEW, draws=draws, study="queries", data=data, queries=count
            )
            for (name, count), values in scores.items()
        ],
        ignore_index=True,
    )


def precisions(data: str, curved: Bank, game: Game, draws: int = 100) -> pd.DataFrame:
    """Study "precision": the curvature attacks in float32 and in float64 on the same records, two
    views; "zero" is the share of curvatures of each target that are exactly zero."""
    frames, asked = [], curved.precise.shape[1]
    for precision, log in (("float32", curved.released[:, :asked]), ("float64", curved.precise)):
        scores, members = against(
            pairs(game),
            curved.members[:, :asked],
            lambda t, others, inside, log=log: curvature_attacks(log, t, others, inside),
        )
        nothing = (log[list(game.targets)] < np.log(FLOOR) + 0.5).mean((1, 2))
        frames += [
            by_target(
                scores, members, FEW, draws=draws, study="precision", data=data, precision=precision
            ),
            by_repetition(
                {CURVATURE: {"zero": nothing}}, study="precision", data=data, precision=precision
            ),
        ]
    return pd.concat(frames, ignore_index=True)


SIGNALS = {
    "as released, float64": ("precise", "40 queries"),
    "the same, each model's own label": ("own", "40 queries"),
    "Frobenius norm, exact": ("exact", "parameters"),
    "largest probability": ("top", "1 query"),
    "true class's probability": ("true", "1 query"),
}


def estimators(data: str, curved: Bank, game: Game, draws: int = 100) -> pd.DataFrame:
    """Study "signals": the log-likelihood ratio of the signals of `SIGNALS`, image alone, on the records whose Hessian is
    known."""
    asked = curved.exact.shape[1]
    arrays = {name: getattr(curved, array)[:, :asked] for name, (array, _) in SIGNALS.items()}
    arrays = {name: array[..., 0] if array.ndim == 3 else array for name, array in arrays.items()}
    scores, members = against(
        pairs(game),
        curved.members[:, :asked],
        lambda t, others, inside: {
            name: attack.nll(array[t], array[others], inside) for name, array in arrays.items()
        },
    )
    return by_target(scores, members, FEW, draws=draws, study="signals", data=data)


def by_references(
    data: str, curved: Bank, game: Game, draws: int = 100, few: int = 8
) -> pd.DataFrame:
    """Study "references": LR and LiRA, as released, with the first `few` references and all."""
    frames, metric, most = [], "conformal_tpr_at_fpr=0.001", game.references
    for count in sorted({min(few, most), most}):
        fewer = pairs(replace(game, references=count))
        scores, members = against(
            fewer,
            curved.members,
            lambda *one: {
                LR: released_ratio(curved.released, *one),
                RELEASED: released_ratio(curved.top, *one),
            },
        )
        frames.append(
            by_target(
                scores,
                members,
                (metric,),
                draws=draws,
                study="references",
                data=data,
                references=count,
            )
        )
    return pd.concat(frames, ignore_index=True)


def gaussian(data: str, curved: Bank, game: Game) -> pd.DataFrame:
    """Study "gaussian": how far log curvature, in float64, is from what the references' Gaussians predict of the target.

    If the values of a record are Gaussian, the target's distance from the mean of n references is Student's t with n - 1
    degrees of freedom. The "distance" is that of Kolmogorov and Smirnov between all records' values and this law, the mean of
    members under IN references and of non-members under OUT references.
    """
    log, distances = curved.precise[..., 0].astype(float), []
    for target, references in pairs(game):
        inside, trained = (curved.members[rows, : log.shape[1]] for rows in (references, target))
        for records, kept in ((trained, inside), (~trained, ~inside)):
            mean, squares, count = (
                part[:, 0] for part in baselines.moments(log[references][..., None], kept)
            )
            spread = np.sqrt(squares / (count - 1) * (1 + 1 / count))
            use = records & (spread > 1e-3 * np.abs(mean))  # less is the rounding of half precision
            t = (log[target, use] - mean[use]) / spread[use]
            distances.append(stats.kstest(t, stats.t(count[use].mean() - 1).cdf).statistic)
    return by_repetition(
        {CURVATURE: {"distance": np.reshape(distances, (-1, 2)).mean(1)}},
        study="gaussian",
        data=data,
    )


# -------------------------------------------------------------------------------------------- training sets by design


def sizes(
    references: Bank,
    half: int,
    targets: Mapping[tuple[str, int], Bank],
    game: Game,
    draws: int = 100,
) -> pd.DataFrame:
    """Study "sizes": attacks of the image alone on targets of other training sets, by kind and size (`of_other_sizes`), with
    all models of the bank as references; these stand among the targets as random sets of half of the records. "No
    target" ranks records by their curvature under references without them, and looks at no target."""
    frames = []

    def attack_all(banks: list[Bank], rows: list[tuple[int, np.ndarray]], **where) -> None:
        log, true, top = (
            np.concatenate(
                [getattr(bank, name).reshape(*bank.members.shape, -1)[..., 0] for bank in banks]
            )
            for name in ("released", "true", "top")
        )
        loss = signals.loss_of(true)
        scores, inside = against(
            rows,
            np.concatenate([bank.members for bank in banks]),
            lambda t, others, inside: {
                **curvature_attacks(log, t, others, inside),
                TRUE: lira(true, t, others, inside),
                RELEASED: released_ratio(top, t, others, inside),
                "Yeom": bayes.malt(loss[t]),
                "Watson": calibration.calibrate(-loss[t], -loss[others], inside),
                "no target": -np.average(log[others].astype(float), 0, ~inside),
            },
        )
        frames.append(
            by_target(
                scores, inside, ("auc", "balanced_accuracy"), draws=draws, study="sizes", **where
            )
        )

    attack_all([references], pairs(game), kind="random", size=half)
    for (kind, size), bank in targets.items():
        everyone = np.arange(len(bank), len(bank) + len(references))
        rows = [(target, everyone) for target in range(len(bank))]
        attack_all([bank, references], rows, kind=kind, size=size)
    return pd.concat(frames, ignore_index=True).sort_values(
        ["kind", "size"], kind="stable", ignore_index=True
    )


# ------------------------------------------------------------------------------------------------- theory, and one probe


def theorems(seed: int = 0) -> pd.DataFrame:
    """Study "theory": by how much the bounds of the paper's theorems and of its lemma are exceeded;
    and the distance of four points from the Hessian."""
    mechanisms = theory.mechanisms(400, seed)
    # Every model has the loss x^2 (1 - |x|) on [-1, 1], and records are -1, 0, 1: no noise, no gap, no bias.
    small = theory.CurvatureWorld(
        loss_bound=4 / 27, gamma=0.0, bias=0.0, hessian_lipschitz=6.0, alpha_cubed=1.0, sigma=1.0
    )
    world = theory.CurvatureWorld(
        loss_bound=1.0, gamma=0.01, bias=0.0, hessian_lipschitz=0.1, alpha_cubed=1.0, sigma=10.0
    )
    beyond = [0.0]
    for epsilon in np.geomspace(0.1, 10, 60):
        bound = world.kl_bound(np.geomspace(1, 1e6, 200), epsilon)
        beyond += list(theory.kl_cap(epsilon) - bound[bound > epsilon])
    return by_repetition(
        {
            "Theorem 4.1": {"excess": max((mechanisms["kl"] - mechanisms["epsilon"]).max(), 0.0)},
            "Lemma A.1": {"excess": max(2.0 - float(small.mean_bound(3, 0.0)), 0.0)},
            "Theorem 4.3": {"excess": max(beyond)},
            "four points": {"distance": four_points_against_hessian()},
        },
        study="theory",
    )


def four_points_against_hessian() -> float:
    """Largest distance of q (u . v) from the same number by automatic differentiation, relative to the spread of such numbers,
    on a smooth network of 64 inputs in float64."""
    import torch

    from mia_lib.signals import curvature

    generator = torch.Generator().manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(64, 16), torch.nn.Tanh(), torch.nn.Linear(16, 5)
    ).double()
    with torch.no_grad():
        for weight in net.parameters():
            weight.copy_(
                torch.randn(weight.shape, generator=generator, dtype=torch.float64)
                / weight.shape[-1] ** 0.5
            )
    x, y = torch.randn(20, 64, generator=generator, dtype=torch.float64), torch.arange(20) % 5

    def loss(inputs, labels):
        return torch.nn.functional.cross_entropy(net(inputs), labels, reduction="none")

    estimate = curvature.zero_order_trace(loss, x, 1, y=y)
    exact = curvature.limit_trace(loss, x, 1, y=y)
    return float(np.abs(estimate - exact).max() / exact.std())


STEP_SIZES = np.round(10.0 ** np.arange(-5.0, -0.95, 0.1), 12)  # of the probe that is looked at


def probe_of_stranger(networks, records, members: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """`probe` of the first record that the first network was not trained on and gets wrong, or of
    the first record if there is none: with its label and with the network's own, in words.
    `members` are those of the first network."""
    called = signals.logits(networks, records)[0].argmax(-1)
    shown = int(np.argmax(~members & (called != records.y)))
    labels = {"the label": int(records.y[shown]), "the network's own": int(called[shown])}
    probed = probe(networks.model(0), records.x[shown], dict.fromkeys(labels.values()), seed)
    names = {label: f"{whose}, {records.classes[label]}" for whose, label in labels.items()}
    return probed.assign(label=probed["label"].map(names))


def probe(network, image: np.ndarray, labels: Iterable[int], seed: int = 0) -> pd.DataFrame:
    """One probe of one image at many steps.

    Args:
        network: PyTorch module. image: [height, width, channels]. labels: with which the loss is taken.

    Returns:
        a row for each label and step h: columns label, h, q, and product, v^T H u by automatic differentiation.
    """
    import torch

    from mia_lib.signals import outputs

    net, rng = outputs.in_precision(network, "float64"), np.random.default_rng([37, seed])
    x = outputs.inputs(image[None], 0, 1, torch.device("cpu"), torch.float64).contiguous()
    u, v = (torch.from_numpy(rng.choice([-1.0, 1.0], tuple(x.shape))) for _ in range(2))
    at = torch.from_numpy(np.concatenate([STEP_SIZES, -STEP_SIZES]))[:, None, None, None]
    frames, steps = [], len(STEP_SIZES)
    for label in labels:

        def loss(points, label=label):
            return torch.nn.functional.cross_entropy(
                net(points), torch.full((len(points),), int(label)), reduction="none"
            )

        with torch.no_grad():
            along = [loss(x + at * line).numpy() for line in (u + v, u - v)]
        near, far = ((line[:steps] + line[steps:]) / 2 for line in along)
        moved = x.clone().requires_grad_()
        [gradient] = torch.autograd.grad(loss(moved).sum(), moved, create_graph=True)
        [times] = torch.autograd.grad((gradient * v).sum(), moved)
        product = float((times * u).sum())
        frames.append(
            pd.DataFrame(
                {
                    "label": int(label),
                    "h": STEP_SIZES,
                    "q": (near - far) / (2 * STEP_SIZES**2),
                    "product": product,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)
