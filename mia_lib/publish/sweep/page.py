"""The page of a sweep: what was run, the verdicts side by side, and small charts of all that changes.

One file that asks the network for nothing, in the look of the book.
"""

from __future__ import annotations

import base64
import io
import math
import os
import re
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mia_lib.bars import duration
from mia_lib.evidence import plotting
from mia_lib.evidence.tables import NOTHING
from mia_lib.publish.parameters import QUICK, parameters
from mia_lib.publish.sweep.cells import CLAIMS, Cell, tidy

LINES, PANELS = 8, 6  # at most, of a chart



def charts(frame: pd.DataFrame, cells: Sequence[Cell]) -> tuple[dict[str, list[dict]], dict[str, list[str]]]:
    """Small charts of all that depends on what was swept: the first such parameter along the axis, panels for the others.

    Args:
        frame: from `tidy`.
        cells: of the sweep.

    Returns:
        exhibit -> charts (column, panel, note, alt, svg); and exhibit -> columns that are the same in every cell.
    """
    axes, drawn, still = list(cells[0].given), {}, {}
    for (exhibit, column), part in frame.dropna(subset="value").groupby(["exhibit", "column"], sort=False):
        found = {cell.at: {} for cell in cells if cell.record}
        for at, rows in part.groupby(axes, sort=False):
            found[at] = dict(zip(rows.row, rows[["value", "low", "high"]].astype(str).itertuples(False, None), strict=True))
        moving = _moving(found)
        if not moving:
            still.setdefault(exhibit, []).append(column)
            continue
        x, *others = (axes[place] for place in moving)
        part = part.drop_duplicates([x, *others, "row"])
        names = list(part.row.unique())
        shown = part[part.row.isin(names[:LINES])]
        ends = np.nanmin(shown[["value", "low"]]), np.nanmax(shown[["value", "high"]])
        values = list(dict.fromkeys(cell.at[axes.index(x)] for cell in cells))
        of_panel = dict(list(shown.groupby(others))) if others else {(): shown}
        in_order = dict.fromkeys(tuple(cell.at[place] for place in moving[1:]) for cell in cells)
        panels = [(at, of_panel[at]) for at in in_order if at in of_panel]
        left_out = [f"the first {most} of {len(all_)} {what}" for most, all_, what in
                    ((LINES, names, "lines"), (PANELS, panels, "panels")) if len(all_) > most]
        for at, rows in panels[:PANELS]:
            panel = ", ".join(f"{axis} = {value}" for axis, value in zip(others, at, strict=True))
            drawn.setdefault(exhibit, []).append({
                "column": column, "panel": panel, "note": ", ".join(left_out), "alt": _alt(rows, column, x, panel),
                "svg": _draw(rows, x, values, names[:LINES], ends, exhibit == CLAIMS and rows.low.notna().any())})
    return drawn, still


def said(frame: pd.DataFrame, cells: Sequence[Cell]) -> dict[tuple[str, str, str], list[str]]:
    """Words that are not the same in all cells: (exhibit, row, column) -> what stands there in each cell that ran."""
    axes, ran = list(cells[0].given), [cell.at for cell in cells if cell.record]
    of_tables, found = frame[frame.exhibit != CLAIMS], {}
    for place, part in of_tables.groupby(["exhibit", "row", "column"], sort=False):
        if part.text.notna().any():
            texts = part.text.where(part.text.notna(), part.value.map("{:g}".format))
            at_cell = dict(zip(part[axes].itertuples(False, None), texts, strict=True))
            if len({at_cell.get(at) for at in ran}) > 1:
                found[place] = [at_cell.get(at) or NOTHING for at in ran]
    return found


def _moving(found: Mapping[tuple, dict]) -> list[int]:
    """Places of the parameters that matter: two cells that differ in nothing else show something else."""
    def matters(place: int) -> bool:
        lines: dict[tuple, list] = {}
        for at, content in found.items():
            lines.setdefault(at[:place] + at[place + 1:], []).append(content)
        return any(content != line[0] for line in lines.values() for content in line)

    return [place for place in range(len(next(iter(found)))) if matters(place)]


def _alt(rows: pd.DataFrame, column: str, x: str, panel: str) -> str:
    ends = [f"{name} from {line.value.iloc[0]:.4g} at {line[x].iloc[0]} to {line.value.iloc[-1]:.4g} at {line[x].iloc[-1]}"
            for name, line in rows.groupby("row", sort=False)]
    return f"{column} against {x}{', ' + panel if panel else ''}: {'; '.join(ends)}."


def _draw(rows: pd.DataFrame, x: str, values: list, names: list[str], ends: tuple[float, float], zero: bool) -> str:
    """One chart as SVG in base64: a line a name, with intervals as bars.

    Args:
        rows: with columns x, row, value, low, high.
        values: of x, in the order of a categorical axis.
        names: of the lines; what stands where keeps its colour from chart to chart.
        ends: lowest and highest number of all panels.
        zero: draw a line at zero.
    """
    plotting.set_style()
    direct = len(names) <= 5 and max(map(len, names)) <= 16
    legend = {} if direct else {name: textwrap.fill(name, 46) for name in names}
    figure = Figure(figsize=(3.7, 2.8 + 0.16 * sum(text.count("\n") + 1 for text in legend.values())))
    ax = figure.subplots()
    numeric = not isinstance(values[0], str)
    log = numeric and min(values) > 0 and max(values) >= 10 * min(values)
    places = {v: math.log10(v) if log else v if numeric else place for place, v in enumerate(values)}
    between = np.diff(np.sort(list(places.values())))
    gap = min(0.02 * between.sum(), 0.6 * between.min() / len(names))
    last = {}
    for place, name in enumerate(names):
        line, look = rows[rows.row == name], plotting.style_of(name, place)
        if line.empty:
            continue
        at = line[x].map(places).to_numpy(float) + gap * (place - (len(names) - 1) / 2)  # bars side by side
        order, bars = np.argsort(at), np.array([line.value - line.low, line.high - line.value])
        value = line.value.to_numpy()[order]
        ax.errorbar(at[order], value, bars[:, order], capsize=2.5, elinewidth=1.2, markersize=5, **look)
        last[name] = value[-1], look
    if zero:
        ax.axhline(0, color=plotting.FAINT, ls=(0, (4, 3)), lw=1.2)
    margin = 0.06 * (ends[1] - ends[0] or abs(ends[0]) or 1)
    ticks = values[::math.ceil(len(values) / 8)]
    ax.set(xlabel=x, ylim=(ends[0] - margin, ends[1] + margin))
    ax.set_xticks([places[v] for v in ticks], [f"{v:g}" if numeric else v for v in ticks])
    if sum(len(str(v)) for v in ticks) > 32:
        ax.set_xticks(ax.get_xticks(), ax.get_xticklabels(), rotation=25, ha="right", rotation_mode="anchor")
    ax.margins(x=0.08)
    if direct:
        figure.draw_without_rendering()
        size = ax.get_window_extent()
        heights = [(ax.transData.transform((0, end))[1] - size.y0) / size.height for end, _ in last.values()]
        places = plotting._spread(heights, 16 / size.height, 0, 1)
        texts = [plotting._label(ax, name, (1.03, height), look["color"], "left", "center")
                 for (name, (_, look)), height in zip(last.items(), places, strict=True)]
    else:
        marks = [Line2D([], [], markersize=5, **look) for _, look in last.values()]
        texts = figure.legend(marks, [legend[name] for name in last], loc="outside upper left", handlelength=3,
                              fontsize=8).get_texts()
    for text in [*texts, ax.xaxis.label, *ax.get_xticklabels()]:
        text.set_parse_math(False)  # a name with a dollar in it is no formula
    svg = io.BytesIO()
    with rc_context({"svg.hashsalt": "mia"}):  # the same page from the same numbers
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return base64.b64encode(svg.getvalue()).decode()


def _html(text: str) -> str:
    """Text of a caption with what our tables use: **bold**, *emphasis*, roles, and simple formulas such as $n_1$."""
    text = re.sub(r"\{[\w:]+\}`([^`<]*?)(?: <[^`]*>)?`", r"\1", text)
    pieces = escape(text).split("$")
    pieces[1::2] = ["<i>" + re.sub(r"_\{?(\w+)\}?", r"<sub>\1</sub>", formula) + "</i>" for formula in pieces[1::2]]
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", "".join(pieces))
    return re.sub(r"\*(.+?)\*", r"<em>\1</em>", text)


def _captions(cells: Sequence[Cell]) -> dict[str, str]:
    """exhibit -> those sentences of its caption that are the same in all cells, for captions hold numbers of a run."""
    found: dict[str, list[list[str]]] = {}
    for table in (table for cell in cells for table in cell.tables):
        found.setdefault(table["name"], []).append(re.split(r"(?<=[.!?])\s+|(?<=[.!?]\*\*)\s+", table["caption"]))
    return {name: " ".join(sentence for sentence in each[0] if all(sentence in other for other in each))
            for name, each in found.items()}


def page(name: str, cells: Sequence[Cell], preset: str, folder: Path, root: Path) -> str:
    """The page as HTML.

    Args:
        name: of the notebook.
        cells: of the grid, in its order.
        preset: that the runs began from.
        folder: where the page will lie, for links.
        root: folder of the book.
    """
    from jinja2 import Environment

    ran, known = [cell for cell in cells if cell.record], {p.name: p for p in parameters(name, preset, root)}
    frame = tidy(cells)
    exhibits, still = charts(frame, cells) if ran else ({}, {})
    moving = {chart["column"] for chart in exhibits.get(CLAIMS, [])}
    verdicts: dict[str, dict] = {}
    for cell in ran:
        for claim in cell.claims:
            line = verdicts.setdefault(claim["claim"], {"text": claim["text"], "said": {}, "same": True})
            line["said"][cell.at] = claim["verdict"]
            line["same"] = len(set(line["said"].values())) == 1
    words, swept = ["mia", "sweep", name, *(["--preset", preset] if preset != QUICK else [])], {}
    for place, axis in enumerate(cells[0].given):
        values = list(dict.fromkeys(str(cell.at[place]) for cell in cells))
        is_list = known[axis].type.startswith(("list", "tuple"))
        between = "|" if is_list or any("," in value for value in values) else ","
        # A single word that holds a comma is told from a list of words by a bar at its end.
        words += ["-p", axis, between.join(values) + ("|" if between == "|" and len(values) == 1 and not is_list else "")]
        swept[axis] = known[axis].meaning, (" | " if between == "|" else ", ").join(values)
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"caption": _html, "duration": duration}
    return environment.from_string(PAGE).render(
        name=name, preset=preset, cells=cells, ran=ran, swept=swept, command=shlex.join(words), captions=_captions(ran),
        verdicts=verdicts, exhibits=exhibits, still=still, claims=CLAIMS,
        changed=[(claim, line) for claim, line in verdicts.items() if not line["same"]],
        same=sorted(((claim, line) for claim, line in verdicts.items() if line["same"]), key=lambda one: one[0] not in moving),
        texts=said(frame, cells),
        link={cell.at: os.path.relpath(cell.page, folder) for cell in ran})


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sweep of {{ name }}</title>
<style>
:root {
  --ground: #fff; --text: #222832; --muted: #44505f; --surface: #f3f4f5; --border: #d1d5da; --link: #08677a;
  --good: #00602e; --bad: #8f1422; --open: #6b3c00; --none: #3f4a5a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14181e; --text: #ced6dd; --muted: #b1bac4; --surface: #29313d; --border: #48566b; --link: #55c0d3;
    --good: #8fd9ae; --bad: #f5a9b3; --open: #f3c37b; --none: #c6ced8;
  }
}
body {
  margin: 0; background: var(--ground); color: var(--text); line-height: 1.65;
  font-family: -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
}
main { max-width: 76rem; margin: 0 auto; padding: 1rem 1.2rem 4rem; }
h1, h2, h3 { line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin: 2.8rem 0 0.8rem; }
h3 { margin: 2rem 0 0.4rem; font-size: 1.1rem; }
p, ul { max-width: 48rem; }
a { color: var(--link); text-underline-offset: 0.15em; }
code { font-size: 0.88em; background: var(--surface); border-radius: 3px; padding: 0.1em 0.3em; overflow-wrap: anywhere; }
.caption, figcaption { color: var(--muted); font-size: 0.92rem; line-height: 1.45; }
.caption { margin: 0 0 0.8rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; line-height: 1.4; }
caption { text-align: left; padding-bottom: 0.5rem; color: var(--muted); }
th, td { padding: 0.3rem 0.7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--border); }
thead th { background: var(--surface); }
td.number, th.number { text-align: right; }
td.text { min-width: 18rem; max-width: 36rem; }
td.error { max-width: 40rem; overflow-wrap: anywhere; }
tbody th { position: sticky; left: 0; background: var(--ground); }
.said { white-space: nowrap; }
.reproduced { color: var(--good); } .contradicted, .failed { color: var(--bad); }
.inconclusive { color: var(--open); } .not-run { color: var(--none); }
.reproduced::before { content: "✓ " / ""; } .contradicted::before, .failed::before { content: "✗ " / ""; }
.inconclusive::before { content: "≈ " / ""; } .not-run::before { content: "– " / ""; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr)); gap: 1.2rem; }
figure { margin: 0; }
figcaption { margin-bottom: 0.3rem; }
figcaption strong { color: var(--text); }
figure img { display: block; width: 100%; max-width: 30rem; background: #fff; border-radius: 4px; }
@media (prefers-color-scheme: dark) { figure img { padding: 6px; box-sizing: border-box; } }
@media (max-width: 576px) { table { font-size: 0.82rem; } td.text { min-width: 8.5rem; } }
@media print { figure, tr { break-inside: avoid; } .scroll { overflow: visible; } }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
</style>
</head>
<body>
<main>
<h1>Sweep of {{ name }}</h1>
<p>{{ cells|length }} run{{ "s" if cells|length > 1 }} of one notebook at preset <em>{{ preset }}</em>
{%- if ran|length < cells|length %}, <strong>{{ cells|length - ran|length }} of which failed</strong>{% endif %}. Swept:</p>
<ul>
{% for axis, (meaning, values) in swept.items() %}
<li><code>{{ axis }}</code>, {{ meaning }}: {{ values }}</li>
{% endfor %}
</ul>
<p>All numbers are in <a href="results.csv">results.csv</a>, one a row. To go on, or to make this page again:
<code>{{ command }}</code></p>

<h2 id="runs">Runs</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Runs">
<table>
<thead><tr>{% for axis in swept %}<th scope="col">{{ axis }}</th>{% endfor %}
<th scope="col">status</th><th scope="col">page</th><th scope="col" class="number">took</th></tr></thead>
<tbody>
{% for cell in cells %}
<tr>{% for value in cell.at %}<td>{{ value }}</td>{% endfor %}
{% if cell.record %}
<td class="said reproduced">done</td>
<td><a href="{{ link[cell.at] }}" aria-label="open the run with {{ cell }}">open</a></td>
<td class="number">{{ cell.record.seconds|duration }}</td></tr>
{% else %}
<td class="error" colspan="3"><span class="failed">failed:</span> {{ cell.error }}</td></tr>
{% endif %}
{% endfor %}
</tbody>
</table>
</div>
{% macro table_of(judged, label) %}
<div class="scroll" tabindex="0" role="region" aria-label="{{ label }}">
<table>
<thead>
{% for axis in swept %}
{% set place = loop.index0 %}
<tr><th scope="row" colspan="2">{{ axis }}</th>{% for cell in ran %}<th scope="col">{{ cell.at[place] }}</th>{% endfor %}</tr>
{% endfor %}
</thead>
<tbody>
{% for claim, line in judged %}
<tr><th scope="row">{{ claim }}</th><td class="text">{{ line.text|caption|safe }}</td>
{% for cell in ran %}
{% set verdict = line.said[cell.at] %}
<td class="said {{ verdict|replace(" ", "-") }}">{{ verdict }}</td>
{% endfor %}
</tr>
{% endfor %}
</tbody>
</table>
</div>
{% endmacro %}
{% if ran|length > 1 %}

<h2 id="changes">What changes</h2>
{% if verdicts %}
<p>
{% if changed %}
{{ changed|length }} of {{ verdicts|length }} claims are not judged the same in all runs:
{{ changed|map("first")|join(", ") }}.
{% else %}
Each claim is judged the same in all runs.
{% endif %}
</p>
{% if changed %}
{{ table_of(changed, "Claims whose verdict changes") }}
{% endif %}
{% endif %}
{% if exhibits %}
<p>Each chart is a column of a table, each line a row of it; bars are the intervals that the page gives. A column that does not
depend on a parameter is not drawn against it.</p>
{% else %}
<p>No number in any table or claim depends on what was swept.</p>
{% endif %}
{% for exhibit, charts in exhibits.items() %}
<h3>{{ "Claims" if exhibit == claims else exhibit }}</h3>
<p class="caption">{{ "The numbers behind each claim. Of those with an interval it says that they lie above zero, the dashed
line." if exhibit == claims else captions[exhibit]|caption|safe }}</p>
<div class="charts">
{% for chart in charts %}
<figure>
<figcaption><strong>{{ chart.column|caption|safe }}</strong>{% if chart.panel %}, {{ chart.panel }}{% endif %}
{%- if chart.note %} ({{ chart.note }}){% endif %}</figcaption>
<img src="data:image/svg+xml;base64,{{ chart.svg }}" alt="{{ chart.alt }}">
</figure>
{% endfor %}
</div>
{% endfor %}
{% if texts %}
<h3>Words</h3>
<div class="scroll" tabindex="0" role="region" aria-label="Words that change">
<table>
<thead>
{% for axis in swept %}
{% set place = loop.index0 %}
<tr><th scope="row" colspan="3">{{ axis }}</th>{% for cell in ran %}<th scope="col">{{ cell.at[place] }}</th>{% endfor %}</tr>
{% endfor %}
</thead>
<tbody>
{% for (exhibit, row, column), line in texts.items() %}
<tr><th scope="row">{{ exhibit }}</th><td>{{ row|caption|safe }}</td><td>{{ column|caption|safe }}</td>
{%- for text in line %}<td>{{ text|caption|safe }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table>
</div>
{% endif %}
{% if still or same %}

<h2 id="same">What does not</h2>
{% endif %}
{% if same %}
<p>Claims that are judged the same in all runs:</p>
{{ table_of(same, "Claims whose verdict does not change") }}
{% endif %}
{% if still %}
<p>Numbers that are the same in all runs:</p>
<ul>
{% for exhibit, columns in still.items() %}
<li>{{ "Claims" if exhibit == claims else exhibit }}: {{ columns|join("; ")|caption|safe }}</li>
{% endfor %}
</ul>
{% endif %}
{% elif verdicts %}

<h2 id="verdicts">Verdicts</h2>
{{ table_of(same, "Verdicts") }}
{% endif %}
</main>
</body>
</html>
"""
