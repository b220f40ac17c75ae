"""A new chapter is a folder, a notebook and a line in the table of contents; nothing else has to know of it."""

import os
import shutil
import subprocess
import sys

import pytest

from mia_book import folders
from mia_lib.errors import MiaError

TOC = "format: jb-book\nroot: book/index\nchapters:\n- file: notebooks/leakage\n- file: book/scorecard\n"


def test_a_chapter_from_the_template_is_built_into_the_book(repo, tmp_path):
    for package in ("mia_lib", "mia_book"):
        shutil.copytree(
            repo / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    for part in ("book/_static", "data/embedded"):
        shutil.copytree(repo / part, tmp_path / part)
    (tmp_path / "notebooks").mkdir()
    (
        tmp_path / "book" / "_extra"
    ).mkdir()  # where reports of audits go, of which this book has none
    (tmp_path / "book" / "_extra" / "none.txt").touch()
    shutil.copy(repo / "_config.yml", tmp_path)
    shutil.copy(repo / "book" / "references.bib", tmp_path / "book")
    (tmp_path / "book" / "index.md").write_text("# Book\n\n{answer}`leakage`\n\n{tally}`leakage`\n")
    (tmp_path / "book" / "scorecard.md").write_text("# Scorecard\n\n<!-- generated -->\n")
    (tmp_path / "_toc.yml").write_text(TOC)
    published = tmp_path / "data" / "published"
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "MIA_PUBLISHED": str(published)}

    def mia(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "mia_lib.cli", *words],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    written = mia("chapter", "leakage", "What leaks").splitlines()
    assert f"{tmp_path}/notebooks/leakage.py" in written and len(written) == 8
    assert "leakage/networks" in mia(
        "publish", "leakage/networks", "--models", "2", "-p", "epochs", "1"
    )
    mia("build", "--preset", "smoke")
    html = tmp_path / "_build" / "book" / "_build" / "html"
    page = (html / "notebooks" / "leakage.html").read_text(encoding="utf-8")
    assert "What leaks" in page and "tab-leakage-claims" in page
    assert "A threshold for each record" in (html / "book" / "scorecard.html").read_text()


@pytest.mark.parametrize("name", ["Leakage", "two words", "bayes", ""])
def test_a_chapter_needs_a_name_of_its_own(name, repo):
    with pytest.raises(MiaError, match="name = "):
        folders.begin(name, "Title", repo)
