"""The examples of README and of the page on models of one's own run."""

import os
import re
import subprocess
import sys

from mia_lib.publish.parameters import find_root

ROOT = find_root()


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
