"""Claims of papers, judged by the results of a run. Verdicts are computed here and nowhere typed.

The claims of a paper are in `mia_book/chapters/NAME/claims.yaml`, a `ClaimsFile`, and nowhere else. A rule comes to one
number, see `mia_book.evidence.rules`, of which the claim says that it is above zero.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, model_validator

from mia_book import folders
from mia_book.evidence import results
from mia_book.evidence.settings import Setting, count, deciding, verdict_of
from mia_lib import documents
from mia_lib.errors import MiaError, check_choice, check_once, validated
from mia_lib.metrics.interval import Interval

REPRODUCED, CONTRADICTED, DEPENDS, NO_DIFFERENCE, INCONCLUSIVE, CHECKED, NOT_RUN = VERDICTS = (
    "reproduced",
    "contradicted",
    "depends",
    "no difference",
    "inconclusive",
    "checked",
    "not run",
)
OWN_DATA, STAND_IN = "the paper's data", "a stand-in"
MIME = "application/vnd.mia.claims+json"
REMEDY = "Bring it back (in a clone: `git checkout -- mia_book/chapters`)."
MARGIN = re.compile(r"\{(\w+)\}")  # in a rule
Text = Annotated[str, Field(min_length=1)]
CONFIG = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class Claim(BaseModel):
    """A claim, and the rule that judges it."""

    model_config = CONFIG

    id: Text
    """Its name in verdicts and on pages, such as C7."""
    text: Text
    """The claim in our words."""
    exhibit: Text
    """The table, figure or section that it is about."""
    evidence: Text
    """What the paper shows."""
    rule: Text
    """An expression over results that the claim holds to be above zero, such as {MATT | auc} - {MALT | auc}."""
    kind: Literal["paper", "ours"] = "paper"
    """Whose claim it is."""
    where: dict[str, Any] = {}
    """Values of columns, in the rows that it is about."""
    over: list[str] = []
    """Columns whose values are its cases; its number is the mean over them."""
    settings: list[str] = []
    """Columns whose values are the settings that it is asked in; its verdict follows from all of them."""
    printed: float | None = None
    """What the paper has for its number in its own regime, drawn beside the settings."""
    combine: Literal["least"] | None = None
    """Its number is the least over the cases, for it is about every case."""
    about: str | list[str] = []
    """The attack that it is about, or several of them."""
    unit: Literal["points"] | None = None
    """Its number is shown in percentage points."""
    margins: dict[str, PositiveFloat] = {}
    """Numbers that the rule names, as {same}; within `same` of zero there is no difference."""
    rounding: float | None = Field(None, ge=0)
    """Its number is that of an identity and does not exceed this in any case."""
    bound: float | None = None
    """Its number does not exceed this in any case."""
    number: str = ""
    """What its number is called."""
    needs: dict[str, Any] = {}
    """Values that a run must have to decide it."""
    otherwise: str = ""
    """What is said of a run that does not decide it."""

    @model_validator(mode="after")
    def _margins_are_those_of_the_rule(self):
        if {*MARGIN.findall(self.rule), "same"} != {*self.margins, "same"}:
            raise ValueError(
                f"margins of {self.id} are {', '.join(self.margins) or 'none'}: they must be those that its rule names, "
                "and may be same"
            )
        return self


class ClaimsFile(BaseModel):
    """Claims of a paper, or of a chapter."""

    model_config = CONFIG

    title: Text
    """Title of the paper, or of the chapter."""
    regimes: dict[str, dict[str, str | float]] = {}
    """The paper's regime by exhibit on data, as data set (of `mia data ls`), architecture, members and epochs."""
    claims: list[Claim] = Field(min_length=1)

    @model_validator(mode="after")
    def _ids_stand_once(self):
        check_once("claims", [claim.id for claim in self.claims])
        return self


@dataclass(frozen=True)
class Verdict:
    """A claim and the verdict on it.

    Attributes:
        paper, claim, text: for example "bayes", "C7", and the claim in our words.
        verdict: one of `VERDICTS`.
        estimate: the number and those of its cases, as text.
        number: the mean over the cases of the claim, or the least of them, and of its parts; None where it was not run, for a
            `reason`.
        cases: name -> number of each case, where there are several.
        points: whether numbers are shown in percentage points.
        data: `OWN_DATA`, `STAND_IN`, or "" where the claim is about no data.
        settings: of a claim that is asked in several, each with its number and mark.
    """

    paper: str
    claim: str
    text: str
    verdict: str
    estimate: str = ""
    number: Interval | None = None
    cases: Mapping[str, Interval] = field(default_factory=dict)
    reason: str = ""
    points: bool = False
    data: str = ""
    settings: Sequence[Setting] = ()

    @property
    def brief(self) -> str:
        """The number as text, and in how many cases its whole interval is above zero; of a claim with settings in how many it
        stands, and what that hangs on."""
        if self.settings:
            return "; ".join(filter(None, [count(self.settings), deciding(self.settings)]))
        number = self.estimate.partition("; ")[0]
        if not self.cases:
            return number
        signs = [case.sign for case in self.cases.values()]
        below = f", wholly below in {signs.count(-1)}" if -1 in signs else ""
        return f"{number}; wholly above zero in {signs.count(1)} of {len(signs)} cases{below}"

    @property
    def numbers(self) -> list[dict]:
        """The number, part "", and those of the cases in the units in which they are printed: [{"part", "value", "low",
        "high", "unit"}], where the unit is "points" or "", and ends are None where there is no interval."""
        factor, unit = (100, "points") if self.points else (1, "")
        named = {
            **({"": self.number} if self.number is not None else {}),
            **self.cases,
            **{one.name: one.number for one in self.settings},
        }
        return [
            {"part": part, **results.ends_of(factor * number), "unit": unit}
            for part, number in named.items()
        ]

    def record(self) -> dict:
        """The verdict as plain data, for the output of a notebook and the scorecard."""
        claim = claims(self.paper)[self.claim]
        return {
            "paper": self.paper,
            "claim": self.claim,
            "text": self.text,
            "exhibit": claim["exhibit"],
            "kind": claim["kind"],
            "verdict": self.verdict,
            "estimate": self.estimate,
            "brief": self.brief,
            "data": self.data,
            "evidence": claim["evidence"],
            "rule": claim["rule"],
            "same": _same(claim),
            "reason": self.reason,
            "numbers": self.numbers,
        }


@cache
def _file(paper: str) -> dict:
    known = folders.find("claims.yaml")
    path = known[check_choice("paper", paper, sorted(known))]
    try:
        return validated(ClaimsFile, documents.load(path), f"{path}: ").model_dump(
            exclude_unset=True
        )
    except MiaError as error:
        raise MiaError(f"{error} {REMEDY}") from error


@cache
def claims(paper: str) -> dict[str, dict]:
    """The claims of a paper, in its order: id -> {id, text, exhibit, evidence, rule, kind}, and margins where it has some.

    `kind` is "paper" or "ours". Where the file's rule says "{name}", for a margin of that name, its number stands here.
    """
    of_paper = {}
    for claim in _file(paper)["claims"]:
        rule = MARGIN.sub(lambda name, of=claim: f"{of['margins'][name[1]]:g}", claim["rule"])
        of_paper[claim["id"]] = {"kind": "paper", **claim, "paper": paper, "rule": rule}
    return of_paper


def title(paper: str) -> str:
    """Title of a paper, as its claims file has it."""
    return _file(paper)["title"]


def _same(claim: Mapping) -> float:
    """Largest distance from zero at which a claim's number counts as none; 0 if the claim has no
    such margin."""
    return float(claim.get("margins", {}).get("same", 0))


def judge(
    paper: str,
    claim_id: str,
    number: Interval | None,
    reason: str = "",
    cases: Mapping[str, Interval] | None = None,
    data: str = "",
    split: bool = False,
) -> Verdict:
    """The verdict on a claim by its number.

    - checked or contradicted: an identity, by its `rounding`; reproduced or contradicted: what has a `bound`, by that;
    - depends: it is a mean over cases that are decided in opposite directions (`split`);
    - no difference: the number has a width, and its whole interval is within the margin `same` of zero;
    - reproduced: it is above zero; contradicted: it is below zero;
    - inconclusive: anything else;
    - not run: there is no number.

    Args:
        number: with its interval; None for what was not run, with the reason.
        cases: name -> number of each case, for the reader. paper, claim_id, data: see `Verdict`.
    """
    known = claims(paper)
    claim, cases = known[check_choice("claim_id", claim_id, known)], dict(cases or {})
    points = claim.get("unit") == "points"
    if number is None:
        if not reason:
            raise MiaError(
                f"{paper} {claim_id}: reason is empty though the claim was not run. Say why."
            )
        return Verdict(
            paper, claim_id, claim["text"], NOT_RUN, reason=reason, points=points, data=data
        )
    if "rounding" in claim:
        verdict = CHECKED if number.value <= claim["rounding"] else CONTRADICTED
        allowed = f", rounding allows {claim['rounding']:.0e}" if claim["rounding"] else ""
        estimate = f"{claim.get('number', 'largest residual')}: {number.value:.1g}{allowed}"
    elif "bound" in claim:
        verdict = REPRODUCED if number.value <= claim["bound"] else CONTRADICTED
        estimate = f"{claim['number']}: {number.value:.2g}, where {claim['bound']:g} is the most"
    else:
        if split:
            verdict = DEPENDS
        elif not number.degenerate and max(-number.low, number.high) < _same(claim):
            verdict = NO_DIFFERENCE
        else:
            verdict = {1: REPRODUCED, 0: INCONCLUSIVE, -1: CONTRADICTED}[number.sign]
        estimate = "; ".join(
            (f"{name}: " if name else "") + _written(one, points)
            for name, one in {"": number, **cases}.items()
        )
    return Verdict(
        paper, claim_id, claim["text"], verdict, estimate, number, cases, points=points, data=data
    )


def judge_settings(
    paper: str, claim_id: str, settings: Sequence[Setting], data: str = ""
) -> Verdict:
    """The verdict on a claim by its number in each setting, see `settings.verdict_of`; `data` as for `Verdict`."""
    claim = claims(paper)[claim_id]
    points = claim.get("unit") == "points"
    lines = [f"{one.name}: {_written(one.number, points)} ({one.mark})" for one in settings]
    return Verdict(
        paper,
        claim_id,
        claim["text"],
        verdict_of(settings),
        "; ".join(lines),
        points=points,
        data=data,
        settings=settings,
    )


def _written(number: Interval, points: bool) -> str:
    return f"{100 * number:.1f} points" if points else f"{number:.3f}"


def sentence(record: Mapping) -> str:
    """Sentence of a page on a claim: text, verdict and numbers, from `Verdict.record`."""
    number = (
        f" ({record['brief']})"
        if record["brief"]
        else f": {record['reason']}"
        if record["reason"]
        else ""
    )
    verdict = {
        REPRODUCED: "So it is here",
        CONTRADICTED: "Here it is the other way round",
        DEPENDS: "That depends",
        NO_DIFFERENCE: "Here there is no difference to speak of",
        INCONCLUSIVE: "This run does not decide it",
        CHECKED: "Checked",
        NOT_RUN: "Not run",
    }[record["verdict"]]
    return f"*{record['text']}* {verdict}{number}."


def show(paper: str, verdicts: Iterable[Verdict]) -> None:
    """Display the claims of a paper, each with its verdict, and hand them to the scorecard. A claim without a verdict, or with
    two, is an error; what could not be run is said with `judge(..., None, reason)`."""
    verdicts = list(verdicts)
    of_paper = {verdict.claim: verdict for verdict in verdicts if verdict.paper == paper}
    missing = [claim for claim in claims(paper) if claim not in of_paper]
    if missing or len(verdicts) != len(of_paper):
        raise MiaError(
            f"verdicts must hold each claim of {paper!r} once: missing {', '.join(missing) or 'none'}, "
            f"of {len(verdicts)} given. Judge what was not run with number=None and a reason."
        )
    records = [of_paper[claim].record() for claim in claims(paper)]
    whose = "this chapter" if {record["kind"] for record in records} == {"ours"} else "the paper"
    caption = (
        f"The claims of {whose} and what this run says of each, with confidence intervals in brackets where there "
        f"was enough for one. {tally(records)}"
    )
    table = pd.DataFrame(
        [
            {
                "claim": f"**{record['claim']}** {'(ours) ' if record['kind'] == 'ours' else ''}{record['text']}",
                "exhibit": record["exhibit"],
                "verdict": f"**{record['verdict']}**"
                + (f" ({record['reason']})" if record["verdict"] == NOT_RUN else ""),
                "ours": record["brief"].replace("; ", "\n") or results.DASH,
                "paper": record["evidence"],
            }
            for record in records
        ]
    )
    results.display_bundle(
        {**results.bundle_of_table(table, f"tab-{paper}-claims", caption), MIME: records}
    )
    results.say(
        "```{admonition} Every case of every claim, and the rule it is judged by\n:class: dropdown\n\n- "
        + "\n- ".join(map(_in_full, records))
        + "\n```"
    )


def _in_full(record: Mapping) -> str:
    """A claim's rule, set as code if it is an expression, and every number of its cases."""
    rule, same = record["rule"], ""
    if rule.startswith(("{", "(", "least(", "most(", "abs(")):
        rule = f"`{rule}`."
    if record["same"]:
        points = {number["unit"] for number in record["numbers"]} == {"points"}
        same = f" *No difference:* within {record['same'] * (100 if points else 1):g}{' points' if points else ''} of zero."
    return (
        f"**{record['claim']}.** *Rule:* {rule}{same} *Found:* {record['estimate'] or 'not run'}."
        + (f" *Not run:* {record['reason']}." if record["reason"] else "")
    )


def regime(paper: str, exhibit: str, run: Mapping[str, Mapping]) -> str:
    """Tell if a run is in the paper's own regime for an exhibit: its data set and architecture
    family, members per model and epochs within a factor of two.

    Args:
        run: exhibit -> what was run in its place, such as {"dataset": "cifar10", "architecture": "tanh_cnn:8,16,64",
            "members": 15000, "epochs": 25}.

    Returns:
        `OWN_DATA` if it is, `STAND_IN` if not, or "" for an exhibit that is about no data.
    """
    wanted, used = _file(paper).get("regimes", {}).get(exhibit), run.get(exhibit)
    if wanted is None or used is None:
        return ""

    def alike(value, theirs) -> bool:
        if isinstance(theirs, str):
            return str(value).partition(":")[0] == theirs
        return value is not None and theirs / 2 <= value <= 2 * theirs

    if all(alike(used.get(name), theirs) for name, theirs in wanted.items()):
        return OWN_DATA
    return STAND_IN


def counts(records: Iterable[Mapping]) -> str:
    """Number of claims by verdict: "9 reproduced, 1 contradicted, 2 inconclusive, 4 not run"."""
    counted = Counter(record["verdict"] for record in records)
    return (
        ", ".join(f"{counted[verdict]} {verdict}" for verdict in VERDICTS if counted[verdict])
        or "no claim judged"
    )


def is_proof(record: Mapping) -> bool:
    """Whether a verdict is about a proof or an identity, which only an error could refute, whoever claims it."""
    claim = claims(record["paper"]).get(record["claim"], {})
    return "rounding" in claim or record["verdict"] == CHECKED


def tally(records: Iterable[Mapping]) -> str:
    """Counts of verdicts as sentences, apart for what does not add up: claims of the paper on its
    own data and on stand-ins, claims that this book adds, and proofs and identities, which no data
    could have refuted."""
    records = list(records)
    tried = [record for record in records if not is_proof(record)]
    theirs = [record for record in tried if record["kind"] == "paper"]
    groups = {
        "The paper's claims on its own data": [r for r in theirs if r["data"] == OWN_DATA],
        "on other data": [r for r in theirs if r["data"] == STAND_IN],
        "about no data set": [r for r in theirs if not r["data"]],
        "This book's additions": [r for r in tried if r["kind"] == "ours"],
    }
    proofs = [record for record in records if is_proof(record)]
    sentences = [f"{name}: {counts(group)}" for name, group in groups.items() if group]
    sentences += [f"Proofs and identities: {counts(proofs)}"] if proofs else []
    return ". ".join(text[0].upper() + text[1:] for text in sentences) + "." if sentences else ""
