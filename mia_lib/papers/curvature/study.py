"""Results of the chapter on input loss curvature (Ravikumar et al. 2024, section 6): tidy frames of what was measured.

A row is an attack, a metric and a target. Signals are arrays [M, N] or, with A views of each record, [M, N, A]; the target's
partner, which was trained on the other half of the records, is never among its references.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from mia_lib import membership, signals
from mia_lib.attacks import baselines, bayes, calibration
from mia_lib.attacks import curvature as attack
from mia_lib.errors import MiaError
from mia_lib.metrics import by_repetition, by_target, estimates
from mia_lib.papers.curvature import theory
from mia_lib.papers.curvature.measure import FLOOR
from mia_lib.published import Bank, catalogue

NLL, LR, RATIO, CURVATURE = "Curv ZO NLL", "Curv ZO LR", "Curv, log ratio", "log curvature"
RELEASED, TRUE, FIXED, EVEN = "LiRA, as released", "LiRA, true class", "LiRA, one spread", "Curv, one spread"
TIED = "Curv, tied"  # one variance for both hypotheses, of each record
PAPER = {NLL: NLL, LR: LR, RELEASED: "Carlini et al. (2022)", "Yeom": "Yeom et al. (2018)",
         "MAST": "Sablayrolles et al. (2019)", "Watson": "Watson et al. (2022)",
         "Attack R": "Ye et al. (2022)", "Song and Mittal": "Song and Mittal (2021)"}
METRICS = ("auc", "balanced_accuracy", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001", "tpr_at_fpr=0.0001")
FEW = ("auc", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001")
PROTOCOLS = {"one view": 1, "as released": 2}  # -> views of curvature and LiRA; the other attacks see the image alone
QUANTILE = 1e-4  # level of attack R in the released code
MEMORISED = "memorised"  # networks that know their members by heart, `measure.memorised`
POPULATION = 2000  # records that no model was trained on, with which RMIA compares, at most


def measured(dataset: str, models: int, asked: int, precisely: int, exactly: int, **recipe) -> tuple[Bank, Bank | None]:
    """The curvature of records under the models of a small bank, and the bank: the log odds of all records.

    Args:
        dataset: of a published bank, or any set, whose models are then trained; or `MEMORISED`, which has no bank. models: how
            many.
        asked, precisely, exactly: as for `measure.curvatures`. recipe: of the models, as for `papers.banks.models_of`.
    """
    if dataset == MEMORISED:
        return catalogue()["curvature/memorised"](models), None
    name, known = dataset if dataset in ("cifar10", "cifar100") else "cifar100", catalogue()
    how = {"asked": asked, "precisely": precisely, "exactly": exactly, "views": 2, "shifted": True}
    curved = known[f"curvature/{name}-small"](models, dataset=dataset, **how, **recipe)
    return curved, known[f"bank/{name}-small"](models, dataset=dataset, **recipe)


def attacked(models: int, targets: int, references: int) -> dict[int, np.ndarray]:
    """Targets, one of each complementary pair, and the references against each.

    Raises:
        MiaError: more targets than pairs, or more references than models of other pairs.
    """
    if 2 * targets > models or not 4 <= references <= models - 2 or references % 2:
        raise MiaError(f"targets = {targets}, references = {references}: of {models} models {models // 2} can be attacked, "
                       f"one of each complementary pair, with 4 to {models - 2} others as references, an even number.")
    return {t: membership.references_of(t, models)[:references] for t in range(0, 2 * targets, 2)}


def of_other_sizes(dataset: str, kinds: Sequence[str], sizes: Sequence[int], models: int, targets: int, asked: int,
                   train: bool, **recipe) -> tuple[Bank | None, int, dict[tuple[str, int], Bank]]:
    """The references of Figures 6 and 7, models of a bank; how many records each was trained on; and the targets, (kind, size)
    -> of `measure.sizes`. What nobody has measured is left out, or trained.

    Args:
        dataset: as for `measured`. kinds, sizes: of the targets' training sets. models: references. targets: networks of each
            kind and size. asked, recipe: as for `measure.sizes`.
    """
    name, known = dataset if dataset in ("cifar10", "cifar100") else "cifar100", catalogue()

    def ask(measurement: str, count: int, **parameters) -> Bank | None:
        of = known[measurement]
        complete = of.complete({"dataset": dataset, **recipe, **parameters})
        return of(count, **complete) if train or not of.lacking(range(count), complete) else None

    alone = {"views": 1, "precisely": 0, "exactly": 0, "shifted": False}
    references = ask(f"curvature/{name}-small", models, asked=asked, **alone)
    bank = ask(f"bank/{name}-small", models)
    if references is None or bank is None:
        return None, 0, {}
    targets_of = {(kind, size): ask("curvature/sizes", targets, kind=kind, size=size, asked=asked)
                  for kind in kinds for size in sizes}
    return references, int(bank.members[0].sum()), {key: one for key, one in targets_of.items() if one is not None}


def against(games: Mapping[int, np.ndarray], members: np.ndarray, score) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Scores [T, N] of attacks by name, and who is a member, bool [T, N].

    Args:
        games: of `attacked`. members: bool [M, N].
        score: (target, references, members of these [R, N]) -> name -> [N].
    """
    rows = [score(target, references, members[references]) for target, references in games.items()]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}, members[list(games)]


def curvature_attacks(log: np.ndarray, target: int, references: np.ndarray, inside: np.ndarray) -> dict[str, np.ndarray]:
    """The log-likelihood ratio and both released scores [N] of a log curvature [M, N, A]."""
    steps = attack.ladder(log[target], log[references], inside)
    return {NLL: list(steps["NLL"].values())[-1], LR: list(steps["LR"].values())[-1],
            RATIO: steps["LR"]["log-likelihood ratio"]}


def lira(log_odds: np.ndarray, target: int, references: np.ndarray, inside: np.ndarray,
         one_spread: bool = False) -> np.ndarray:
    """LiRA's score [N] of log odds [M, N] or [M, N, A]."""
    return baselines.lira_online(log_odds[target], log_odds[references], inside, one_spread)


def methods(curved: Bank, games: Mapping[int, np.ndarray], views: int,
            bank: Bank | None = None) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Scores of all attacks, the curvature in float32 as it is released; with a `bank` that has records which no model was
    trained on RMIA among them; and who is a member."""
    log, true, top = (array[..., :views] for array in (curved.released, curved.true, curved.top))
    loss = signals.loss_of(curved.true[..., 0])

    def score(t: int, others: np.ndarray, inside: np.ndarray) -> dict[str, np.ndarray]:
        ratios = attack.ladder(true[t], true[others], inside)["LR"]
        of_top = attack.ladder(top[t], top[others], inside)["LR"]
        return {**curvature_attacks(log, t, others, inside), RELEASED: list(of_top.values())[-1],
                "Yeom": bayes.malt(loss[t]), "MAST": bayes.mast(loss[t], loss[others], inside, "middle"),
                "Watson": calibration.calibrate(-loss[t], -loss[others], inside),
                "Attack R": baselines.attack_r(loss[t], loss[others], inside, QUANTILE),
                "Song and Mittal": -curved.entropy[t].astype(float),
                "LiRA, largest class": of_top["log-likelihood ratio"], "LiRA, released rule": list(ratios.values())[-1],
                TRUE: ratios["log-likelihood ratio"], FIXED: lira(true, t, others, inside, one_spread=True),
                CURVATURE: -log[t, :, 0].astype(float), **rmia(bank, t, others, loss.shape[1])}

    return against(games, curved.members, score)


def rmia(bank: Bank | None, target: int, references: np.ndarray, asked: int) -> dict[str, np.ndarray]:
    """RMIA's score of the first records; none without records that no model was trained on."""
    outside = [] if bank is None else np.flatnonzero(~bank.members.any(0))[:POPULATION]
    if bank is None or not len(outside):
        return {}
    both = [target, *references]
    p, elsewhere = (np.exp(-signals.loss_of(bank.margin[both][:, rows])) for rows in (slice(asked), outside))
    return {"RMIA": baselines.rmia(p[0], p[1:], bank.members[references, :asked], elsewhere[0], elsewhere[1:])}


def table_1(data: str, curved: Bank, bank: Bank | None, games: Mapping[int, np.ndarray],
            draws: int = 100) -> tuple[pd.DataFrame, dict[str, np.ndarray], np.ndarray]:
    """Tables 1 to 5: study "methods", by data and protocol of `PROTOCOLS`; and scores as released with who is a member."""
    frames = []
    for protocol, views in PROTOCOLS.items():
        scores, members = methods(curved, games, views, bank)
        frames.append(by_target(scores, members, METRICS, draws=draws, study="methods", data=data, protocol=protocol))
    return pd.concat(frames, ignore_index=True), scores, members


def queries(data: str, curved: Bank, bank: Bank | None, games: Mapping[int, np.ndarray], iterations: int,
            draws: int = 100) -> pd.DataFrame:
    """Study "queries", with a column of that name: attacks on the records whose curvature is known in float64. Study "alike":
    how alike the log ratio of curvature and LiRA of the true class are in each target, of the image alone: "rank correlation"
    within members and within the others, its mean; "overlap"; and the "accuracy" of the networks on either side."""
    log, members = curved.precise, curved.members[:, :curved.precise.shape[1]]
    true, shifted = (array[:, :members.shape[1]] for array in (curved.true, curved.shifted))
    loss, counted = signals.loss_of(true[..., 0]), {}

    def score(t: int, others: np.ndarray, inside: np.ndarray) -> dict[tuple[str, int], np.ndarray]:
        many = {(name, 4 * iterations * views): one for views in range(1, log.shape[-1] + 1) for name, one in {
            **curvature_attacks(log[..., :views], t, others, inside),
            TIED: attack.nll(log[t, :, :views], log[others][..., :views], inside, tied=True),
            EVEN: lira(log[..., :views], t, others, inside, one_spread=True)}.items()}
        few = {**{(name, views): lira(true[..., :views], t, others, inside, name == FIXED)
                  for views in range(1, true.shape[-1] + 1) for name in (TRUE, FIXED)},
               **{(name, count): lira(shifted[..., k], t, others, inside, name == FIXED)
                  for k, count in enumerate((18, 80)) for name in (TRUE, FIXED)}}
        one = {(name, 1): found for name, found in rmia(bank, t, others, members.shape[1]).items()}
        return {**many, ("Yeom", 1): bayes.malt(loss[t]), **few, **one}

    scores, inside = against(games, members, score)
    for (name, count), found in scores.items():
        counted.setdefault(count, {})[name] = found
    frames = [by_target(found, inside, FEW, draws=draws, study="queries", data=data, queries=count)
              for count, found in counted.items()]
    ratio, rival = counted[4 * iterations][RATIO], counted[1][TRUE]
    pairs = list(zip(ratio, rival, inside, strict=True))
    alike = {"rank correlation": [np.mean([stats.spearmanr(a[side], b[side]).statistic for side in (held, ~held)])
                                  for a, b, held in pairs],
             "overlap": [overlap(a, b, held) for a, b, held in pairs]}
    right = (curved.true == curved.top)[list(games), :, 0]  # the true class is the likeliest
    held = curved.members[list(games)]
    fit = {"member_accuracy": [row[side].mean() for row, side in zip(right, held, strict=True)],
           "other_accuracy": [row[~side].mean() for row, side in zip(right, held, strict=True)]}
    rest = {name: {metric: np.array(one) for metric, one in found.items()}
            for name, found in ((RATIO, alike), ("model", fit))}
    return pd.concat([*frames, by_repetition(rest, study="alike", data=data)], ignore_index=True)


def overlap(one: np.ndarray, other: np.ndarray, members: np.ndarray, rate: float = 0.01) -> float:
    """Of the members that either of two scores [N] finds at a false positive rate, the share that both find."""
    called = []
    for score in (one, other):
        alarms = np.sort(score[~members])[::-1]
        called.append((score > alarms[int(rate * len(alarms))]) & members)
    return float((called[0] & called[1]).sum() / max((called[0] | called[1]).sum(), 1))


def precisions(data: str, curved: Bank, games: Mapping[int, np.ndarray], draws: int = 100) -> pd.DataFrame:
    """Study "precision": the curvature attacks in either precision on the same records, two views; "zero", the share of
    curvatures that are nothing, of each target."""
    frames, asked = [], curved.precise.shape[1]
    for precision, log in (("float32", curved.released[:, :asked]), ("float64", curved.precise)):
        scores, members = against(games, curved.members[:, :asked],
                                  lambda t, others, inside, log=log: curvature_attacks(log, t, others, inside))
        nothing = (log[list(games)] < np.log(FLOOR) + 0.5).mean((1, 2))
        frames += [by_target(scores, members, FEW, draws=draws, study="precision", data=data, precision=precision),
                   by_repetition({CURVATURE: {"zero": nothing}}, study="precision", data=data, precision=precision)]
    return pd.concat(frames, ignore_index=True)


STEPS = {**attack.LADDERS, "control": attack.CONTROLS}


def ladder(data: str, curved: Bank, games: Mapping[int, np.ndarray], draws: int = 100) -> pd.DataFrame:
    """Study "ladder": the steps of `attacks.curvature.ladder` as attacks, by the score that they lead `towards`; two views in
    float64."""
    def score(t: int, others: np.ndarray, inside: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
        found = attack.ladder(curved.precise[t], curved.precise[others], inside)
        return {(end, step): found[end][step] for end, steps in STEPS.items() for step in steps}

    scores, members = against(games, curved.members[:, :curved.precise.shape[1]], score)
    return pd.concat([by_target({step: scores[end, step] for step in steps}, members, FEW[:2], draws=draws, study="ladder",
                                data=data, towards=end) for end, steps in STEPS.items()], ignore_index=True)


SIGNALS = {"as released, float64": ("precise", "40 queries"), "the same, each model's own label": ("own", "40 queries"),
           "Frobenius norm, exact": ("exact", "parameters"), "largest probability": ("top", "1 query"),
           "true class's probability": ("true", "1 query")}


def estimators(data: str, curved: Bank, games: Mapping[int, np.ndarray], draws: int = 100) -> pd.DataFrame:
    """Study "signals": the log-likelihood ratio of the signals of `SIGNALS`, image alone, on the records whose Hessian is
    known."""
    asked = curved.exact.shape[1]
    arrays = {name: getattr(curved, array)[:, :asked] for name, (array, _) in SIGNALS.items()}
    arrays = {name: array[..., 0] if array.ndim == 3 else array for name, array in arrays.items()}
    scores, members = against(games, curved.members[:, :asked], lambda t, others, inside: {
        name: attack.nll(array[t], array[others], inside) for name, array in arrays.items()})
    return by_target(scores, members, FEW[:2], draws=draws, study="signals", data=data)


def by_references(data: str, curved: Bank, games: Mapping[int, np.ndarray], counts: Sequence[int],
                  draws: int = 100) -> pd.DataFrame:
    """Study "references": attacks with so many of the references, as released.

    Raises:
        MiaError: a number that is odd, below 4 or above the references there are.
    """
    most, frames = len(next(iter(games.values()))), []
    for count in sorted({*counts, most}):
        if count % 2 or not 4 <= count <= most:
            raise MiaError(f"reference_counts = {list(counts)}: each must be even and from 4 to {most}, so that each "
                           "record has two references of either kind.")

        def score(t: int, others: np.ndarray, inside: np.ndarray, count: int = count) -> dict[str, np.ndarray]:
            others, inside = others[:count], inside[:count]
            top, true = curved.top, curved.true
            return {**curvature_attacks(curved.released, t, others, inside),
                    RELEASED: attack.likelihood_ratio(top[t], top[others], inside, "released_code"),
                    TRUE: lira(true, t, others, inside), FIXED: lira(true, t, others, inside, one_spread=True)}

        scores, members = against(games, curved.members, score)
        frames.append(by_target(scores, members, (*FEW, "conformal_tpr_at_fpr=0.001"), draws=draws, study="references",
                                data=data, references=count))
    return pd.concat(frames, ignore_index=True)


def gaussian(data: str, curved: Bank, games: Mapping[int, np.ndarray]) -> pd.DataFrame:
    """Study "gaussian": how far log curvature, in float64, is from what the references' Gaussians predict of the target.

    If the values of a record are Gaussian, the target's distance from the mean of n references is Student's t with n - 1
    degrees of freedom. The "distance" is that of Kolmogorov and Smirnov between all records' values and this law, the mean of
    members under IN references and of non-members under OUT references.
    """
    log, found = curved.precise[..., 0].astype(float), []
    for target, references in games.items():
        inside, held = (curved.members[rows, :log.shape[1]] for rows in (references, target))
        sides = []
        for which, kept in ((held, inside), (~held, ~inside)):
            mean, squares, count = baselines.moments(log[references][..., None], kept)
            spread = np.sqrt(squares / (count - 1) * (1 + 1 / count))
            use = which & (spread[:, 0] > 1e-3 * np.abs(mean[:, 0]))  # less is the rounding of half precision
            t = (log[target, use] - mean[use, 0]) / spread[use, 0]
            sides.append(stats.kstest(t, stats.t(count[use, 0].mean() - 1).cdf).statistic)
        found.append(np.mean(sides))
    return by_repetition({CURVATURE: {"distance": np.array(found)}}, study="gaussian", data=data)


# -------------------------------------------------------------------------------------------- training sets by design


def sizes(references: Bank | None, targets: Mapping[tuple[str, int], Bank], games: Mapping[int, np.ndarray], half: int,
          draws: int = 100) -> pd.DataFrame:
    """Study "sizes": attacks of the image alone on targets of other training sets, by kind and size, with all models of the
    bank as references; these stand among the targets as random sets of half of the records.

    Args:
        references, targets: of `of_other_sizes`. games: of `attacked`. half: how many records each reference was trained on.
    """
    frames = []

    def attack_all(banks: list[Bank], rows: Mapping[int, np.ndarray], **where) -> None:
        log, true, top = (np.concatenate([getattr(bank, name).reshape(*bank.members.shape, -1)[..., 0] for bank in banks])
                          for name in ("released", "true", "top"))
        scores, inside = against(rows, np.concatenate([bank.members for bank in banks]), lambda t, others, inside: {
            **curvature_attacks(log, t, others, inside), TRUE: lira(true, t, others, inside),
            RELEASED: attack.likelihood_ratio(top[t], top[others], inside, "released_code"),
            "Yeom": bayes.malt(signals.loss_of(true[t]))})
        frames.append(by_target(scores, inside, ("auc", "balanced_accuracy"), draws=draws, study="sizes", **where))

    if references is None:
        return pd.DataFrame(columns=["study", "kind", "size", *estimates.COLUMNS])
    attack_all([references], games, kind="random", size=half)
    for (kind, size), bank in targets.items():
        everyone = np.arange(len(bank), len(bank) + len(references))
        attack_all([bank, references], dict.fromkeys(range(len(bank)), everyone), kind=kind, size=size)
    return pd.concat(frames, ignore_index=True).sort_values(["kind", "size"], kind="stable", ignore_index=True)


# ------------------------------------------------------------------------------------------------- theory, and one probe


def theorems(seed: int = 0) -> pd.DataFrame:
    """Study "theory": what the theorems and the lemma of the paper exceed, and four points against the Hessian."""
    found = theory.mechanisms(400, seed)
    # Every model has the loss x^2 (1 - |x|) on [-1, 1], and records are -1, 0, 1: no noise, no gap, no bias.
    small = theory.CurvatureWorld(loss_bound=4 / 27, gamma=0.0, bias=0.0, hessian_lipschitz=6.0, alpha_cubed=1.0, sigma=1.0)
    world = theory.CurvatureWorld(loss_bound=1.0, gamma=0.01, bias=0.0, hessian_lipschitz=0.1, alpha_cubed=1.0, sigma=10.0)
    beyond = [0.0]
    for epsilon in np.geomspace(0.1, 10, 60):
        bound = world.kl_bound(np.geomspace(1, 1e6, 200), epsilon)
        beyond += list(theory.kl_cap(epsilon) - bound[bound > epsilon])
    return by_repetition({
        "Theorem 4.1": {"excess": max((found["kl"] - found["epsilon"]).max(), 0.0)},
        "Lemma A.1": {"excess": max(2.0 - float(small.mean_bound(3, 0.0)), 0.0)},
        "Theorem 4.3": {"excess": max(beyond)},
        "four points": {"distance": four_points_against_hessian()}}, study="theory")


def four_points_against_hessian(h: float = 1e-3, seed: int = 0) -> float:
    """Largest distance of q (u . v) from the same number by automatic differentiation, relative to the spread of such numbers,
    on a smooth network of 64 inputs in float64."""
    import torch

    from mia_lib.signals import curvature

    generator = torch.Generator().manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.Tanh(), torch.nn.Linear(16, 5)).double()
    with torch.no_grad():
        for weight in net.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator, dtype=torch.float64) / weight.shape[-1] ** 0.5)
    x, y = torch.randn(20, 64, generator=generator, dtype=torch.float64), torch.arange(20) % 5

    def loss(inputs, labels):
        return torch.nn.functional.cross_entropy(net(inputs), labels, reduction="none")

    found, exact = curvature.zero_order_trace(loss, x, 1, h, seed, y=y), curvature.limit_trace(loss, x, 1, seed, y=y)
    return float(np.abs(found - exact).max() / exact.std())


STEP_SIZES = np.round(10.0 ** np.arange(-5.0, -0.95, 0.1), 12)  # of the probe that is looked at


def probe(network, image: np.ndarray, labels: Sequence[int], seed: int = 0) -> pd.DataFrame:
    """One probe of one image at many steps: losses at the four points, and the estimate.

    Args:
        network: PyTorch module. image: [height, width, channels]. labels: with which the loss is taken.

    Returns:
        a row for each label and step h: columns label, h; near, far: the mean loss at x + h (u + v) and x - h (u + v), and at
        x + h (u - v) and x - h (u - v), less the loss at x; q, and product, v^T H u by automatic differentiation.
    """
    import torch

    from mia_lib.signals import outputs

    net, rng = outputs.in_precision(network, "float64"), np.random.default_rng([37, seed])
    x = outputs.inputs(image[None], 0, 1, torch.device("cpu"), torch.float64).contiguous()
    u, v = (torch.from_numpy(rng.choice([-1.0, 1.0], tuple(x.shape))) for _ in range(2))
    at = torch.from_numpy(np.concatenate([STEP_SIZES, -STEP_SIZES, [0.0]]))[:, None, None, None]
    rows, steps = [], len(STEP_SIZES)
    for label in labels:
        def loss(points, label=label):
            return torch.nn.functional.cross_entropy(net(points), torch.full((len(points),), int(label)), reduction="none")

        with torch.no_grad():
            along = [loss(x + at * line).numpy() for line in (u + v, u - v)]
        near, far = ((line[:steps] + line[steps:-1]) / 2 - line[-1] for line in along)
        moved = x.clone().requires_grad_()
        [gradient] = torch.autograd.grad(loss(moved).sum(), moved, create_graph=True)
        [times] = torch.autograd.grad((gradient * v).sum(), moved)
        product = float((times * u).sum())
        rows += [{"label": int(label), "h": h, "near": a, "far": b, "q": (a - b) / (2 * h * h), "product": product}
                 for h, a, b in zip(STEP_SIZES, near, far, strict=True)]
    return pd.DataFrame(rows)
