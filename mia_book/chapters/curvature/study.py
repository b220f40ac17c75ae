"""Results of the chapter on input loss curvature (Ravikumar et al. 2024, section 6): tidy frames of what was measured.

A row is an attack, a metric and a target. Signals are arrays [M, N] or, with A views of each record, [M, N, A]. Every model of
a bank is attacked; its partner, which was trained on the other half of the records, is never among its references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from scipy import stats

from mia_book.chapters.curvature import theory
from mia_book.chapters.curvature.measure import FLOOR, KINDS, WIDE_BY_HEART, epochs_of_size
from mia_book.evidence.settings import REHEARSALS
from mia_book.publishing import catalogue
from mia_book.publishing.banks import where_measured
from mia_lib import metrics, signals
from mia_lib.attacks import baselines, bayes, calibration
from mia_lib.attacks import curvature as attack
from mia_lib.attacks.registry import LOG_ODDS
from mia_lib.game import Game, View, best_trial
from mia_lib.metrics import by_repetition, by_target
from mia_lib.published import Bank

NLL, LR, CURVATURE = "Curv ZO NLL", "Curv ZO LR", "log curvature"
RELEASED, LIRA, RATIO, BOTH = "LiRA, as released", "LiRA", "Curv, log ratio", "LiRA + curvature"
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
MEASURES = {"auc": "AUC", "tpr_at_fpr=0.01": "1 %", "tpr_at_fpr=0.001": "0.1 %"}
JUDGES = {  # a metric that is shown -> by which the attacker chooses
    "auc": metrics.auc,
    "tpr_at_fpr=0.01": partial(metrics.tpr_at_fpr, fpr=0.01),
    "tpr_at_fpr=0.001": partial(metrics.tpr_at_fpr, fpr=0.001),
}
WEIGHTS = (0.0, 0.1, 0.25, 0.5, 1.0)  # of the curvature's log ratio beside LiRA's
STEP = 2  # one record in so many is looked at where forms are chosen: rates are low
QUANTILE = 1e-4  # level of attack R in the released code
ITERATIONS = 10  # differences whose mean is the curvature, each of four losses
MEMORISED = "memorised"  # networks that know their members by heart, `measure.memorised`
WIDE = "25,000 by heart"  # networks that know as many as the paper's
SMALL = "small networks"  # that attack targets of other sizes, trained as they were
TARGETS_A_SIZE = 8  # in Figures 6 and 7
SIZES_BY_HEART = (1000, 5000, 10_000, 20_000, 25_000, 45_000)  # shown as far as they are published
CROSSINGS = {NLL: 10_000, LR: 20_000}  # sizes beyond which the paper has them ahead
# further banks, their models and parameters: settings of claims as soon as they are published
BANKS = {
    WIDE: ("curvature/memorised", 16, WIDE_BY_HEART),
    "CIFAR-100": ("curvature/cifar100-small", 32, {}),
    "ResNet-18": ("curvature/cifar100", 18, {}),
}


def measured(dataset: str, models: int, asked: int, **recipe) -> Bank:
    """The curvature of records under the models of a small bank.

    Args:
        dataset: of a published bank, or any set, whose models are then trained; or `MEMORISED`.
        models: how many.
        asked: records, as for `measure.curvatures`; half of them in float64, too, and of a quarter the Hessian.
        recipe: of the models, as for `papers.banks.models_of`.
    """
    known = catalogue()
    if dataset == MEMORISED:
        return known["curvature/memorised"](models)
    how = {"asked": asked, "precisely": asked // 2, "exactly": asked // 4}
    name = dataset if dataset in ("cifar10", "cifar100") else "cifar100"
    measurement = known[f"curvature/{name}-small"]
    return measurement(models, dataset=dataset, views=2, shifted=True, **how, **recipe)


def other_banks(models: int) -> dict[str, Bank]:
    """Those of `BANKS` that are published, with at most so many models."""
    banks = {
        name: where_measured(piece, min(models, count), **parameters)
        for name, (piece, count, parameters) in BANKS.items()
    }
    return {name: bank for name, bank in banks.items() if bank is not None}


def many_queries(dataset: str, models: int, **recipe) -> Bank | None:
    """The log odds of 18 views under the same models, if they are published; arguments as for `measured`."""
    if dataset == MEMORISED:
        return where_measured("curvature/memorised-queries", models)
    name = f"curvature/{dataset}-small-queries"
    return where_measured(name, models, dataset=dataset, **recipe)


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
            (kind, size): known["curvature/sizes"](TARGETS_A_SIZE, kind=kind, size=size)
            for kind, sizes in zip(KINDS, (random, coresets), strict=True)
            for size in sizes
        },
    )


def of_sizes_by_heart() -> dict[tuple[str, int], Bank]:
    """Eight targets of each size that know their members by heart, (kind, size) -> of `measure.memorised_sizes`, as far as
    they are published. All were trained for the same epochs; the models of `WIDE` attack them."""
    banks = {
        (kind, size): where_measured(
            "curvature/memorised-sizes", TARGETS_A_SIZE, kind=kind, size=size
        )
        for kind in KINDS
        for size in SIZES_BY_HEART
    }
    return {key: bank for key, bank in banks.items() if bank is not None}


def attacked(curved: Bank, targets: int, references: int, views: int = 1) -> Game:
    """The game on the first `targets` models, with the first views of each record: the log curvature in float32, "released",
    and in float64 where all records have it, "precise"."""
    whole = curved.precise.shape[1] == curved.members.shape[1]
    values = {
        "precise": curved.precise if whole else curved.released,
        "released": curved.released,
        LOG_ODDS: curved.true,
        "top": curved.top,
    }
    values = {name: array[..., :views] for name, array in values.items()}
    values |= {
        "loss": signals.loss_of(curved.true[..., 0]),
        "entropy": -curved.entropy.astype(float),
    }
    return Game(curved.members, values, {}, range(min(targets, len(curved))), references)


def seen(view: View, signal: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A signal of the target and of its references, and the references' members."""
    return view.own(signal), *view.references(signal)


def released(view: View) -> dict[str, np.ndarray]:
    """Scores [N] of the paper's eight methods by its code; curvature and LiRA have all views, the others the image alone."""
    bent, loss = seen(view, "released"), seen(view, "loss")
    return {
        NLL: attack.nll(*bent, "released_code"),
        LR: attack.likelihood_ratio(*bent, "released_code"),
        RELEASED: attack.likelihood_ratio(*seen(view, "top"), "released_code"),
        "Yeom": bayes.malt(loss[0]),
        "MAST": bayes.mast(*loss, "middle"),
        "Watson": calibration.calibrate(-loss[0], -loss[1], loss[2]),
        "Attack R": baselines.attack_r(*loss, QUANTILE),
        "Song and Mittal": view.own("entropy"),
        CURVATURE: -view.own("released")[:, 0].astype(float),
    }


# Which variances the Gaussians have, is for the attacker to choose; the first where there are too few references to try.
FORMS = {
    LIRA: {
        "one of all images": lambda view: baselines.lira_online(*seen(view, LOG_ODDS), True),
        "two of each image": lambda view: baselines.lira_online(*seen(view, LOG_ODDS)),
    },
    RATIO: {
        "one of each image": lambda view: attack.nll(*seen(view, "precise"), tied=True),
        "two of each image": lambda view: attack.nll(*seen(view, "precise")),
    },
}


def choose(view: View, names: Sequence[str] = tuple(FORMS)) -> dict[str, dict]:
    """What the attacker chose on its own models, by each metric of `JUDGES`: attack -> its form, and `BOTH` -> the weight.

    Args:
        names: of `FORMS`; for the weight all of them.
    """
    rows = np.arange(view.game.members.shape[1])[::STEP]
    own = view.on(rows).rehearsals(REHEARSALS) if len(view.models) > 4 else []
    played = {
        (name, form): [(score(each), members) for each, members in own]
        for name in names
        for form, score in FORMS[name].items()
    }
    chosen: dict[str, dict] = {}
    for metric, judge in JUDGES.items():
        best = chosen[metric] = {}
        for name in names:
            trials = [({"form": form}, played[name, form]) for form in FORMS[name]] if own else []
            best[name] = best_trial(trials, judge).get("form", next(iter(FORMS[name])))
        if len(names) == len(FORMS):
            pairs = list(zip(played[LIRA, best[LIRA]], played[RATIO, best[RATIO]], strict=True))
            trials = [
                (
                    {"weight": weight},
                    [(one + weight * bent, members) for (one, members), (bent, _) in pairs],
                )
                for weight in WEIGHTS
            ]
            best[BOTH] = best_trial(trials if own else [], judge).get("weight", 0.0)
    return chosen


def log_ratios(view: View, chosen: Mapping[str, Mapping]) -> dict[str, dict[str, np.ndarray]]:
    """Log-likelihood ratios [N] as they were chosen, metric -> attack -> score: LiRA's, the curvature's, and the first plus so
    much of the second."""
    needed = {(name, best[name]) for best in chosen.values() for name in best if name in FORMS}
    ratios = {(name, form): FORMS[name][form](view) for name, form in needed}
    scores = {}
    for metric, best in chosen.items():
        of_metric = scores[metric] = {
            name: ratios[name, best[name]] for name in best if name in FORMS
        }
        if BOTH in best:
            of_metric[BOTH] = of_metric[LIRA] + best[BOTH] * of_metric[RATIO]
    return scores


def attack_bank(
    data: str,
    curved: Bank,
    targets: int,
    references: Sequence[int],
    draws: int = 20,
    queries: Bank | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, np.ndarray]]:
    """Study "attacks": all attacks on a bank, from one view and from two, with each number of references.

    Args:
        data: what to call the bank. queries: log odds of the same records in many views, for LiRA.

    Returns:
        the tidy frame, with columns data, views and references in words, and once more as study "measures", metric "found",
        with a column for the metric; what was chosen, by these columns; and the scores [T, N] of the last setting.
    """
    games = {
        (count, views): attacked(curved, targets, count, views)
        for count in references
        for views in range(1, curved.true.shape[-1] + 1)
    }
    usual = dict.fromkeys(games)
    if queries is not None:
        most = max(count for count, _ in games)
        values = {LOG_ODDS: queries.queries}
        games[most, queries.queries.shape[-1]] = Game(
            queries.members, values, {}, games[most, 1].targets, most
        )
    frames, choices = [], []
    for (count, views), game in games.items():
        where = {
            "study": "attacks",
            "data": data,
            "views": f"{views} view{'s' * (views > 1)}",
            "references": f"{count} references",
        }
        names = tuple(FORMS) if (count, views) in usual else (LIRA,)
        judged = partial(by_target, members=game.target_members, draws=draws, **where)
        # a pair has the same references, and so the same models to try on
        chosen = {view.target // 2: choose(view, names) for view in game if not view.target % 2}
        played = [log_ratios(view, chosen[view.target // 2]) for view in game]
        for metric in JUDGES:
            scores = {
                name: np.stack([one[metric][name] for one in played]) for name in played[0][metric]
            }
            frames.append(judged(scores, metrics=(metric,)))
        table = [
            (name, metric, f"{one:g}" if name == BOTH else one)
            for of_pair in chosen.values()
            for metric, best in of_pair.items()
            for name, one in best.items()
        ]
        choices.append(pd.DataFrame(table, columns=["attack", "metric", "choice"]).assign(**where))
        if (count, views) in usual:
            usual_scores = against(game, released)
            frames.append(judged(usual_scores, metrics=METRICS))
            last = usual_scores | scores  # the last of `JUDGES`, by the lowest rate
    frame = pd.concat(frames, ignore_index=True)
    measured_by = frame[frame["metric"].isin(MEASURES)]
    measured_by = measured_by.assign(
        study="measures", measure=measured_by["metric"].map(MEASURES), metric="found"
    )
    return pd.concat([frame, measured_by], ignore_index=True), pd.concat(choices), last


def against(views: Iterable[View], score: Callable) -> dict[str, np.ndarray]:
    """Scores [T, N] by name of a function that gives them, [N], of a view: of those in a game, or others."""
    rows = [score(view) for view in views]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def on_signals(
    curved: Bank, arrays: Mapping[str, np.ndarray], targets: int, references: int
) -> Game:
    """The game on the first records, of which all these signals are known."""
    asked = min(array.shape[1] for array in arrays.values())
    values = {name: array[:, :asked] for name, array in arrays.items()}
    return Game(curved.members[:, :asked], values, {}, range(min(targets, len(curved))), references)


def precisions(
    data: str, curved: Bank, targets: int, references: int, draws: int = 20
) -> pd.DataFrame:
    """Study "precision": the released scores in float32 and in float64 on the same records, all views; "zero" is the share of
    curvatures of each target that are exactly zero."""
    frames = []
    game = on_signals(
        curved, {"float32": curved.released, "float64": curved.precise}, targets, references
    )
    for precision in game.values:
        scores = against(
            game,
            lambda view, name=precision: {
                NLL: attack.nll(*seen(view, name), "released_code"),
                LR: attack.likelihood_ratio(*seen(view, name), "released_code"),
            },
        )
        where = {"study": "precision", "data": data, "precision": precision}
        log = game.values[precision][list(game.targets)]
        nothing = (log < np.log(FLOOR) + 0.5).mean((1, 2))
        frames += [
            by_target(scores, game.target_members, ("tpr_at_fpr=0.01",), draws=draws, **where),
            by_repetition({CURVATURE: {"zero": nothing}}, **where),
        ]
    return pd.concat(frames, ignore_index=True)


SIGNALS = {
    "as released, float64": ("precise", "40 queries"),
    "the same, each model's own label": ("own", "40 queries"),
    "Frobenius norm, exact": ("exact", "parameters"),
    "largest probability": ("top", "1 query"),
    "true class's probability": ("true", "1 query"),
}


def estimators(
    data: str, curved: Bank, targets: int, references: int, draws: int = 20
) -> pd.DataFrame:
    """Study "signals": the log-likelihood ratio of the signals of `SIGNALS`, image alone, on the records whose Hessian is
    known."""
    arrays = {name: getattr(curved, array) for name, (array, _) in SIGNALS.items()}
    arrays = {name: array[..., 0] if array.ndim == 3 else array for name, array in arrays.items()}
    game = on_signals(curved, arrays, targets, references)
    scores = against(game, lambda view: {name: attack.nll(*seen(view, name)) for name in arrays})
    return by_target(scores, game.target_members, ("auc",), draws=draws, study="signals", data=data)


def gaussian(data: str, curved: Bank, targets: int, references: int) -> pd.DataFrame:
    """Study "gaussian": how far the log curvature, and the log odds of the true class, are from what the references' Gaussians
    predict of the target.

    If the values of a record are Gaussian, the target's distance from the mean of n references is Student's t with n - 1
    degrees of freedom. The "distance" is that of Kolmogorov and Smirnov between all records' values and this law, the mean of
    members under IN references and of non-members under OUT references.
    """
    game = attacked(curved, targets, references)
    names = {CURVATURE: "precise", "log odds": LOG_ODDS}
    distances: dict[str, dict[str, list]] = {name: {"distance": []} for name in names}
    for view, trained in zip(game, game.target_members, strict=True):
        for name, signal in names.items():
            own, others, members = (array.astype(float) for array in seen(view, signal))
            both = [
                _distance(own[:, 0], others, records, kept > 0)
                for records, kept in ((trained, members), (~trained, 1 - members))
            ]
            distances[name]["distance"].append(np.mean(both))
    return by_repetition(distances, study="gaussian", data=data)


def _distance(own, others, records, kept) -> float:
    mean, squares, count = (part[:, 0] for part in baselines.moments(others, kept))
    spread = np.sqrt(squares / (count - 1) * (1 + 1 / count))
    use = records & (spread > 1e-3 * np.abs(mean))  # less is the rounding of half precision
    t = (own[use] - mean[use]) / spread[use]
    return float(stats.kstest(t, stats.t(count[use].mean() - 1).cdf).statistic)


# -------------------------------------------------------------------------------------------- training sets by design


def of_single_view(view: View) -> dict[str, np.ndarray]:
    """Scores [N] from the image alone; "no target" is the curvature under the references without the record."""
    bent, loss = seen(view, "released"), seen(view, "loss")
    return {
        NLL: attack.nll(*bent, "released_code"),
        LR: attack.likelihood_ratio(*bent, "released_code"),
        RELEASED: attack.likelihood_ratio(*seen(view, "top"), "released_code"),
        "Yeom": bayes.malt(loss[0]),
        "Watson": calibration.calibrate(-loss[0], -loss[1], loss[2]),
        "no target": -np.average(bent[1].astype(float), 0, ~bent[2]),
    }


def sizes(
    networks: str,
    references: Bank,
    half: int,
    targets: Mapping[tuple[str, int], Bank],
    draws: int = 100,
) -> pd.DataFrame:
    """Study "sizes": attacks of the image alone on eight targets of other training sets, by kind and size (`of_other_sizes`,
    `of_sizes_by_heart`), with all models of the bank as references; eight of these stand among the targets as random sets of
    half of the records. "No target" ranks records by their curvature under references without them, and looks at no target.
    Studies "beyond 10,000" and "beyond 20,000" have the larger random sets once more. `networks` is what they are called."""
    frames, count = [], len(references)

    def game_of(banks: list[Bank], numbers: Sequence[int]) -> Game:
        values = {
            name: np.concatenate(
                [getattr(bank, name).reshape(*bank.members.shape, -1)[..., 0] for bank in banks]
            )
            for name in ("released", "true", "top")
        }
        values["loss"] = signals.loss_of(values.pop("true"))
        members = np.concatenate([bank.members for bank in banks])
        return Game(members, values, {}, numbers, count - 2)

    def attack_all(game: Game, views: Iterable[View], **where) -> None:
        scores = against(views, of_single_view)
        names = ("auc", "balanced_accuracy")
        frames.append(
            by_target(
                scores,
                game.target_members,
                names,
                draws=draws,
                study="sizes",
                networks=networks,
                **where,
            )
        )

    by_pair = [*range(0, count, 2), *range(1, count, 2)]
    game = game_of([references], by_pair[:TARGETS_A_SIZE])  # as many as of each other size
    attack_all(game, game, kind="random", size=half)
    for (kind, size), bank in targets.items():
        game = game_of([bank, references], range(len(bank)))
        everyone = np.arange(len(bank), len(bank) + count)
        views = [View(game, target, everyone) for target in game.targets]
        attack_all(game, views, kind=kind, size=size)
    frame = pd.concat(frames, ignore_index=True)
    frame = frame.sort_values(["kind", "size"], kind="stable", ignore_index=True)
    of_random = frame[frame["kind"] == "random"]
    beyond = [
        of_random[of_random["size"] > size].assign(study=f"beyond {size:,}")
        for size in CROSSINGS.values()
    ]
    return pd.concat([frame, *beyond], ignore_index=True)


def epochs_by_size(
    half: int, references: Bank, targets: Mapping[tuple[str, int], Bank]
) -> dict[int, int]:
    """Size of a training set -> epochs of its networks, of those of `sizes`, from small to large."""
    epochs = {half: references.parameters["epochs"]}
    for (_, size), bank in targets.items():
        known = bank.parameters
        epochs[size] = epochs_of_size(known["epochs"], known["batch_size"], size, known["steps"])
    return dict(sorted(epochs.items()))


# ------------------------------------------------------------------------------------------------- theory, and one probe


def theorems(seed: int = 0) -> pd.DataFrame:
    """Study "theory": by how much the bounds of the paper's theorem and of its lemma are exceeded;
    and the distance of four points from the Hessian."""
    mechanisms = theory.mechanisms(400, seed)
    # Every model has the loss x^2 (1 - |x|) on [-1, 1], and records are -1, 0, 1: no noise, no gap, no bias.
    small = theory.CurvatureWorld(
        loss_bound=4 / 27, gamma=0.0, bias=0.0, hessian_lipschitz=6.0, alpha_cubed=1.0
    )
    return by_repetition(
        {
            "Theorem 4.1": {"excess": max((mechanisms["kl"] - mechanisms["epsilon"]).max(), 0.0)},
            "Lemma A.1": {"excess": max(2.0 - float(small.mean_bound(3, 0.0)), 0.0)},
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


def strangers(networks, records, members: np.ndarray, h: float, seed: int = 0) -> pd.DataFrame:
    """One probe at step h of each record that the first network was not trained on and gets wrong, or of the first record if
    there is none. `members` are those of the first network.

    Returns:
        columns record, label and called, by number; q and q_called, with either as the label; product, v^T H u; and left,
        whether q is off by more than a tenth of that, so that the four points lie on several pieces of the network.
    """
    called = signals.logits(networks, records)[0].argmax(-1)
    rows = []
    for record in np.flatnonzero(~members & (called != records.y)) if (~members).any() else [0]:
        labels = int(records.y[record]), int(called[record])
        probed = probe(networks.model(0), records.x[record], labels, seed, np.array([h]))
        rows.append((record, *labels, *probed["q"], probed["product"].iloc[0]))
    names = ["record", "label", "called", "q", "q_called", "product"]
    probes = pd.DataFrame(rows, columns=names)
    return probes.assign(
        left=(probes["q"] - probes["product"]).abs() > 0.1 * probes["product"].abs()
    )


def probe_of_stranger(networks, records, found: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """`probe` of the first of the `strangers` whose piece is left, with its label and the network's own, in words."""
    one = found.loc[found["left"].idxmax()]
    names = {
        int(label): f"{whose}, {records.classes[int(label)]}"
        for whose, label in (("the network's own", one["called"]), ("the label", one["label"]))
    }
    probed = probe(networks.model(0), records.x[int(one["record"])], [*names][::-1], seed)
    return probed.assign(label=probed["label"].map(names))


def probe(
    network, image: np.ndarray, labels: Iterable[int], seed: int = 0, sizes: np.ndarray = STEP_SIZES
) -> pd.DataFrame:
    """One probe of one image at many steps.

    Args:
        network: PyTorch module. image: [height, width, channels]. labels: with which the loss is taken. sizes: of the steps.

    Returns:
        a row for each label and step h: columns label, h, q, and product, v^T H u by automatic differentiation.
    """
    import torch

    net, x, u, v = _directions(network, image, seed)
    at = torch.from_numpy(np.concatenate([sizes, -sizes]))[:, None, None, None]
    frames, steps = [], len(sizes)
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
                    "h": sizes,
                    "q": (near - far) / (2 * sizes**2),
                    "product": product,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _directions(network, image: np.ndarray, seed: int) -> tuple:
    """The network and the image in float64, and two random directions of entries 1 and -1."""
    import torch

    from mia_lib.signals import outputs

    net, rng = outputs.in_precision(network, "float64"), np.random.default_rng([37, seed])
    x = outputs.inputs(image[None], 0, 1, torch.device("cpu"), torch.float64).contiguous()
    u, v = (torch.from_numpy(rng.choice([-1.0, 1.0], tuple(x.shape))) for _ in range(2))
    return net, x, u, v


def four_points(network, image: np.ndarray, label: int, h: float, seed: int = 0):
    """The image and the four points around it of one probe, [5, H, W] from -1 to 1, and the losses there, [5]."""
    import torch

    net, x, u, v = _directions(network, image, seed)
    points = torch.cat(
        [x, x + h * v + h * u, x - h * v + h * u, x + h * v - h * u, x - h * v - h * u]
    )
    labels = torch.full((5,), int(label))
    with torch.no_grad():
        losses = torch.nn.functional.cross_entropy(net(points), labels, reduction="none")
    return points[:, 0].numpy(), losses.numpy()
