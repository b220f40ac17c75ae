"""The scorecard: every claim of every chapter, what the paper printed, and what its run found.

The page and its three counters are made from the verdicts that the outputs of executed notebooks carry, and of nothing typed.
A row is a claim with what became of it, as plain data:

- paper, title, chapter (name of its notebook), claim, text, exhibit, printed (what the paper shows), rule;
- kind: "paper", "ours" or "proof": what only an error could refute is counted as a proof, whoever claims it;
- preset of the run, and of its verdict what `claims.Verdict.record` has under `OF_VERDICT`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mia_lib.evidence import claims
from mia_lib.publish import outputs

STAGED = "book/scorecard.json"  # in the staging folder, beside the page that offers it
KINDS = {"paper": "The papers' claims", "ours": "This book's additions", "proof": "Proofs and identities"}
OF_KIND = {"paper": "the paper's claim", "ours": "this book's addition", "proof": "a proof or an identity"}
OF_DATA = {claims.OWN_DATA: "the paper's own data", claims.STAND_IN: "stand-in data"}
FOR_FILTER = {claims.OWN_DATA: "own", claims.STAND_IN: "stand-in"}  # as book.js reads them
OF_VERDICT = ("verdict", "brief", "estimate", "data", "reason", "numbers")


def rows(verdicts: Iterable[Mapping]) -> list[dict]:
    """The rows of the scorecard, papers as they come and claims in the order of their paper, of what `of_notebook` gives; what
    a claims file has no more is left out."""
    by_claim = {(verdict["paper"], verdict["claim"]): verdict for verdict in verdicts}
    return [_row(known, verdict) for paper in dict.fromkeys(paper for paper, _ in by_claim)
            for claim, known in claims.claims(paper).items() if (verdict := by_claim.get((paper, claim)))]


def _row(claim: Mapping, verdict: Mapping) -> dict:
    proof = "rounding" in claim or verdict["verdict"] == claims.CHECKED
    return {"paper": claim["paper"], "title": claims.title(claim["paper"]), "chapter": verdict["notebook"],
            "claim": claim["id"], "kind": "proof" if proof else claim["kind"], "text": claim["text"],
            "exhibit": claim["exhibit"], "printed": claim["evidence"], "rule": claim["rule"], "preset": verdict["preset"],
            **{name: verdict[name] for name in OF_VERDICT}}


def totals(card: Iterable[Mapping]) -> dict[str, Counter]:
    """Three counters, by kind: how many claims came to which verdict in their runs."""
    counters = {kind: Counter() for kind in KINDS}
    for row in card:
        counters[row["kind"]][row["verdict"]] += 1
    return counters


def page(card: Sequence[Mapping]) -> str:
    """Markdown of the scorecard: three counters, then a section and a table a paper."""
    where = {"On the paper's own data": claims.OWN_DATA, "On other data": claims.STAND_IN, "About no data set": ""}
    groups = {name: [row for row in card if row["kind"] == "paper" and row["data"] == data] for name, data in where.items()}
    return outputs.render(
        "scorecard.md", papers=[list(group) for _, group in itertools.groupby(card, lambda row: row["paper"])], kinds=KINDS,
        of_kind=OF_KIND, of_data=OF_DATA, of_filter=FOR_FILTER, totals=totals(card), verdicts=claims.VERDICTS,
        by_data={name: _in_words(Counter(row["verdict"] for row in group)) for name, group in groups.items() if group})


def _in_words(count: Counter) -> str:
    return ", ".join(f"{count[verdict]} {verdict}" for verdict in claims.VERDICTS if count[verdict]) or "none"


def of_notebook(notebook: dict) -> list[dict]:
    """The verdicts that an executed notebook's outputs carry, each with the notebook's name and preset."""
    record = notebook["metadata"].get("mia", {})
    run = {"notebook": record.get("notebook", ""), "preset": record.get("preset", "")}
    return [{**run, **verdict} for verdict in outputs.displayed(notebook).claims]
