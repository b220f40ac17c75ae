"""What a paper claims, judged by what a run found. Verdicts are computed here and nowhere typed.

A claim is a statement about one or more estimates, its parts, each oriented so that the claim says "greater
than zero". The claims of a paper are in `data/papers/NAME_claims.yaml`, and nowhere else: the rule and the margins of each,
and the data that the paper shows it on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pandas as pd
import yaml

from mia_lib.errors import MiaError, check_range, choose
from mia_lib.evidence import tables
from mia_lib.metrics.interval import Interval

REPRODUCED, CONTRADICTED, NO_DIFFERENCE, INCONCLUSIVE, CHECKED, NOT_RUN = VERDICTS = (
    "reproduced", "contradicted", "no difference", "inconclusive", "checked", "not run")
KINDS = ("paper", "ours")
OWN_DATA, STAND_IN = "the paper's data", "a stand-in"
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
        points: whether estimates are shown in percentage points.
        intervals: what `estimate` prints as text: part -> its number, "" where it is alone, of a check what was checked.
        data: `OWN_DATA`, `STAND_IN`, or "" where the claim is about no data.
    """

    paper: str
    claim: str
    text: str
    verdict: str
    estimate: str
    parts: Mapping[str, Interval | None] = field(default_factory=dict)
    reason: str = ""
    points: bool = False
    data: str = ""
    intervals: Mapping[str, Interval] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """The verdict with its limits: "reproduced for n = 400, n = 1000; n = 2000 not run". A claim that is contradicted or
        left open is so for one part at least, not for each that was run."""
        left = [name for name, interval in self.parts.items() if interval is None]
        if not left:
            return self.verdict
        run = [name for name, interval in self.parts.items() if interval is not None]
        what = ", ".join(run) if len(run) <= 3 else f"the {len(run)} parts run"
        of = "" if self.verdict in (CONTRADICTED, INCONCLUSIVE) else f" for {what}"
        return f"{self.verdict}{of}; {', '.join(left)} not run" if run else self.verdict

    @property
    def brief(self) -> str:
        """Our number; of more than two parts the one that decides: whose interval, widened for their number, lies lowest where
        the claim is contradicted, which reaches furthest where there is no difference, and else which carries least, as one
        without an interval does."""
        run = {name: interval for name, interval in self.parts.items() if interval is not None}
        if len(run) <= 2:
            return self.estimate
        places = {CONTRADICTED: lambda part: widened(part, len(run)).high,
                  NO_DIFFERENCE: lambda part: -max(-part.low, part.high)}
        place = places.get(self.verdict, lambda part: part.low)
        name = min(run, key=lambda part: np.nan_to_num(place(run[part]), nan=-np.inf))
        return f"decided by {name} (of {len(run)}): {_number(run[name], self.points)}"

    @property
    def numbers(self) -> list[dict]:
        """Its numbers in the units in which they are printed: [{"part", "value", "low", "high", "unit"}], where the unit is
        "points" or "", and ends are None where no interval is printed."""
        unit = "points" if self.points else ""
        cells = {part: tables.cell(100 * interval if self.points else interval)
                 for part, interval in self.intervals.items()}
        return [{"part": part, **tables.ends_of(shown), "unit": unit} for part, shown in cells.items()]

    def record(self) -> dict:
        """The verdict as plain data, for the output of a notebook and the scorecard."""
        claim, run = claims(self.paper)[self.claim], [part for part in self.parts.values() if part is not None]
        return {"paper": self.paper, "claim": self.claim, "text": self.text, "exhibit": claim["exhibit"],
                "kind": claim["kind"], "verdict": self.verdict, "said": self.said, "estimate": self.estimate,
                "brief": self.brief, "hold": sum(part.sign > 0 for part in run), "parts": len(run), "data": self.data,
                "evidence": claim["evidence"], "rule": claim["rule"], "same": _same(claim), "reason": self.reason,
                "numbers": self.numbers}


def widened(part: Interval, parts: int) -> Interval:
    """A part at Bonferroni's level for so many."""
    return part if parts == 1 else part.at(1 - (1 - part.level) / parts)


@cache
def _file(paper: str) -> dict:
    known = {path.name.removesuffix("_claims.yaml"): path for path in tables.PAPERS.glob("*_claims.yaml")}
    path = known[choose("paper", paper, sorted(known))]
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@cache
def claims(paper: str) -> dict[str, dict]:
    """The claims of a paper, in its order: id -> {id, text, exhibit, evidence, rule, kind}, and margins where it has some.

    `kind` is "paper" or "ours". A rule says "{name}" where it means the margin of that name.
    """
    return {claim["id"]: {**claim, "paper": paper, "kind": claim.get("kind", "paper"),
                          "rule": _filled(claim["rule"], claim.get("margins", {}))} for claim in _file(paper)["claims"]}


def title(paper: str) -> str:
    """Title of a paper, as its claims file has it."""
    return _file(paper)["title"]


def _filled(rule: str, margins: Mapping) -> str:
    for name, value in margins.items():
        rule = rule.replace(f"{{{name}}}", f"{value:g}")
    return rule


def _claim(paper: str, claim_id: str) -> dict:
    known = claims(paper)
    return known[choose("claim_id", claim_id, known)]


def margin(paper: str, claim_id: str, name: str) -> float:
    """A margin of a claim's rule, as the claims file has it; percentage points as a fraction.

    Args:
        paper, claim_id: for example "bayes", "C11".
        name: of the margin. One that ends in "_points" is written in percentage points.

    Raises:
        MiaError: no such claim or margin.
    """
    known = _claim(paper, claim_id).get("margins", {})
    value = float(known[choose("name", name, sorted(known))])
    return value / 100 if name.endswith("_points") else value


def sentence(record: Mapping) -> str:
    """What a page says of a claim: its text with the verdict and the numbers.

    Args:
        record: of a verdict, from `Verdict.record`.
    """
    number = f" ({record['brief']})" if record["brief"] else f": {record['reason']}" if record["reason"] else ""
    verdict = {REPRODUCED: "So it is here", CONTRADICTED: "Here it is the other way round",
               NO_DIFFERENCE: "Here there is no difference to speak of", INCONCLUSIVE: "This run does not decide it",
               CHECKED: "Checked", NOT_RUN: "Not run"}[record["verdict"]]
    return f"*{record['text']}* {verdict}{number}."


def judge(paper: str, claim_id: str, parts: Interval | Mapping[str, Interval | None] | None,
          reason: str | None = None, points: bool = False) -> Verdict:
    """Judge a claim by intervals.

    - reproduced: every part lies above zero;
    - contradicted: some part, widened for the number of parts (Bonferroni), lies below zero, and below minus the claim's
      margin "same" or "same_points" where it has one; many parts would otherwise find one below zero by chance alone;
    - no difference: not contradicted, and every part has a width and lies within that margin of zero;
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
    claim = _claim(paper, claim_id)
    text = claim["text"]
    named = {"": parts} if parts is None or isinstance(parts, Interval) else dict(parts)
    run = {name: interval for name, interval in named.items() if interval is not None}
    if len(run) < max(len(named), 1) and not reason:
        raise MiaError(f"{paper} {claim_id}: reason is empty though something was not run. Say why.")
    named = named if "" not in named else {}
    if not run:
        return Verdict(paper, claim_id, text, "not run", "", named, reason)
    if all(interval.sign > 0 for interval in run.values()):
        verdict = "reproduced"
    elif any((widened(i, len(run)) + _same(claim)).sign < 0 for i in run.values()):
        verdict = "contradicted"
    elif all(not i.degenerate and max(-i.low, i.high) < _same(claim) for i in run.values()):
        verdict = "no difference"
    else:
        verdict = "inconclusive"
    numbers = {name: _number(interval, points) for name, interval in run.items()}
    estimate = "; ".join(f"{name}: {number}" if name else number for name, number in numbers.items())
    why = (reason or "") if len(run) < len(named) else ""
    return Verdict(paper, claim_id, text, verdict, estimate, named, why, points, intervals=run)


def _same(claim: Mapping) -> float:
    """How far from zero a difference may be and still be none; 0 where the claim has no such margin."""
    names = [name for name in ("same", "same_points") if name in claim.get("margins", {})]
    return margin(claim["paper"], claim["id"], names[0]) if names else 0.0


def _number(interval: Interval, points: bool) -> str:
    tiny = 0 < max(abs(interval.value), abs(interval.low), abs(interval.high)) < 0.001
    return f"{100 * interval:.1f} points" if points else f"{interval:.1g}" if tiny else f"{interval:.3f}"


def judge_identity(paper: str, claim_id: str, residual: float, tolerance: float,
                   what: str = "largest residual") -> Verdict:
    """Judge a mathematical statement checked exactly, where there is no chance but only rounding: checked or contradicted.

    It fails only where code or theorem is wrong, so it is no evidence about models and is counted apart.

    Args:
        residual: largest distance from the statement over all cases; 0 where it holds.
        tolerance: bound on what rounding can do, stated on the page; 0 for a count.
        what: what the residual is, in words.

    Raises:
        MiaError: residual is NaN or negative, or tolerance negative.
    """
    check_range("residual", residual, 0)
    check_range("tolerance", tolerance, 0)
    verdict = "checked" if residual <= tolerance else "contradicted"
    estimate = f"{what}: {residual:.1g}" + (f", rounding allows {tolerance:.0e}" if tolerance else "")
    return Verdict(paper, claim_id, _claim(paper, claim_id)["text"], verdict, estimate,
                   intervals={what: Interval(residual, np.nan, np.nan)})


def _table(records: Iterable[Mapping]) -> pd.DataFrame:
    return pd.DataFrame([{
        "claim": f"**{one['claim']}** {'(ours) ' if kind_of(one) == 'ours' else ''}{one['text']}",
        "exhibit": one["exhibit"],
        "verdict": f"**{one['said']}**" + (f" ({one['reason']})" if one["verdict"] == "not run" else ""),
        "ours": one["brief"].replace("; ", "\n") or tables.NOTHING,
        "paper": one["evidence"],
    } for one in records])


def show(paper: str, verdicts: Iterable[Verdict], data: Mapping[str, str | Iterable[str]] | None = None) -> None:
    """Display the claims of a paper with their verdicts, and hand them to the scorecard.

    Args:
        paper: for example "bayes".
        verdicts: each claim of the paper once.
        data: exhibit -> names of the data sets on which this run judges it. The claims file has the paper's own; a run that
            judges on others, too, or on none, does not judge on the paper's. None where the verdicts say it themselves.

    Raises:
        MiaError: a claim of the paper has no verdict, or two; what could not be run is said with `judge(...,
            None, reason)`, not left out. An exhibit of `data` that the claims file does not have.
    """
    given = list(verdicts)
    of_paper = {verdict.claim: verdict for verdict in given if verdict.paper == paper}
    missing = [claim for claim in claims(paper) if claim not in of_paper]
    if missing or len(given) != len(of_paper):
        lacking = ", ".join(missing) or "none"
        raise MiaError(f"verdicts must hold each claim of {paper!r} once: missing {lacking}, "
                       f"of {len(given)} given. Judge what was not run with parts=None and a reason.")
    for exhibit in data or {}:
        choose("exhibit", exhibit, _file(paper).get("data", {}))
    kept = {claim: of_paper[claim] if data is None else replace(of_paper[claim], data=_whose(paper, claim, data))
            for claim in claims(paper)}
    records = [verdict.record() for verdict in kept.values()]
    whose = "this chapter" if {one["kind"] for one in records} == {"ours"} else "the paper"
    caption = (f"The claims of {whose} and what this run says of each, with confidence intervals in brackets where there "
               f"was enough for one. Where a claim has many parts, the one that decides its verdict. {tally(records)}")
    bundle = tables.bundle_of_table(_table(records), f"tab-{paper}-claims", caption)
    tables.display_bundle({**bundle, MIME: records})
    lines = [f"**{one['claim']}.** *Rule:* {_in_code(one['rule'])}{_in_words_same(one)} "
             f"*Found:* {one['estimate'] or 'not run'}."
             + (f" *Not run:* {one['reason']}." if one["reason"] else "") for one in records]
    tables.say("```{admonition} Every part of every claim, and the rule it is judged by\n:class: dropdown\n\n- "
                + "\n- ".join(lines) + "\n```")


def _in_words_same(record: Mapping) -> str:
    """What counts as no difference, where the claim says so."""
    if not record["same"]:
        return ""
    points = {part["unit"] for part in record["numbers"]} == {"points"}
    return f" *No difference:* within {100 * record['same']:g} points of zero." if points else (
        f" *No difference:* within {record['same']:g} of zero.")


def _in_code(rule: str) -> str:
    """A rule that is an expression in the look of code."""
    return f"`{rule}`." if rule.startswith(("{", "(", "least(", "most(", "abs(")) else rule


def regime(paper: str, exhibit: str, run: Mapping[str, Mapping]) -> str:
    """Whether a run is in the paper's own regime for an exhibit: its data set and architecture family, members a model and
    epochs within a factor of two.

    Args:
        run: exhibit -> what was run in its place, such as {"dataset": "cifar10", "architecture": "tanh_cnn:8,16,64",
            "members": 15000, "epochs": 25}.

    Returns:
        `OWN_DATA`, `STAND_IN`, or "" for an exhibit that is about no data.
    """
    wanted, used = _file(paper).get("regimes", {}).get(exhibit), run.get(exhibit)
    if wanted is None or used is None:
        return ""

    def alike(value, theirs) -> bool:
        if isinstance(theirs, str):
            return str(value).partition(":")[0] == theirs
        return value is not None and theirs / 2 <= value <= 2 * theirs

    return OWN_DATA if all(alike(used.get(name), theirs) for name, theirs in wanted.items()) else STAND_IN


def _whose(paper: str, claim_id: str, data: Mapping[str, str | Iterable[str]]) -> str:
    """Whether the run judges a claim on the paper's own data, and on nothing else."""
    exhibit = _claim(paper, claim_id)["exhibit"]
    own, used = _file(paper).get("data", {}).get(exhibit), data.get(exhibit)
    if own is None or used is None:
        return ""
    used = {used} if isinstance(used, str) else set(used)
    return OWN_DATA if used and used <= set(own) else STAND_IN


def counts(records: Iterable[Mapping]) -> str:
    """How many of each verdict, as "9 reproduced (2 in part), 1 contradicted, 2 inconclusive, 4 not run"."""
    records = list(records)
    found = Counter(record["verdict"] for record in records)
    partly = Counter(record["verdict"] for record in records if record["said"] != record["verdict"])
    return ", ".join(f"{found[one]} {one}" + (f" ({partly[one]} in part)" if partly[one] else "")
                     for one in VERDICTS if found[one]) or "no claim judged"


def tally(records: Iterable[Mapping]) -> str:
    """Counts of verdicts that do not add up to one another, apart, as sentences: what the paper claims on its own data and on
    stand-ins, what this book adds, and what was checked, which no data could have refuted."""
    records = list(records)
    tried = [record for record in records if record["verdict"] != CHECKED]
    theirs = [record for record in tried if kind_of(record) == "paper"]
    groups = {"The paper's claims on its own data": [r for r in theirs if r.get("data") == OWN_DATA],
              "on other data": [r for r in theirs if r.get("data") == STAND_IN],
              "about no data set": [r for r in theirs if not r.get("data")],
              "This book's additions": [r for r in tried if kind_of(r) == "ours"]}
    checked = len(records) - len(tried)
    said = [f"{name}: {counts(group)}" for name, group in groups.items() if group]
    said += [f"Proofs and identities: {checked} checked"] if checked else []
    return ". ".join(one[0].upper() + one[1:] for one in said) + "." if said else ""


def kind_of(record: Mapping) -> str:
    """Whose claim a record judges, "paper" or "ours"."""
    return record.get("kind") or _claim(record["paper"], record["claim"])["kind"]
