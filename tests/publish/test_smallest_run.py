"""A chapter at its smallest parameters, of models that are trained now, where the built book shows published pieces."""

import json

from inprocess import kernels_replaced

from mia_lib.evidence import claims
from mia_lib.publish import outputs, parameters, runner


def test_a_chapter_measures_what_nobody_published_and_judges_all_its_claims(repo, tmp_path, isolated_cache):
    path = tmp_path / "iha.ipynb"
    with kernels_replaced():
        runner.execute("iha", parameters.validate("iha", {}, "smoke", repo), path, preset="smoke", root=repo)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    shown = outputs.displayed(notebook)
    assert [verdict["claim"] for verdict in shown.claims] == list(claims.claims("iha")) and shown.tables and shown.figures
    assert not [output for cell in notebook["cells"] for output in cell.get("outputs", []) if output["output_type"] == "error"]
