"""Measurements of the chapter on the inverse Hessian attack (Suri, Zhang and Evans 2024, section
4).

Models come in pairs: the second is trained on what the first is not. Target t is model 2t, so no two targets are complements.
All arrays are about the same J records, the judged ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mia_book.publishing import measurement
from mia_book.publishing.banks import config_of, in_processes
from mia_lib.errors import MiaError, check_range, check_whole

# Eigenvalues by which directions are grouped; the first group has all at or below the first edge, negative ones, too.
EDGES = 10.0 ** np.arange(-4, 2.1, 0.5)

# see `game`
ODD = {
    "dataset": "mnist",
    "records": 60_000,
    "architecture": "sigmoid_regression",
    "epochs": 80,
    "batch_size": 128,
    "learning_rate": 0.01,
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "schedule": "cosine",
    "judged": 6000,
    "seed": 0,
}


def game(index: range, recipe: dict):
    """The models with the numbers `index`, trained when first needed, and the judged records.

    Args:
        index: of the models.
        recipe: a value for each name of `ODD`. dataset: name of a set, of which the training records are used, as a table of
            pixels. records: so many of them, drawn at random, half of which trains each model. architecture:
            "sigmoid_regression" tells odd classes from even ones with the squared error, all others have the cross-entropy.
            judged: J, at most. The others are those of `training.TrainConfig`, of SGD.

    Returns:
        the models, the set, and the numbers of the judged records, int [J].
    """
    from dataclasses import replace

    from mia_lib import data, membership, training

    pool = data.load(recipe["dataset"])
    pool = pool.take(np.arange(pool.n_train))
    pool, loss = pool.as_table() if pool.is_image else pool, "cross_entropy"
    if recipe["architecture"].partition(":")[0] == "sigmoid_regression":
        loss = "brier"
        if len(pool.classes) > 2:
            pool = replace(pool, name=f"{pool.name}_odd", y=pool.y % 2, classes=("even", "odd"))
    seed = recipe["seed"]
    records = check_whole("records", recipe["records"], 20, len(pool))
    if records < len(pool):
        pool = pool.take(np.random.default_rng([17, seed]).permutation(len(pool))[:records])
    members = membership.balanced_halves(len(pool), index.stop + index.stop % 2, seed)
    config = config_of(recipe, optimizer="sgd", loss=loss)
    label = f"{recipe['architecture']} on {pool.name}"
    judged = check_whole("judged", recipe["judged"], 4)
    rows = np.random.default_rng([19, seed]).permutation(len(pool))[:judged]
    return training.train(pool, members, config, label=label).part(index), pool, rows


def targets(index: range, recipe: dict):
    """Models, set and judged records as of `game`, for the targets with these numbers."""
    models, pool, rows = game(range(2 * index.start, 2 * index.stop), recipe)
    return models.part(range(0, 2 * len(index), 2)), pool, rows


def answers(index: range, recipe: dict = ODD) -> dict[str, np.ndarray]:
    """Arrays that LiRA compares: margin, log odds of the true class, float16 [M, J]; and members,
    bool [M, J]."""
    from mia_lib import signals

    models, pool, rows = game(index, recipe)
    margin = signals.logit_scaled_confidence(models, pool.take(rows))
    return {"margin": margin.astype(np.float16), "members": models.members[:, rows]}


def audits(
    index: range,
    recipe: dict = ODD,
    damping: float = 0.2,
    inner: int = 2000,
    dampings: Sequence[float] = (),
    thresholds: Sequence[float] = (),
    swept: int = 1000,
    solved: int = 0,
    tolerance: float = 1e-4,
) -> dict[str, np.ndarray]:
    """Numbers that audits need of each target's judged records, from parameters and Hessian.

    With A the damped Hessian of the training loss, g a record's gradient, d that of the training loss, w the parameters and
    x = A^-1 g: see `attacks.iha.forms`.

    Args:
        recipe: as for `game`. damping: epsilon. dampings, thresholds: further dampings, and cuts of a low-rank inverse, E
            in all.
        inner, swept, solved: numbers of judged records, the first ones: for what few comparisons
            need; for further conditionings; and for conjugate gradients.
        tolerance: relative residual at which conjugate gradients stop.

    Returns:
        Signed square roots in float16, see `root` and `square`. [T, J]: loss; newton, x^T x; newton_mean, (A^-1 d)^T x;
        influence, g^T x. [T, inner]: newton_theta, (A^-1 w)^T x; inverse, x^T A^-1 x; inverse_mean, (A^-1 d)^T A^-1 x;
        squares, ``|g|^2``; along, (d + alpha w)^T g. [T, E, swept]: swept_shift and swept_alignment, for newton and
        newton_mean with what weight decay adds, not a number where that inverse does not exist. [T, solved]: cg_newton,
        cg_newton_mean by conjugate gradients.
        cg_iterations: int16 [T, solved]. members, correct: bool [T, J].
        Of directions in groups by eigenvalue, see `EDGES`, float32 [T, G]: directions, how many; left, mean square of
        d + alpha w; own, that of a member's share g / n, mean over judged members. float32 [T]: least and largest eigenvalue;
        norm_plain, norm, of d and d + alpha w.
    """
    from mia_lib import signals

    models, pool, rows = targets(index, recipe)
    asked = {
        "damping": float(damping),
        "inner": inner,
        "dampings": list(dampings),
        "thresholds": list(thresholds),
        "swept": swept,
        "solved": solved,
        "tolerance": tolerance,
        **rates_of(recipe),
    }
    spec = {"kind": "audit", "rows": rows.tolist(), **asked}
    forms = signals.map_models(
        _audit_task,
        models,
        spec,
        "inverse Hessians",
        rows=rows,
        each=lambda t: {"known": models.members[t]},
        **asked,
    )
    judged = pool.take(rows)
    return {
        **{name: np.stack([one[name] for one in forms]) for name in forms[0]},
        "members": models.members[:, rows],
        "loss": root(signals.loss(models, judged)),
        "correct": signals.correctness(models, judged),
    }


def partial(
    index: range, recipe: dict = ODD, *, fractions: Sequence[float], damping: float = 0.2
) -> dict[str, np.ndarray]:
    """Audits of each target by somebody who knows F parts of its training set, each part in the
    larger ones.

    Hessian and mean gradient are those of the known part.

    Returns:
        Signed square roots in float16, [T, F, J]: shift and alignment, as `swept_shift` and `swept_alignment` of `audits`;
        [T, J]: loss. bool [T, F, J]: known; [T, J]: members.
    """
    from mia_lib import signals

    models, pool, rows = targets(index, recipe)
    seed = models.config.seed
    asked = {"damping": float(damping), **rates_of(recipe)}
    parts = []
    for number, members in zip(index, models.members, strict=True):
        order = np.random.default_rng([37, seed, 2 * number]).permutation(np.flatnonzero(members))
        for fraction in fractions:
            check_range("fractions", fraction, 1e-6, 1.0)
            parts.append(np.zeros(len(pool), bool))
            parts[-1][order[: max(1, round(fraction * len(order)))]] = True
    spec = [
        {
            "kind": "partial audit",
            "rows": rows.tolist(),
            "known": np.flatnonzero(part).tolist(),
            **asked,
        }
        for part in parts
    ]
    audits_of_parts = signals.map_models(
        _audit_task,
        models,
        spec,
        "inverse Hessians",
        rows=rows,
        inner=0,
        dampings=[damping],
        index=np.repeat(np.arange(len(models)), len(fractions)),
        thresholds=[],
        swept=len(rows),
        solved=0,
        tolerance=1.0,
        each=lambda k: {"known": parts[k]},
        **asked,
    )

    def by_target(arrays: list) -> np.ndarray:
        return np.stack(arrays).reshape(len(models), len(fractions), -1)

    return {
        "shift": by_target([one["swept_shift"][0] for one in audits_of_parts]),
        "alignment": by_target([one["swept_alignment"][0] for one in audits_of_parts]),
        "known": by_target([part[rows] for part in parts]),
        "members": models.members[:, rows],
        "loss": root(signals.loss(models, pool.take(rows))),
    }


def left_out(
    index: range, recipe: dict = ODD, *, count: int, references: int
) -> dict[str, np.ndarray]:
    """Reference models for attacks that know all other records (section 4.4).

    For each record R models are trained on the target's training set without it, and R on that set with it. One of the two is
    the set itself, whose models all records share; the r-th of all records have one seed, see `log_odds_of_neighbours`.

    Args:
        recipe: as for `game`. count: records of each target, half of them members. references: R.

    Returns:
        place: int32 [T, K], which of the judged records; members: bool [T, K]; margin: float16 [T, K], log odds of the true
        class under the target; out_margin, in_margin: float16 [T, R, K], under the references without and with the record.
    """
    from dataclasses import replace

    from mia_lib import signals
    from mia_lib.training.recipe import seed_of

    check_whole("references", references, 2)
    models, pool, rows = targets(index, recipe)
    config, kept = replace(models.config, seed=models.config.seed + 21), []
    margin = signals.logit_scaled_confidence(models, pool.take(rows))
    for target, is_member, own in zip(index, models.members, margin, strict=True):
        half = min(count // 2, is_member[rows].sum(), (~is_member[rows]).sum())
        place = np.sort(
            np.concatenate(
                [np.flatnonzero(side)[:half] for side in (is_member[rows], ~is_member[rows])]
            )
        )
        chosen, members = rows[place], is_member[rows[place]]
        tasks = [
            (pool, is_member, chosen, config, seed_of(config, number))
            for number in range(target * references, (target + 1) * references)
        ]
        log_odds = np.stack(
            in_processes(
                log_odds_of_neighbours, tasks, f"references of target {target}, a record turned"
            )
        )
        turned, same = log_odds[:, range(len(chosen)), range(len(chosen))], log_odds[:, -1]
        kept.append(
            {
                "place": place.astype(np.int32),
                "members": members,
                "margin": own[place].astype(np.float16),
                "out_margin": np.where(members, turned, same).astype(np.float16),
                "in_margin": np.where(members, same, turned).astype(np.float16),
            }
        )
    return {name: np.stack([one[name] for one in kept]) for name in kept[0]}


def log_odds_of_neighbours(
    pool, members: np.ndarray, chosen: np.ndarray, config, seed: int
) -> np.ndarray:
    """Log odds of records under networks each of which has the membership of one of them turned, as by
    `membership.leave_one_out`, and under one that was trained on `members` themselves.

    They begin with the same weights and see the same batches, in which a record has weight zero for the networks that are not
    trained on it. So it is fed once for all: with a hundred small networks a step takes a tenth of what they take one by one.
    A record that is no member joins a random batch in each epoch.

    Args:
        pool: the set, N records. members: bool [N]. chosen: int [K], records. config: how the networks are trained. seed: of
            first weights and of batches.

    Returns:
        float32 [K + 1, K], a row a network.
    """
    import torch

    from mia_lib import models, signals
    from mia_lib.training.losses import precise_loss, record_loss
    from mia_lib.training.recipe import learning_rate
    from mia_lib.training.stacking import Stacked

    count = len(chosen) + 1
    network = models.build(config.architecture, pool.shape, len(pool.classes), seed)
    x = models.to_input(pool.x, models.feeding(network, pool.x, config.scaling))
    y, weight = torch.from_numpy(pool.y).long(), torch.from_numpy(members)
    turned_by = torch.full((len(pool),), -1)  # of each record, the network
    turned_by[chosen] = torch.arange(len(chosen))
    inside = torch.from_numpy(np.flatnonzero(members))
    joining = torch.from_numpy(chosen[~members[chosen]])
    networks = Stacked([network] * count).train()
    optimizer = torch.optim.SGD(
        networks.parameters(),
        config.learning_rate,
        momentum=config.momentum,
        nesterov=config.nesterov,
        weight_decay=config.weight_decay,
        fused=True,
    )
    generator = torch.Generator().manual_seed(seed)
    for epoch in range(config.epochs):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(config, epoch)
        batches = inside[torch.randperm(len(inside), generator=generator)].split(config.batch_size)
        joined = torch.randint(len(batches), joining.shape, generator=generator)
        for number, batch in enumerate(batches):
            picked = torch.cat([batch, joining[joined == number]])
            turned = turned_by[picked] == torch.arange(count)[:, None]
            counted = (weight[picked] != turned).float()
            outputs = networks(x[picked], shared=True)
            losses = record_loss(outputs, y[picked].expand(count, -1), config.loss)
            optimizer.zero_grad()
            ((losses * counted).sum(1) / counted.sum(1)).sum().backward()
            optimizer.step()
    with torch.no_grad():
        outputs = networks.eval()(x[chosen], shared=True)
        losses = precise_loss(outputs, y[chosen].expand(count, -1))
    return signals.log_odds(losses.numpy()).astype(np.float32)


def _audit_task(networks, x, labels, loss, **asked):
    from threadpoolctl import threadpool_limits

    from mia_lib.signals.outputs import device_of

    [network] = networks
    # or each process would take all processors
    with threadpool_limits(1 if device_of(network).type == "cpu" else None):
        return [_audit(network, x, labels, loss, **asked)]


def _audit(
    network,
    x,
    labels,
    loss,
    rows,
    known,
    damping,
    inner,
    dampings,
    thresholds,
    swept,
    solved,
    tolerance,
    **rates,
):
    import torch

    from mia_lib import signals
    from mia_lib.attacks import iha
    from mia_lib.signals import hessian

    known_rows, alpha = np.flatnonzero(known), rates["weight_decay"]
    theta = (
        torch.nn.utils.parameters_to_vector(network.parameters())
        .detach()
        .cpu()
        .numpy()
        .astype(np.float64)
    )
    matrix = hessian.exact(network, x[known_rows], labels[known_rows], loss, "float64")
    mean = sum(
        block.sum(0)
        for block in signals.record_gradients(
            network, x[known_rows], labels[known_rows], loss, "float64"
        )
    )
    mean = mean / len(known_rows)
    left = mean + alpha * theta

    def gradients(chosen: np.ndarray):
        return signals.record_gradients(network, x[chosen], labels[chosen], loss, "float64")

    arrays, counted = {}, np.empty(0)
    if solved:
        few = np.concatenate(list(gradients(rows[:solved])))
        solutions = hessian.conjugate_gradient(
            matrix, np.vstack([few, mean]), damping, tolerance
        ).check()
        by_cg = iha.from_solutions(solutions.x[:-1], solutions.x[-1], few)
        arrays = {"cg_newton": by_cg.newton, "cg_newton_mean": by_cg.newton_mean}
        counted = solutions.iterations[:-1]
    spectrum = hessian.spectrum(matrix, overwrite=True)
    del matrix
    conditioned = [_inverse(spectrum, damping=one) for one in (damping, *dampings)]
    conditioned += [_inverse(spectrum, rank_threshold=one) for one in thresholds]
    if conditioned[0] is None:
        least = spectrum.values[0]
        raise MiaError(
            f"damping = {damping:g} leaves a Hessian indefinite: its smallest eigenvalue is {least:.4g}. Give more "
            f"than {-least:.4g}."
        )
    squares, along, own, start = [], [], np.zeros(len(mean)), 0

    def blocks():
        nonlocal start
        for block in gradients(rows):
            squares.append((block**2).sum(1))
            along.append(block @ left)
            own[:] += (
                (block[known[rows[start : start + len(block)]]] @ spectrum.vectors) ** 2
            ).sum(0)
            start += len(block)
            yield block

    forms = iha.forms(blocks(), conditioned[0], mean, theta)
    usable = [one for one in conditioned[1:] if one is not None]
    both = np.full((2, len(conditioned) - 1, min(swept, len(rows))), np.nan)
    if usable:
        under = iha.forms(gradients(rows[:swept]), usable, mean)
        places = [k for k, one in enumerate(conditioned[1:]) if one is not None]
        both[:, places] = iha.shift_and_alignment(under, iha.Sgd(**rates))
    group = np.searchsorted(EDGES, spectrum.values)
    count = np.bincount(group, minlength=len(EDGES) + 1)

    def by_group(values: np.ndarray) -> np.ndarray:
        return (np.bincount(group, values, len(EDGES) + 1) / np.maximum(count, 1)).astype(
            np.float32
        )

    arrays |= {
        "newton": forms.newton,
        "newton_mean": forms.newton_mean,
        "influence": forms.influence,
        "swept_shift": both[0],
        "swept_alignment": both[1],
        **{
            name: array[:inner]
            for name, array in (
                ("newton_theta", forms.newton_theta),
                ("inverse", forms.inverse),
                ("inverse_mean", forms.inverse_mean),
                ("squares", np.concatenate(squares)),
                ("along", np.concatenate(along)),
            )
        },
    }
    share = own / max(known[rows].sum(), 1) / len(known_rows) ** 2
    return {
        **{name: root(array) for name, array in arrays.items()},
        "directions": count.astype(np.float32),
        "left": by_group((left @ spectrum.vectors) ** 2),
        "own": by_group(share),
        "cg_iterations": counted.astype(np.int16),
        "least": np.float32(spectrum.values[0]),
        "largest": np.float32(spectrum.values[-1]),
        "norm_plain": np.float32(np.linalg.norm(mean)),
        "norm": np.float32(np.linalg.norm(left)),
    }


def _inverse(spectrum, **conditioning):
    """The conditioned inverse of a spectrum; None if the Hessian stays singular or indefinite."""
    try:
        return spectrum.inverse(**conditioning)
    except MiaError:
        return None


def rates_of(recipe: dict) -> dict[str, float]:
    """Learning rate, momentum and weight decay of a recipe, which Eq. 8 needs."""
    return {name: float(recipe[name]) for name in ("learning_rate", "momentum", "weight_decay")}


def root(values: np.ndarray) -> np.ndarray:
    """Signed square roots in float16, from which `square` restores the values to a thousandth down
    to 1e-8: half the size of float32, whose range these numbers need. Values beyond 4e9 become
    4e9."""
    return (np.sign(values) * np.sqrt(np.abs(values)).clip(max=65504)).astype(np.float16)


def square(roots: np.ndarray) -> np.ndarray:
    """The values, float64, whose signed roots `root` gives."""
    roots = roots.astype(np.float64)
    return roots * np.abs(roots)


FASHION = {
    "dataset": "fashion_mnist",
    "records": 60_000,
    "architecture": "mlp:6",
    "epochs": 120,
    "batch_size": 256,
}
LOCATION = {
    "dataset": "location30",
    "records": 5010,
    "architecture": "mlp:8",
    "epochs": 120,
    "batch_size": 128,
    "judged": 2000,
}
SWEEP = {"dampings": [0.01, 0.1, 0.2, 1.0, 10.0], "thresholds": [0.01, 0.1, 0.2]}
# A high damping and few steps: what little curvature there is decides nothing then that another processor rounds otherwise.
PROBE = {
    "index": range(1, 3),
    "dataset": "fashion_mnist_20k",
    "architecture": "mlp:1",
    "records": 120,
    "epochs": 3,
    "batch_size": 30,
    "learning_rate": 0.05,
    "judged": 40,
}
ODD_PROBE = {**PROBE, "architecture": "sigmoid_regression"}
FEW = {
    "damping": 2.0,
    "inner": 20,
    "dampings": [1.5, 4.0],
    "thresholds": [0.02],
    "swept": 20,
    "solved": 4,
}
PARTS = {"fractions": [0.5, 1.0], "damping": 2.0}
odd_bank = measurement("iha/odd-bank", probe=ODD_PROBE)(answers)
fashion_bank = measurement("iha/fashion-bank", probe=PROBE, **FASHION)(answers)
location_bank = measurement("iha/location-bank", probe=PROBE, **LOCATION)(answers)
odd = measurement("iha/odd", probe=ODD_PROBE | FEW, block=10, chunk=2, **SWEEP, solved=1000)(audits)
fashion = measurement(
    "iha/fashion", probe=PROBE | FEW, block=10, chunk=2, **FASHION, **SWEEP, solved=200
)(audits)
location = measurement("iha/location", probe=PROBE | FEW, block=10, chunk=2, **LOCATION, **SWEEP)(
    audits
)
# The same after other epochs or at other rates, and of other sizes: fewer records.
SHORT = {"judged": 1000, "inner": 500, "swept": 0}
SHORT_PROBE = {"damping": 2.0, "inner": 20, "swept": 0}
odd_epochs = measurement(
    "iha/odd-epochs", probe=ODD_PROBE | SHORT_PROBE, block=10, chunk=2, **SHORT
)(audits)
fashion_epochs = measurement(
    "iha/fashion-epochs", probe=PROBE | SHORT_PROBE, block=10, chunk=2, **FASHION, **SHORT
)(audits)
odd_partial = measurement(
    "iha/odd-partial",
    probe=ODD_PROBE | PARTS,
    block=10,
    chunk=2,
    judged=1000,
    fractions=[0.2, 0.4, 0.6, 0.8, 0.9],
)(partial)
fashion_partial = measurement(
    "iha/fashion-partial",
    probe=PROBE | PARTS,
    block=10,
    chunk=2,
    judged=1000,
    **FASHION,
    fractions=[0.2, 0.8],
)(partial)
LEFT_OUT = {"block": 8, "chunk": 1, "count": 100, "references": 20}
LEFT_OUT_PROBE = {"count": 6, "references": 2}
location_left_out = measurement(
    "iha/location-left-out", probe=PROBE | LEFT_OUT_PROBE, **LOCATION, **LEFT_OUT
)(left_out)
odd_left_out = measurement("iha/odd-left-out", probe=ODD_PROBE | LEFT_OUT_PROBE, **LEFT_OUT)(
    left_out
)
fashion_left_out = measurement(
    "iha/fashion-left-out", edition=2, probe=PROBE | LEFT_OUT_PROBE, **FASHION, **LEFT_OUT
)(left_out)
