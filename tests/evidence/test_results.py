"""Tables: the papers' numbers, ours beside them, and what is displayed."""

import json

import numpy as np
import pandas as pd
import pytest

from mia_book import folders
from mia_book.evidence import results
from mia_book.pages import outputs, pages
from mia_lib import metrics
from mia_lib.errors import MiaError


@pytest.fixture
def displayed(monkeypatch):
    import IPython.display

    seen = []
    monkeypatch.setattr(
        IPython.display,
        "display",
        lambda data, raw, metadata: seen.append((data, metadata)) if raw else None,
    )
    return seen


def test_every_table_of_every_paper_reads():
    for path in folders.CHAPTERS.glob("*/printed/*.csv"):
        if path.stem == "reported":  # that has columns of its own
            continue
        paper = path.parts[-3]
        frame = results.paper(paper, path.stem)
        assert list(frame.columns) == [
            "paper",
            "table",
            "dataset",
            "model",
            "setting",
            "attack",
            "metric",
            "value",
            "std",
            "unit",
        ]
        assert len(frame)
        assert (frame["paper"] == paper).all()
        assert (frame["table"] == path.stem).all()
    frame = results.paper("bayes", "table2")
    assert dict(zip(frame.attack, frame.value, strict=True)) == {
        "0-1": 69.4,
        "Shadow models": 73.9,
        "MALT": 77.1,
        "MAST": 77.6,
    }


def test_unknown_names_say_what_exists():
    with pytest.raises(MiaError, match="Did you mean 'bayes'"):
        results.paper("bays", "table1")
    with pytest.raises(MiaError, match="table1, table2, table3"):
        results.paper("bayes", "table9")


def test_a_cell_is_the_text_of_a_number_and_keeps_it_in_the_units_that_are_printed():
    shown = results.format_percent(metrics.Interval(0.57, 0.562, 0.57849))
    assert shown == "57.0 [56.2, 57.8]" and f"{shown} points" == "57.0 [56.2, 57.8] points"
    assert (shown.value, shown.low, shown.high, shown.paper, shown.unit) == pytest.approx(
        (57.0, 56.2, 57.849, None, "%")
    )
    assert results.format_percent(0.5712) == "57.1" and results.format_percent(0.5712).low is None
    share = results.cell(0.123, ".1%")
    assert share == "12.3%" and (share.value, share.unit) == (pytest.approx(12.3), "%")
    # no spread, no interval
    for interval in (metrics.Interval(0.5, 0.5, 0.5), metrics.Interval(0.5, np.nan, np.nan)):
        assert (results.cell(interval).value, results.cell(interval).low) == (0.5, None)
    assert (
        type(pd.DataFrame({"a": [shown, "not run"]}).set_index("a").reset_index().a[0])
        is results.Cell
    )


def test_a_pivot_says_below_resolution_instead_of_a_number():
    rng, members = np.random.default_rng(0), np.arange(200) < 100
    table = metrics.evaluate(
        {"MALT": rng.normal(size=200) + members, "0-1": rng.integers(0, 2, 200)},
        members,
        draws=50,
        metrics=("auc", "tpr_at_fpr=0.01", "tpr_at_fpr=0.001"),
    )
    frame, row = results.pivot_metrics(table), table.iloc[0]
    assert list(frame.attack) == ["MALT", "0-1"]
    assert set(frame["tpr_at_fpr=0.001"]) == {"below resolution"}
    assert frame.auc[0] == f"{row.value:.3f} [{row.low:.3f}, {row.high:.3f}]"
    assert results.pivot_metrics(table, 1).auc[0].text.startswith(f"{row.value:.1f} [")
    # 100 non-members resolve exactly 1 %
    assert frame["tpr_at_fpr=0.01"][0] != results.BELOW_RESOLUTION


def test_the_papers_numbers_stand_in_columns_of_their_own_beside_ours():
    intervals = [
        metrics.Interval(0.5491, 0.545, 0.5532),
        metrics.Interval(0.6, 0.5, 0.7),
        metrics.Interval(np.nan, np.nan, np.nan),
        None,
    ]
    ours = pd.DataFrame(
        {
            "n": [400, 400, 1000, 1000],
            "attack": ["MALT", "0-1", "MALT", "0-1"],
            "metric": "auc",
            "interval": intervals,
        }
    )
    printed = pd.DataFrame(
        {"n": [400, 4000], "attack": "MALT", "metric": "auc", "value": [54.4, 99.0]}
    )
    titles = {("MALT", "auc"): "MALT", ("0-1", "auc"): "0-1", ("MAST", "auc"): "MAST"}
    table = results.beside_paper(ours, printed, "n", titles)
    assert list(table.columns) == ["MALT", "MALT, paper", "0-1"] and table.index.name == "n"
    assert table.map(str).to_numpy().tolist() == [
        ["54.9 [54.5, 55.3]", "54.4", "60.0 [50.0, 70.0]"],
        ["below resolution", "–", "–"],
    ]
    first = table.loc[400, "MALT"]
    assert (first.value, first.low, first.high, first.paper, first.unit) == pytest.approx(
        (54.91, 54.5, 55.32, 54.4, "%")
    )
    several = results.beside_paper(
        ours.assign(data="a"),
        printed.assign(data="b"),
        ["data", "n"],
        {("MALT",): "MALT"},
        by=("attack",),
    )
    assert several.index.names == ["data", "n"] and list(several.columns) == ["MALT"]


def test_markdown_table_escapes_pipes_formats_cells_and_aligns_numbers():
    frame = pd.DataFrame(
        {
            "what": ["$|s|$", "two\nlines"],
            "rate": [metrics.Interval(0.5, 0.4, 0.6), np.nan],
            "count": [1, 2],
            "p": [0.123456, 1.0],
            "text": ["57.0", "not run"],
        }
    )
    assert results.markdown_table(frame, {"p": "{:.1f}".format, "rate": ".1f"}).split("\n") == [
        "| what | rate | count | p | text |",
        "|:---|---:|---:|---:|---:|",
        r"| $\|s\|$ | 0.5 [0.4, 0.6] | 1 | 0.1 | 57.0 |",
        "| two<br>lines | – | 2 | 1.0 | not run |",
    ]
    named = pd.DataFrame({"x": [1]}, index=pd.Index(["a"], name="row"))
    assert results.markdown_table(named).startswith("| row | x |")
    with pytest.raises(MiaError, match="formats"):
        results.markdown_table(frame, {"rates": ".1f"})
    for cells, right in (
        (["0.5", "−0.1"], True),
        (["**0.5** [0.4, 0.6]", "<0.01"], True),
        (["[0.4, 0.6]", "0.5"], True),
        (["**0.5**\nthe paper: histograms part", "0.5"], False),
        (["0.5", "some"], False),
        (["[link](x.md)", "[no]"], False),
    ):
        assert ("---:" in results.markdown_table(pd.DataFrame({"a": cells}))) == right, cells


def test_the_first_of_several_labels_is_said_once_and_programs_read_it_in_every_row():
    frame = pd.DataFrame(
        {"data": ["a", "a", "b"], "attack": ["x", "x", "x"], "auc": [0.5, 0.6, 0.7]}
    )
    named = frame.set_index(["data", "attack"])
    assert [line.split(" | ")[:2] for line in results.markdown_table(named).split("\n")[2:]] == [
        ["| a", "x"],
        ["| ", "x"],
        ["| b", "x"],
    ]
    assert results.markdown_table(frame).count("| a |") == 2, "of columns each row says its own"
    assert [row[0] for row in results.plain_table(named, "t", "c")["rows"]] == ["a", "a", "b"]


def test_show_table_displays_once_for_both_readers(displayed):
    frame = pd.DataFrame({"a": ["x < y", "**bold**"], "n": [1.0, 2.0]})
    data = results.bundle_of_table(frame, "tab-one", "A caption\nof two lines with $|x|$.")
    assert data["text/markdown"].startswith(
        ":::{table} A caption of two lines with $|x|$.\n:name: tab-one\n\n| a | n |\n|:---|---:|\n| x < y | 1.000 |"
    )
    assert data["text/markdown"].endswith("|\n:::\n")
    assert "x &lt; y" in data["text/html"] and "<strong>bold</strong>" in data["text/html"]
    assert "text-align: right" in data["text/html"]
    with pytest.raises(MiaError, match="cannot be linked to"):
        results.show_table(frame, "Table 1")


def test_show_table_carries_its_numbers_unrounded_for_programs_and_not_for_readers(displayed):
    auc = [metrics.Interval(0.51234, 0.4, 0.6), metrics.Interval(0.5, np.nan, np.inf)]
    said = [results.Cell("1.5 [1, 2] / 3 %", 1.5, 1, 2, 3.0, "%"), None]
    frame = pd.DataFrame(
        {
            "n": [400, 1000],
            "auc": auc,
            "rate": [np.float32(0.25), np.nan],
            "said": said,
            "ran": [True, np.False_],
        },
        index=pd.Index(["a", "b"], name="row"),
    )
    results.show_table(frame, "tab-one", {"auc": ".1f"})
    ((data, metadata),) = displayed
    assert json.loads(json.dumps(data[results.MIME], allow_nan=False)) == {
        "name": "tab-one",
        "caption": "",
        "columns": ["row", "n", "auc", "rate", "said", "ran"],
        "labels": 1,
        "rows": [
            [
                "a",
                400,
                {"value": 0.51234, "low": 0.4, "high": 0.6},
                0.25,
                {
                    "text": "1.5 [1, 2] / 3 %",
                    "value": 1.5,
                    "low": 1,
                    "high": 2,
                    "paper": 3.0,
                    "unit": "%",
                },
                "True",
            ],
            ["b", 1000, {"value": 0.5, "low": None, "high": None}, "–", "–", "False"],
        ],
    }
    output = {"output_type": "display_data", "data": data, "metadata": metadata}
    assert set(outputs.for_readers([output])[0]["data"]) == {
        "text/html",
        "text/markdown",
        "text/plain",
    }
    assert results.MIME not in json.dumps(pages._captioned({"metadata": {}, "outputs": [output]}))


@pytest.mark.parametrize(
    "frame, labels",
    [
        (pd.DataFrame({"n": [1], "auc": [0.5]}), 1),
        (pd.DataFrame({"a": ["x"], "b": ["y"], "auc": [results.cell(0.5)]}), 2),
        (pd.DataFrame({"a": ["x"], "b": ["y"], "c": ["z"]}), 2),
        (pd.DataFrame({"a": ["x"]}), 1),
        (
            pd.DataFrame({"n": [1], "C": [results.cell(10, "g")], "auc": [0.5]}).set_index(
                ["n", "C"]
            ),
            2,
        ),
    ],
)
def test_a_table_says_how_many_of_its_columns_are_labels(frame, labels):
    table = results.plain_table(frame, "tab", "")
    assert table["labels"] == labels and table["columns"] == list(results._flat(frame).columns)
