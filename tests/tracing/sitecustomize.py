"""Python imports this at its start where its folder is on `PYTHONPATH`: notes which functions of the library are called.

Into the file that `MIA_CALLS` names go lines of JSON: {"code", "reached"} for each fingerprint under which something is kept,
and {"code", "called"} for each function, "module:name", that is called while it is computed; in a process of the pool, which
does not know what for, the code is "". And {"page", "ran"} for each function that ran at all, with the number of the kernel
for which it did, and {"page", "said"} for each that the page displays, or names as an attack.
"""

import inspect
import json
import os
import sys
import threading

LIBRARY = os.environ.get("MIA_CALLS_LIBRARY", "")


def begin(path: str) -> None:
    """Trace this process."""
    noted, within, worker = set(), [], "spawn_main" in " ".join(sys.orig_argv)

    def note(line: dict) -> None:
        text = json.dumps(line, sort_keys=True)
        if text not in noted:
            noted.add(text)
            with open(path, "a", encoding="utf-8") as out:
                out.write(text + "\n")

    seen, page = set(), os.getppid() if worker else os.getpid()

    def name_of(code) -> str:
        module = code.co_filename[len(LIBRARY):].strip(os.sep).removesuffix(".py").replace(os.sep, ".")
        return f"mia_lib.{module}".removesuffix(".__init__") + f":{code.co_qualname}"

    def said(frame) -> None:
        """Note what `show_source` is to display, or `threat_model` to declare."""
        values = [one for given in frame.f_locals.values() for one in (given.values() if isinstance(given, dict) else given)]
        for code in (one.__code__ for one in values if inspect.isfunction(one)):
            note({"page": page, "said": name_of(code)})

    def importing(frame) -> bool:
        """Whether a module of the library that is being imported calls: a constant's statement counts with the constant."""
        while frame is not None:
            if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(LIBRARY):
                return True
            frame = frame.f_back
        return False

    def until_it_ends(frame, event, _):
        if event == "return":
            within.pop()
        return until_it_ends

    def trace(frame, event, _):
        """Called once a call; it asks for more of that frame (its return) only of `_compute`."""
        code = frame.f_code
        if not code.co_filename.startswith(LIBRARY):
            return None
        name = code.co_qualname
        if code.co_filename.endswith("store.py"):
            if name == "keep":
                found = sys.modules["mia_lib.definitions"].known(frame.f_locals["spec"]["code"])
                if found is not None:
                    note({"code": found.fingerprint, "reached": sorted(found.definitions)})
            if name != "_compute":
                return None
            within.append(frame.f_locals["spec"]["code"])
            frame.f_trace_lines = False
            return until_it_ends
        if code not in seen:
            seen.add(code)
            note({"page": page, "ran": name_of(code)})
        if name in ("show_source", "threat_model"):
            said(frame)
        fingerprint = within[-1] if within else ""
        of_function = code.co_flags & inspect.CO_OPTIMIZED  # and not of a module or of the body of a class
        if (within or worker) and of_function and (code, fingerprint) not in seen and not importing(frame):
            seen.add((code, fingerprint))
            module, _, inside = name_of(code).partition(":")
            note({"code": fingerprint, "called": f"{module}:{inside.partition('.')[0]}"})
        return None

    threading.settrace(trace)
    sys.settrace(trace)


started_as = " ".join(sys.orig_argv)
if os.environ.get("MIA_CALLS") and ("ipykernel_launcher" in started_as or "spawn_main" in started_as):
    begin(os.environ["MIA_CALLS"])
