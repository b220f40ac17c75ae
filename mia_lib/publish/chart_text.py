"""What an explorable figure says, as a table of words: for those who see no chart, run no script, or print the page.

The view "said" of a chart writes what the chart shows. Here it is asked the same for a few settings: as the chart begins, and
with one control moved at a time. So the words are made from the chart's own data, by its own formulas.
"""

from __future__ import annotations

import json
from functools import lru_cache
from xml.etree import ElementTree

from mia_lib.publish import templates

SAID = "said"  # name of the view
OTHERS = 3  # settings shown of each control besides the one that it begins with
PARTS = ("concat", "hconcat", "vconcat", "layer")
KEPT = ("$schema", "datasets")
SVG = "{http://www.w3.org/2000/svg}"


def table(spec: dict, version: str, what: str = "this chart") -> str:
    """A folded table in HTML: what the chart says at a few settings; nothing of a chart without a view "said".

    Args:
        spec: in Vega-Lite, as `plotting.explore` displays it.
        version: of Vega-Lite.
        what: the name of the chart on its page.
    """
    view = _view(spec)
    if view is None:
        return ""
    controls = [param for param in spec.get("params", []) if "bind" in param]
    fixed = [param for param in spec.get("params", []) if "bind" not in param and "select" not in param]
    alone = {key: spec[key] for key in KEPT if key in spec} | view
    rows = []
    for setting, values in _settings(controls):
        params = [{"name": control["name"], "value": values[control["name"]]} for control in controls]
        rows.append((setting, _lines(json.dumps({**alone, "params": fixed + params}, sort_keys=True), version)))
    return templates.render("chart_text.html", rows=rows, what=what).strip()


def _view(part: dict, data: dict | None = None) -> dict | None:
    """The view "said" with the data that it reads, its own or those of what it stands in."""
    data = part.get("data", data)
    if part.get("name") == SAID:
        return {**part, **({"data": data} if data else {})}
    return next(filter(None, (_view(inner, data) for name in PARTS for inner in part.get(name, []))), None)


def _settings(controls: list[dict]) -> list[tuple[str, dict]]:
    """Words and values of settings: where every control begins, then one control moved and the others left there."""
    first = {control["name"]: control.get("value") for control in controls}
    begins = "; ".join(f"{_label(control)}: {_plain(control['value'])}" for control in controls
                       if control.get("value") is not None)
    settings = [(f"As it begins: {begins}", first)]
    for control in controls:
        settings += [(f"{_label(control)}: {_plain(value)}", {**first, control["name"]: value}) for value in _places(control)]
    return settings


def _places(control: dict) -> list:
    """Other places of a control: the lowest, the middle and the highest of a slider, the first options of a list."""
    bind, begins = control["bind"], control.get("value")
    if bind["input"] == "range":
        low, high, step = (float(bind[name]) for name in ("min", "max", "step"))
        places = [round(low + step * round((high - low) / step * share), 6) for share in (0, 0.5, 1)]
    else:
        places = bind.get("options", [])
    return [place for place in dict.fromkeys(places) if place != begins][:OTHERS]


def _label(control: dict) -> str:
    return control["bind"].get("name", control["name"]).strip().rstrip(":")


def _plain(value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@lru_cache(maxsize=512)
def _lines(spec: str, version: str) -> list[str]:
    """The lines that the view writes."""
    import vl_convert

    drawn = ElementTree.fromstring(vl_convert.vegalite_to_svg(spec, vl_version=version))
    texts = [text for group in drawn.iter(f"{SVG}g") if "mark-text" in group.get("class", "").split()
             and "role-mark" in group.get("class", "").split() for text in group.iter(f"{SVG}text")]
    lines = ["".join(line.itertext()) for text in texts for line in (list(text) or [text])]
    return [line for line in map(str.strip, lines) if line]
