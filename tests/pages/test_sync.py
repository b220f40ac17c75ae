"""What `mia sync` writes is what sources, the last book and the published pieces say."""

import json
import shutil
from dataclasses import replace

import nbformat
import pytest

from mia_book.evidence import claims
from mia_book.pages import prose, runner, sync
from mia_lib.errors import MiaError

RUN = prose.Run(
    "bayes", "published", True, answer="MAST {ours}`lead`", results={"lead": {"text": "leads"}}
)


def test_nothing_of_the_repository_is_out_of_step(repo):
    assert sync.pairs(check=True, root=repo) == [], "run `mia sync`"
    assert sync.pieces(check=True, root=repo) == [], "run `mia sync`"
    assert sync.claims_schema(check=True, root=repo) == [], "run `mia sync`"


def test_converting_twice_gives_the_same_pair_without_outputs(tiny):
    pair, stray = tiny / "notebooks" / "tiny.ipynb", tiny / "notebooks" / "stray.ipynb"
    assert sync.sync(check=True) == [pair] and not pair.exists()
    assert sync.sync() == [pair] and sync.sync() == []
    first = pair.read_bytes()
    pair.write_text("{}")
    sync.sync()
    assert pair.read_bytes() == first
    notebook = nbformat.read(pair, as_version=4)
    nbformat.validate(notebook)
    assert set(notebook.metadata) == {"kernelspec"} and notebook.nbformat_minor == 5
    assert not any(cell.get("outputs") for cell in notebook.cells)
    stray.write_text("{}")
    assert sync.sync(check=True) == [stray]


def test_the_pace_of_cells_is_written_where_it_is_another(tmp_path):
    executed = tmp_path / "_build" / "executed"
    executed.mkdir(parents=True)
    (tmp_path / "notebooks").mkdir()

    def ran(name, seconds, changed=()):
        record = {
            "notebook": name,
            "preset": "published",
            "changed": dict(changed),
            "seconds_of_cells": seconds,
        }
        (executed / f"{name}-{len(list(executed.iterdir()))}.ipynb").write_text(
            json.dumps({"metadata": {"mia": record}})
        )
        return sync.pace(False, tmp_path)

    path = tmp_path / runner.PACE
    assert ran("bayes", [1.0, 2.0]) == [path] and runner.paces(tmp_path) == {"bayes": [1.0, 2.0]}
    assert ran("bayes", [1.2, 2.6]) == [], "a quarter more is the machine's mood"
    assert ran("bayes", [9.0, 2.0], {"seed": 1}) == [], "a run with other parameters"
    assert ran("bayes", [1.0, 1.0, 1.0]) == [path]
    assert runner.paces(tmp_path) == {"bayes": [1.0, 1.0, 1.0]}


def test_a_chapter_has_a_row_with_its_answer_and_its_verdicts_and_the_rest_is_left_alone(
    repo, tmp_path
):
    path, staged = tmp_path / "README.md", tmp_path / "_build" / "book" / sync.FINDINGS
    (tmp_path / "notebooks").mkdir()
    staged.parent.mkdir(parents=True)
    shutil.copy(repo / "_toc.yml", tmp_path)
    path.write_text(f"# One\n\n{sync.OF_BOOK}\nold\n{sync.END}\n\nTwo.\n")
    assert sync.sync(root=tmp_path) == [], "no book was built"
    verdicts = [
        {
            "notebook": "bayes",
            "paper": "bayes",
            "claim": claim,
            "verdict": said,
            "said": said,
            "kind": kind,
        }
        for claim, said, kind in (
            ("C11", "reproduced", "paper"),
            ("A1", "contradicted", "ours"),
            ("C1", claims.CHECKED, "paper"),
        )
    ]
    for preset in ("quick", "published"):
        staged.write_bytes(sync.findings({"bayes": replace(RUN, preset=preset)}, verdicts))
        assert sync.sync(True, tmp_path) == [path] * (preset == "published")
        assert "old" in path.read_text()
    assert sync.sync(False, tmp_path) == [path] and sync.sync(True, tmp_path) == []
    text = path.read_text()
    assert text.startswith("# One\n\n<!--") and text.endswith("-->\n\nTwo.\n")
    assert "| MAST leads | 1 reproduced | 1 contradicted |" in text
    path.write_text("# One\n")
    with pytest.raises(MiaError, match="lacks the marks"):
        sync.sync(root=tmp_path)


def test_a_part_that_cannot_be_written_stops_no_other(tiny, monkeypatch):
    done = []
    monkeypatch.setattr(sync, "readme", lambda *given: {}["no marks"])
    monkeypatch.setattr(sync, "pieces", lambda *given: done.append(given) or [])
    with pytest.raises(KeyError, match="no marks"):
        sync.sync(root=tiny)
    assert done
