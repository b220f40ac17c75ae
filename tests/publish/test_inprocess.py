"""The shell in which the other tests run notebooks gives what a kernel gives, and leaves the process as it was."""

import json
import os
import re
import sys
import warnings

import pytest
from inprocess import kernels_replaced

from mia_lib.publish import parameters, runner

MORE = '''
# %%
import sys
import warnings

print("one", file=sys.stderr)
warnings.warn("mind the step")
warnings.warn("not said", DeprecationWarning)
print("two")
display(1)
print("three")
{"a": 1}

# %%
import matplotlib.pyplot as plt
import pandas as pd

plt.rcParams["lines.linewidth"] = 3
figure, axes = plt.subplots(figsize=(1, 1))
axes.plot([0, 1])
pd.DataFrame({"n": [1]})

# %% [markdown]
# The process.

# %%
class Own:
    pass


assert Own.__module__ == __name__ == "__main__" and sys.modules["__main__"].Own is Own
sys.path.append("nowhere")
os.environ["TINY_LOG"] += ".gone"
os.chdir("/")
get_ipython().__class__.__name__, _[1:0], In[-1]
'''
FAILS = "\n# %%\nprint('before')\n{}\n\n# %%\nprint('never')\n"


def executed(tiny):
    target = tiny / "runs" / "tiny.ipynb"
    runner.execute("tiny", parameters.validate("tiny", {"steps": 2, "kinds": "b"}), target)
    return json.loads(target.read_text())


def outputs(tiny):
    """What a notebook showed that failed."""
    with pytest.raises(runner.NotebookFailed) as said:
        executed(tiny)
    notebook = json.loads((tiny / "runs" / "tiny.ipynb").read_text())
    return str(said.value), [(c["execution_count"], c["outputs"]) for c in notebook["cells"] if c["cell_type"] == "code"]


def without_numbers_of_processes(given):
    return re.sub(r"ipykernel_\d+", "ipykernel", json.dumps(given, indent=1, sort_keys=True))


@pytest.mark.kernel
def test_a_kernel_makes_the_same_notebook(tiny):
    source = tiny / "notebooks" / "tiny.py"
    source.write_text(source.read_text() + MORE)
    real = executed(tiny)
    with kernels_replaced():
        ours = executed(tiny)
    records = [notebook["metadata"].pop("mia") for notebook in (real, ours)]
    assert len(ours["cells"]) > 8 and without_numbers_of_processes(ours) == without_numbers_of_processes(real)
    of_time = "date", "seconds", "seconds_of_cells", "peak_memory_mb"
    real, ours = ({key: value for key, value in record.items() if key not in of_time} for record in records)
    assert real == ours and len(records[0]["seconds_of_cells"]) == len(records[1]["seconds_of_cells"]) > 3
    source.write_text(source.read_text() + FAILS.format("raise ValueError('no')"))
    real = outputs(tiny)
    with kernels_replaced():
        assert without_numbers_of_processes(outputs(tiny)) == without_numbers_of_processes(real)


def test_nothing_of_a_run_is_left_in_the_process(tiny):
    import jupyter_events.logger  # noqa: F401  which adds a filter of warnings when it is first imported
    import matplotlib.pyplot

    def state():
        return (os.getcwd(), dict(os.environ), list(sys.path), sys.modules["__main__"], sys.stdout, sys.stderr,
                sys.displayhook, sys.excepthook, list(warnings.filters), matplotlib.get_backend(),
                dict(matplotlib.rcParams), matplotlib.pyplot.get_fignums())

    with open(tiny / "notebooks" / "tiny.py", "a") as source:
        source.write(MORE)
    matplotlib.pyplot.get_fignums()
    before = state()
    executed(tiny)
    assert state() == before
    with open(tiny / "notebooks" / "tiny.py", "a") as source:
        source.write("\nraise KeyError('x')\n")
    with pytest.raises(runner.NotebookFailed, match="KeyError"):
        executed(tiny)
    assert state() == before
