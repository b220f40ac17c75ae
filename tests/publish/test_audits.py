"""Reports of audits: pages of their own beside the book's, and beside the page of a run, with links that lead there."""

from mia_lib.papers.audit import exhibits
from mia_lib.publish import outputs, pages

REPORT = {"name": "audit-forest", "title": "a <forest>", "files": {"audit.html": "<!doctype html><title>é</title>",
                                                                   "audit.json": "{}"}}


def executed() -> dict:
    output = {"output_type": "display_data", "metadata": {}, "data": {
        "text/html": "<iframe></iframe>", "text/markdown": "elsewhere", "text/plain": "said", outputs.AUDIT: REPORT}}
    record = {"notebook": "audit", "preset": "quick", "parameters": {}, "changed": {}, "date": "2026-01-02T03:04:05+00:00",
              "seconds": 1.0, "peak_memory_mb": 300, "device": "an abacus", "versions": {}, "key": "0123"}
    cell = {"cell_type": "code", "id": "a", "execution_count": 1, "metadata": {}, "source": "show()", "outputs": [output]}
    return {"cells": [cell], "metadata": {"mia": record}, "nbformat": 4, "nbformat_minor": 5}


def test_the_notebook_and_the_book_mean_the_same_output():
    assert outputs.AUDIT == exhibits.MIME


def test_a_report_is_a_link_to_a_page_of_its_own():
    files = {f"audit-forest/{name}": text for name, text in REPORT["files"].items()}
    assert outputs.displayed(executed()).report_files() == files
    for options, href in (({}, "../audits/audit-forest/audit.html"), ({"audits": ""}, "audit-forest/audit.html")):
        [output] = pages.page(executed(), **options)["cells"][0]["outputs"]
        assert set(output["data"]) == {"text/markdown", "text/plain"}
        assert f'<a href="{href}">The whole report on a &lt;forest&gt;</a>' in output["data"]["text/markdown"]
