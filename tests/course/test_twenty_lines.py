"""The notebook of twenty lines needs NumPy, SciPy, pandas and seaborn, and what these bring along; nothing else."""

import json
import subprocess
import sys

ALLOWED = {
    "mia_lib",
    "numpy",
    "scipy",
    "pandas",
    "seaborn",
    "matplotlib",
    "mpl_toolkits",
    "PIL",
    "contourpy",
    "cycler",
    "dateutil",
    "six",
    "fontTools",
    "kiwisolver",
    "packaging",
    "pyparsing",
    "pytz",
    "tzdata",
}
ALONE = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in sys.stdlib_module_names | {ALLOWED!r} and not name.startswith(("_", "pylab")):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import matplotlib; matplotlib.use("agg")
"""


def test_twenty_lines_attack_a_bank_with_four_packages(repo):
    cells = json.loads((repo / "course" / "attack_a_bank.ipynb").read_text(encoding="utf-8"))[
        "cells"
    ]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert sum(bool(line.strip()) for line in code[-1].splitlines()) <= 20
    code[-1] = code[-1].replace("metrics.evaluate(", "found = metrics.evaluate(")
    script = "\n".join(
        [ALONE, *code, 'print(found.set_index(["attack", "metric"])["value"].round(3).to_dict())']
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=repo / "course", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = eval(done.stdout.splitlines()[-1])
    assert found["MAST", "auc"] > found["MALT", "auc"]
    assert found["LiRA", "tpr_at_fpr=0.01"] > 3 * found["MALT", "tpr_at_fpr=0.01"]
