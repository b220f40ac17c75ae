"""What an explorable figure says, as a table of words: for those who see no chart, run no script, or print the page.

The view "said" of a chart writes what the chart shows. Here it is asked the same for a few settings: as the chart begins, and
with one control moved at a time. So the words are made from the chart's own data, by its own formulas.
"""

from __future__ import annotations

import json
from functools import lru_cache
from html import escape
from xml.etree import ElementTree

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
    controls = [one for one in spec.get("params", []) if "bind" in one]
    fixed = [one for one in spec.get("params", []) if "bind" not in one and "select" not in one]
    alone = {key: spec[key] for key in KEPT if key in spec} | view
    rows = []
    for words, values in _settings(controls):
        params = [{"name": one["name"], "value": values[one["name"]]} for one in controls]
        lines = _said(json.dumps({**alone, "params": fixed + params}, sort_keys=True), version)
        rows.append(f'<tr><th scope="row">{escape(words)}</th><td>{"<br>".join(map(escape, lines)) or "nothing"}</td></tr>')
    head = '<thead><tr><th scope="col">setting</th><th scope="col">what the chart says</th></tr></thead>'
    return ('<details class="mia-fold mia-words"><summary>Open: ' + what + ' in words, at a few settings</summary>'
            f'<table class="table">{head}<tbody>{"".join(rows)}</tbody></table></details>')


def _view(part: dict, data: dict | None = None) -> dict | None:
    """The view "said" with the data that it reads, its own or those of what it stands in."""
    data = part.get("data", data)
    if part.get("name") == SAID:
        return {**part, **({"data": data} if data else {})}
    return next(filter(None, (_view(one, data) for name in PARTS for one in part.get(name, []))), None)


def _settings(controls: list[dict]) -> list[tuple[str, dict]]:
    """Words and values of settings: where every control begins, then one control moved and the others left there."""
    first = {one["name"]: one.get("value") for one in controls}
    begins = "; ".join(f"{_label(one)}: {_plain(one['value'])}" for one in controls if one.get("value") is not None)
    found = [(f"As it begins: {begins}", first)]
    for one in controls:
        found += [(f"{_label(one)}: {_plain(value)}", {**first, one["name"]: value}) for value in _places(one)]
    return found


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
def _said(spec: str, version: str) -> list[str]:
    """The lines that the view writes."""
    import vl_convert

    drawn = ElementTree.fromstring(vl_convert.vegalite_to_svg(spec, vl_version=version))
    texts = [text for group in drawn.iter(f"{SVG}g") if "mark-text" in group.get("class", "").split()
             and "role-mark" in group.get("class", "").split() for text in group.iter(f"{SVG}text")]
    lines = ["".join(line.itertext()) for text in texts for line in (list(text) or [text])]
    return [line for line in map(str.strip, lines) if line]
