"""Tables: what the papers printed, what we found beside it, and how both reach the page.

A table is displayed once, as HTML for JupyterLab, as MyST markdown for the book, where its name makes it
a numbered, linked exhibit, and as plain data for programs.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from numbers import Integral, Real

import numpy as np
import pandas as pd

from mia_book import folders
from mia_lib.errors import MiaError, check_choice
from mia_lib.metrics.estimates import summary
from mia_lib.metrics.interval import UNRESOLVED, Interval

BELOW_RESOLUTION = "below resolution"
NOT_RUN = "not run"
DASH = "–"
MIME = "application/vnd.mia.table+json"
RESULTS = "application/vnd.mia.results+json"


def paper(name: str, table: str) -> pd.DataFrame:
    """The numbers a paper printed in one table, such as "bayes", "table1": columns paper, table, dataset, model, setting,
    attack, metric, value (numeric unless the table prints text), std, unit.

    Raises:
        MiaError: unknown paper or table, with the allowed names.
    """
    check_choice("paper", name, sorted(folders.find("printed")))
    known = {path.stem: path for path in sorted(folders.of().glob(f"{name}/printed/*.csv"))}
    frame = pd.read_csv(
        known[check_choice("table", table, known)], dtype=str, keep_default_na=False
    )
    for column in ("value", "std"):
        numbers = pd.to_numeric(frame[column].replace("", "nan"), errors="coerce")
        if numbers.notna().sum() == (frame[column] != "").sum():
            frame[column] = numbers
    return frame


@dataclass(frozen=True, eq=False)
class Cell:
    """Text that stands for a number in a table, and keeps the number. It equals its text, but is no
    `str`, of which pandas would keep nothing but the text. The number, the ends of its interval and
    the paper's number beside it are unrounded, in the units of the text; unit is "%" or ""."""

    text: str
    value: float
    low: float | None = None
    high: float | None = None
    paper: float | None = None
    unit: str = ""

    def __str__(self) -> str:
        return self.text

    def __float__(self) -> float:
        return float(self.value)

    def __eq__(self, other) -> bool:
        return self.text == str(other) if isinstance(other, str | Cell) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)


def cell(number: Interval | float, spec: str = ".3f", unit: str = "") -> Cell:
    """A number as a `Cell`, written as by `format`. It is in the units in which it is printed, but
    a fraction where `spec` ends in "%". Unit "%" says that it is in percent where `spec` does not
    write it."""
    if spec.endswith("%"):
        return replace(cell(100 * number, unit="%"), text=format(number, spec))
    if not isinstance(number, Interval):
        return Cell(format(number, spec), number, unit=unit)
    shown = np.isfinite([number.low, number.high]).all() and not number.degenerate
    return Cell(
        format(number, spec), number.value, *((number.low, number.high) if shown else ()), unit=unit
    )


def format_percent(rate: Interval | float, digits: int = 1) -> Cell | str:
    """A rate in percent, as "57.0 [56.2, 57.8]"; "below resolution" for an interval whose value is
    NaN."""
    if isinstance(rate, Interval) and math.isnan(rate.value):
        return BELOW_RESOLUTION
    return cell(100 * rate, f".{digits}f", "%")


def pivot_metrics(table: pd.DataFrame, digits: int = 3) -> pd.DataFrame:
    """One row an attack, one column a metric, from the tidy table of `metrics.evaluate`.

    Returns:
        DataFrame of `Cell`: "0.541 [0.530, 0.552]", or "below resolution" where the requested false positive
        rate is lower than 1 / #non-members.
    """
    shown = [
        cell(Interval(row.value, row.low, row.high), f".{digits}f")
        if row.resolved
        else BELOW_RESOLUTION
        for row in table.itertuples()
    ]
    cells = table.assign(cell=shown).pivot(index="attack", columns="metric", values="cell")
    return (
        cells.loc[table["attack"].unique(), table["metric"].unique()]
        .reset_index()
        .rename_axis(columns=None)
    )


def _flat(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with a named index turned into columns."""
    return frame if all(name is None for name in frame.index.names) else frame.reset_index()


def _texts(frame: pd.DataFrame, formats: Mapping | None) -> tuple[pd.DataFrame, list[bool]]:
    """Cells as text, with a named index as columns, in which a value that repeats in the next rows
    is said once; and which columns to set flush right: those of numbers, and of one-line texts that
    begin with one, as "8 min 2 s" and "0.9 / 0.8"."""
    flat = _flat(frame)
    formats, labels, frame = formats or {}, frame.index.nlevels if flat is not frame else 0, flat
    for column in formats:
        check_choice("formats", column, [str(c) for c in frame.columns])

    def text(value, how) -> str:
        if isinstance(value, str | Cell):
            return str(value)
        if not isinstance(value, Interval) and pd.isna(value):
            return DASH
        if callable(how):
            return str(how(value))
        return format(value, how if how is not None else ".3f" if isinstance(value, float) else "")

    def is_flush_right(values: Sequence, texts: Sequence[str]) -> bool:
        lines = [text for text in texts if text not in ("", DASH, NOT_RUN, BELOW_RESOLUTION)]
        return (
            any(isinstance(value, Interval | Cell | int | float) for value in values)
            or bool(lines)
            and all(text.lstrip("*-−<[ ")[:1].isdigit() and "\n" not in text for text in lines)
        )

    cells = {
        str(c): [text(value, formats.get(str(c))) for value in frame[c]] for c in frame.columns
    }
    right = [is_flush_right(frame[c], cells[str(c)]) for c in frame.columns]
    if labels > 1:
        first = next(iter(cells))
        above = ["", *cells[first]]
        cells[first] = [
            "" if label == above[row] else label for row, label in enumerate(cells[first])
        ]
    return pd.DataFrame(cells, dtype=object), right


def markdown_table(frame: pd.DataFrame, formats: Mapping[str, str | Callable] | None = None) -> str:
    """A pipe table of numbers, text (markdown), `Interval` and `Cell`; a named index becomes columns. Formats are column ->
    format specification or function; floats have three decimals by default."""
    cells, numeric = _texts(frame, formats)

    def line(values) -> str:
        escaped = (
            re.sub(r"(?<!\\)\|", r"\\|", str(value)).replace("\n", "<br>") for value in values
        )
        return "| " + " | ".join(escaped) + " |"

    rule = "|" + "|".join("---:" if right else ":---" for right in numeric) + "|"
    return "\n".join([line(cells.columns), rule, *(line(row) for row in cells.to_numpy())])


def in_html(text: str) -> str:
    """Text escaped for HTML, except the two marks that our tables use: **bold** and line breaks."""
    return re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(text)).replace("\n", "<br>")


def check_name(name: str) -> None:
    """Refuse a label that `{numref}` could not point at."""
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise MiaError(
            f"name = {name!r} cannot be linked to: use lower-case letters, digits and hyphens."
        )


def bundle_of_table(frame: pd.DataFrame, name: str, caption: str, formats=None) -> dict[str, str]:
    """The table as {mime type: text}: HTML for JupyterLab, MyST for the book."""
    check_name(name)
    caption = " ".join(caption.split())
    cells, numeric = _texts(frame, formats)
    styler = cells.style.hide(axis="index").format(in_html).set_caption(in_html(caption))
    right = [column for column, flush in zip(cells.columns, numeric, strict=True) if flush]
    styler = styler.set_properties(subset=right, **{"text-align": "right"}).set_uuid(name)
    # Colons, for a fence of backticks loses a caption that holds one.
    myst = (
        f":::{{table}} {caption}".rstrip()
        + f"\n:name: {name}\n\n{markdown_table(frame, formats)}\n:::\n"
    )
    plain = f"{caption}\n{cells.to_string(index=False)}"
    return {"text/html": styler.to_html(), "text/markdown": myst, "text/plain": plain}


def _plain_number(value) -> float | int | None:
    # bool is a number to Python and a word to a reader; item() makes Python's numbers of NumPy's.
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        return None
    return value.item() if hasattr(value, "item") else value


def ends_of(number: Interval | Cell) -> dict[str, float | int | None]:
    """{"value", "low", "high"} of a number as plain data, with None for those that are missing or
    not finite."""
    return {end: _plain_number(getattr(number, end)) for end in ("value", "low", "high")}


def plain_table(frame: pd.DataFrame, name: str, caption: str) -> dict:
    """The table as plain data, unrounded, for programs that read an executed notebook.

    Returns:
        {"name", "caption", "columns": [...], "labels", "rows": [[cell, ...]]}, where a cell is a finite number, text,
        {"value", "low", "high"} of an `Interval`, in which null stands for what is not finite, or, of a `Cell`, "text" and
        what it has of "value", "low", "high", "paper" and "unit". "labels" counts the leading columns that say what a row is
        about: a named index, else those before the first that holds a number, at least one; of words alone all but the last.
    """

    def plain(value):
        if isinstance(value, Interval):
            return ends_of(value)
        if isinstance(value, Cell) and _plain_number(value.value) is not None:
            parts = {
                **ends_of(value),
                "paper": _plain_number(value.paper),
                "unit": value.unit or None,
            }
            return {
                "text": value.text,
                **{name: part for name, part in parts.items() if part is not None},
            }
        if _plain_number(value) is not None:
            return _plain_number(value)
        return DASH if pd.api.types.is_scalar(value) and pd.isna(value) else str(value)

    flat = _flat(frame)
    rows = [[plain(value) for value in row] for row in flat.itertuples(index=False, name=None)]
    words = [all(isinstance(value, str) for value in column) for column in zip(*rows, strict=True)]
    labels = max(1, words.index(False) if False in words else len(words) - 1)
    return {
        "name": name,
        "caption": " ".join(caption.split()),
        "columns": [str(column) for column in flat.columns],
        "labels": labels if flat is frame else frame.index.nlevels,
        "rows": rows,
    }


def display_bundle(bundle: Mapping, metadata: Mapping | None = None) -> None:
    """Display one output that holds several forms of the same thing."""
    from IPython.display import display

    display(dict(bundle), raw=True, metadata=dict(metadata or {}))


def show_table(
    frame: pd.DataFrame, name: str, formats=None, further: Mapping | None = None
) -> None:
    """Display a numbered table that `{numref}` can point at by `name`: lower-case letters, digits and hyphens, unique in the
    book. Frame and formats are as in `markdown_table`; the caption is `:::{caption} NAME` in Markdown beside the cell. Further
    forms of it, by their MIME types, are for programs."""
    bundle = {
        **bundle_of_table(frame, name, "", formats),
        MIME: plain_table(frame, name, ""),
    }
    display_bundle(bundle | dict(further or {}))


def name(values: Mapping[str, Interval | float | int | str], spec: str = ".3f") -> None:
    """Name results of this run, so that text can say them, by the role `ours` in a cell, in a caption or on another page.

    Args:
        values: name, as of a table and used once in a notebook -> finite number, `Interval` or text. Of a rate that the
            non-members do not resolve it is said that they do not.
        spec: how numbers that are not whole are written, as for `format`.
    """
    results = {}
    for title, value in values.items():
        check_name(title)
        if isinstance(value, str):
            results[title] = {"text": value}
            continue
        if isinstance(value, Interval) and value.covers == UNRESOLVED:
            results[title] = {"text": "a share that so few records do not resolve"}
            continue
        number = value.value if isinstance(value, Interval) else value
        if not math.isfinite(number):
            raise MiaError(
                f"{title} = {number!r} cannot be said in a sentence: a finite number is needed."
            )
        whole = isinstance(number, Integral) and not isinstance(number, bool)
        results[title] = {
            "value": int(number) if whole else float(number),
            "spec": "," if whole else spec,
        }
        # a peak has no ends
        if isinstance(value, Interval) and np.isfinite([value.low, value.high]).all():
            results[title] |= {
                "low": float(value.low),
                "high": float(value.high),
                "exact": value.exact,
            }
    text = "; ".join(f"{title} = {values[title]}" for title in results)
    display_bundle({"text/plain": text, RESULTS: results})


def say(text: str) -> None:
    """Display a sentence of markdown that holds numbers of this run."""
    display_bundle({"text/markdown": text, "text/plain": text})


def show_source(*functions: Callable) -> None:
    """Display functions without their docstrings, so that a page shows the very code that runs."""
    sources = []
    for function in functions:
        source, text = inspect.getsource(function), function.__doc__ or ""
        sources.append(source.replace(f'    """{text}"""\n', "", 1).rstrip())
    say("```python\n" + "\n\n\n".join(sources) + "\n```")


def paper_cells(values: Mapping | pd.Series, keys: Iterable, digits: int = 1) -> list[Cell | str]:
    """A paper's numbers in percent for the rows of a table, by their keys, and a dash where it prints none."""
    return [cell(values[key], f".{digits}f", "%") if key in values else DASH for key in keys]


def beside_paper(
    rows: pd.DataFrame,
    printed: pd.DataFrame,
    index: str | list[str],
    columns: Mapping[tuple, str],
    by: tuple[str, ...] = ("attack", "metric"),
    digits: int = 1,
) -> pd.DataFrame:
    """Our results as a table in percent, the paper's numbers in columns of their own beside ours.

    Args:
        rows: of `metrics.summary`, with the columns `index`, which say what a row is about, and `by`.
        printed: of `paper`, with the same columns and `value` in percent; rows without a match are left out.
        columns: values of `by` -> title, in the order of the table; those without a result of ours are left out.

    Returns:
        DataFrame with `index` as index, cells that keep their numbers (`Cell`), and a column "TITLE, paper" after each column
        of which the paper prints a number in one of our rows.
    """
    index = [index] if isinstance(index, str) else index

    def looked_up(frame: pd.DataFrame, value: str) -> dict:
        keys = zip(*(frame[column] for column in (*index, *by)), strict=True)
        return dict(zip(keys, frame[value], strict=True))

    ours = looked_up(rows, "interval")
    theirs = looked_up(printed.dropna(subset=[*index, *by]), "value")
    places = list(dict.fromkeys(zip(*(rows[column] for column in index), strict=True)))
    table: dict[str, list] = {}
    for key, title in columns.items():
        pairs = [(ours.get((*place, *key)), theirs.get((*place, *key))) for place in places]
        if not any(interval for interval, _ in pairs):
            continue
        table[title] = [
            DASH
            if interval is None
            else BELOW_RESOLUTION
            if math.isnan(interval.value)
            else replace(format_percent(interval, digits), paper=value)
            for interval, value in pairs
        ]
        if any(value is not None for _, value in pairs):
            keys = [(*place, *key) for place in places]
            table[f"{title}, paper"] = paper_cells(theirs, keys, digits)
    return pd.DataFrame(
        table,
        index=pd.MultiIndex.from_tuples(places, names=index)
        if len(index) > 1
        else pd.Index([place[0] for place in places], name=index[0]),
    )


def percent_table(
    frame: pd.DataFrame,
    index: str | list[str],
    by: tuple[str, ...],
    columns: Mapping[tuple, str],
    printed: pd.DataFrame | None = None,
    digits: int = 1,
) -> pd.DataFrame:
    """Means of results as a table in percent, a row each value of `index`, beside the paper's numbers where some are given.

    Args:
        frame: of `metrics.by_target`. Other arguments: as for `beside_paper`.
    """
    kept = [index] if isinstance(index, str) else index
    rows = summary(frame, list(dict.fromkeys([*kept, *by, "attack", "metric"])))
    return beside_paper(
        rows, rows.iloc[:0] if printed is None else printed, index, columns, by, digits
    )
