"""What the chapter on difficulty calibration measures: plays of the game of Watson et al. (2022, section 4.1) on images.

The "model" of a number is a play: a target, what calibrates it, and a rehearsal of the attacker's. Nothing is compared or
judged here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mia_lib.errors import check_whole
from mia_lib.published import measurement

SIGNALS = ("margin", "top", "gradient")
REHEARSED = 2000  # members, and as many others, on which thresholds are found


def plays(index: range, dataset: str, architecture: str = "watson_cnn", epochs: int = 50, batch_size: int = 128,
          learning_rate: float = 0.1, weight_decay: float = 1e-4, forgetting_epochs: int = 20,
          forgetting_rate: float = 0.02, augmentation: str = "none", views: int = 1, references: int = 1,
          records: int | None = None, seed: int = 0) -> dict[str, np.ndarray]:
    """Of each play, what the models say of its N' private records.

    The training records of a set fall at random into a private and a public half. The target is trained on half of the
    private ones, with Nesterov's momentum .9 and a learning rate along a cosine. What calibrates it is trained on half of the
    public records, and keeps the weights that are best on the other half: references from random weights ("scratch"), and
    copies of the target that go on from its weights ("forgetting"). The rehearsal is the same game within the public half,
    at half the size.

    Args:
        index: of the plays.
        dataset: name of a set. records: so many of its training records alone, the first ones; all when None.
        epochs, batch_size, learning_rate, weight_decay, augmentation: of targets and references.
        forgetting_epochs, forgetting_rate: of the copies, at a constant rate.
        views: times that a record is augmented anew when it is asked about, where targets are trained with augmentation.
        references: R, of each of the two kinds.

    Returns:
        private: bool [T, N], the records that the other arrays are about, in their order; members: bool [T, N'] of them;
        correct: bool [T, N'], whether the target is right; best_epoch: int32 [T], at which the first reference from scratch
        was best. Of the target "target_..." [T, N'], of what calibrates it "scratch_..." and "forgetting_..." [T, R, N'],
        float16: "margin", log odds of the true class; "top", of the likeliest class; both such that their loss is the mean
        over views; and "gradient", the logarithm of the mean norm of the loss's gradient. "rehearsal_members" and the
        rehearsal's signals in the same way, of `REHEARSED` members and as many others.
    """
    from mia_lib import data, membership, training

    pool = data.load(dataset)
    pool = pool.take(np.arange(pool.n_train if records is None else check_whole("records", records, 32, pool.n_train)))
    for name, least, given in (("seed", 0, seed), ("references", 1, references), ("views", 1, views)):
        check_whole(name, given, least)
    recipe = training.TrainConfig(architecture, epochs=epochs, batch_size=batch_size, optimizer="sgd", momentum=0.9,
                                  nesterov=True, learning_rate=learning_rate, weight_decay=weight_decay, schedule="cosine",
                                  augmentation=augmentation, seed=seed)
    forget = {"epochs": forgetting_epochs, "learning_rate": forgetting_rate, "schedule": "constant"}
    split, private = membership.calibration_splits(len(pool), index.stop, 1, seed)
    members, calibrating = split.reshape(index.stop, 2, -1).swapaxes(0, 1)
    inside, calibrating_inside, spare_inside, judged = np.stack([_within(~row, t) for t, row in enumerate(private)], 1)
    judged = membership.at_most(judged, inside, REHEARSED, seed=11)
    kept = _play(index, pool, members, calibrating, ~private & ~calibrating, private, recipe, forget, views, references)
    rehearsal = _play(index, pool, inside, calibrating_inside, spare_inside, judged, replace(recipe, seed=seed + 1), forget,
                      views, references)
    del rehearsal["correct"], rehearsal["best_epoch"]
    return {"private": private[index.start:], **kept, **{f"rehearsal_{name}": array for name, array in rehearsal.items()}}


def _within(public: np.ndarray, play: int) -> np.ndarray:
    """A game at half the size: its members, its reference's training set, the other public and the private records, [4, N]."""
    private, rest = np.array_split(np.random.default_rng([13, play]).permutation(np.flatnonzero(public)), 2)
    rows, half = np.zeros((4, len(public)), bool), len(private) // 2
    for row, chosen in zip(rows, (private[:half], rest[:half], rest[half:], private), strict=True):
        row[chosen] = True
    return rows


def _play(index, pool, members, calibrating, spare, judged, recipe, forget, views, references) -> dict[str, np.ndarray]:
    """The arrays of plays from bool [T, N]: who trains targets, who what calibrates them, and on whom that is stopped; of
    whom all are asked. There are all plays up to `index.stop`, so that the seed of each is its own."""
    from mia_lib import signals, training

    targets, kinds = training.train(pool, members, recipe, label="targets"), {"scratch": [], "forgetting": []}
    for r in range(references):  # an ensemble each, so that none depends on how many there are
        own = replace(recipe, seed=recipe.seed + 1000 * (r + 1))
        kinds["scratch"].append(training.train(pool, calibrating, own, validation=spare, label="references"))
        kinds["forgetting"].append(training.train(
            pool, calibrating, replace(own, **forget), validation=spare, start=(targets, range(len(members))),
            label="forgetful copies"))
    rows = list(index)
    judged, targets = judged[rows], targets.part(rows)
    first = kinds["scratch"][0].part(rows)
    kept = {"members": _of(members[rows], judged), "correct": _of(signals.correctness(targets, pool, judged), judged),
            **{f"target_{name}": array for name, array in _signals(targets, pool, judged, views).items()},
            "best_epoch": np.array([1 + first.arrays(t)["validation"].argmax() for t in range(len(rows))], np.int32)}
    for kind, ensembles in kinds.items():
        found = [_signals(models.part(rows), pool, judged, views) for models in ensembles]
        kept |= {f"{kind}_{name}": np.stack([one[name] for one in found], 1) for name in SIGNALS}
    return kept


def _signals(models, pool, judged, views) -> dict[str, np.ndarray]:
    """`SIGNALS` of the judged records, each [T, N'] float16, from means over views."""
    from mia_lib import signals
    from mia_lib.signals.given import log_odds
    from mia_lib.signals.views import augmented

    augmentation = models.config.augmentation
    seen = [pool] if augmentation == "none" else augmented(pool, augmentation, views)
    loss, least, norm = (_of(np.mean([signal(models, view, judged=judged) for view in seen], 0, dtype=np.float64), judged)
                         for signal in (signals.loss, signals.least_loss, signals.gradient_norm))
    smallest = np.finfo(np.float32).smallest_subnormal  # of a gradient of zero
    found = {"margin": log_odds(loss), "top": log_odds(least), "gradient": np.log(np.maximum(norm, smallest))}
    return {name: array.astype(np.float16) for name, array in found.items()}


def _of(values: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """[T, N] at bool [T, N] with equally many in each row -> [T, N']."""
    return np.stack([row[inside] for row, inside in zip(values, judged, strict=True)])


PROBE = {"index": range(1, 3), "dataset": "fashion_mnist_20k", "architecture": "watson_cnn:4,4,4,8", "records": 240,
         "epochs": 2, "batch_size": 30, "learning_rate": 0.02, "forgetting_epochs": 1, "augmentation": "flip_crop:2",
         "views": 2, "references": 2}

cifar10 = measurement("calibration/cifar10", probe=PROBE, block=8, chunk=2, dataset="cifar10")(plays)
cifar100 = measurement("calibration/cifar100", probe=PROBE, block=8, chunk=2, dataset="cifar100")(plays)
