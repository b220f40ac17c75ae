"""Inverse Hessian attack (Suri, Zhang and Evans 2024).

For a model with parameters w, trained by SGD with learning rate lambda, momentum mu and weight decay alpha on n records, the
score of a record with loss l and gradient g is::

    IHA = l / (1 + mu) - (I1 + I2 + I3 + I4) / lambda                                                   (Eq. 8)

    I1 = (1 - a alpha) |x|^2 / n              I3 = alpha (2 - a alpha) x^T A^-1 x / (2 n)
    I2 = 2 (1 - a alpha) x0^T x               I4 = alpha (2 - a alpha) x0^T A^-1 x

with a = lambda / (1 + mu), A the conditioned Hessian of the mean loss, x = A^-1 g and x0 = A^-1 grad L0, where L0 is the mean
loss over the *other* records of the training set. It is an audit: whoever computes it knows all other records and whether
they are members. Of the whole training set's gradient, grad L0 is what is left without the record under test, so for a
member it is grad L_D - g / n, for a non-member grad L_D itself.

All that a record needs of the P x P inverse are the few numbers of `Forms`; they come from one rotation of its gradient,
whatever the damping, and all variants of the attack are sums of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from mia_lib.attacks import check_loss, needs
from mia_lib.checks import (
    Gradients,
    Inverse,
    check_flag,
    check_mask,
    check_numbers,
    check_order,
)
from mia_lib.errors import MiaError, check_choice, check_range, check_whole

TERMS = ("loss", "I1", "I2", "I3", "I4")
AUDITOR = (
    "parameters",
    "none",
    "all other records and their membership, and how the model was trained",
)


@dataclass(frozen=True)
class Sgd:
    """Hyperparameters of the optimiser that the auditor knows: lambda, above 0, mu and alpha of Eq.
    8; values out of range are refused."""

    learning_rate: float
    momentum: float
    weight_decay: float

    def __post_init__(self):
        if not check_range("learning_rate", self.learning_rate) > 0:
            raise MiaError(
                f"learning_rate = {self.learning_rate!r}: above 0 is needed, since the score divides by it."
            )
        check_range("momentum", self.momentum, 0.0, 1.0)
        check_range("weight_decay", self.weight_decay, 0.0)

    @property
    def factors(self) -> tuple[float, float]:
        """The factors 1 - a alpha and alpha (2 - a alpha) of Eq. 8."""
        a_alpha = self.weight_decay * self.learning_rate / (1 + self.momentum)
        return 1 - a_alpha, self.weight_decay * (2 - a_alpha)


ROUNDING = 1e-3  # of the largest entry, by which an inverse may differ from its transpose


@dataclass(frozen=True)
class Forms:
    """Numbers of a record that the inverse Hessian gives, each [N] (or [E, N] for E inverses).

    With A the conditioned Hessian, g the record's gradient, d the training set's, x = A^-1 g and x_D = A^-1 d:

    Attributes:
        newton: x^T x, squared length of the record's Newton step.
        newton_mean: x_D^T x.
        inverse: x^T A^-1 x.
        inverse_mean: x_D^T A^-1 x.
        influence: g^T A^-1 g.
        newton_theta, inverse_theta: x_w^T x and x_w^T A^-1 x with x_w = A^-1 w, for the parameters w; None if not asked for.
    """

    newton: np.ndarray
    newton_mean: np.ndarray
    inverse: np.ndarray
    inverse_mean: np.ndarray
    influence: np.ndarray
    newton_theta: np.ndarray | None = None
    inverse_theta: np.ndarray | None = None

    def __getitem__(self, which) -> Forms:
        """The forms of some of the inverses, or of some of the records."""
        parts = (getattr(self, part.name) for part in fields(self))
        return Forms(*(None if part is None else part[which] for part in parts))  # type: ignore[arg-type]


def forms(
    gradients: Gradients,
    inverse_hessian: Inverse,
    mean_gradient: np.ndarray,
    theta: np.ndarray | None = None,
) -> Forms:
    """The `Forms` of each record, from its gradient.

    Args:
        gradients: of each record's loss, [N, P], or an iterable of blocks [B, P] such as `signals.record_gradients` yields.
        inverse_hessian: [P, P]; or an object with `vectors` [P, P] and `weights` [P], eigenvectors and the eigenvalues of the
            inverse, such as `hessian.inverse` gives; or a sequence of E such objects with the same vectors.
        mean_gradient: of the training set's mean loss, without weight decay, [P].
        theta: parameters w, [P], for the test that knows the weight decay, see `split`.

    Returns:
        Forms of [N], float64; of [E, N] for a sequence.

    Raises:
        MiaError: shapes that do not fit, no record, no inverse or inverses with different vectors.
    """
    inverses, size = check_inverses(inverse_hessian)
    directions = []
    for name, direction in (
        ("mean_gradient", mean_gradient),
        *((("theta", theta),) if theta is not None else ()),
    ):
        directions.append(check_numbers(name, direction).astype(np.float64))
        if directions[-1].shape != (size,):
            raise MiaError(
                f"{name} has shape {directions[-1].shape}; the inverse Hessian is for P = {size} parameters."
            )
    spectral = hasattr(inverses[0], "vectors")
    several = spectral and not hasattr(inverse_hessian, "vectors")
    of_block = (
        _from_spectrum(inverses, np.stack(directions))
        if spectral
        else _from_matrix(inverses[0], np.stack(directions))
    )
    per_block = []
    for block in (
        gradients
        if isinstance(gradients, Iterable) and not hasattr(gradients, "shape")
        else [gradients]
    ):
        block = check_numbers("gradients", block)
        if block.ndim != 2 or block.shape[1] != size:
            raise MiaError(
                f"gradients have shape {block.shape}: [N, {size}] is needed, a column for each parameter."
            )
        per_block.append(of_block(block))
    if not any(newton.size for newton, *_ in per_block):
        raise MiaError("gradients hold no record.")
    joined = (np.concatenate(parts, -1) for parts in zip(*per_block, strict=True))
    return Forms(*joined) if several else Forms(*(part[0] for part in joined))


def check_inverses(inverse_hessian: Inverse) -> tuple[list, int]:
    """The inverses as a list, a matrix as an array in it, and their number P of parameters."""
    if isinstance(inverse_hessian, Sequence) and all(
        hasattr(one, "vectors") for one in inverse_hessian
    ):
        if not inverse_hessian:
            raise MiaError("inverse_hessian is an empty sequence: at least one inverse is needed.")
        return list(inverse_hessian), len(inverse_hessian[0].vectors)
    if hasattr(inverse_hessian, "vectors"):
        return [inverse_hessian], len(inverse_hessian.vectors)
    matrix = check_numbers("inverse_hessian", inverse_hessian)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise MiaError(f"inverse_hessian has shape {matrix.shape}: [P, P] is needed.")
    asymmetry = np.abs(np.subtract(matrix, matrix.T, dtype=np.float64)).max(initial=0)
    largest = float(np.abs(matrix).max(initial=0))
    if asymmetry > ROUNDING * largest:
        raise MiaError(
            f"inverse_hessian is not symmetric: it differs from its transpose by up to {asymmetry:.3g}, its largest entry "
            f"is {largest:.3g}. Give what hessian.inverse makes of a Hessian."
        )
    return [matrix], len(matrix)


def _from_matrix(inverse: np.ndarray, directions: np.ndarray):
    along = directions @ inverse
    linear = np.vstack([along, along @ inverse]).T

    def of_block(g: np.ndarray) -> list[np.ndarray]:
        x = g @ inverse
        quadratic = np.stack(
            [(x * other).sum(1, dtype=np.float64) for other in (x, x @ inverse, g)]
        )
        return _ordered(quadratic[:, None], (x @ linear).T[:, None])

    return of_block


def _from_spectrum(inverses: list, directions: np.ndarray):
    vectors, count = inverses[0].vectors, len(inverses)
    if any(inverse.vectors is not vectors for inverse in inverses):
        raise MiaError(
            "these inverses come from different decompositions; give those of one Hessian, or one at a time."
        )
    w = np.stack([inverse.weights for inverse in inverses]).T.astype(np.float64)  # [P, E]
    rotate = getattr(inverses[0], "rotate", lambda v: v @ vectors)
    along = rotate(directions.astype(vectors.dtype)).astype(np.float64)
    squared = np.hstack([w**2, w**3, w])
    linear = np.hstack([direction[:, None] * w**power for power in (2, 3) for direction in along])

    def of_block(g: np.ndarray) -> list[np.ndarray]:
        rotated = rotate(np.asarray(g, vectors.dtype)).astype(np.float64)
        return _ordered(
            (rotated**2 @ squared).T.reshape(3, count, len(g)),
            (rotated @ linear).T.reshape(2 * len(directions), count, len(g)),
        )

    return of_block


def _ordered(quadratic: np.ndarray, linear: np.ndarray) -> list[np.ndarray]:
    """Arrays [E, B] in the order of `Forms`, from x^T x, x^T A^-1 x, g^T A^-1 g (`quadratic`), and
    from the products of x with x_D and x_w, then with A^-1 x_D and A^-1 x_w (`linear`)."""
    newton, inverse, influence = quadratic
    half = len(linear) // 2
    return [
        newton,
        linear[0],
        inverse,
        linear[half],
        influence,
        *(linear[1::half] if half == 2 else ()),
    ]


def from_solutions(x: np.ndarray, along: np.ndarray, gradients: np.ndarray) -> Forms:
    """`Forms` from solutions of linear systems, as conjugate gradients give them, without any
    inverse. The products with A^-1 x, which I3 and I4 need, would take further systems: they are
    taken as zero, which leaves both terms out.

    Args:
        x: A^-1 g of each record, [N, P]. along: A^-1 d, [P]. gradients: g, [N, P].
    """
    x, along, gradients = (
        check_numbers(*each).astype(np.float64, copy=False)
        for each in (("x", x), ("along", along), ("gradients", gradients))
    )
    for name, array, shape in (("along", along, x.shape[1:]), ("gradients", gradients, x.shape)):
        if x.ndim != 2 or array.shape != shape:
            raise MiaError(
                f"x has shape {x.shape} and {name} {array.shape}: along is to be [P], all others [N, P]."
            )
    zero = np.zeros(len(x))
    return Forms((x**2).sum(1), x @ along, zero, zero, (x * gradients).sum(1))


@needs(*AUDITOR)
def scores(
    loss: np.ndarray,
    gradients: Gradients,
    inverse_hessian: Inverse,
    mean_gradient: np.ndarray,
    members_known: np.ndarray,
    n: int,
    learning_rate: float,
    momentum: float,
    weight_decay: float,
    terms: str | Sequence[str] = "all",
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Inverse Hessian attack (Suri et al. 2024, Eq. 8), for all records at once.

    Args:
        loss: of each record under the target, without weight decay, [N].
        gradients, inverse_hessian, mean_gradient: as for `forms`; the Hessian is that of the mean loss over the training set,
            without weight decay, damped or of low rank.
        members_known: bool [N]. What the audit's game gives away: the record under test is taken out of the training set that
            the auditor knows, so its gradient is taken out of the members'. It is all that the score has beyond the loss.
        n: records in the training set.
        learning_rate, momentum, weight_decay: of SGD.
        terms: "all", or some of `TERMS`.

    Returns:
        score [N]; and by name the terms I1 to I4, each [N]. (With a sequence of E inverses, [E, N].)

    Raises:
        MiaError: shapes that do not fit, rates out of range, unknown terms.
    """
    sgd = Sgd(learning_rate, momentum, weight_decay)
    check_whole("n", n, 1)
    _chosen(terms)
    check_order(loss=loss, gradients=gradients, members_known=members_known)
    members = check_mask("members_known", members_known)
    if (count := int(members.sum())) > n:
        raise MiaError(
            f"members_known has {count} members, and n = {n}: n is the number of records in the training set."
        )
    products = forms(gradients, inverse_hessian, mean_gradient)
    records = products.newton.shape[-1:]
    if members.shape != records:
        raise MiaError(
            f"members_known has shape {members.shape}: {records} is needed, one for each record."
        )
    parts = split(products, members / n, n, sgd)
    return combine(loss, parts, sgd, terms), parts


def split(
    products: Forms, taken_out: np.ndarray | float, n: int, sgd: Sgd, stationary: bool = False
) -> dict[str, np.ndarray]:
    """The terms "I1" to "I4" of Eq. 8, of the shape of `products`, for whatever the auditor knows.

    Args:
        taken_out: [N], how much of the record's own gradient is taken out of the mean gradient, to leave that of the others:
            1 / n for members and 0 for non-members is the paper's leave-one-out knowledge; 0 for all is a control that does
            not know who is a member.
        n: records in the training set. sgd: how the model was trained.
        stationary: add the gradient of the weight decay to that of the others, grad L0 + alpha w. At a minimum it is that sum
            which vanishes for the true training set; Eq. 8 has grad L0 alone. Needs `forms` with theta.

    Raises:
        MiaError: values out of range, forms without theta.
    """
    check_whole("n", n, 1)
    mean, inverse_mean = products.newton_mean, products.inverse_mean
    if check_flag("stationary", stationary):
        if products.newton_theta is None:
            raise MiaError("stationary = True needs forms(..., theta=w), with the parameters.")
        mean = mean + sgd.weight_decay * products.newton_theta
        inverse_mean = inverse_mean + sgd.weight_decay * products.inverse_theta
    once, twice = sgd.factors
    return {
        "I1": once * products.newton / n,
        "I2": 2 * once * (mean - taken_out * products.newton),
        "I3": twice * products.inverse / (2 * n),
        "I4": twice * (inverse_mean - taken_out * products.inverse),
    }


def shift_and_alignment(products: Forms, sgd: Sgd) -> np.ndarray:
    """Two numbers for each record, [2, ...] with the shape of `products`, that give the sum of the
    four terms: ``I1 + ... + I4 = shift / n + 2 alignment - 2 taken_out shift``. They are `newton`
    and `newton_mean`, up to the weight decay."""
    once, twice = sgd.factors
    return np.stack(
        [
            once * products.newton + twice / 2 * products.inverse,
            once * products.newton_mean + twice / 2 * products.inverse_mean,
        ]
    )


@needs(*AUDITOR)
def combine(
    loss: np.ndarray, parts: dict[str, np.ndarray], sgd: Sgd, terms: str | Sequence[str] = "all"
) -> np.ndarray:
    """The score of Eq. 8 from the terms of `split`, or from some of them, with the shape of a term.
    Other arguments and errors are as for `scores`."""
    chosen = _chosen(terms)
    score = np.zeros(np.shape(parts["I1"]))
    if "loss" in chosen:
        loss = check_loss("loss", loss)
        if loss.shape != score.shape[-1:]:
            raise MiaError(
                f"loss has shape {loss.shape}: {score.shape[-1:]} is needed, one for each record."
            )
        score = score + loss.astype(np.float64) / (1 + sgd.momentum)
    return score - sum(parts[term] for term in chosen if term != "loss") / sgd.learning_rate


def _chosen(terms: str | Sequence[str]) -> tuple[str, ...]:
    """The terms in `terms`, each once and in the order of `TERMS`."""
    one = isinstance(terms, str) or not np.iterable(terms)
    listed = (
        TERMS
        if one and check_choice("terms", terms, ("all", *TERMS)) == "all"
        else (terms,)
        if one
        else tuple(terms)
    )
    if not listed:
        raise MiaError(f"terms is empty: allowed are 'all' and any of {', '.join(TERMS)}.")
    for term in listed:
        check_choice("terms", term, TERMS)
    return tuple(term for term in TERMS if term in listed)


@needs("parameters", "none", "all other records and their membership, and the weight decay")
def stationarity(
    along: np.ndarray, squares: np.ndarray, taken_out: np.ndarray | float, n: int
) -> np.ndarray:
    """The condition for a minimum as a test: with which training set is the gradient smaller?

    Of the rest of the training set the auditor knows r = grad L0 + alpha w. Trained without the record r would be zero, with
    it r + g / n would. The score is ``|r|^2 - |r + g / n|^2``, in the norm that the arguments are computed in. No Hessian, no
    learning rate. For a member r = d - g / n with d = grad L_D + alpha w, so the score is ``(|g|^2 / n - 2 d^T g) / n``; for
    a non-member it is ``-(|g|^2 / n + 2 d^T g) / n``.

    Args:
        along: d^T g of each record, [N]; or d^T A^-1 A^-1 g. squares: ``|g|^2``, [N]; or ``|A^-1 g|^2``.
        taken_out, n: as for `split`: 1 / n for members and 0 for others is leave-one-out knowledge.

    Returns:
        score [N].
    """
    along, squares = check_numbers("along", along), check_numbers("squares", squares)
    return -(2 * (along - taken_out * squares) + squares / n) / n
