"""A sweep checks its whole grid first, runs each cell once, and shows what depends on what."""

import base64
import json
import os
import re
from types import SimpleNamespace

import pandas as pd
import pytest
from typer.testing import CliRunner

from mia_book.evidence import claims, results
from mia_book.pages import outputs, runner, sweep
from mia_book.pages.cli import app
from mia_lib import drawing
from mia_lib.errors import MiaError
from mia_lib.progress import Bars
from mia_lib.training import pool

NOTEBOOK = """# %% [markdown]
# # Toy

# %% tags=["parameters"]
steps: int = 3  # how many steps [1..10]
rate: float = 0.5  # step size [0..10]
mode: str = "plain"  # which kind [plain | fancy | a,b]
noisy: bool = False  # whether it prints
sizes: list[int] = [1, 2]  # members [1..100]

# %%
import os

import pandas as pd

from mia_book.evidence import claims, results
from mia_lib.metrics.interval import Interval, t_interval

with open(os.environ["TINY_LOG"], "a") as log:
    log.write(f"{steps}/{rate}/{mode}/{sizes}\\\\n")
if steps == 9:
    raise ValueError("nine is too many")

# %%
frame = pd.DataFrame({"attack": ["MALT", "MAST"], "auc": [Interval(steps / 10, steps / 10 - 0.1, steps / 10 + 0.1), 0.75],
                      "ours / paper": [results.Cell("50.0 / 57.1", 50, 25, 75, 57.1), "not run / 54.0"]})
results.show_table(frame, "tab-tiny", {"auc": ".1f"})
results.show_table(pd.DataFrame({"n": sizes, "twice": [2 * n for n in sizes]}), "tab-sizes")
numbers = {"C7": t_interval([steps - 3.0, steps - 2.0, steps - 1.0])}
claims.show("bayes", [claims.judge("bayes", c, numbers.get(c), "too small") for c in claims.claims("bayes")])

# %% [markdown]
# :::{caption} tab-tiny
# **Always.** Steps were {param}`steps`. Same $n_1$ in *all*.
# :::
#
# :::{caption} tab-sizes
# By n.
# :::
"""


@pytest.fixture
def swept(tiny):
    """The throw-away book with a notebook that shows tables and claims; steps = 9 fails."""
    (tiny / "notebooks" / "tiny.py").write_text(NOTEBOOK.replace("\\\\", "\\"))
    return tiny


def run(axes, preset=None, output=None, bars=None):
    return sweep.run("tiny", axes, preset, output, bars=bars)


def runs(root) -> list[str]:
    return (root / "ran.log").read_text().split("\n")[:-1] if (root / "ran.log").exists() else []


def table(name, columns, *rows, labels=1) -> dict:
    return {
        "name": name,
        "caption": "A caption.",
        "columns": columns,
        "labels": labels,
        "rows": [list(row) for row in rows],
    }


def cell(given, *tables) -> sweep.Cell:
    return sweep.Cell(given, None, {"seconds": 1.0}, tables)


@pytest.mark.parametrize(
    "axes, cells",
    [
        ({"steps": "1,2", "rate": "0.5"}, [{"steps": 1, "rate": 0.5}, {"steps": 2, "rate": 0.5}]),
        ({"sizes": "1,2"}, [{"sizes": [1, 2]}]),
        ({"mode": "a,b|"}, [{"mode": "a,b"}]),
        ({"noisy": "yes,no"}, [{"noisy": True}, {"noisy": False}]),
        (
            {"steps": "1,2", "sizes": "1|2,3"},
            [{"steps": s, "sizes": z} for s in (1, 2) for z in ([1], [2, 3])],
        ),
    ],
)
def test_a_grid_is_every_combination_the_last_parameter_fastest(swept, axes, cells):
    assert sweep.grid("tiny", axes) == cells


@pytest.mark.parametrize(
    "axes, says",
    [
        ({}, "nothing to sweep"),
        ({"steps": "1,x"}, "steps = 'x': Input should be a valid integer"),
        ({"steps": ","}, "steps has no values"),
        ({"steps": "1,2", "rate": "1,1.0"}, "rate = 1.0 is given twice"),
        ({"sizes": "1,2|1, 2"}, "sizes = 1,2 is given twice"),
        ({"mode": "plain,a,b"}, "mode = 'a' is not known"),
        (
            {"rate": ",".join(f"{k / 100}" for k in range(101)), "steps": "1,2"},
            "101 x 2 = 202 cells. Allowed: up to 200",
        ),
    ],
)
def test_a_bad_grid_is_refused_before_anything_runs(swept, axes, says):
    with pytest.raises(MiaError, match=re.escape(says)):
        run(axes)
    assert runs(swept) == [] and not (swept / "runs").exists()


def test_each_cell_runs_once_and_a_wider_grid_goes_on(swept):
    index = run({"steps": "1,2", "rate": "0.5"}, "smoke")
    assert len(runs(swept)) == 2
    assert index.parent.parent == swept / "runs"
    assert index.parent.name.startswith("tiny-sweep-")
    assert run({"steps": "1|2", "rate": "0.50"}, "smoke") == index and len(runs(swept)) == 2
    other = run({"rate": "0.5,1e-3", "steps": "2"}, "smoke")
    assert other != index and runs(swept)[2:] == ["2/0.001/plain/[1, 2]"]
    runner.run("tiny", {"steps": 2}, "smoke")
    assert len(runs(swept)) == 3, "a cell is a run like any other"
    text = index.read_text()
    links = [index.parent / link for link in re.findall(r'href="([^#"]+)"', text)]
    assert len(links) == 3 and all(link.is_file() for link in links)
    assert "--preset smoke -p steps 1,2 -p rate 0.5" in text


def test_after_ctrl_c_the_finished_cells_stay_and_are_not_run_again(swept):
    class Impatient(Bars):
        def say(self, text):
            if text.startswith("cell 2"):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run({"steps": "1,2"}, output=swept / "out", bars=Impatient())
    assert set(pd.read_csv(swept / "out" / "results.csv").steps) == {1}
    run({"steps": "1,2"}, output=swept / "out")
    assert len(runs(swept)) == 2 and set(pd.read_csv(swept / "out" / "results.csv").steps) == {1, 2}


@pytest.mark.parametrize("name", ["index.html", "results.csv"])
def test_a_file_of_the_readers_own_is_not_overwritten(swept, name):
    (swept / "out").mkdir()
    (swept / "out" / name).write_text("mine")
    with pytest.raises(MiaError, match=f"holds a {name} that `mia sweep` did not make"):
        run({"steps": "1,2"}, output=swept / "out")
    assert (swept / "out" / name).read_text() == "mine" and not runs(swept)


def test_the_command_line_takes_pairs_and_a_failing_cell_is_named_and_the_others_go_on(swept):
    done = CliRunner().invoke(app, ["sweep", "tiny", "-p", "sizes", "1,2|3", "-p", "mode=plain"])
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith("index.html")
    assert runs(swept) == ["3/0.5/plain/[1, 2]", "3/0.5/plain/[3]"]
    assert CliRunner().invoke(app, ["sweep", "tiny"]).exit_code == 2
    done = CliRunner().invoke(
        app, ["sweep", "tiny", "-p", "steps", "9,2", "--output", str(swept / "out")]
    )
    index, said = swept / "out" / "index.html", " ".join(done.stderr.split())
    assert done.exit_code == 1 and "1 of 2 cells failed: steps = 9. " in said and str(index) in said
    assert len(runs(swept)) == 4 and set(pd.read_csv(swept / "out" / "results.csv").steps) == {2}
    page = index.read_text()
    assert "1 of which failed" in page
    assert "nine is too many" in page
    assert page.count(">open</a>") == 1
    done = CliRunner().invoke(
        app, ["sweep", "tiny", "-p", "steps", "9", "--output", str(swept / "out")]
    )
    assert done.exit_code == 1 and len(pd.read_csv(swept / "out" / "results.csv")) == 0


def test_neither_an_odd_error_of_a_cell_nor_a_chart_that_cannot_be_drawn_takes_the_rest(
    swept, monkeypatch
):
    real = runner.run
    errors = iter(
        [MiaError("no such records"), OSError(28, "No space left on device"), TypeError("a bug")]
    )
    monkeypatch.setattr(
        runner,
        "run",
        lambda name, settings, *given, **named: (
            real(name, settings, *given, **named)
            if settings["steps"] < 4
            else (_ for _ in ()).throw(next(errors))
        ),
    )
    with pytest.raises(runner.NotebookFailed, match="3 of 5 cells failed"):
        run({"steps": "1,2,4,5,6"}, output=swept / "out")
    page = (swept / "out" / "index.html").read_text()
    assert all(
        said in page
        for said in ("</span> no such records", "OSError: [Errno 28] No space", "TypeError: a bug")
    )
    assert page.count(">open</a>") == 2 and "<img " in page
    monkeypatch.setattr(drawing, "lineplot", lambda *given, **named: 1 / 0)
    with pytest.raises(
        runner.NotebookFailed,
        match="no chart of tab-tiny: auc: ZeroDivisionError: division by zero",
    ):
        run({"steps": "1,2"}, output=swept / "out")
    page = (swept / "out" / "index.html").read_text()
    assert "could not be drawn:</span> ZeroDivisionError" in page
    assert page.count(">open</a>") == 2
    assert "<img " not in page


def test_a_sweep_hands_cluster_and_device_on_to_each_of_its_notebooks(swept, monkeypatch):
    real, seen = runner.run, []

    def spied(*given, **named):
        seen.append((os.environ["MIA_CLUSTER"], os.environ["MIA_DEVICE"]))
        return real(*given, **named)

    for name in ("MIA_CLUSTER", "MIA_DEVICE"):  # which the command sets, for kernels inherit them
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(pool, "connect", lambda address: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(runner, "run", spied)
    done = CliRunner().invoke(
        app, ["sweep", "tiny", "-p", "steps", "2", "--cluster", "tcp://x:1", "--device", "cpu"]
    )
    assert done.exit_code == 0 and seen == [("tcp://x:1", "cpu")]


def test_the_table_is_what_the_pages_show(swept):
    index = run({"steps": "1,5", "sizes": "3,4"})
    read = next(swept.glob("runs/tiny-*/tiny.ipynb"))
    assert results.MIME in read.read_text()
    assert results.MIME not in read.with_suffix(".html").read_text()
    frame = pd.read_csv(index.parent / "results.csv", keep_default_na=False)
    assert list(frame) == ["steps", "sizes", *sweep.COLUMNS] and set(frame.sizes) == {"3,4"}
    at_five = frame[frame.steps == 5].drop(columns=["steps", "sizes"]).astype(str)
    tiny = at_five[at_five.exhibit == "tab-tiny"].drop(columns="exhibit").to_numpy().tolist()
    assert tiny[:2] == [
        ["MALT", "auc", "0.5", "0.4", "0.6", "", ""],
        ["MALT", "ours / paper", "50.0", "25.0", "75.0", "", ""],
    ]
    assert tiny[3] == ["MAST", "ours / paper", "", "", "", "not run / 54.0", ""]
    assert at_five[at_five.exhibit == "tab-sizes"][
        ["row", "column", "value"]
    ].to_numpy().tolist() == [["n = 3", "twice", "6.0"], ["n = 4", "twice", "8.0"]]
    of_claims = at_five[at_five.exhibit == "claims"].set_index("column")
    assert set(of_claims.index) == set(claims.claims("bayes"))
    notebooks = [
        outputs.displayed(json.loads(path.read_text()))
        for path in swept.glob("runs/tiny-*/tiny.ipynb")
    ]
    [number] = next(
        claim
        for shown in notebooks
        for claim in shown.claims
        if claim["claim"] == "C7" and claim["verdict"] == "reproduced"
    )["numbers"]
    assert list(of_claims.loc["C7", ["row", "text", "verdict"]]) == ["estimate", "", "reproduced"]
    ends = ["value", "low", "high"]
    assert of_claims.loc["C7", ends].astype(float).tolist() == [number[end] for end in ends]
    assert list(of_claims.loc["C2"]) == ["claims", "", "", "", "", "", "not run"]


def test_the_page_stands_alone_and_speaks_to_those_who_cannot_see(swept):
    text = run({"steps": "1,5", "rate": "0.5,1"}).read_text()
    assert not re.search(r"""(?:src|href|url\()\s*=?\s*["']?(?:https?:)?//""", text)
    assert "<script" not in text
    images = re.findall(r"<img [^>]*>", text)
    assert images and all('src="data:image/svg+xml;base64,' in image for image in images)
    alts = [re.search(r'alt="([^"]*)"', image)[1] for image in images]
    assert (
        "auc against steps: MALT from 0.1 at 1 to 0.5 at 5; MAST from 0.75 at 1 to 0.75 at 5."
        in alts
    )
    assert "mia sweep tiny -p steps 1,5 -p rate 0.5,1.0" in text and "how many steps" in text
    first, *others = re.findall(r"<tr><th scope=\"row\">(\w+)</th>(.*?)</tr>", text, re.DOTALL)
    assert first[0] == "C7" and {row[0] for row in others} == set(claims.claims("bayes")) - {
        "C7"
    }, "what changes comes first"
    text = run({"mode": "a,b|"}).read_text()  # of one cell there are no charts
    assert "Numbers that change" not in text and "mia sweep tiny -p mode &#39;a,b|&#39;" in text


def test_a_chart_has_a_panel_for_each_setting_and_rows_are_named_by_the_columns_before_the_numbers():
    def at(a, b):
        return cell(
            {"a": a, "b": b}, table("t", ["row", "ab", "none"], ("r", a * b, 7), ("s", a, 7))
        )

    [chart], same = sweep.charts(
        sweep.tidy([at(a, b) for a in (1, 2) for b in (10, 20, 30)]), ["a", "b"]
    )
    assert same == ["t: none"] and chart["title"] == "t: ab"
    assert chart["alt"] == "ab against a: r from 10 at 1 to 60 at 2; s from 1 at 1 to 2 at 2."
    assert all(f"b = {b}" in base64.b64decode(chart["svg"]).decode() for b in (10, 20, 30))
    interval = {"value": 0.5, "low": 0.4, "high": 0.6}
    network = table(
        "net",
        ["network", "augmentation", "auc"],
        ("a", "none", interval),
        ("a", "crop", interval),
        labels=2,
    )
    twice = table(
        "twice",
        ["n", "C", "auc"],
        *((1, {"text": c, "value": float(c)}, interval) for c in ("5", "10", "10")),
        labels=2,
    )
    above = table(
        "above",
        ["data", "score", "*ours*"],
        ("Credit", "gap", "0.7"),
        ("Credit", "*loss*", "0.8"),
        labels=2,
    )
    frame = sweep.tidy([cell({"steps": 1}, network, twice, above)])
    assert frame.row.tolist() == [
        "a, none",
        "a, crop",
        "n = 1, C = 5",
        "n = 1, C = 10",
        "n = 1, C = 10 (row 3)",
        "Credit, gap",
        "Credit, loss",
    ]
    assert frame.column.unique().tolist() == ["auc", "ours"]
    assert frame.text.dropna().tolist() == ["0.7", "0.8"]


def test_charts_take_words_lists_long_names_and_formulas_that_are_none():
    names = [f"tanh_cnn:16,32,64 with $ and \\frac, number {k}" for k in range(10)]
    cells = [
        cell(
            {"sizes": x, "mode": word},
            table("t", ["row", "y"], *((name, len(x) + k) for k, name in enumerate(names))),
        )
        for x in ([1], [1, 20], [300, 400, 500])
        for word in ("$a\\frac$", *"bcdefghij")
    ]
    [chart], _ = sweep.charts(sweep.tidy(cells), ["sizes", "mode"])
    assert chart["alt"].count("number") == sweep.LINES
    svg = base64.b64decode(chart["svg"]).decode()
    assert svg.rstrip().endswith("</svg>")
    assert "<dc:date>" not in svg
    assert "mode = f" in svg
    assert "mode = g" not in svg
