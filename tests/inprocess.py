"""Notebooks run in the process of the tests, in IPython's shell, without the seconds a kernel takes to start.

Papermill hands the cells to `Engine`; all else is as ever. What only a process of its own can do (to die, to be interrupted)
needs a kernel.
"""

import atexit
import contextlib
import os
import sys

import papermill.engines
from ipykernel.ipkernel import IPythonKernel
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbformat.v4 import new_output
from traitlets.config import Config

WITHOUT_HISTORY = Config({"HistoryManager": {"enabled": False}})


@contextlib.contextmanager
def _shell(folder: str, environment: dict[str, str]):
    """A shell in a process like a kernel's as long as it lasts: folder, environment, path, modules."""
    kept, path = dict(os.environ), list(sys.path)
    shell = InteractiveShell.instance(ipython_dir=environment["IPYTHONDIR"], config=WITHOUT_HISTORY)
    try:
        os.environ |= environment
        with contextlib.chdir(folder):
            yield shell
    finally:
        os.environ.clear()
        os.environ |= kept
        sys.path[:] = path
        shell.restore_sys_module_state()
        shell.atexit_operations()
        atexit.unregister(shell.atexit_operations)  # which would keep the cells' arrays until then
        InteractiveShell.clear_instance()


class Engine(papermill.engines.Engine):
    """Executes the cells of a notebook in this process, in the thread that asks."""

    @classmethod
    def execute_managed_notebook(
        cls,
        nb_man,
        kernel_name,
        *,
        kernel_manager_class,
        resources,
        on_cell_execute,
        on_cell_executed,
        **_,
    ):
        errors = []
        with _shell(resources["metadata"]["path"], kernel_manager_class.kernel_spec.env) as shell:
            shell._showtraceback = lambda kind, error, lines: errors.append(
                new_output("error", ename=kind.__name__, evalue=str(error), traceback=lines)
            )
            for index, cell in enumerate(nb_man.nb.cells):
                nb_man.cell_start(cell, index)
                try:
                    if cell.cell_type != "code" or not cell.source.strip():
                        continue
                    on_cell_execute(cell=cell, cell_index=index)
                    cell.execution_count = shell.execution_count
                    with capture_output() as captured:
                        done = shell.run_cell(cell.source, store_history=True)
                    texts = [("stdout", captured.stdout), ("stderr", captured.stderr)]
                    cell.outputs = [
                        new_output("stream", name=name, text=text) for name, text in texts if text
                    ]
                    cell.outputs += [
                        new_output("display_data", one.data, metadata=one.metadata)
                        for one in captured.outputs
                    ]
                    cell.outputs += errors
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
