"""Two books are the same when they say the same: drawings, seconds and code may differ, nothing else."""

from __future__ import annotations

import runpy

import nbformat
import pytest

from mia_lib.evidence import claims, tables
from mia_lib.evidence.claims import Verdict
from mia_lib.metrics.interval import Interval


@pytest.fixture(scope="module")
def compare(repo):
    return runpy.run_path(str(repo / "benchmarks" / "compare_books.py"))["main"]


def book(folder, auc=0.5, caption="Curves.", verdict="reproduced", seconds="1.0", text="It took 3 s.", pixels="AAAA",
         name="bayes"):
    """A made-up book of one chapter: a table, a figure, a verdict, a sentence and a listing."""
    import pandas as pd

    frame = pd.DataFrame([{"attack": "MALT", "AUC": Interval(auc, 0.4, 0.6), "once (s)": seconds, "seconds": seconds}])
    record = Verdict("bayes", "C7", "text", verdict, "0.5").record()
    given = [({tables.MIME: tables.plain_table(frame, "tab-one", "A table.")}, {}),
             ({"image/png": pixels}, {"mia": {"name": "fig-one", "caption": caption, "alt": "A line."}}),
             ({claims.MIME: [record], "text/markdown": "| claim |"}, {}),
             ({"text/markdown": text}, {}), ({"text/markdown": f"```python\nx = {seconds}\n```"}, {})]
    cell = nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("display_data", data, metadata=metadata)
                                              for data, metadata in given])
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / f"{name}.ipynb")
    return str(folder)


def test_books_that_differ_by_pixels_seconds_and_code_are_the_same(tmp_path, compare, capsys):
    runs = book(tmp_path / "runs" / "bayes-0123456789ab").rpartition("/")[0]
    built = book(tmp_path / "executed", seconds="9.9", text="It took 7.5 s.", pixels="BBBB", name="bayes-0123456789ab")
    assert compare([runs, built]) == 0
    assert capsys.readouterr().out.startswith("bayes: the same in all ")


@pytest.mark.parametrize("changed, said", [
    ({"auc": 0.51}, "tab-one, row 1, column 2 (AUC): {'high': 0.6, 'low': 0.4, 'value': 0.5} -> "),
    ({"caption": "Other curves."}, "fig-one, caption: Curves. -> Other curves."),
    ({"verdict": "contradicted"}, "bayes C7, verdict: reproduced -> contradicted"),
    ({"text": "It took 3 s.\nAnd more."}, "text 1, line 2: (nothing) -> And more."),
    ({"name": "iha"}, "only in ")], ids=lambda value: next(iter(value)) if isinstance(value, dict) else "")
def test_each_thing_that_a_reader_would_see_is_told(tmp_path, compare, capsys, changed, said):
    assert compare([book(tmp_path / "old"), book(tmp_path / "new", **changed)]) == 1
    assert said in capsys.readouterr().out


def test_an_empty_folder_is_refused(tmp_path, compare, capsys):
    with pytest.raises(SystemExit) as refused:
        compare([str(tmp_path / "none"), book(tmp_path / "new")])
    assert refused.value.code == 2 and "no executed notebook" in capsys.readouterr().err
