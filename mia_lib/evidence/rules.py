"""Rules of claims: expressions over a tidy frame of results, with one evaluator for all chapters.

A rule in `data/papers/NAME_claims.yaml` names results in braces and says what the claim holds to be above zero::

    rule: "{MATT | auc} - {MALT | auc}"           # attack | metric, and further columns: | n = 400, | n = first, | n = last
    where: {study: table 1}                       # the rows that it is about
    over: [n]                                     # columns whose values are its cases; the number is the mean over them,
    combine: least                                # or the least of them, where the claim is about every case
    about: MATT                                   # the attack that the claim is about, or several of them
    margins: {same: 0.005}                        # {same} in a rule is this number; within it of zero there is no difference

Operators are + - * /, functions `abs`, `least` and `most` (of estimates, by their means). A claim with `rounding` is an
identity: its number must not exceed that. One with `needs` is decided only where the run has these values, and says
`otherwise` if not.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from mia_lib.errors import MiaError
from mia_lib.evidence import claims
from mia_lib.evidence.claims import NOT_RUN, Verdict
from mia_lib.metrics import Interval
from mia_lib.metrics.estimates import Estimate, estimate, mean

LEAST = 8  # repetitions from which on an interval over them decides anything
RESULT = re.compile(r"\{([^{}|]+)\|([^{}]+)\}")
OPERATORS: dict[type, Callable] = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
                                   ast.Div: operator.truediv, ast.USub: operator.neg}


def evaluate(rule: str, frame: pd.DataFrame) -> Estimate | float:
    """The value of a rule on the rows of one case.

    Raises:
        MiaError: a rule that is no expression as described above; a result that the frame does not have.
    """
    results: dict[str, Estimate] = {}
    for attack, metric, further in named_results(rule):
        where = {}
        for column, value in further.items():
            values = list(frame[column].dropna().unique())
            ends = {"first": values[0], "last": values[-1]} if values else {}
            where[column] = ends.get(value, next((one for one in values if written(one) == value), value))
        results[f"result_{len(results)}"] = estimate(frame, attack, metric, **where)
    names = iter(results)
    try:
        tree = ast.parse(RESULT.sub(lambda match: next(names), rule), mode="eval").body
    except SyntaxError as error:
        raise MiaError(f"rule {rule!r} is no expression: {error.msg}.") from error

    def by_mean(choose: Callable) -> Callable:
        return lambda *estimates: choose(estimates, key=lambda one: one.value if isinstance(one, Estimate) else one)

    functions = {"abs": abs, "least": by_mean(min), "most": by_mean(max)}

    def value(node: ast.AST):
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.operand))
        if isinstance(node, ast.Name) and node.id in results:
            return results[node.id]
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions and not node.keywords:
            return functions[node.func.id](*map(value, node.args))
        raise MiaError(f"rule {rule!r}: {ast.unparse(node)!r} is neither a result, a number, one of + - * / nor one of "
                       f"{', '.join(functions)}.")

    return value(tree)


def written(value) -> str:
    """A value of a column as a rule has it: 400 also where other rows without one made it 400.0."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def named_results(rule: str) -> list[tuple[str, str, dict[str, str]]]:
    """The results that a rule names, in its order: attack, metric, and column -> value as it is written."""
    named = []
    for attack, rest in RESULT.findall(rule):
        metric, *further = (part.strip() for part in rest.split("|"))
        # a metric has an equals sign of its own, "tpr_at_fpr=0.01"
        named.append((attack.strip(), metric, dict(tuple(map(str.strip, part.split("=", 1))) for part in further)))
    return named


def cases_of(claim: Mapping, frame: pd.DataFrame) -> dict[str, Estimate]:
    """The claim's rule in each of its cases, those that have all results it names: "n = 400" -> estimate; one case "" where it
    has no columns `over`. The claim is as `claims.claims` has it, the frame holds all results of a chapter."""
    for column, value in claim.get("where", {}).items():
        frame = frame[frame[column] == value] if column in frame else frame.iloc[:0]
    over, named = list(claim.get("over", ())), named_results(claim["rule"])
    pairs = pd.MultiIndex.from_frame(frame[["attack", "metric"]])
    frame = frame[pairs.isin([(attack, metric) for attack, metric, _ in named])]
    if not set(over) <= set(frame.columns):  # of studies that were not run
        return {}
    parts = frame.groupby(over, sort=False) if over else [((), frame)]
    return {", ".join(f"{column} = {written(value)}" for column, value in zip(over, key, strict=True)):
            evaluate(claim["rule"], part) for key, part in parts if _has(part, named)}


def _has(frame: pd.DataFrame, named: list[tuple[str, str, dict[str, str]]]) -> bool:
    for attack, metric, further in named:
        rows = (frame["attack"] == attack) & (frame["metric"] == metric)
        for column, value in further.items() if rows.any() else ():
            rows &= frame[column].notna() if value in ("first", "last") else frame[column].map(written) == value
        if not rows.any():
            return False
    return True


def combined(claim: Mapping, cases: Mapping[str, Estimate]) -> Estimate:
    """The one number of a claim: the mean over its cases, or the least of them."""
    if claim.get("combine") == "least":
        return min(cases.values(), key=lambda case: case.value)
    return mean(list(cases.values()))


def judge(paper: str, claim_id: str, frame: pd.DataFrame, run: Mapping[str, Mapping] | None = None) -> Verdict:
    """The verdict on a claim by the number that its rule comes to, as `claims.judge` says; not run where there are no results,
    fewer than `LEAST` repetitions, or a rate that the non-members do not resolve.

    Args:
        paper, claim_id: for example "bayes", "C7". frame: all results of the chapter, as `metrics.by_target` makes them.
        run: exhibit -> what was run in its place, such as {"dataset": "cifar10", "members": 15000}.
    """
    claim = claims.claims(paper)[claim_id]
    data = claims.regime(paper, claim["exhibit"], run or {})

    def not_run(reason: str) -> Verdict:
        return claims.judge(paper, claim_id, None, reason, data=data)

    if not claim.get("needs", {}).items() <= (run or {}).get(claim["exhibit"], {}).items():
        return not_run(claim["otherwise"])
    cases = cases_of(claim, frame)
    if not cases:
        return not_run(claim.get("otherwise", "this run has no results of it"))
    number = combined(claim, cases)
    if np.isnan(number.values).any():
        return not_run("the non-members do not resolve so low a false positive rate")
    if "rounding" in claim:
        return claims.judge(paper, claim_id, Interval(number.value, number.value, number.value, exact=True), data=data)
    if len(number.values) < LEAST:
        return not_run(f"{len(number.values)} repetitions, and {LEAST} are needed for an interval over them")
    of_cases = {case: one.interval() for case, one in cases.items()} if len(cases) > 1 else {}
    return claims.judge(paper, claim_id, number.interval(), cases=of_cases, data=data)


def number_of(paper: str, claim_id: str, frame: pd.DataFrame, sign: int = 1) -> float | str:
    """The number of a claim for a sentence, in points where it has that unit, or with `sign` -1 its negative; "not run" where
    a run has no results of it, or none that its records resolve."""
    claim = claims.claims(paper)[claim_id]
    cases = cases_of(claim, frame)
    number = combined(claim, cases).value if cases else np.nan
    return NOT_RUN if np.isnan(number) else sign * number * (100 if claim.get("unit") == "points" else 1)


def judge_all(paper: str, frame: pd.DataFrame, run: Mapping[str, Mapping]) -> list[Verdict]:
    """The verdicts on all claims of a paper, in its order; arguments as for `judge`."""
    return [judge(paper, claim, frame, run) for claim in claims.claims(paper)]
