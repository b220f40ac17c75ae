"""Installs what its arguments, in pip's words, say, beside the Python that runs it: by uv where that is there, or by pip.

`make setup` calls it: .venv/bin/python .ci/install.py -c constraints.txt -e ".[test,lab]"
uv does not read what pip is configured to, a mirror, say, or a folder of wheels; it is told here.
"""

import ast
import subprocess
import sys
from pathlib import Path

TOLD = (
    "index-url",
    "extra-index-url",
    "find-links",
    "constraint",
    "cert",
    "trusted-host",
)  # of these names for uv, too
PIP = [sys.executable, "-m", "pip"]


def configured(listed: str) -> list[str]:
    """What `pip config list` prints as arguments for uv. As with pip, [install] goes before [global], PIP_NAME before both."""
    values = {}
    for section in ("global.", "install.", ":env:."):
        for line in listed.splitlines():
            if line.startswith(section):
                name, _, value = line.removeprefix(section).partition("=")
                values[name] = ast.literal_eval(value).split()
    offline = values.get("no-index", [""])[0].lower() in ("1", "true", "t", "yes", "y", "on")
    told = [f"--{name}={value}" for name in TOLD for value in values.get(name, [])]
    return told + ["--no-index"] * offline


def main(wanted: list[str]) -> int:
    uv = Path(sys.executable).with_name("uv")
    if uv.exists():
        listed = subprocess.run(
            [*PIP, "config", "list"], capture_output=True, text=True, check=True
        ).stdout
        # As pip does: the newest version of all indexes, not of the first that has the name; and modules compiled at once.
        as_pip = [
            "--index-strategy",
            "unsafe-best-match",
            "--compile-bytecode",
            *configured(listed),
        ]
        if (
            subprocess.run(
                [uv, "pip", "install", "--python", sys.executable, *as_pip, *wanted]
            ).returncode
            == 0
        ):
            return 0
    print("uv cannot install here: pip does, which takes longer.", flush=True)
    return subprocess.run([*PIP, "install", *wanted]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
