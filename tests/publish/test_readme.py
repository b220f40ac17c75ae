"""The examples of README and of the page on models of one's own run."""

import os
import re
import subprocess
import sys

from mia_lib.publish.parameters import find_root

ROOT = find_root()


def test_its_examples_run_as_they_stand(tmp_path):
    """Each block of Python as a script, in a folder with the modules that the page shows."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "README.md", ROOT / "book" / "own.md"))
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = [found[1] if (found := re.match(r"# (\w+\.py)\n", block)) else f"block_{k}.py" for k, block in enumerate(blocks)]
    assert {"my_models.py", "my_audit.py"} < set(names)
    for name, block in zip(names, blocks, strict=True):
        (tmp_path / name).write_text(block, encoding="utf-8")
    scripts = sorted(set(names) - {"my_models.py"})
    code = f"import runpy, sys\nsys.path.insert(0, '')\nfor name in {scripts}:\n    runpy.run_path(name, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env={
        **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MIA_CACHE": str(tmp_path / "cache"), "MIA_WORKERS": "1"})
    assert done.returncode == 0 and "Warning" not in done.stderr, done.stderr
    assert (tmp_path / "roc.png").is_file()
