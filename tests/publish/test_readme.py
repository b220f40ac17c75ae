"""What README says was found is what the book says, and its examples run."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from mia_lib.errors import MiaError
from mia_lib.evidence import claims
from mia_lib.publish import marks, prose, readme
from mia_lib.publish.parameters import find_root

ROOT = find_root()


RUN = prose.Run("bayes", "published", True, answer="MAST {ours}`lead`", results={"lead": {"text": "leads"}})


def test_a_chapter_has_a_row_with_its_answer_and_its_verdicts_and_the_rest_is_left_alone(tmp_path):
    (tmp_path / "notebooks").mkdir()
    shutil.copy(ROOT / "_toc.yml", tmp_path)
    path, staged = tmp_path / "README.md", tmp_path / "_build" / "book" / readme.STAGED
    path.write_text(f"# One\n\n{readme.BEGIN}\nold\n{marks.END}\n\nTwo.\n")
    assert readme.sync(root=tmp_path) == [], "no book was built"
    record = {"notebook": "bayes", "verdict": "reproduced", "kind": "paper"}
    judged = [record, {**record, "kind": "ours", "verdict": "contradicted"},
              {**record, "verdict": claims.CHECKED}]
    staged.parent.mkdir(parents=True)
    for preset in ("quick", "published"):
        staged.write_bytes(readme.found({"bayes": replace(RUN, preset=preset)}, judged))
        assert readme.sync(True, tmp_path) == [path] * (preset == "published") and "old" in path.read_text()
    assert readme.sync(False, tmp_path) == [path] and readme.sync(True, tmp_path) == []
    text = path.read_text()
    assert text.startswith("# One\n\n<!--") and text.endswith("-->\n\nTwo.\n")
    assert "| MAST leads | 1 reproduced | 1 contradicted |" in text
    path.write_text("# One\n")
    with pytest.raises(MiaError, match="lacks the marks"):
        readme.sync(root=tmp_path)


def test_its_examples_run_as_they_stand(tmp_path):
    """Each block of Python in a process of its own, in a folder with the modules that the page shows."""
    pages = (ROOT / "README.md", ROOT / "book" / "own.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = [found[1] if (found := re.match(r"# (\w+\.py)\n", block)) else f"block_{k}.py" for k, block in enumerate(blocks)]
    assert {"my_models.py", "my_audit.py"} < set(names)
    for name, block in zip(names, blocks, strict=True):
        (tmp_path / name).write_text(block, encoding="utf-8")
    for name in set(names) - {"my_models.py"}:
        done = subprocess.run([sys.executable, name], cwd=tmp_path, capture_output=True, text=True, env={
            **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MIA_CACHE": str(tmp_path / "cache"), "MIA_WORKERS": "1"})
        assert done.returncode == 0 and "Warning" not in done.stderr, f"{name}: {done.stderr}"
    assert (tmp_path / "roc.png").is_file()
