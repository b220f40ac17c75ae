"""Python imports this at its start where its folder is on `PYTHONPATH`: notes which functions of the library are called.

Into the file that `MIA_CALLS` names go lines of JSON: {"code", "reached"} for each fingerprint under which something is kept,
and {"code", "called"} for each function, "module:name", that is called while it is computed; in a process of the pool, which
does not know what for, the code is "".
"""

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

    seen = set()

    def profile(frame, event, _):
        code = frame.f_code
        if not code.co_filename.startswith(LIBRARY):
            return
        name = code.co_qualname
        if code.co_filename.endswith("store.py"):
            if name == "_compute" and event in ("call", "return"):
                within.append(frame.f_locals["spec"]["code"]) if event == "call" else within.pop()
            if name == "keep" and event == "call":
                spec = frame.f_locals["spec"]
                found = sys.modules["mia_lib.definitions"].known(spec["code"])
                if found is not None:
                    note({"code": spec["code"], "reached": sorted(found.definitions)})
            return
        if event != "call" or not (within or worker):
            return
        fingerprint = within[-1] if within else ""
        if (code, fingerprint) not in seen and name != "<module>":
            seen.add((code, fingerprint))
            module = code.co_filename[len(LIBRARY):].strip(os.sep).removesuffix(".py").replace(os.sep, ".")
            module = f"mia_lib.{module}".removesuffix(".__init__")
            note({"code": fingerprint, "called": f"{module}:{name.split('.')[0]}"})

    threading.setprofile(profile)
    sys.setprofile(profile)


if os.environ.get("MIA_CALLS") and LIBRARY:
    begin(os.environ["MIA_CALLS"])
