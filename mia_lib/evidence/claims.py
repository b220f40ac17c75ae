"""What a paper claims, judged by what a run found. Verdicts are computed here and nowhere typed.

A claim is a statement about one or more estimates, its parts, each oriented so that the claim says "greater
than zero". The claims of a paper, with the rule for each, are in `data/papers/NAME_claims.yaml`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

import pandas as pd
import yaml

from mia_lib.errors import MiaError, check_range, choose
from mia_lib.evidence import tables
from mia_lib.metrics.interval import Interval

VERDICTS = ("reproduced", "contradicted", "inconclusive", "not run")
MIME = "application/vnd.mia.claims+json"


@dataclass(frozen=True)
class Verdict:
    """A claim and what became of it.

    Args:
        paper, claim: for example "bayes", "C7".
        text: the claim in our words.
        verdict: one of `VERDICTS`.
        estimate: our numbers, as text.
        parts: part -> Interval, or None where that part was not run.
        reason: why it, or a part of it, was not run.
        points: whether estimates are shown in percentage points. times: whether they are ratios.
    """

    paper: str
    claim: str
    text: str
    verdict: str
    estimate: str
    parts: Mapping[str, Interval | None] = field(default_factory=dict)
    reason: str = ""
    points: bool = False
    times: bool = False

    @property
    def said(self) -> str:
        """The verdict with its limits: "reproduced for n = 400, n = 1000; n = 2000 not run"."""
        left = [name for name, interval in self.parts.items() if interval is None]
        if not left:
            return self.verdict
        run = [name for name, interval in self.parts.items() if interval is not None]
        what = ", ".join(run) if len(run) <= 3 else f"the {len(run)} parts run"
        return f"{self.verdict} for {what}; {', '.join(left)} not run" if run else self.verdict

    @property
    def brief(self) -> str:
        """Our number; of more than two parts the one that carries least, which decides whether all of them hold."""
        run = {name: interval for name, interval in self.parts.items() if interval is not None}
        if len(run) <= 2:
            return self.estimate
        name = min(run, key=lambda part: run[part].low)
        return f"least of {len(run)}: {name}: {_number(run[name], self.points, self.times)}"

    def record(self) -> dict:
        """The verdict as plain data, for the output of a notebook and the scorecard."""
        claim = claims(self.paper)[self.claim]
        return {"paper": self.paper, "claim": self.claim, "text": self.text, "exhibit": claim["exhibit"],
                "verdict": self.verdict, "said": self.said, "estimate": self.estimate, "brief": self.brief,
                "evidence": claim["evidence"], "rule": claim["rule"], "reason": self.reason}


@cache
def _file(paper: str) -> dict:
    known = {path.name.removesuffix("_claims.yaml"): path for path in tables.PAPERS.glob("*_claims.yaml")}
    path = known[choose("paper", paper, sorted(known))]
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def claims(paper: str) -> dict[str, dict[str, str]]:
    """The claims of a paper, in its order: id -> {id, text, exhibit, evidence, rule}, and margin where `judge_work` judges."""
    return {claim["id"]: claim for claim in _file(paper)["claims"]}


def _claim(paper: str, claim_id: str) -> dict[str, str]:
    known = claims(paper)
    return known[choose("claim_id", claim_id, known)]


def judge(paper: str, claim_id: str, parts: Interval | Mapping[str, Interval | None] | None,
          reason: str | None = None, points: bool = False) -> Verdict:
    """Judge a claim by intervals.

    - reproduced: every part lies above zero;
    - contradicted: some part, widened for the number of parts (Bonferroni), lies below zero; many parts would
      otherwise find one below zero by chance alone;
    - inconclusive: anything else;
    - not run: there are no parts.

    Args:
        paper, claim_id: for example "bayes", "C7".
        parts: one interval, or name -> interval; None for what was not run.
        reason: why something was not run; needed exactly then.
        points: show the estimates in percentage points.

    Raises:
        MiaError: unknown claim; something not run without a reason; an interval that cannot be widened.
    """
    text = _claim(paper, claim_id)["text"]
    named = {"": parts} if parts is None or isinstance(parts, Interval) else dict(parts)
    run = {name: interval for name, interval in named.items() if interval is not None}
    if len(run) < max(len(named), 1) and not reason:
        raise MiaError(f"{paper} {claim_id}: reason is empty though something was not run. Say why.")
    named = named if "" not in named else {}
    if not run:
        return Verdict(paper, claim_id, text, "not run", "", named, reason)
    if all(interval.sign > 0 for interval in run.values()):
        verdict = "reproduced"
    elif any((i if len(run) == 1 else i.at(1 - (1 - i.level) / len(run))).sign < 0 for i in run.values()):
        verdict = "contradicted"
    else:
        verdict = "inconclusive"
    numbers = {name: _number(interval, points) for name, interval in run.items()}
    estimate = "; ".join(f"{name}: {number}" if name else number for name, number in numbers.items())
    why = (reason or "") if len(run) < len(named) else ""
    return Verdict(paper, claim_id, text, verdict, estimate, named, why, points)


def _number(interval: Interval, points: bool, times: bool = False) -> str:
    if times:
        return f"{interval.value:.2g} times"
    return f"{100 * interval:.1f} points" if points else f"{interval:.3f}"


def judge_work(paper: str, claim_id: str, ratios: Mapping[str, float | None] | None, reason: str | None = None) -> Verdict:
    """Judge that one thing costs more than another, by counts of work (`papers.costs`), which no load of a machine changes.

    Operations of different kinds take a processor different times, so counts must differ by the claim's `margin`:

    - reproduced: every ratio is above the margin;
    - contradicted: some ratio is below one over the margin;
    - inconclusive: anything else;
    - not run: there are no ratios.

    Args:
        paper, claim_id: a claim with a margin, for example "iha", "C12".
        ratios: name -> work of what the claim says costs more over that of what costs less; None for what was not run.
        reason: why something was not run; needed exactly then.

    Raises:
        MiaError: unknown claim, or one without a margin; a ratio that is not above zero; something not run without a reason.
    """
    claim, ratios = _claim(paper, claim_id), dict(ratios or {})
    if "margin" not in claim:
        raise MiaError(f"{paper} {claim_id} has no margin in {paper}_claims.yaml: counts of work cannot judge it.")
    margin, run = float(claim["margin"]), {name: ratio for name, ratio in ratios.items() if ratio is not None}
    if len(run) < max(len(ratios), 1) and not reason:
        raise MiaError(f"{paper} {claim_id}: reason is empty though something was not run. Say why.")
    for name, ratio in run.items():
        if not 0 < ratio < float("inf"):
            raise MiaError(f"{paper} {claim_id}: the ratio of {name!r} is {ratio!r}: a number above zero is needed.")
    covers = f"a factor of {margin:g} either way, for operations of different kinds"
    parts = {name: None if ratio is None else Interval(ratio, ratio / margin, ratio * margin, covers=covers)
             for name, ratio in ratios.items()}
    if not run:
        return Verdict(paper, claim_id, claim["text"], "not run", "", parts, reason, times=True)
    if all(ratio > margin for ratio in run.values()):
        verdict = "reproduced"
    else:
        verdict = "contradicted" if any(ratio < 1 / margin for ratio in run.values()) else "inconclusive"
    estimate = "; ".join(f"{name}: {_number(parts[name], False, True)}" for name in run)
    return Verdict(paper, claim_id, claim["text"], verdict, estimate, parts, reason or "" if len(run) < len(ratios) else "",
                   times=True)


def judge_identity(paper: str, claim_id: str, residual: float, tolerance: float,
                   what: str = "largest residual") -> Verdict:
    """Judge a mathematical statement checked exactly, where there is no chance but only rounding.

    Args:
        residual: largest distance from the statement over all cases; 0 where it holds.
        tolerance: bound on what rounding can do, stated on the page; 0 for a count.
        what: what the residual is, in words.

    Raises:
        MiaError: residual is NaN or negative, or tolerance negative.
    """
    check_range("residual", residual, 0)
    check_range("tolerance", tolerance, 0)
    verdict = "reproduced" if residual <= tolerance else "contradicted"
    estimate = f"{what}: {residual:.1g}" + (f", rounding allows {tolerance:.0e}" if tolerance else "")
    return Verdict(paper, claim_id, _claim(paper, claim_id)["text"], verdict, estimate)


def _table(records: Iterable[Mapping]) -> pd.DataFrame:
    return pd.DataFrame([{
        "claim": f"**{one['claim']}** {one['text']}",
        "exhibit": one["exhibit"],
        "verdict": f"**{one['said']}**" + (f" ({one['reason']})" if one["verdict"] == "not run" else ""),
        "ours": one["brief"].replace("; ", "\n") or tables.NOTHING,
        "paper": one["evidence"],
    } for one in records])


def show(paper: str, verdicts: Iterable[Verdict]) -> None:
    """Display the claims of a paper with their verdicts, and hand them to the scorecard.

    Raises:
        MiaError: a claim of the paper has no verdict, or two; what could not be run is said with `judge(...,
            None, reason)`, not left out.
    """
    given = list(verdicts)
    of_paper = {verdict.claim: verdict for verdict in given if verdict.paper == paper}
    missing = [claim for claim in claims(paper) if claim not in of_paper]
    if missing or len(given) != len(of_paper):
        lacking = ", ".join(missing) or "none"
        raise MiaError(f"verdicts must hold each claim of {paper!r} once: missing {lacking}, "
                       f"of {len(given)} given. Judge what was not run with parts=None and a reason.")
    records = [of_paper[claim].record() for claim in claims(paper)]
    caption = ("The claims of the paper and what this run says of each, with confidence intervals in brackets. Where a claim "
               "has many parts, the least of them.")
    bundle = tables.bundle_of_table(_table(records), f"tab-{paper}-claims", caption)
    tables.display_bundle({**bundle, MIME: records})
    lines = [f"**{one['claim']}.** *Rule:* {one['rule']} *Found:* {one['estimate'] or 'not run'}."
             + (f" *Not run:* {one['reason']}." if one["reason"] else "") for one in records]
    tables.say("```{admonition} Every part of every claim, and the rule it is judged by\n:class: dropdown\n\n- "
                + "\n- ".join(lines) + "\n```")


def counts(records: Iterable[Mapping]) -> str:
    """How many of each verdict, as "9 reproduced (2 in part), 1 contradicted, 2 inconclusive, 4 not run"."""
    records = list(records)
    found = Counter(record["verdict"] for record in records)
    partly = Counter(record["verdict"] for record in records if record["said"] != record["verdict"])
    return ", ".join(f"{found[one]} {one}" + (f" ({partly[one]} in part)" if partly[one] else "")
                     for one in VERDICTS if found[one]) or "no claim judged"


def scorecard(records: Iterable[Mapping]) -> str:
    """Markdown of the scorecard page: one section and table for each paper.

    Args:
        records: what `show` put into the executed notebooks, of any number of papers; those of a recorded run have its preset
            under "run".
    """
    papers: dict[tuple[str, str], list[Mapping]] = {}
    for record in records:
        papers.setdefault((record["paper"], record.get("run", "")), []).append(record)
    sections = []
    for (paper, run), of_paper in sorted(papers.items()):
        order = {claim: place for place, claim in enumerate(claims(paper))}
        of_paper = sorted(of_paper, key=lambda record: order[record["claim"]])
        table = tables.markdown_table(_table(of_paper))
        title = _file(paper)["title"]
        where = f", recorded at preset `{run}`" if run else ""
        heading = f"### Recorded at preset `{run}`" if run else f"## {title}"
        label = f"tab-scorecard-{paper}" + (f"-{run}" if run else "")
        sections.append(f"{heading}\n\n{counts(of_paper)}.\n\n:::{{table}} Claims of *{title}*{where}\n"
                        f":name: {label}\n\n{table}\n:::\n")
    return "\n".join(sections)
