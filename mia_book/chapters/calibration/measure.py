"""Measurements of the chapter on difficulty calibration: plays of the game of Watson et al. (2022,
section 4.1).

Each "model" of such a measurement is a play: a target, the models that calibrate it, and a
rehearsal of the attacker's. Nothing is compared or judged here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mia_book.publishing import measurement
from mia_book.publishing.banks import PROBE as BANK_PROBE
from mia_book.publishing.banks import RECIPE, SGD, config_of, evaluations, models_of
from mia_lib.errors import check_whole
from mia_lib.membership import at_most, calibration_splits

SMALLEST = np.finfo(np.float32).smallest_subnormal  # in the place of the norm of a gradient of zero
SIGNALS = ("margin", "top", "gradient")
REHEARSAL_MEMBERS = 2000  # members, and as many others, on which thresholds are found
# members, and as many others, whose distance to the boundary is measured, as in the paper
WALKED = 1000

# How the networks of a play are trained: those that are stopped, all others, and those of tables.
STOPPED = {
    "dataset": "cifar10",
    "architecture": "watson_cnn",
    "epochs": 50,
    "batch_size": 128,
    "learning_rate": 0.1,
    "weight_decay": 1e-4,
    "records": None,
    "seed": 0,
}
IMAGES = {**STOPPED, "augmentation": "none"}
TABLE = {
    "epochs": 200,
    "batch_size": 16,
    "loss": "double_softmax",
    "learning_rate": 0.1,
    "weight_decay": 1e-4,
    "architecture": None,
    "seed": 0,
}


def plays(
    index: range,
    recipe: dict = IMAGES,
    forgetting_epochs: int = 20,
    forgetting_rate: float = 0.02,
    views: int = 1,
    references: int = 1,
    judged: int | None = None,
    rehearse: bool = True,
) -> dict[str, np.ndarray]:
    """Signals of the models in each play, for its N' private records.

    The training records of a set fall at random into a private and a public half. The target is
    trained on half of the private ones, with Nesterov's momentum .9 and a learning rate along a
    cosine. The models that calibrate it are trained on half of the public records, and keep the
    weights that are best on the other half: references from random weights ("scratch"), and copies
    of the target that go on from its weights ("forgetting"). The rehearsal is the same game within
    the public half, at half the size.

    Args:
        index: of the plays.
        recipe: a value for each name of `IMAGES`. dataset: name of a set. records: so many of its training records alone, the
            first ones; all when None. The others are those of `training.TrainConfig`, of targets and references.
        forgetting_epochs, forgetting_rate: of the copies, at a constant rate.
        views: times that a record is augmented anew when it is asked about, where targets are trained with augmentation.
        references: R, of each of the two kinds.
        judged: so many members among the private records, and as many non-members, at most; all
            when None.
        rehearse: whether to play the rehearsal.

    Returns:
        private: bool [T, N], the records that the other arrays are about, in their order; members: bool [T, N'] of them;
        correct: bool [T, N'], whether the target is right; best_epoch: int32 [T], at which the first reference from scratch
        was best. Of the target "target_..." [T, N'], of what calibrates it "scratch_..." and "forgetting_..." [T, R, N'],
        float16: "margin", log odds of the true class; "top", of the likeliest class; both such that their loss is the mean
        over views; and "gradient", the logarithm of the mean norm of the loss's gradient. "rehearsal_members" and the
        rehearsal's signals in the same way, of `REHEARSAL_MEMBERS` members and as many others; none without a rehearsal.
    """
    pool = _pool(recipe)
    check_whole("references", references, 1)
    check_whole("views", views, 1)
    seed = check_whole("seed", recipe["seed"], 0)
    config = config_of(recipe, **SGD, schedule="cosine")
    forget = {"epochs": forgetting_epochs, "learning_rate": forgetting_rate, "schedule": "constant"}
    game, rehearsal = _deal(len(pool), index.stop, seed)
    if judged is not None:
        game = (*game[:-1], at_most(game[-1], game[0], check_whole("judged", judged, 10), seed=11))
    arrays = _play(index, pool, *game, config, forget, views, references)
    kept = {
        "private": game[-1][index.start :],
        **{name: _halved(array) for name, array in arrays.items()},
    }
    if rehearse:
        *sets, asked = rehearsal
        asked = at_most(asked, sets[0], REHEARSAL_MEMBERS, seed=11)
        played = _play(
            index, pool, *sets, asked, replace(config, seed=seed + 1), forget, views, references
        )
        kept |= {
            f"rehearsal_{name}": _halved(played[name])
            for name in played
            if name not in ("correct", "best_epoch")
        }
    return kept


def stopped(index: range, stops: Sequence[int], recipe: dict = STOPPED) -> dict[str, np.ndarray]:
    """The references from scratch of `plays`, stopped after each of several numbers of epochs,
    before they know their records.

    Args:
        stops: S numbers of epochs, each at most those of the recipe, along whose schedule the rate falls. Others as for
            `plays`.

    Returns:
        stopped_margin, stopped_gradient: as of `plays`, float16 [T, S, N']; accuracy: float32 [T, S, 2], of a reference on its
        own records while it trained, and on the other half of the public ones; members: bool [T, N'].
    """
    from mia_lib import signals, training
    from mia_lib.signals import log_odds

    pool = _pool(recipe)
    members, calibrating, spare, private = _deal(len(pool), index.stop, recipe["seed"])[0]
    rows, judged = list(index), private[index.start :]
    kept: dict[str, list[np.ndarray]] = {
        "stopped_margin": [],
        "stopped_gradient": [],
        "accuracy": [],
    }
    for stop in stops:
        config = config_of(recipe, **SGD, schedule="cosine", stop_epoch=stop)
        config = replace(config, seed=config.seed + 1000)
        models = training.train(pool, calibrating, config, label=f"references, {stop} epochs").part(
            rows
        )
        losses = _of(signals.loss(models, pool, judged=judged), judged)
        norms = _of(signals.gradient_norm(models, pool, judged=judged), judged)
        right = signals.correctness(models, pool, judged=spare[rows])
        kept["stopped_margin"].append(log_odds(losses.astype(np.float64)))
        kept["stopped_gradient"].append(np.log(np.maximum(norms, SMALLEST)))
        kept["accuracy"].append(
            np.stack([models.history()[:, -1, 1], _of(right, spare[rows]).mean(1)], 1)
        )
    return {
        "members": _of(members[rows], judged),
        **{
            name: np.stack(arrays, 1).astype(np.float32 if name == "accuracy" else np.float16)
            for name, arrays in kept.items()
        },
    }


def on_tables(
    index: range,
    dataset: str,
    recipe: dict = TABLE,
    forgetting_epochs: int = 20,
    forgetting_rate: float = 0.1,
    judged: int = 4000,
    ended: int = 8,
    queries: int = 2500,
) -> dict[str, np.ndarray]:
    """Plays as by `plays`, on a table of records, with the released network: one hidden layer of
    twice as many units as there are columns, and its second softmax (`loss`).

    Args:
        index, dataset, forgetting_epochs, forgetting_rate: as for `plays`; rates are constant.
        recipe: a value for each name of `TABLE`, as in `training.TrainConfig`. loss: "double_softmax" as released, or
            "cross_entropy". architecture: another one than `mlp:` with twice the columns, when not None.
        judged: so many members, and as many others, at most. ended: references that are trained to the end.
        queries: of the label-only attack, for each record and model; 0 for none.

    Returns:
        as `plays` but for "private", float32, one reference of each kind; "ended_margin" [T, ended, N'], under references that
        are never stopped, as the released code has them. "..._distance": to the decision boundary, negative where the model is
        wrong, of at most `WALKED` members and as many others, "walked_members".
    """
    from mia_lib import data, signals, training
    from mia_lib.signals import log_odds

    pool = data.load(dataset)
    pool = pool.take(np.arange(pool.n_train))
    architecture = recipe["architecture"] or f"mlp:{2 * pool.shape[0]}"
    config = config_of({**recipe, "architecture": architecture}, optimizer="sgd", momentum=0.9)
    seed = config.seed
    forget = {"epochs": forgetting_epochs, "learning_rate": forgetting_rate}
    game, rehearsal = (
        (*sets, at_most(asked, sets[0], check_whole("judged", judged, 10), seed=11))
        for *sets, asked in _deal(len(pool), index.stop, seed)
    )
    kept = _play(index, pool, *game, config, forget, 1, 1, queries)
    asked, never = game[-1][index.start :], []
    for r in range(check_whole("ended", ended, 0)):
        others = _public_half(game, r)
        models = training.train(
            pool, others, replace(config, seed=seed + 5000 + r), label="references, never stopped"
        )
        never.append(_of(log_odds(signals.loss(models.part(list(index)), pool, asked)), asked))
    if never:
        kept["ended_margin"] = np.stack(never, 1).astype(np.float32)
    played = _play(index, pool, *rehearsal, replace(config, seed=seed + 1), forget, 1, 1, queries)
    return kept | {
        f"rehearsal_{name}": played[name]
        for name in played
        if name not in ("correct", "best_epoch")
    }


def further(
    index: range, recipe: dict = RECIPE, asked: int = 2000, queries: int = 0
) -> dict[str, np.ndarray]:
    """Signals of a bank's models besides their log odds, for the first records.

    Args:
        recipe: as for `banks.models_of`.
        asked: so many records, the first ones. queries: as for `on_tables`; walks begin at the nearest record beyond the
            boundary.

    Returns:
        top, gradient: as of `plays`, float16 [M, N]; distance, where there are queries, float16 [M, N]; members bool [M, N].
    """
    from mia_lib.signals import boundary

    models, pool = models_of(index, recipe)
    records = pool.take(np.arange(check_whole("asked", asked, 1, len(pool))))
    arrays = _signals(models, records, None, 1)
    kept = {name: arrays[name].astype(np.float16) for name in ("top", "gradient")}
    if queries:
        walked = boundary.distance(models, records, queries, signed=True, starts=0)
        kept["distance"] = _finite(walked.distance).astype(np.float16)
    return kept | {"members": models.members[:, : len(records)]}


def _pool(recipe: dict):
    """The training records of a recipe's data set, or the first so many of them."""
    from mia_lib import data

    pool, records = data.load(recipe["dataset"]), recipe["records"]
    if records is not None:
        check_whole("records", records, 32, pool.n_train)
    return pool.take(np.arange(records or pool.n_train))


def _deal(records: int, plays: int, seed: int):
    """Masks of a play's records, bool [T, N] each: those that train the target, those that train
    what calibrates it, those that stop that training, and those that are judged. First of the
    plays, then of their rehearsals within the public half."""
    split, private = calibration_splits(records, plays, 1, seed)
    members, calibrating = split.reshape(plays, 2, -1).swapaxes(0, 1)
    rehearsal = np.stack([_within(~row, t) for t, row in enumerate(private)], 1)
    return (members, calibrating, ~private & ~calibrating, private), tuple(rehearsal)


def _public_half(game, r: int) -> np.ndarray:
    """Another random half of the public records of each play, as large as the training set of its
    references, bool [T, N]."""
    members, calibrating, spare, _ = game
    rows = np.zeros_like(members)
    for t, row in enumerate(rows):
        public = np.random.default_rng([19, t, r]).permutation(
            np.flatnonzero(calibrating[t] | spare[t])
        )
        row[public[: calibrating[t].sum()]] = True
    return rows


def _within(public: np.ndarray, play: int) -> np.ndarray:
    """A game at half the size, bool [4, N]: its members, its reference's training set, the other
    public records, and the private ones."""
    private, rest = np.array_split(
        np.random.default_rng([13, play]).permutation(np.flatnonzero(public)), 2
    )
    rows, half = np.zeros((4, len(public)), bool), len(private) // 2
    for row, chosen in zip(rows, (private[:half], rest[:half], rest[half:], private), strict=True):
        row[chosen] = True
    return rows


def _play(
    index,
    pool,
    members,
    calibrating,
    spare,
    judged,
    config,
    forget,
    views,
    references,
    queries: int = 0,
) -> dict[str, np.ndarray]:
    """The arrays of plays, from masks of records, bool [T, N]: `members` train the targets,
    `calibrating` the models that calibrate them, `spare` stops these, and `judged` are asked. All
    plays up to `index.stop` are given, so that each has its own seed."""
    from mia_lib import signals, training
    from mia_lib.signals import boundary

    targets = training.train(pool, members, config, label="targets")
    kinds = {"scratch": [], "forgetting": []}
    for r in range(references):  # an ensemble each, so that none depends on how many there are
        own = replace(config, seed=config.seed + 1000 * (r + 1))
        kinds["scratch"].append(
            training.train(pool, calibrating, own, validation=spare, label="references")
        )
        kinds["forgetting"].append(
            training.train(
                pool,
                calibrating,
                replace(own, **forget),
                validation=spare,
                start=(targets, range(len(members))),
                label="forgetful copies",
            )
        )
    rows = list(index)
    judged, target_members, targets = judged[rows], members[rows], targets.part(rows)
    first = kinds["scratch"][0].part(rows)
    kept = {
        "members": _of(target_members, judged),
        "correct": _of(signals.correctness(targets, pool, judged), judged),
        **{
            f"target_{name}": array
            for name, array in _signals(targets, pool, judged, views).items()
        },
        "best_epoch": np.array(
            [1 + first.arrays(t)["validation"].argmax() for t in range(len(rows))], np.int32
        ),
    }
    for kind, ensembles in kinds.items():
        of_references = [_signals(models.part(rows), pool, judged, views) for models in ensembles]
        kept |= {
            f"{kind}_{name}": np.stack([arrays[name] for arrays in of_references], 1)
            for name in SIGNALS
        }
    if queries:
        walked = at_most(judged, target_members, WALKED, seed=11)
        kept["walked_members"] = _of(target_members, walked)
        for kind, models in (
            ("target", targets),
            *((kind, ensembles[0].part(rows)) for kind, ensembles in kinds.items()),
        ):
            distance = boundary.distance(models, pool, queries, signed=True, judged=walked).distance
            kept[f"{kind}_distance"] = _finite(_of(distance, walked))
    return kept


def _signals(models, pool, judged, views) -> dict[str, np.ndarray]:
    """`SIGNALS` of the judged records, each float32 [T, N'], from means over views; of all records
    if `judged` is None."""
    from mia_lib import signals
    from mia_lib.signals import log_odds
    from mia_lib.signals.views import augmented

    augmentation = models.config.augmentation
    seen = [pool] if augmentation == "none" else augmented(pool, augmentation, views)
    loss, least, norm = (
        _of(
            np.mean([signal(models, view, judged=judged) for view in seen], 0, dtype=np.float64),
            judged,
        )
        for signal in (signals.loss, signals.least_loss, signals.gradient_norm)
    )
    arrays = {
        "margin": log_odds(loss),
        "top": log_odds(least),
        "gradient": np.log(np.maximum(norm, SMALLEST)),
    }
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def _finite(distance: np.ndarray) -> np.ndarray:
    """Signed distances, float32, in which none is infinite: where no boundary was found, the size
    is that of the model's farthest record for which one was."""
    farthest = np.where(np.isfinite(distance), np.abs(distance), 0.0).max(1, keepdims=True)
    return np.clip(distance, -farthest, farthest).astype(np.float32)


def _of(values: np.ndarray, judged: np.ndarray | None) -> np.ndarray:
    """Values [T, N'] of those [T, N] at the mask `judged`, bool [T, N], which has equally many in
    each row; all of them if it is None."""
    if judged is None:
        return values
    return np.stack([row[mask] for row, mask in zip(values, judged, strict=True)])


def _halved(array: np.ndarray) -> np.ndarray:
    """float32 arrays in half precision; others as they are."""
    return array.astype(np.float16) if array.dtype == np.float32 else array


# Of each table: how its networks are trained, in the place of `on_tables`' defaults; and plays that pay, at most.
RECIPES: dict[str, dict] = {
    "german_credit": {},
    "hepatitis": {"batch_size": 4},
    "adult": {"batch_size": 64, "epochs": 100, "judged": 1000, "ended": 4},
}
PLAYS = {"german_credit": 40, "hepatitis": 40, "adult": 8}

STOPPED_PROBE = {
    "index": range(1, 3),
    "dataset": "fashion_mnist_20k",
    "architecture": "watson_cnn:4,4,4,8",
    "records": 240,
    "epochs": 3,
    "batch_size": 30,
    "learning_rate": 0.02,
}
PROBE = STOPPED_PROBE | {
    "epochs": 2,
    "forgetting_epochs": 1,
    "augmentation": "flip_crop:2",
    "views": 2,
    "references": 2,
}

cifar10 = measurement("calibration/cifar10", probe=PROBE, block=8, chunk=2, dataset="cifar10")(
    plays
)
stops = measurement(
    "calibration/stopped",
    block=8,
    chunk=2,
    dataset="cifar10",
    stops=[5, 10, 15, 20],
    probe=STOPPED_PROBE | {"stops": [1, 2]},
)(stopped)
cifar100 = measurement("calibration/cifar100", probe=PROBE, block=8, chunk=2, dataset="cifar100")(
    plays
)
mnist = measurement(
    "calibration/mnist",
    probe=PROBE,
    block=8,
    chunk=2,
    dataset="mnist",
    architecture="leino_cnn:20,50,500",
    learning_rate=0.05,
)(plays)
# Figure 3, with smaller networks and without rehearsals; training sets of a quarter of `records`.
sizes = measurement(
    "calibration/sizes",
    probe=PROBE | {"rehearse": False},
    block=8,
    chunk=2,
    dataset="cifar10",
    architecture="batchnorm_cnn:24,48,96",
    judged=1000,
    rehearse=False,
)(plays)
tables = measurement(
    "calibration/tables",
    block=20,
    chunk=10,
    probe={
        "index": range(1, 3),
        "dataset": "german_credit",
        "epochs": 3,
        "batch_size": 40,
        "architecture": "mlp:5",
        "judged": 20,
        "ended": 1,
        "queries": 0,
        "forgetting_epochs": 1,
    },
)(on_tables)
WALK_PROBE = {**BANK_PROBE, "asked": 40}


def _walk_cost(parameters) -> float:
    return evaluations(parameters, parameters["asked"] * (2 + parameters["queries"]))


cifar10_small = measurement(
    "calibration/cifar10-small",
    probe=WALK_PROBE,
    chunk=4,
    cost=_walk_cost,
    dataset="cifar10",
    weights="bank/cifar10-small-weights",
)(further)
