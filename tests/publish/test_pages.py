"""An executed notebook as a page: captions, provenance, links to claims and to reports of audits, no bookkeeping."""

import pytest

from mia_lib.papers.audit import exhibits
from mia_lib.publish import outputs, pages

RECORD = {"notebook": "n", "preset": "smoke", "changed": {"a": "x|y"}, "date": "2026-01-02T03:04:05+00:00",
          "seconds": 75.2, "peak_memory_mb": 300, "device": "2 CPU cores", "versions": {"python": "3.11.2"},
          "key": "0123"}


def cell(*outputs, **metadata) -> dict:
    return {"cell_type": "code", "id": "c", "execution_count": 1, "metadata": metadata, "source": "x",
            "outputs": list(outputs)}


def shown(data, figure=None) -> dict:
    return {"output_type": "display_data", "data": data, "metadata": {"mia": figure} if figure else {}}


def test_a_page_carries_captions_and_provenance_and_no_bookkeeping():
    figure = {"name": "fig-a", "caption": "A", "alt": "dots", "width": "80%"}
    stream = {"output_type": "stream", "name": "stdout", "text": "hello"}
    made = pages.page({"metadata": {"mia": RECORD}, "cells": [
        cell(stream, shown({"image/png": "a"}, figure), shown({"text/markdown": "t"}),
             shown({"image/png": "b"}, figure)),
        cell(shown({outputs.RESULTS: {}}), tags=["injected-parameters"]),
    ]})
    first, table, second, injected, footer = made["cells"]
    assert "mia" not in made["metadata"]
    assert first["metadata"]["mystnb"] == {"figure": {"name": "fig-a", "caption": "A"},
                                           "image": {"alt": "dots", "width": "80%"}}
    assert [len(c["outputs"]) for c in (first, table, second)] == [2, 1, 1]
    assert "mystnb" not in table["metadata"] and second["metadata"]["tags"] == ["remove-input"]
    assert len({c["id"] for c in made["cells"][:3]}) == 3
    assert injected["outputs"] == [] and injected["metadata"]["tags"] == ["injected-parameters", "hide-input"]
    for part in ("smoke", "`a = 'x\\|y'`", "2026-01-02 03:04 UTC, 1 min 15 s, 300 MB",
                 "mia run n --preset smoke -p NAME VALUE"):
        assert part in footer["source"], part


def test_rows_of_a_chapters_claims_can_be_linked_to():
    table = "| claim | ours |\n| --- | --- |\n| **C7** (ours) text | 1 |\n| **C10r** other | **C7** |\n"
    made = pages.page({"metadata": {"mia": RECORD}, "cells": [
        {**cell(shown({outputs.CLAIMS: [{"claim": "C7"}], "text/markdown": table})), "id": "a"}]})
    told = next(o["data"]["text/markdown"] for one in made["cells"] for o in one.get("outputs", []))
    assert '| <span id="claim-C7"></span>**C7** (ours) text |' in told and told.count("<span") == 2


REPORT = {"name": "audit-forest", "title": "a <forest>", "files": {"audit.html": "<title>é</title>", "audit.json": "{}"}}


@pytest.mark.parametrize("options, href", [
    ({}, "../audits/audit-forest/audit.html"), ({"audits": ""}, "audit-forest/audit.html")])
def test_a_report_is_a_link_to_a_page_of_its_own(options, href):
    assert outputs.AUDIT == exhibits.MIME, "the notebook and the book mean the same output"
    executed = {"metadata": {"mia": RECORD}, "cells": [
        cell(shown({"text/html": "<iframe></iframe>", "text/markdown": "elsewhere", outputs.AUDIT: REPORT}))]}
    assert outputs.displayed(executed).report_files() == {
        f"audit-forest/{name}": text for name, text in REPORT["files"].items()}
    [output] = pages.page(executed, **options)["cells"][0]["outputs"]
    assert set(output["data"]) == {"text/markdown", "text/plain"}
    assert f'<a href="{href}">The whole report on a &lt;forest&gt;</a>' in output["data"]["text/markdown"]
