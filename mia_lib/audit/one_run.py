"""An audit of differential privacy in one training run, from the scores and the coins of its canaries."""

from __future__ import annotations

from dataclasses import dataclass

from mia_lib import metrics

CONDITIONS = """It holds if
- a fair coin of its own decided of each canary whether it was in, and all are here, those that were left out as well;
- which records are canaries, and how they are scored, was settled before anyone looked at the coins;
- each canary is here once, and nothing else in the training followed from how many were in."""


@dataclass(frozen=True, eq=False)
class CanaryAudit:
    """Result of an audit by the canaries of one run; as text the answer, with the conditions on
    which it holds.

    Attributes:
        bound: on epsilon, with the guesses that gave it. inside: canaries that were in.
    """

    bound: metrics.OneRunBound
    inside: int

    def __str__(self) -> str:
        found = self.bound
        private = f"epsilon, delta = {found.delta:g}" if found.delta else "epsilon"
        answer = (
            f"This training is not ({private})-private for an epsilon below {found:.2f}"
            if found > 0
            else f"These canaries refute no epsilon of ({private})-privacy, which says that this attack found nothing, and "
            "not that there is nothing"
        )
        return (
            f"{answer}, at a confidence of {100 * found.confidence:.10g}%.\n"
            f"Of {found.canaries} canaries {self.inside} were in. Four numbers of guesses were tried, each at a quarter "
            f"of the error; the bound is that of {found.guessed_in} said to be in and {found.guessed_out} said to be out, "
            f"of which {found.right} were right.\n{CONDITIONS}"
        )


def canaries(
    scores, coins, delta: float = 0.0, confidence: float = 0.95, seed: int = 0
) -> CanaryAudit:
    """Audit one training run by its canaries, as Steinke, Nasr and Jagielski (2023) do.

    Args:
        scores: [m], higher = more likely in; one a canary, made without knowledge of the coins.
        coins: bool [m], whether the canary's fair coin let it in.
        delta, confidence, seed: as for `metrics.epsilon_one_run`, which is given its usual numbers of guesses, for those
            chosen on these canaries would make it too large.

    Raises:
        MiaError: as `metrics.epsilon_one_run`.
    """
    bound = metrics.epsilon_one_run(scores, coins, None, delta, confidence, seed)
    return CanaryAudit(bound, int(sum(map(bool, coins))))
