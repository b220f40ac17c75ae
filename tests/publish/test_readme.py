"""What README says was found is what the records hold."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from mia_lib.errors import MiaError
from mia_lib.evidence import claims
from mia_lib.publish import marks, readme, recorded
from mia_lib.publish.parameters import find_root, notebooks

ROOT = find_root()


def test_readme_is_in_step_with_the_records():
    assert readme.sync(check=True) == [], "run `mia sync`"


def test_a_chapter_has_one_row_and_every_claim_of_its_run_is_counted_once():
    rows = [line for line in readme.found().splitlines() if line.startswith("| ") and "preset" in line]
    assert len(rows) == len(readme.NEAREST) and readme.NEAREST.keys() <= set(notebooks(ROOT))
    for name, preset in readme.NEAREST.items():
        [row] = [line for line in rows if f"`{name}`, preset `{preset}`" in line]
        counts = re.findall(r"\b(\d+) (?:reproduced|contradicted|no difference|inconclusive|not run)", row)
        total = sum(map(int, counts))
        assert total == sum(record["verdict"] != claims.CHECKED for record in recorded.run(name, preset).shown["claims"])


def test_a_stale_part_is_written_and_the_rest_left_alone(tmp_path):
    for folder in ("notebooks", "data"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / "_toc.yml", tmp_path)
    path = tmp_path / "README.md"
    path.write_text(f"# One\n\n{readme.BEGIN}\nold\n{marks.END}\n\nTwo.\n")
    assert readme.sync(True, tmp_path) == [path] and "old" in path.read_text()
    assert readme.sync(False, tmp_path) == [path] and readme.sync(True, tmp_path) == []
    assert path.read_text() == f"# One\n\n{readme.BEGIN}\n\nNo run is recorded in this clone.\n\n{marks.END}\n\nTwo.\n"
    path.write_text("# One\n")
    with pytest.raises(MiaError, match="lacks the marks"):
        readme.sync(root=tmp_path)
    path.unlink()
    assert readme.sync(root=tmp_path) == []


def test_claims_are_told_apart_by_whose_they_are():
    record = {"verdict": "reproduced", "said": "reproduced", "kind": "paper"}
    counted = readme._counted([{**record, "data": claims.OWN_DATA}, {**record, "data": claims.STAND_IN}, record,
                               {**record, "kind": "ours", "verdict": "contradicted", "said": "contradicted"},
                               {**record, "verdict": claims.CHECKED, "said": claims.CHECKED}])
    assert list(counted.values()) == ["1 reproduced", "2 reproduced", "1 contradicted"]


def test_its_examples_run_as_they_stand(tmp_path):
    """Each block of Python in a process of its own, in a folder with the modules that the page shows."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    names = [found[1] if (found := re.match(r"# (\w+\.py)\n", block)) else f"block_{k}.py" for k, block in enumerate(blocks)]
    assert {"my_models.py", "my_audit.py"} < set(names)
    for name, block in zip(names, blocks, strict=True):
        (tmp_path / name).write_text(block, encoding="utf-8")
    for name in set(names) - {"my_models.py"}:
        done = subprocess.run([sys.executable, name], cwd=tmp_path, capture_output=True, text=True, env={
            **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MIA_CACHE": str(tmp_path / "cache"), "MIA_WORKERS": "1"})
        assert done.returncode == 0 and "Warning" not in done.stderr, f"{name}: {done.stderr}"
    assert (tmp_path / "roc.png").is_file()
