"""The book is made of what ran, once, and only what changed is touched."""

from pathlib import Path

import pytest
from filelock import FileLock
from test_runner import times_run
from typer.testing import CliRunner

from mia_book.pages import build
from mia_book.pages.cli import app
from mia_lib.errors import MiaError


def test_a_book_is_built_once_and_only_what_changed_is_touched(tiny, monkeypatch):
    done = CliRunner().invoke(app, ["build"])
    index = Path(done.stdout.splitlines()[-1])
    assert done.exit_code == 0 and index.is_file() and times_run(tiny) == 1
    page = (index.parent / "notebooks" / "tiny.html").read_text()
    assert "Caption of fig-one" in page and "Fig. 2" in page and 'alt="one dot"' in page
    assert "How the numbers on this page came about" in page
    assert '<span class="pre">VALUE</span>' in page
    status = (index.parent / "book" / "status.html").read_text()
    assert "A tiny page" in status and "CPU cores" in status
    assert (
        (tiny / "_build" / "book" / "book" / "_figures" / "fig-one.png")
        .read_bytes()
        .startswith(b"\x89PNG")
    )
    with monkeypatch.context() as patch:
        patch.setattr(build, "contents", None)  # so nothing is read to see that nothing changed
        assert build.build() == index
    (status := tiny / "_build" / "book" / "book" / "status.md").unlink()
    (tiny / "book" / "status.md").write_text("# Runs\n\n<!-- generated -->\n")
    assert build.build() == index and times_run(tiny) == 1
    assert "CPU cores" in status.read_text() and "Runs" in status.read_text(), (
        "what changed is seen"
    )
    files = dict(build.contents(tiny, {}))
    assert "mia_book/pages/runner.py" in files, "pages include code"
    folder = tiny / "stage"
    assert set(build.stage(files, folder)) == set(files)
    assert build.stage(files, folder) == []
    files["book/index.md"] += b"\nmore\n"
    files.pop("book/status.md")
    assert set(build.stage(files, folder)) == {"book/index.md", "book/status.md"}
    assert not (folder / "book" / "status.md").exists()

    # A warning fails the build, also when only the other pages have changed since.
    (tiny / "book" / "index.md").write_text("# Tiny book\n\nSee {numref}`fig-none`.\n")
    for _ in range(2):
        with pytest.raises(build.BookFailed, match="fig-none"):
            build.build()
        (tiny / "book" / "status.md").write_text("# Status again\n\n<!-- generated -->\n")
    assert times_run(tiny) == 1


def test_bad_presets_pages_and_two_builds_at_once_are_refused_before_anything_runs(tiny):
    with pytest.raises(MiaError, match="preset of tiny = 'papr'"):
        build.build("papr")
    (tiny / "_build").mkdir(exist_ok=True)
    with FileLock(tiny / "_build" / "lock"), pytest.raises(MiaError, match="Another `mia build`"):
        build.build()
    assert times_run(tiny) == 0
    (tiny / "book" / "status.md").write_text("# Status\n")
    with pytest.raises(MiaError, match="has no line <!-- generated -->"):
        build.contents(tiny, {})
