"""Executed notebooks as pages: captions, charts and what they say in words, links to reports, provenance; figures of chapters
on pages of prose; the scorecard; and the page of the game."""

from __future__ import annotations

import copy
import itertools
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from html import escape
from xml.etree import ElementTree

from mia_book.evidence import claims
from mia_book.pages import captions
from mia_book.pages.outputs import AUDIT, CLAIMS, VEGA_LITE, for_readers, render
from mia_book.pages.parameters import PUBLISHED
from mia_book.pages.prose import FIGURES, Fence, replace_fences
from mia_book.pages.runner import INJECTED
from mia_lib.errors import MiaError

EXPLORABLE = "mia-explore"  # class of what holds a chart, in `templates/explorable.html`
# begins a row of a chapter's table of claims
CLAIM = re.compile(r"^\| \*\*([A-Z]\d+[a-z]?)\*\* ", re.MULTILINE)
SAID = "said"  # name of the view
OTHERS = 3  # settings shown of each control besides the one that it begins with
PARTS = ("concat", "hconcat", "vconcat", "layer")
KEPT = ("$schema", "datasets")
SVG = "{http://www.w3.org/2000/svg}"
SCORECARD = "book/scorecard.json"  # in the staging folder, beside the page that offers it
KINDS = {
    "paper": "The papers' claims",
    "ours": "This book's additions",
    "proof": "Proofs and identities",
}
OF_KIND = {
    "paper": "the paper's claim",
    "ours": "this book's addition",
    "proof": "a proof or an identity",
}
OF_DATA = {claims.OWN_DATA: "the paper's own data", claims.STAND_IN: "stand-in data"}
FOR_FILTER = {claims.OWN_DATA: "own", claims.STAND_IN: "stand-in"}  # as book.js reads them
OF_VERDICT = ("verdict", "brief", "estimate", "data", "reason", "numbers")
ABSENT = (
    "```{admonition} Nothing was dealt\n:class: warning\n\nThe records come from the chapter that compares all "
    "attacks, and this copy of the book was built without it. `mia build` runs every chapter and deals them.\n```"
)


def page(
    notebook: dict, explorable: bool = True, audits: str = "../audits/", again: str | None = None
) -> dict:
    """An executed notebook, as JSON, as the book shows it: captions, no bookkeeping, provenance at the end.

    Args:
        explorable: keep the charts of explorable figures, which need a script; without them their pictures stand alone.
        audits: where the reports of audits lie, seen from this page.
        again: the command that repeats the run; that of its preset when None.

    Raises:
        MiaError: something on it has no caption.
    """
    captions.check(notebook)
    notebook = copy.deepcopy(notebook)
    run = notebook["metadata"].pop("mia")
    cells = []
    for cell in notebook["cells"]:
        if INJECTED in cell["metadata"].get("tags", []):
            cell["metadata"]["tags"].append("hide-input")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if CLAIMS in data:  # rows that can be pointed at
                data["text/markdown"] = CLAIM.sub(
                    r'| <span id="claim-\1"></span>**\1** ', "".join(data["text/markdown"])
                )
            if AUDIT in data:
                report = data[AUDIT]
                file = next(file for file in report["files"] if file.endswith(".html"))
                link = (
                    f'<a href="{audits}{report["name"]}/{file}">The whole report on {escape(report["title"])}</a>, a page '
                    "of its own that opens offline."
                )
                output["data"] = {"text/markdown": link, "text/plain": report["title"]}
        for part in _captioned(cell):
            cells += [part, *_charts(part, explorable)]
    cells.append(
        {
            "cell_type": "markdown",
            "id": "provenance",
            "metadata": {},
            "source": render("provenance.md", run=run, again=again or rerun_command(run)),
        }
    )
    return {**notebook, "cells": cells}


def _charts(cell: dict, explorable: bool) -> list[dict]:
    """Take the chart of an explorable figure out of its cell, into one where `explore.js` finds it, with what it says.

    It is text in the page, for a page that is opened from a disk may ask for no other file. Where it is not to be moved
    (`explorable`), its words stand alone.
    """
    figure = cell["metadata"].get("mystnb", {}).get("figure")
    charts = [
        output["data"].pop(VEGA_LITE)
        for output in cell.get("outputs", [])
        if VEGA_LITE in output.get("data", {})
    ]
    if not charts or not figure:
        return []
    if not explorable:
        figure["caption"] = figure["caption"].replace("In the chart,", "In the book's chart,")
    sources = filter(None, (_holder(chart, figure["name"], explorable) for chart in charts))
    return [
        {
            "cell_type": "markdown",
            "id": f"{figure['name']}-chart"[:64],
            "metadata": {},
            "source": source,
        }
        for source in sources
    ]


def _holder(chart: dict, figure: str, explorable: bool = True) -> str:
    """A chart beside the figure whose picture it replaces, and what it says in words, in MyST Markdown."""
    what = "this chart" if explorable else "the book's chart, with this run's numbers,"
    parts = [
        render("explorable.html", chart=chart, figure=figure) if explorable else "",
        chart_in_words(chart, what),
    ]
    return "```{raw} html\n" + "\n".join(filter(None, parts)) + "\n```" if any(parts) else ""


def _captioned(cell: dict) -> list[dict]:
    """A cell with its figures' captions where MyST-NB looks for them, which is one a cell: more figures, more cells."""
    if "outputs" not in cell:
        return [cell]
    groups = [[]]
    for output in for_readers(cell["outputs"]):
        figure = output.get("metadata", {}).get("mia")
        # MyST-NB puts a cell's caption under each of its outputs, so a figure shares its cell with nothing displayed.
        if figure or (groups[-1] and groups[-1][-1].get("metadata", {}).get("mia")):
            groups.append([])
        groups[-1].append(output)
    if len(groups) > 1 and all(output["output_type"] == "stream" for output in groups[0]):
        groups[:2] = [groups[0] + groups[1]]
    cells = []
    for number, group in enumerate(groups):
        part = (
            cell
            if not number
            else {
                "cell_type": "code",
                "execution_count": None,
                "id": f"{cell['id']}-{number}",
                "source": "# continued",
                "metadata": {"tags": ["remove-input"]},
            }
        )
        part["outputs"] = group
        figure = next(
            (o["metadata"].pop("mia") for o in group if o.get("metadata", {}).get("mia")), None
        )
        if figure:
            image = {key: figure[key] for key in ("alt", "width") if figure.get(key)}
            part["metadata"]["mystnb"] = {
                **part["metadata"].get("mystnb", {}),
                "image": image,
                "figure": {"name": figure["name"], "caption": figure["caption"]},
            }
        cells.append(part)
    return cells


def rerun_command(run: dict, changes: Mapping[str, tuple] | None = None) -> str:
    """The command that repeats a run, of its record and its `run_page.changed_from_preset`."""
    words = ["mia", "run", run["notebook"]]
    if run["preset"] != PUBLISHED:
        words += ["--preset", run["preset"]]
    for name, (value, _) in (changes or {}).items():
        words += ["-p", name, str(value)]
    return shlex.join(words)


def show_charts_again(text: str, where: str, charts: Mapping[str, tuple[dict, str]]) -> str:
    """A page of prose with explorable figures of chapters, each where it names one:

        :::{explorable} bayes-idea
        :name: a label of its own
        :instructions: in place of the chapter's
        A caption, or nothing.
        :::

    `charts` are those of all chapters: name -> specification and alternative text.

    Raises:
        MiaError: no chapter shows such a figure, or it is given no label.
    """

    def figure(fence: Fence) -> str:
        name, options = fence.name, fence.options
        if name not in charts or not options.get("name"):
            raise MiaError(
                f"{where}: {{explorable}} {name} with {options} cannot be shown. It needs a :name: of its own, and "
                f"the figures that readers can move are {', '.join(charts) or 'none, in this run'}."
            )
        chart, alt = charts[name]
        if "instructions" in options:
            chart = {
                **chart,
                "usermeta": {**chart["usermeta"], "instructions": options["instructions"]},
            }
        text_alternative = json.dumps(alt, ensure_ascii=False)
        return (
            f":::{{figure}} /{FIGURES}{name}.png\n:name: {options['name']}\n:alt: {text_alternative}\n:width: 100%\n\n"
            f"{fence.body}:::\n\n{_holder(chart, options['name'])}"
        )

    return replace_fences(text, {"explorable": figure})


# Charts in words


def chart_in_words(spec: dict, what: str = "this chart") -> str:
    """An explorable figure in words, as a folded table in HTML: for those who see no chart, run no
    script, or print the page.

    The view "said" of a chart writes what the chart shows. Here it is asked the same for a few settings: as the chart begins,
    and with one control moved at a time. So the words are made from the chart's own data, by its own formulas. Of a chart
    without that view there are none. `what` is the name of the chart on its page.
    """
    view = _view(spec)
    if view is None:
        return ""
    controls = [param for param in spec.get("params", []) if "bind" in param]
    fixed = [
        param for param in spec.get("params", []) if "bind" not in param and "select" not in param
    ]
    alone = {key: spec[key] for key in KEPT if key in spec} | view
    rows = []
    for setting, values in _settings(controls):
        params = [
            {"name": control["name"], "value": values[control["name"]]} for control in controls
        ]
        rows.append(
            (setting, _lines(json.dumps({**alone, "params": fixed + params}, sort_keys=True)))
        )
    return render("chart_text.html", rows=rows, what=what).strip()


def _view(part: dict, data: dict | None = None) -> dict | None:
    """The view "said" with the data that it reads, its own or those of what it stands in."""
    data = part.get("data", data)
    if part.get("name") == SAID:
        return {**part, **({"data": data} if data else {})}
    return next(
        filter(None, (_view(inner, data) for name in PARTS for inner in part.get(name, []))), None
    )


def _settings(controls: list[dict]) -> list[tuple[str, dict]]:
    """Words and values of settings: where every control begins, then one control moved and the others left there."""
    first = {control["name"]: control.get("value") for control in controls}
    begins = "; ".join(
        f"{_label(control)}: {_plain(control['value'])}"
        for control in controls
        if control.get("value") is not None
    )
    settings = [(f"As it begins: {begins}", first)]
    for control in controls:
        settings += [
            (f"{_label(control)}: {_plain(value)}", {**first, control["name"]: value})
            for value in _places(control)
        ]
    return settings


def _places(control: dict) -> list:
    """Other places of a control: the lowest, the middle and the highest of a slider, the first options of a list."""
    bind, begins = control["bind"], control.get("value")
    if bind["input"] == "range":
        low, high, step = (float(bind[name]) for name in ("min", "max", "step"))
        places = [
            round(low + step * round((high - low) / step * share), 6) for share in (0, 0.5, 1)
        ]
    else:
        places = bind.get("options", [])
    return [place for place in dict.fromkeys(places) if place != begins][:OTHERS]


def _label(control: dict) -> str:
    return control["bind"].get("name", control["name"]).strip().rstrip(":")


def _plain(value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@lru_cache(maxsize=512)
def _lines(spec: str) -> list[str]:
    """The lines that the view writes."""
    import vl_convert

    from mia_book.evidence import figures

    drawn = ElementTree.fromstring(
        vl_convert.vegalite_to_svg(spec, vl_version=figures.VEGA_LITE_VERSION)
    )
    texts = [
        text
        for group in drawn.iter(f"{SVG}g")
        if "mark-text" in group.get("class", "").split()
        and "role-mark" in group.get("class", "").split()
        for text in group.iter(f"{SVG}text")
    ]
    lines = ["".join(line.itertext()) for text in texts for line in (list(text) or [text])]
    return [line for line in map(str.strip, lines) if line]


# The scorecard: every claim of every chapter, what the paper printed, and what its run found


def scorecard_rows(verdicts: Iterable[Mapping]) -> list[dict]:
    """The rows of the scorecard, a claim each, papers as they come and claims in the order of their paper; what a claims file
    has no more is left out.

    Args:
        verdicts: those that the outputs of executed notebooks carry, each with its `notebook` and the `preset` of the run.

    Returns:
        plain data: paper, title, chapter (name of its notebook), claim, text, exhibit, printed (what the paper shows), rule;
        kind: "paper", "ours" or "proof", which is what only an error could refute, whoever claims it; preset of the run, and
        of its verdict what `claims.Verdict.record` has under `OF_VERDICT`.
    """
    by_claim = {(verdict["paper"], verdict["claim"]): verdict for verdict in verdicts}
    return [
        _scorecard_row(known, verdict)
        for paper in dict.fromkeys(paper for paper, _ in by_claim)
        for claim, known in claims.claims(paper).items()
        if (verdict := by_claim.get((paper, claim)))
    ]


def _scorecard_row(claim: Mapping, verdict: Mapping) -> dict:
    return {
        "paper": claim["paper"],
        "title": claims.title(claim["paper"]),
        "chapter": verdict["notebook"],
        "claim": claim["id"],
        "kind": "proof" if claims.is_proof(verdict) else claim["kind"],
        "text": claim["text"],
        "exhibit": claim["exhibit"],
        "printed": claim["evidence"],
        "rule": claim["rule"],
        "preset": verdict["preset"],
        **{name: verdict[name] for name in OF_VERDICT},
    }


def scorecard(card: Sequence[Mapping]) -> str:
    """Markdown of `scorecard_rows`: three counters, by kind, of how many claims came to which verdict in their runs; then a
    section and a table a paper."""
    where = {
        "On the paper's own data": claims.OWN_DATA,
        "On other data": claims.STAND_IN,
        "About no data set": "",
    }
    groups = {
        name: [row for row in card if row["kind"] == "paper" and row["data"] == data]
        for name, data in where.items()
    }
    return render(
        "scorecard.md",
        papers=[list(group) for _, group in itertools.groupby(card, lambda row: row["paper"])],
        kinds=KINDS,
        of_kind=OF_KIND,
        of_data=OF_DATA,
        of_filter=FOR_FILTER,
        verdicts=claims.VERDICTS,
        totals={
            kind: Counter(row["verdict"] for row in card if row["kind"] == kind) for kind in KINDS
        },
        by_data={name: claims.counts(group) for name, group in groups.items() if group},
    )


# The page on which readers play the membership game


def game(deals: Sequence[Mapping]) -> str:
    """The first deal (of `game_cards.deal`), as data and as tables in MyST Markdown, or how to get one."""
    if not deals:
        return ABSENT
    records, attacks = deals[0]["records"], deals[0]["attacks"]
    places = [[record["places"][attack["name"]] for record in records] for attack in attacks]
    ranks = [
        [1 + sum(place > of_attack[number] for place in of_attack) for of_attack in places]
        for number in range(len(records))
    ]
    return f"```{{raw}} html\n{render('play.html', deal=deals[0], ranks=ranks)}\n```"
