"""What the outputs of an executed notebook are called, and how they are read."""

from __future__ import annotations

import base64
import re

from mia_lib.errors import MiaError

OURS = "application/vnd.mia."  # outputs of these types speak to the book, not to the reader
TABLE, CLAIMS, RESULTS = OURS + "table+json", OURS + "claims+json", OURS + "results+json"
AUDIT, GAME = OURS + "audit+json", OURS + "game+json"  # whole reports; the deal of a membership game
VEGA_LITE = "application/vnd.vegalite.v5+json"  # of explorable figures


def displayed_outputs(notebook: dict) -> tuple[dict, dict[str, bytes]]:
    """What an executed notebook shows under a name, as data, and its figures as they were drawn.

    Returns:
        {"tables": name -> {"markdown", ...}, "figures": name -> {"caption", "alt", "file"}, "claims": [...],
        "results": name -> {...}}; and PNGs by file.

    Raises:
        MiaError: two results have one name.
    """
    found: dict = {"tables": {}, "figures": {}, "claims": [], "results": {}}
    images: dict[str, bytes] = {}
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            figure, image = output.get("metadata", {}).get("mia"), data.get("image/png")
            if figure and image:
                images[f"{figure['name']}.png"] = base64.b64decode("".join(image))
                found["figures"][figure["name"]] = {**figure, "file": f"{figure['name']}.png"}
            if TABLE in data:
                markdown = "".join(data["text/markdown"])
                found["tables"][data[TABLE]["name"]] = {**data[TABLE], "markdown": markdown}
            found["claims"] += data.get(CLAIMS, [])
            for name, result in data.get(RESULTS, {}).items():
                if name in found["results"]:
                    raise MiaError(f"two results are named {name!r}: results.name gives each name once.")
                found["results"][name] = result
    return found, images


def for_readers(outputs: list[dict]) -> list[dict]:
    """The outputs of a cell without what they carry for the book."""
    shown = []
    for output in outputs:
        if "data" in output:
            if RESULTS in output["data"]:  # its plain text is for a notebook that is read outside the book
                continue
            output = {**output, "data": {k: v for k, v in output["data"].items() if not k.startswith(OURS)}}
            if not output["data"]:
                continue
        shown.append(output)
    return shown


def plain(text: str) -> str:
    """`text` without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
