"""Copies of executed notebooks read whole where nothing draws MyST, and run as the notebook does."""

import contextlib
import json
import re
import socket
import subprocess
import sys
import time

import nbformat
import pytest
from test_written import CHAPTERS, ROOT

from mia_book.pages import copies, outputs, parameters, sphinx_ext

SOURCE = """# A page

(a-label)=
## Heading

:::{finding}
:claims: C1 reproduced

It is {cite:t}`sablayrolles2019white`, in {numref}`a-figure` and {eq}`a-equation`; see {term}`members <member>`.
:::

$$ x^2 $$ (a-equation)

````{exercise} Try it
:label: an-exercise
Write a test:

```python
assert "{ours}`kept`"
```
````

````{solution} an-exercise
:class: dropdown
[Done](../book/play.md), {cite}`sablayrolles2019white`.
````
"""


def notebook(source=SOURCE):
    shown = {
        "output_type": "display_data",
        "data": {"image/png": "", "text/plain": "a figure"},
        "metadata": {
            "mia": {"name": "a-figure", "caption": "What {term}`LiRA` finds.", "alt": "A"}
        },
    }
    table = {
        "output_type": "display_data",
        "data": {
            outputs.TABLE: {"name": "a-table"},
            "text/html": "<table><caption>Rows of {numref}`a-figure`</caption></table>",
            "text/markdown": ":::{table}\n:::",
        },
        "metadata": {},
    }
    code = {"cell_type": "code", "id": "b", "metadata": {"tags": ["hide-input"]}, "source": "1"}
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"mia": {"notebook": "bayes"}},
        "cells": [
            {"cell_type": "markdown", "id": "a", "metadata": {}, "source": source},
            code | {"execution_count": 1, "outputs": [shown, table]},
        ],
    }


def test_directives_are_quotations_roles_words_and_captions_stand_below_their_figures():
    made = copies.readable(notebook(), ROOT)
    nbformat.validate(nbformat.from_dict(made))
    first, text, code, caption = made["cells"]
    assert "importlib.util.find_spec" in first["source"] and "git pull" in first["source"]
    assert text["source"] == (
        "# A page\n\n## Heading\n\n> **What we found**\n>\n"
        "> It is Sablayrolles et al. (2019), in Figure 1.1 and (1.1); see members.\n\n"
        "$$ x^2 \\tag{1.1} $$\n\n"
        '> **Exercise. Try it**\n>\n> Write a test:\n> \n> ```python\n> assert "{ours}`kept`"\n> ```\n\n'
        "<details><summary>Solution</summary>\n\n"
        "[Done](https://github.com/membership-inference-book/membership-inference-book/blob/main/book/play.md), "
        "(Sablayrolles et al., 2019).\n\n</details>"
    )
    assert caption["source"] == "**Figure 1.1.** What LiRA finds."
    figure, table = code["outputs"]
    assert set(figure["data"]) == {"image/png", "text/plain"} and not figure["metadata"]
    assert table["data"] == {
        "text/html": "<table><caption><b>Table 1.1.</b> Rows of Figure 1.1</caption></table>"
    }
    assert code["metadata"]["jupyter"] == {"source_hidden": True}


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_fence_and_no_role_is_left_of_a_chapter(name):
    cells = json.loads(json.dumps(parameters.read(ROOT / "notebooks" / f"{name}.py").cells))
    whole = notebook() | {"cells": [*cells, notebook()["cells"][1]]}
    whole["metadata"]["mia"]["notebook"] = name
    for cell in copies.readable(whole, ROOT)["cells"]:
        if cell["cell_type"] == "markdown":
            text = re.sub(r"```.*?```", "", cell["source"], flags=re.S)
            assert not re.search(r"\{[a-z:]+\}`|^:::|^(> )*`{3,}\{|^\([\w-]+\)=$", text, re.M), text


def test_jupyterlab_shows_no_role_and_no_fence_and_all_captions(browser, tmp_path):
    (tmp_path / "page.ipynb").write_text(json.dumps(copies.readable(notebook(), ROOT)))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--expose-app-in-browser",
    ]
    command += [f"--port={port}", "--IdentityProvider.token=", f"--notebook-dir={tmp_path}"]
    with open(tmp_path / "log", "wb") as log:
        lab = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
    try:
        page = browser.new_page(viewport={"width": 1280, "height": 4000})
        for _ in range(120):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.5)
        page.goto(f"http://127.0.0.1:{port}/lab/tree/page.ipynb?reset", timeout=120_000)
        page.wait_for_function(
            "document.querySelector('.jp-Notebook')?.innerText.includes('What LiRA finds')",
            timeout=120_000,
        )
        text = page.inner_text(".jp-Notebook")
        page.close()
    finally:
        lab.kill()  # it may wait for its kernels
        lab.wait()
    assert "What we found" in text and "Table 1.1. Rows of Figure 1.1" in text
    assert "It is Sablayrolles et al. (2019), in Figure 1.1 and (1.1); see members." in text
    assert not re.search(r":::|\{(?!ours)[a-z:]+\}`|<details>|```", text)


def test_launch_buttons_open_the_copies():
    urls = [
        "https://mybinder.org/v2/gh/o/r/main?urlpath=lab/tree/notebooks/bayes.ipynb",
        "https://colab.research.google.com/github/o/r/blob/main/notebooks/bayes.ipynb",
    ]
    group = {"label": "launch-buttons", "buttons": [{"url": url} for url in urls]}
    sphinx_ext._launch_copies("notebooks/bayes", [group])
    assert [button["url"] for button in group["buttons"]] == [
        "https://mybinder.org/v2/gh/o/r/main?urlpath=lab/tree/_build/book/_build/html/copies/bayes.ipynb",
        "https://colab.research.google.com/github/o/r/blob/copies/bayes.ipynb",
    ]
