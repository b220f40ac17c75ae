"""Rules of claims: expressions over a tidy frame of results, with one evaluator for all chapters.

A rule in `mia_book/chapters/NAME/claims.yaml` names results in braces and says what the claim holds to be above zero::

    rule: "{MATT | auc} - {MALT | auc}"           # attack | metric, and further columns: | n = 400, | n = first, | n = last
    where: {study: table 1}                       # the rows that it is about
    over: [n]                                     # columns whose values are its cases

Operators are + - * /, functions `abs`, and `least` and `most` of several: the claim then has several *parts*, such as
a - b and a - c of a - most(b, c), all of which it holds to be above zero. `claims.Claim` has all else that a claim may say.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from mia_book.evidence import claims, figures
from mia_book.evidence.claims import NOT_RUN, OWN_DATA, Verdict
from mia_book.evidence.settings import ALIKE, Setting, count, joint, setting, specification
from mia_lib.errors import MiaError
from mia_lib.metrics import Interval
from mia_lib.metrics.estimates import Estimate, estimate, mean

LIMITS = {"rounding", "bound"}  # of claims that say that a number is no more than that
MIN_REPETITIONS = 8  # repetitions from which on an interval over them decides anything
RESULT = re.compile(r"\{([^{}|]+)\|([^{}]+)\}")
OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
FUNCTIONS = {"abs": 0, "least": -1, "most": 1}  # -> of several: the least, or the most


def evaluate(rule: str, frame: pd.DataFrame, most: bool = False) -> list[Estimate]:
    """The parts of a rule on the rows of one case. The rule's value is the least of them, or with
    `most`, for a number that has a bound, the most.

    Raises:
        MiaError: a rule that is no expression as described above; a result that the frame does not have.
    """
    results: dict[str, Estimate] = {}
    for attack, metric, further in named_results(rule):
        where = {}
        for column, value in further.items():
            values = list(frame[column].dropna().unique())
            ends = {"first": values[0], "last": values[-1]} if values else {}
            where[column] = ends.get(
                value, next((one for one in values if written(one) == value), value)
            )
        results[f"result_{len(results)}"] = estimate(frame, attack, metric, **where)
    names = iter(results)
    try:
        tree = ast.parse(RESULT.sub(lambda match: next(names), rule), mode="eval").body
    except SyntaxError as error:
        raise MiaError(f"rule {rule!r} is no expression: {error.msg}.") from error

    def parts(node: ast.AST) -> tuple[int, list]:
        """The parts of an expression, after -1 if it is the least of them, 1 if the most, 0 if
        there is one alone."""
        if isinstance(node, ast.Name) and node.id in results:
            return 0, [results[node.id]]
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return 0, [node.value]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            kind, operands = parts(node.operand)
            return -kind, [-one for one in operands]
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            (kind, left), (other, right) = parts(node.left), parts(node.right)
            other = -other if isinstance(node.op, ast.Sub) else other
            bad_factor = isinstance(node.op, ast.Mult | ast.Div) and not all(
                isinstance(one, int | float) and one > 0
                for one in (right if kind else left if other else [1])
            )
            if (
                kind * other >= 0
                and not bad_factor
                and not (isinstance(node.op, ast.Div) and other)
            ):
                return kind or other, [OPERATORS[type(node.op)](a, b) for a in left for b in right]
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in FUNCTIONS
            and not node.keywords
        ):
            kind, arguments = FUNCTIONS[node.func.id], [parts(argument) for argument in node.args]
            if kind and {other for other, _ in arguments} <= {0, kind}:
                return kind, [one for _, several in arguments for one in several]
            if not kind and len(arguments) == 1 and not arguments[0][0]:
                return 0, [abs(arguments[0][1][0])]
        raise MiaError(
            f"rule {rule!r}: {ast.unparse(node)!r} is neither a result, a number, one of + - * / nor one of "
            f"{', '.join(FUNCTIONS)}; a least and a most cannot be joined, nor scaled but by a number above zero."
        )

    kind, of_rule = parts(tree)
    if kind == (-1 if most else 1):
        raise MiaError(
            f"rule {rule!r} is the {'least' if most else 'most'} of several, and its claim is about the other end."
        )
    if not all(isinstance(part, Estimate) for part in of_rule):
        raise MiaError(f"rule {rule!r}: a part of it is a number and no result.")
    return of_rule


def written(value) -> str:
    """A value of a column as a rule writes it: 400 also where 400.0 stands in the column because
    other rows have no value."""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def named_results(rule: str) -> list[tuple[str, str, dict[str, str]]]:
    """The results that a rule names, in its order: attack, metric, and further columns -> value as
    the rule writes it."""
    named = []
    for attack, rest in RESULT.findall(rule):
        metric, *further = (part.strip() for part in rest.split("|"))
        # a metric has an equals sign of its own, "tpr_at_fpr=0.01"
        named.append(
            (
                attack.strip(),
                metric,
                dict(tuple(map(str.strip, part.split("=", 1))) for part in further),
            )
        )
    return named


def cases_of(claim: Mapping, frame: pd.DataFrame) -> dict[str, list[Estimate]]:
    """The parts of a claim's rule in each of its cases that has all results which the rule names:
    "n = 400" -> estimates; "" -> estimates for a claim without columns `over`. The claim is one of
    `claims.claims`, the frame has all results of a chapter."""
    return {
        ", ".join(f"{column} = {value}" for column, value in values.items()): parts
        for values, parts, _ in _parts(claim, frame, claim.get("over", ()))
    }


def _parts(
    claim: Mapping, frame: pd.DataFrame, columns: Sequence[str]
) -> Iterator[tuple[dict[str, str], list[Estimate], pd.DataFrame]]:
    """For each combination of the columns' values that has all results which the rule names: these values, the parts of the
    rule, and the rows that it is about."""
    for column, value in claim.get("where", {}).items():
        frame = frame[frame[column] == value] if column in frame else frame.iloc[:0]
    named = named_results(claim["rule"])
    pairs = pd.MultiIndex.from_frame(frame[["attack", "metric"]])
    frame = frame[pairs.isin([(attack, metric) for attack, metric, _ in named])]
    if not set(columns) <= set(frame.columns):  # of studies that were not run
        return
    for key, rows in frame.groupby(list(columns), sort=False) if columns else [((), frame)]:
        if _has(rows, named):
            parts = evaluate(claim["rule"], rows, bool(LIMITS & claim.keys()))
            yield dict(zip(columns, map(written, key), strict=True)), parts, rows


def _has(frame: pd.DataFrame, named: list[tuple[str, str, dict[str, str]]]) -> bool:
    for attack, metric, further in named:
        rows = (frame["attack"] == attack) & (frame["metric"] == metric)
        for column, value in further.items() if rows.any() else ():
            rows &= (
                frame[column].notna()
                if value in ("first", "last")
                else frame[column].map(written) == value
            )
        if not rows.any():
            return False
    return True


def combined(claim: Mapping, cases: Mapping[str, list[Estimate]]) -> list[Estimate]:
    """The parts of a claim, each the mean over the cases; or, for a claim about every case, the
    parts in all of them."""
    if claim.get("combine") == "least" or LIMITS & claim.keys():
        return [part for parts in cases.values() for part in parts]
    return [mean(part) for part in zip(*cases.values(), strict=True)]


def least(parts: Sequence[Estimate], level: float = 0.95) -> Interval:
    """The least of several numbers, with an interval that is above zero only where the intervals of
    all are. Where one of them has no spread, that of the least is not known either."""
    of_parts = [part.interval(level=level) for part in parts]
    first = min(of_parts, key=lambda one: one.value)
    if any(one.degenerate for one in of_parts):
        return replace(first, low=first.value, high=first.value)
    low = float(np.min([one.low for one in of_parts]))
    return first if low == first.low else replace(first, low=low, se=None, draws=None)


def settings_of(claim: Mapping, frame: pd.DataFrame, data: str = "") -> list[Setting]:
    """A claim's number in each of its settings, with intervals that hold together.

    The paper's own regime is where the rows say so in a column `own`, if `data`, of `claims.regime`, says that this run is in
    it. Settings in which the non-members do not resolve the rate, or of few repetitions, are left out.
    """
    in_regime = data == OWN_DATA
    cases = [
        (values, parts, in_regime and "own" in rows and bool(rows["own"].eq(True).all()))
        for values, parts, rows in _parts(claim, frame, claim["settings"])
        if min(len(part.values) for part in parts) >= MIN_REPETITIONS
        and not any(np.isnan(part.values).any() for part in parts)
    ]
    same = claim.get("margins", {}).get("same", 0.0)
    numbers = joint([parts for _, parts, _ in cases], least)
    return [
        setting(values, number, own, same)
        for (values, _, own), number in zip(cases, numbers, strict=True)
    ]


def judge(
    paper: str, claim_id: str, frame: pd.DataFrame, run: Mapping[str, Mapping] | None = None
) -> Verdict:
    """The verdict on a claim by the number that its rule comes to, as `claims.judge` says; not run where there are no results,
    fewer than `MIN_REPETITIONS` repetitions, or a rate that the non-members do not resolve.

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
    if claim.get("settings"):
        if settings := settings_of(claim, frame, data):
            return claims.judge_settings(paper, claim_id, settings, data)
        claim = {**claim, "over": claim["settings"]}  # of which the rest says why there are none
    cases = cases_of(claim, frame)
    if not cases:
        return not_run(claim.get("otherwise", "this run has no results of it"))
    parts = combined(claim, cases)
    if any(np.isnan(part.values).any() for part in parts):
        return not_run("the non-members do not resolve so low a false positive rate")
    if LIMITS & claim.keys():
        largest = max(part.value for part in parts)
        return claims.judge(
            paper, claim_id, Interval(largest, largest, largest, exact=True), data=data
        )
    if (fewest := min(len(part.values) for part in parts)) < MIN_REPETITIONS:
        return not_run(
            f"{fewest} repetitions, and {MIN_REPETITIONS} are needed for an interval over them"
        )
    of_cases = {case: least(of_case) for case, of_case in cases.items()} if len(cases) > 1 else {}
    signs = {one.sign for one in joint(cases.values(), least)}
    split = claim.get("combine") != "least" and {1, -1} <= signs
    return claims.judge(paper, claim_id, least(parts), cases=of_cases, data=data, split=split)


def number_of(paper: str, claim_id: str, frame: pd.DataFrame, sign: int = 1) -> float | str:
    """The number of a claim for a sentence, in points where the claim has that unit, or with `sign`
    -1 its negative; "not run" where a run has no results for it, or none that its records
    resolve."""
    claim = claims.claims(paper)[claim_id]
    if claim.get("settings"):
        raise MiaError(
            f"{paper} {claim_id} is asked in several settings, and has no number of all."
        )
    cases = cases_of(claim, frame)
    # Either end is not a number where one part is none.
    end = np.max if LIMITS & claim.keys() else np.min
    number = float(end([part.value for part in combined(claim, cases)])) if cases else np.nan
    if np.isnan(number):
        return NOT_RUN
    return sign * number * (100 if claim.get("unit") == "points" else 1)


def judge_all(paper: str, frame: pd.DataFrame, run: Mapping[str, Mapping]) -> list[Verdict]:
    """The verdicts on all claims of a paper, in its order; arguments as for `judge`."""
    return [judge(paper, claim, frame, run) for claim in claims.claims(paper)]


def show_settings(
    paper: str,
    titles: Mapping[str, str],
    frame: pd.DataFrame,
    name: str,
    run: Mapping[str, Mapping] | None = None,
) -> None:
    """Display the numbers of some claims in each of their settings, see `specification`; pages link to it in every run.

    Args:
        paper, frame, run: as for `judge`. titles: claim -> the title of its panel.
        name: as for `figures.show`; what marks and intervals mean is added to the caption, which says what is compared.
    """
    settings, printed = {}, {}
    for claim_id, title in titles.items():
        claim = claims.claims(paper)[claim_id]
        data = claims.regime(paper, claim["exhibit"], run or {})
        settings[title] = settings_of(claim, frame, data)
        if "printed" in claim and any(one.own for one in settings[title]):
            printed[title] = claim["printed"]
    counts = "; ".join(f"{title}, {count(of_claim)}" for title, of_claim in settings.items())
    alike = any(one.mark == ALIKE for of_claim in settings.values() for one in of_claim)
    key = ["Dots: the claim stands", "crosses: it is turned", "diamonds: open"]
    key += ["squares: no difference"] * alike + ["hollow: the paper"] * bool(printed)
    figures.show(
        specification(settings, printed),
        name=name,
        caption="Differences in percentage points, with intervals that hold together in each panel at 95 %. "
        f"{'; '.join(key)}.",
        alt=f"A panel for each claim, a row a setting, the difference with its interval. {counts}.",
    )
