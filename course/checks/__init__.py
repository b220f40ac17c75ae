"""Checks of the exercises. They need NumPy alone and say what is wrong, not how it is done.

    import checks
    checks.run("lira", globals())

Every run draws the same data, several times for a check, so that a notebook passes as many at the desk as at home; `seed`
draws others. A check tries what must hold of any right answer: what it may not look at, what it has to ignore, what cannot
change it. So loops, one line of NumPy and float32 are all accepted.
"""

from __future__ import annotations

import importlib

import numpy as np

DRAWS = 5  # of a check's data, so that no answer is right by luck; a module whose checks draw many themselves has its own
_asked = False  # whether a student's function is being checked


class Wrong(Exception):
    """What is wrong with an answer, as a sentence to its author."""


def need(condition, sentence: str) -> None:
    """Raise `Wrong` with the sentence unless the condition holds."""
    if not condition:
        raise Wrong(sentence)


def call(work: dict, name: str, *arguments):
    """What a student's function makes of copies of the arguments.

    Args:
        work: what the notebook has defined, its `globals()`.
        name: of the function.

    Raises:
        Wrong: there is no such function, it is not written yet, it fails, or it changes what it was given.
    """
    function = work.get(name)
    need(callable(function), f"There is no function `{name}` here. Run the cell that defines it, and keep its name.")
    given = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
    global _asked
    try:
        _asked = True
        with np.errstate(all="ignore"):
            made = function(*given)
    except NotImplementedError:
        raise Wrong(f"`{name}` is still to be written.") from None
    except Exception as error:  # whatever a student's code raises is told, not raised
        shapes = ", ".join(str(one.shape) if isinstance(one, np.ndarray) else type(one).__name__ for one in arguments)
        raise Wrong(f"`{name}` stopped with {type(error).__name__}: {str(error)[:200]}. It was given {shapes}.") from None
    finally:
        _asked = False
    for one, copy in zip(arguments, given, strict=True):
        need(not isinstance(one, np.ndarray) or np.array_equal(one, copy),
             f"`{name}` changes an array that it was given. Work on a copy: whoever calls it still needs the old one.")
    need(made is not None, f"`{name}` returns nothing. Does its last line begin with `return`?")
    return made


def numbers(work: dict, name: str, *arguments, shape: tuple = (), what: str = "") -> np.ndarray:
    """As `call`, of a function that returns finite numbers of the shape.

    Raises:
        Wrong: also for another shape, other things than numbers, and values that are not finite.
    """
    made = call(work, name, *arguments)
    try:
        found = np.asarray(made, dtype=np.float64)
    except (TypeError, ValueError):
        raise Wrong(f"`{name}` returns {type(made).__name__}, and numbers are needed{what and ': ' + what}.") from None
    need(found.shape == shape, f"`{name}` returns the shape {found.shape}, and {shape} is needed{what and ': ' + what}.")
    need(np.isfinite(found).all(), f"`{name}` returns {int((~np.isfinite(found)).sum())} values that are not finite "
                                   "(NaN or infinite). Look for a division by zero, the logarithm of zero, or a mean "
                                   "over NaN.")
    return found


def same(one, other, tolerance: float = 2e-4) -> bool:
    """Whether two arrays agree within the rounding of float32."""
    one, other = np.asarray(one, float), np.asarray(other, float)
    return bool(np.abs(one - other).max(initial=0) <= tolerance * max(1.0, np.abs(other).max(initial=0)))


def titles(exercise: str) -> list[str]:
    """What the checks of an exercise try, in order."""
    return [check.__doc__.splitlines()[0].rstrip(".") for check in _module(exercise).CHECKS]


def one(exercise: str, number: int, work: dict, seed: int = 0) -> str:
    """A single check, on several draws of its data: "right", or a sentence that says what is wrong.

    Args:
        exercise: its name.
        number: of the check, from 0.
        work: what the notebook has defined.
        seed: of the data.
    """
    try:
        for draw in range(getattr(_module(exercise), "DRAWS", DRAWS)):
            _module(exercise).CHECKS[number](work, np.random.default_rng([seed, number, draw]))
    except Wrong as wrong:
        return str(wrong)
    return "right"


def run(exercise: str, work: dict, seed: int = 0) -> int:
    """Try everything, print what was found, and return how many checks passed."""
    found = [one(exercise, number, work, seed) for number in range(len(titles(exercise)))]
    right = sum(said == "right" for said in found)
    show(titles(exercise), found)
    print(f"{right} of {len(found)} checks of {exercise} pass.")
    return right


def show(titles: list[str], found: list[str]) -> None:
    """Print what each check says, and a sentence that several say at the first of them."""
    for number, (title, said) in enumerate(zip(titles, found, strict=True)):
        print(f"{'right' if said == 'right' else 'WRONG'}   {title}")
        if said not in ("right", *found[:number]):
            print(f"        {said}")


def _module(exercise: str):
    try:
        return importlib.import_module(f"checks.{exercise}")
    except ModuleNotFoundError:
        raise ValueError(f"There are no checks of an exercise {exercise!r} in the folder `checks`. Keep the notebook in "
                         "the folder that you were given, beside `checks`.") from None


# ------------------------------------------------------------------------------------------ what several exercises need


def bank(rng: np.random.Generator, models: int = 12, records: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """A made-up bank: scores [M, N], higher for members, and members [M, N] in complementary pairs (0 and 1, 2 and 3,
    ...)."""
    half = rng.permuted(np.tile(np.arange(records) < records // 2, (models // 2, 1)), axis=1)
    members = np.empty((models, records), bool)
    members[0::2], members[1::2] = half, ~half
    while True:  # every record is in and out of at least two pairs besides any one of them
        count = members[0::2].sum(0)
        bad = (count < 3) | (count > models // 2 - 3)
        if not bad.any():
            break
        members[0::2, bad] = rng.random((models // 2, bad.sum())) < 0.5
        members[1::2, bad] = ~members[0::2, bad]
    score = rng.normal(size=records) * 2 + rng.normal(size=(models, records)) * rng.uniform(0.5, 1.5, records) + members
    return score, members


def blind(work: dict, name: str, score: np.ndarray, members: np.ndarray, target: int) -> np.ndarray:
    """Scores [N] of an attack `name(score, members, target)`, after trying what no such attack may look at.

    Raises:
        Wrong: the attack sees the target's membership, has the target among its references, or its complement.
    """
    shape, rng = (score.shape[1],), np.random.default_rng(int(abs(score).sum() * 1e6) % 2**32)
    found = numbers(work, name, score, members, target, shape=shape, what="one score for each record")
    other, pair = members.copy(), target ^ 1
    other[target] = rng.permutation(members[target])
    need(same(numbers(work, name, score, other, target, shape=shape), found),
         f"`{name}` gives other scores when the *target's own* row of `members` is changed. That row is the solution: an "
         "attacker does not have it. Is the target among its references?")
    moved = score.copy()
    moved[pair] = rng.permutation(score[pair]) + 1
    other = members.copy()
    other[pair] = rng.permutation(members[pair])
    need(same(numbers(work, name, moved, other, target, shape=shape), found),
         f"`{name}` gives other scores when model {pair} is changed, the other model of the target's pair. It was "
         f"trained on exactly the records that model {target} was not: who knows its training set knows the solution.")
    return found


# --------------------------------------------------------------------------------------------- for looking at a result


def less_the_others(signal, members, target: int = 0, count: int = 30) -> np.ndarray:
    """The target's signal less its mean under the models without the record, of the `count` models after the target's pair.

    signal: [M, N]. members: bool [M, N]. Returns [N]. No answer to an exercise may call it.
    """
    _for_looking_only()
    others = [model for model in range(len(members)) if model // 2 != target // 2][:count]
    signal, outside = np.asarray(signal, float), ~members[others]
    return signal[target] - (signal[others] * outside).sum(0) / outside.sum(0)


def told(flags, loss, gradients, hessian, members, learning_rate, damping) -> np.ndarray:
    """The inverse Hessian attack of an auditor who takes whoever is flagged out of the gradient of all, and nobody else, [N].

    Arguments as for `iha`, and flags: bool [N]. No answer to an exercise may call it.
    """
    _for_looking_only()
    A, n = hessian + damping * np.eye(len(hessian)), members.sum()
    rest = gradients[members].sum(0) / n - flags[:, None] * gradients / n
    x, x0 = (np.linalg.solve(A, one.T).T for one in (gradients, rest))
    return loss - ((x**2).sum(1) / n + 2 * (x0 * x).sum(1)) / learning_rate


def _for_looking_only() -> None:
    if _asked:
        raise RuntimeError("this function of checks is there to look at a result, and an answer is to be your own")


def auc(scores, members) -> float:
    """Share of pairs of a member and a non-member in which the member has the higher score; ties count half."""
    scores, members = np.asarray(scores, float), np.asarray(members, bool)
    outside = np.sort(scores[~members])
    below = np.searchsorted(outside, scores[members], "left") + np.searchsorted(outside, scores[members], "right")
    return float(below.mean() / 2 / len(outside))


def tell(name: str, scores, members) -> None:
    """Print the AUC of scores, and the share of members found where one non-member in twenty is accused."""
    scores, members = np.asarray(scores), np.asarray(members, bool)
    if scores.shape != members.shape or scores.dtype.kind not in "biuf":
        print(f"{name}: scores of shape {scores.shape} and type {scores.dtype} for {len(members)} records, and one number a "
              "record is needed")
        return
    if np.isnan(scores).any():
        print(f"{name}: {np.isnan(scores).sum()} of {len(members)} scores are NaN, and one number a record is needed")
        return
    if members.all() or not members.any():
        print(f"{name}: all or none of {len(members)} records are members, and both kinds are needed")
        return
    scores = scores.astype(float)
    allowed = int(0.05 * (~members).sum())
    bar = np.sort(scores[~members])[::-1][allowed]
    print(f"{name}: AUC {auc(scores, members):.3f}, TPR at 5 % FPR {np.mean(scores[members] > bar):.1%}")
