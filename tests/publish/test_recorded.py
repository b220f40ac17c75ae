"""Recorded runs: read whole or not at all, and shown as what they are."""

import hashlib
import json

import pytest

from mia_lib.publish import outputs, prose, recorded, runner
from mia_lib.publish import pages as book

NOTEBOOK = '''# %% [markdown]
# # A tiny page

# %% tags=["parameters"]
steps: int = 3  # how many steps [1..10]
size: int = 4  # of the result [1..10000000]

# %%
import numpy as np
import pandas as pd

from mia_lib import claims, plotting, results
from mia_lib.metrics.interval import Interval

x = steps * np.random.default_rng(0).normal(size=size)
value = float(x.mean())
results.show_table(pd.DataFrame({"what": ["mean"], "value": [Interval(value, value - 1, value + 1)]}), name="tab-tiny",
                   caption=f"Of {size} numbers.")

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(2, 1))
axes.plot(x[:100])
plotting.show(figure, name="fig-tiny", caption="A line.", alt="a line")

# %%
verdicts = [claims.judge_identity("bayes", c, 0.0, 1e-9) for c in claims.claims("bayes")]
claims.show("bayes", verdicts)
'''


def executed(root, preset="quick"):
    target = root / "runs" / "x" / "tiny.ipynb"
    runner.execute("tiny", runner.validate("tiny", {}, preset, root), target, preset=preset, root=root)
    return json.loads(target.read_text())


@pytest.fixture
def shelf(tiny, isolated_cache):
    """The throw-away book with a recorded run of its notebook at the preset `paper`."""
    (tiny / "notebooks" / "tiny.py").write_text(NOTEBOOK)
    (tiny / "notebooks" / "presets" / "tiny.smoke.yaml").write_text("steps: 1\n")
    (tiny / "notebooks" / "presets" / "tiny.paper.yaml").write_text("steps: 7\n")
    (tiny / "book" / "index.md").write_text("# Tiny book\n\nSee {numref}`fig-tiny`.\n")
    notebook = executed(tiny, "paper")
    shown, images = outputs.displayed_outputs(prose.told(notebook, prose.run_of(notebook, tiny)))
    files = {**images, "exhibits.json": json.dumps(shown).encode()}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    for name, content in files.items():
        path = recorded.path_of("tiny", "paper", name, hashes[name], tiny)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    ran = notebook["metadata"]["mia"]
    (path.parent / "manifest.json").write_text(json.dumps({
        "files": hashes, **{name: ran[name] for name in ("parameters", "seconds", "device", "date")}}))
    return tiny


def test_a_recorded_run_is_read_whatever_the_code_is_by_now(shelf):
    [one] = recorded.runs("tiny", shelf)
    assert (one.name, one.preset, one.manifest["parameters"]["steps"]) == ("tiny", "paper", 7)
    assert one.shown["tables"]["tab-tiny"]["rows"][0][1]["low"] < one.shown["tables"]["tab-tiny"]["rows"][0][1]["high"]
    assert len(one.shown["claims"]) > 5 and one.figures["fig-tiny"].startswith(b"\x89PNG")
    (shelf / "notebooks" / "tiny.py").write_text(NOTEBOOK.replace("steps * np", "2 * np"))
    assert recorded.every(shelf) == [one] and recorded.run("tiny", "smoke", shelf) is None


@pytest.mark.parametrize("pattern, harm", [("*.png", b""), ("*exhibits.json", b"{}"), ("manifest.json", b"[]"),
                                           ("manifest.json", b"{}")])
def test_a_damaged_one_is_said_and_not_shown(shelf, pattern, harm):
    next((shelf / "data" / "recorded" / "runs" / "tiny.paper").glob(pattern)).write_bytes(harm)
    with pytest.warns(UserWarning, match=r"tiny\.paper is damaged .*is not shown"):
        assert recorded.runs("tiny", shelf) == []


def test_a_file_that_is_lacking_is_said(shelf):
    next((shelf / "data" / "recorded" / "runs" / "tiny.paper").glob("*.png")).unlink()
    with pytest.warns(UserWarning, match="No such file"):
        assert recorded.run("tiny", "paper", shelf) is None


def test_all_that_the_repository_holds_is_sound(repo):
    runs = recorded.every(repo)
    assert len(runs) == len(list((repo / "data" / "recorded" / "runs").iterdir()))
    table = book.records(runs, recorded.ensembles(repo))
    assert all(f"| {one.preset} |" in table for one in runs) and "`fashion_mlp6` | 128 models |" in table


def test_a_page_folds_the_recorded_exhibits_in_beside_its_own(shelf):
    sources = ["".join(cell["source"]) for cell in book.page(executed(shelf), recorded.runs("tiny", shelf))["cells"]]
    [table] = [text for text in sources if ":name: tab-tiny-paper" in text]
    [figure] = [text for text in sources if ":name: fig-tiny-paper" in text]
    assert "recorded at preset `paper`" in table and table.startswith("::::::{admonition}") and "Of 4 numbers." in table
    assert ":alt: a line\n:width: 100%" in figure and "/book/_figures/fig-tiny-paper.png" in figure
    assert "mia run tiny --preset paper" in table


def test_what_a_record_shows_just_as_the_page_does_is_not_shown_twice(shelf):
    runs = recorded.runs("tiny", shelf)
    [one] = book._other(runs, executed(shelf))
    assert set(one.shown["tables"]) == {"tab-tiny"} and one.shown["claims"]
    [one] = book._other(runs, executed(shelf, "paper"))
    assert not one.shown["tables"] and one.shown["claims"]


def test_recorded_exhibits_that_the_page_does_not_show_come_at_its_end(shelf):
    [one] = recorded.runs("tiny", shelf)
    one.shown["tables"]["tab-more"] = {**one.shown["tables"]["tab-tiny"],
                                       "markdown": ":::{table} More\n:name: tab-more\n\n:::\n"}
    cells = book.page(executed(shelf), [one])["cells"]
    assert ":name: tab-more-paper" in cells[-2]["source"] and "How the numbers" in cells[-1]["source"]


@pytest.mark.book
def test_the_built_book_shows_recorded_runs_with_device_date_and_verdicts(shelf):
    pages = ("notebooks/tiny", "book/status", "book/recorded", "book/scorecard")
    (shelf / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n" + "".join(
        f"- file: {page}\n" for page in pages))
    for page in ("recorded", "scorecard"):
        (shelf / "book" / f"{page}.md").write_text(f"# {page}\n\n<!-- generated -->\n")
    with open(shelf / "_config.yml", "a") as config:
        config.write("    nb_render_markdown_format: myst\n")
    html = book.build("quick", root=shelf, folder=shelf / "_build").parent
    page = (html / "notebooks" / "tiny.html").read_text()
    assert "The same, recorded at preset" in page and page.count("Of 4 numbers.") == 2
    assert page.count("note dropdown admonition") == 3 and "{admonition}" not in page  # with the provenance; none written out
    assert (html / "_images" / "fig-tiny-paper.png").is_file()
    card = (html / "book" / "scorecard.html").read_text()
    rows = card.count('class="mia-claim"')
    assert "Claims of" in card and rows == card.count(": the same") > 10, "nothing is counted twice"
    listed = (html / "book" / "recorded.html").read_text()
    assert recorded.runs("tiny", shelf)[0].manifest["date"][:10] in listed
