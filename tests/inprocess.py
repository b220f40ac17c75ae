"""Notebooks run in the process of the tests, in the shell that a kernel has, without the seconds a kernel takes to start.

Papermill hands the cells to `Engine`, which gives them to ipykernel's own shell and gathers what that would send over its
sockets; all else is as ever. What only a process of its own can do (to die, to be interrupted) needs a kernel.
"""

import atexit
import builtins
import contextlib
import io
import os
import sys
import threading
import warnings

import papermill.engines
from ipykernel.compiler import XCachingCompiler
from ipykernel.ipkernel import IPythonKernel
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.pylabtools import activate_matplotlib
from jupyter_client.session import Session
from matplotlib_inline.backend_inline import configure_inline_support
from matplotlib_inline.config import InlineBackend
from nbformat.v4 import new_output, output_from_msg
from traitlets.config import Config

INLINE = "module://matplotlib_inline.backend_inline"  # what a kernel sets when nobody else does
WITHOUT_HISTORY = Config({"HistoryManager": {"enabled": False}})


class Outputs(Session):
    """Takes what the shell sends and keeps it as the outputs of the cell that runs."""

    def begin(self, cell) -> None:
        cell.outputs = self.shown = []

    def send(self, stream, msg_or_type, content=None, parent=None, **_) -> None:
        message = msg_or_type if isinstance(msg_or_type, dict) else self.msg(msg_or_type, content, parent)
        self.shown.append(output_from_msg(message))


class Stream(io.TextIOBase):
    """Standard output or error: what the thread of the cells writes goes to their outputs, anything else on its way."""

    def __init__(self, name: str, outputs: Outputs, other):
        self.name, self.outputs, self.other, self.thread = name, outputs, other, threading.get_ident()

    def write(self, text: str) -> int:
        if threading.get_ident() != self.thread:
            return self.other.write(text)
        shown = self.outputs.shown
        if same := [output for output in shown if output.get("name") == self.name]:
            same[0]["text"] += text
        elif text:
            first = self.name == "stdout" and shown and shown[-1].get("name") == "stderr"  # of the two, as nbclient has it
            shown.insert(len(shown) - bool(first), new_output("stream", name=self.name, text=text))
        return len(text)


@contextlib.contextmanager
def _as_in_a_kernel(folder: str, environment: dict[str, str]):
    """A process like a kernel's as long as it lasts: folder, environment, path, warnings."""
    import matplotlib
    import matplotlib.pyplot as plt

    kept, path, backend = dict(os.environ), list(sys.path), matplotlib.get_backend()
    vars(builtins).pop("_", None)  # what an example in a docstring showed last; a shell would not set its own
    plt.close("all")  # what another test left open would be shown
    with contextlib.chdir(folder), warnings.catch_warnings(), matplotlib.rc_context():
        try:
            matplotlib.rcdefaults()
            warnings.showwarning = lambda *said: sys.stderr.write(warnings.formatwarning(*said[:4]))
            warnings.simplefilter("default")
            for unsaid in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
                warnings.simplefilter("ignore", unsaid)
            warnings.filterwarnings("default", category=DeprecationWarning, module="__main__")
            os.environ |= environment
            yield
        finally:
            os.environ.clear()
            os.environ |= kept
            sys.path[:] = path
            plt.close("all")
            InlineBackend.clear_instance()
            plt.switch_backend(backend)


@contextlib.contextmanager
def _shell(outputs: Outputs, environment: dict[str, str]):
    """ipykernel's shell, which sends to `outputs`."""
    shell = ZMQInteractiveShell.instance(ipython_dir=environment["IPYTHONDIR"], compiler_class=XCachingCompiler,
                                         config=WITHOUT_HISTORY)
    streams = sys.stdout, sys.stderr
    try:
        shell.displayhook.session = shell.display_pub.session = outputs
        shell.displayhook.topic = b"execute_result"
        activate_matplotlib(INLINE)
        vars(configure_inline_support).pop("current_backend", None)  # else it takes this shell for one that it has seen
        configure_inline_support(shell, INLINE)
        sys.stdout, sys.stderr = Stream("stdout", outputs, sys.stdout), Stream("stderr", outputs, sys.stderr)
        yield shell
    finally:
        sys.stdout, sys.stderr = streams
        shell.restore_sys_module_state()
        shell.atexit_operations()
        atexit.unregister(shell.atexit_operations)  # which would keep the cells' arrays until then
        ZMQInteractiveShell.clear_instance()


class Engine(papermill.engines.Engine):
    """Executes the cells of a notebook in this process, in the thread that asks."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, *, kernel_manager_class, resources, on_cell_execute,
                                 on_cell_executed, **_):
        environment = kernel_manager_class.kernel_spec.env
        outputs = Outputs()
        with _as_in_a_kernel(resources["metadata"]["path"], environment), _shell(outputs, environment) as shell:
            for index, cell in enumerate(nb_man.nb.cells):
                nb_man.cell_start(cell, index)
                try:
                    if cell.cell_type != "code" or not cell.source.strip():
                        continue
                    on_cell_execute(cell=cell, cell_index=index)
                    outputs.begin(cell)
                    cell.execution_count = shell.execution_count
                    done = shell.run_cell(cell.source, store_history=True)
                    on_cell_executed(cell=cell, cell_index=index, execute_reply=done)
                    if not done.success:
                        nb_man.cell_exception(cell, cell_index=index)
                        break
                finally:
                    nb_man.cell_complete(cell, cell_index=index)
        nb_man.nb.metadata["language_info"] = IPythonKernel.language_info


@contextlib.contextmanager
def kernels_replaced():
    """As long as it lasts, `runner` runs notebooks in this process."""
    engines = papermill.engines.papermill_engines
    engines.register(None, Engine)
    try:
        yield
    finally:
        engines.register(None, papermill.engines.NBClientEngine)
