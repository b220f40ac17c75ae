"""What all tests share: a store of their own, the repository, the built book, and honest skips."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# sums of several threads are rounded otherwise, which trainings let grow
os.environ["OMP_NUM_THREADS"] = "1"
import mia_lib  # noqa: E402, F401  before NumPy, which reads the arithmetic that this sets when it is imported

REPO = Path(__file__).resolve().parents[1]
settings.register_profile("ours", max_examples=30, deadline=None, derandomize=True)  # no luck
settings.load_profile("ours")
LONG = ("audit", "publish", "training")
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items):
    """The tests of a file go to one process, for they share fixtures, and those of the built book to one together: that takes
    longest, so it comes first, and then the rooms whose files take minutes, so that both processes end together."""
    of_the_book = {item.path.stem for item in items if "built_book" in item.fixturenames}
    items.sort(
        key=lambda item: (item.path.stem not in of_the_book, item.path.parent.name not in LONG)
    )
    for item in items:
        name = item.path.stem
        item.add_marker(pytest.mark.xdist_group("book" if name in of_the_book else name))


@pytest.fixture(scope="session", autouse=True)
def _own_store(tmp_path_factory):
    """No test reads or fills the user's cache; one cache for the session, so that nothing is trained twice.

    Ctrl-C works in what tests start, also where the tests themselves run in the background of a shell, which ignores it.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIA_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("COLUMNS", "120")
        patch.setenv("MIA_DEVICE", "cpu")  # what a card computes is asked of it by name
        patch.delenv("MIA_PROGRESS", raising=False)
        # then the processes of the tests keep the cores busy
        if "PYTEST_XDIST_WORKER" in os.environ:
            patch.setenv("MIA_WORKERS", "1")
        yield


@pytest.fixture(autouse=True)
def _own_chance(request):
    """Every test draws from its module's `RNG` as if it ran alone, whatever ran before it in the same process."""
    generator = getattr(request.module, "RNG", None)
    if generator is not None:
        generator.bit_generator.state = request.module.__dict__.setdefault(
            "_STATE", generator.bit_generator.state
        )


@pytest.fixture(scope="session")
def repo() -> Path:
    """Root of the repository."""
    return REPO


@pytest.fixture(scope="session")
def built_book(tmp_path_factory) -> Path:
    """Folder of the HTML of this repository's book, in a copy of `_build`, which `make book` and this fill alike: whichever
    comes first runs the notebooks, from the published pieces, and the other finds that nothing changed."""
    from mia_book.pages import build
    from mia_book.pages.parameters import PUBLISHED

    with pytest.MonkeyPatch.context() as patch:
        # two notebooks at once, as `make book` runs them
        patch.delenv("MIA_WORKERS", raising=False)
        build.build(root=REPO)
    folder = tmp_path_factory.mktemp("book")
    shutil.copytree(
        REPO / "_build" / "book", folder / "book", ignore=shutil.ignore_patterns(".doctrees")
    )
    (folder / "executed").mkdir()
    for name, notebook in build.executed_notebooks(PUBLISHED, REPO, REPO / "_build").items():
        (folder / "executed" / f"{name}-{notebook['metadata']['mia']['key']}.ipynb").write_text(
            json.dumps(notebook)
        )
    return (folder / build.INDEX).parent


@pytest.fixture(scope="module")
def browser():
    """One browser for the tests of a file; skips where there is none."""
    from mia_book.pages.doctor import chromium

    if (path := chromium()) is None or not os.access(path, os.X_OK):
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=ARGS)
        yield running
        running.close()


NOTEBOOK = """# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A tiny page

# %% tags=["parameters"]
steps: int = 3  # how many steps [1..10]
rate: float = 0.5  # step size [0..1]
mode: str = "plain"  # which kind [plain | fancy]
noisy: bool = False  # whether it prints
sizes: list[int] = [1, 2]  # members [1..100]
kinds: list[str] = ["a"]  # what to draw [a | b]

# %%
import os
import shutil
import signal
from pathlib import Path

from mia_lib.progress import track

total = sum(1 for _ in track(range(steps), "steps"))
with open(os.environ["TINY_LOG"], "a") as log:
    log.write(f"{total}\\n")
print(total, rate, mode, noisy, sizes, kinds)

# %%
from IPython.display import display

pixel = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAA"
         "AABJRU5ErkJggg==")
for name in ("fig-one", "fig-two"):
    display({"image/png": pixel}, raw=True,
            metadata={"mia": {"name": name, "caption": f"Caption of {name}", "alt": "one dot"}})

# %%
claims = [{"id": "tiny", "verdict": "reproduced"}]
display({"text/markdown": "| a |\\n| --- |\\n| 1 |", "application/vnd.mia.claims+json": claims}, raw=True)
print("an abacus")
"""

CONFIG = """title: Tiny
execute:
  execute_notebooks: "off"
only_build_toc_files: true
sphinx:
  config:
    myst_enable_extensions: [dollarmath, colon_fence]
"""


@pytest.fixture
def tiny(request, tmp_path, monkeypatch):
    """A throw-away book of one notebook, `tiny`, which logs each time it really runs to `ran.log`.

    Notebooks are run in the process of the tests, except by tests that are marked `kernel`. The page of a rerun is a stub, for
    drawing one takes seconds; `test_run_page.py` draws.
    """
    import inprocess

    from mia_book.pages import run_page

    monkeypatch.setattr(
        run_page, "render", lambda notebook, root=None: (f"<title>{notebook.stem}</title>", [])
    )
    (tmp_path / "notebooks").mkdir()
    presets = tmp_path / "mia_book" / "chapters" / "tiny" / "presets"
    presets.mkdir(parents=True)
    (tmp_path / "book").mkdir()
    (tmp_path / "notebooks" / "tiny.py").write_text(NOTEBOOK)
    (presets / "smoke.yaml").write_text("steps: 1\nrate: 1e-3\n")
    (tmp_path / "_config.yml").write_text(CONFIG)
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters:\n- file: notebooks/tiny\n"
        "- file: book/status\n"
    )
    (tmp_path / "book" / "index.md").write_text(
        "# Tiny book\n\nSee {numref}`fig-one` and {numref}`fig-two`.\n"
    )
    (tmp_path / "book" / "status.md").write_text("# Status\n\n<!-- generated -->\n")
    monkeypatch.setenv("TINY_LOG", str(tmp_path / "ran.log"))
    monkeypatch.chdir(tmp_path)
    real = request.node.get_closest_marker("kernel")
    with contextlib.nullcontext() if real else inprocess.kernels_replaced():
        yield tmp_path


@pytest.fixture(scope="module")
def module_cache(tmp_path_factory):
    """An empty cache for the tests of one file together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def isolated_cache(tmp_path, monkeypatch):
    """An empty cache of the test's own."""
    monkeypatch.setenv("MIA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
