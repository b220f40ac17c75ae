"""Figures on a page: `show` puts one there with caption and alternative text, and `explore` puts a chart that readers can
move in its place where there is a screen and a script.
"""

from __future__ import annotations

import base64
import io
import json
import math

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

from mia_book.evidence import results
from mia_lib.drawing import DPI, INK
from mia_lib.errors import MiaError

VEGA_LITE = "application/vnd.vegalite.v5+json"
FEW_COLOURS = 8000  # of a picture without photographs, edges of lines and bands included
VEGA_LITE_VERSION = "5.20"  # Altair 5.5's; JupyterLab, too, draws the fifth
LIMIT = 300_000  # bytes of an explorable chart, which stands in its page as text
PARTS = ("concat", "hconcat", "vconcat", "facet", "repeat")
LOOK = {
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "domainColor": INK,
        "tickColor": INK,
        "gridColor": "#E4E4E4",
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
    },
    "legend": {"labelColor": INK, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12},
    "text": {"color": INK, "fontSize": 13},
    "title": {"color": INK, "fontSize": 14},
    "view": {"continuousWidth": 300, "continuousHeight": 260, "stroke": None},
}


class _Altair:
    """The module Altair, imported when something in it is first used: only charts that readers move
    need it."""

    def __getattr__(self, name: str):
        if name.startswith("__"):  # that somebody inspects this module is no use of Altair
            raise AttributeError(name)
        try:
            import altair
        except ImportError:
            raise MiaError(
                "Explorable figures are drawn with Altair, which is not installed: "
                'python -m pip install "altair>=5.5,<6"'
            ) from None
        return getattr(altair, name)


altair = _Altair()


def show(fig: Figure, name: str, caption: str = "", alt: str = "") -> None:
    """Display a figure once and close it. In a notebook its words stand as `:::{caption} NAME` in Markdown beside the cell.

    Args:
        name: label, lower-case letters, digits and hyphens, unique in the book.
        caption: what code alone can say, after what the Markdown says is drawn.
        alt: the same for those who cannot see it, if the Markdown has none: what is on the axes and what the shape says.
    """
    results.display_bundle(*_bundle_of_png(_drawn(fig), name, caption, alt))


def _drawn(fig: Figure) -> bytes:
    """The figure as a PNG; it is closed."""
    drawn, png = io.BytesIO(), io.BytesIO()
    fig.savefig(drawn, dpi=DPI, format="png")
    plt.close(fig)
    # the ground is white, so nothing is seen through; and what holds no photographs loses nothing with a palette
    picture = Image.open(drawn).convert("RGB")
    if len(picture.getcolors(picture.width * picture.height)) < FEW_COLOURS:
        picture = picture.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    picture.save(png, format="png", optimize=True)
    return png.getvalue()


def explore(chart, fig: Figure, name: str) -> None:
    """Display a chart that readers can move, and the figure that stands for it in print and where no script runs. The
    Markdown beside the cell, `:::{caption} NAME`, has what can be moved and what to look for, `:instructions:`, too.

    A page of the book and JupyterLab draw the chart; all else draws the figure. What a view named "said" writes as text is
    also told to readers who cannot see it, each time it changes.

    Args:
        chart: of Altair, such as `explore.rates` makes, of at most 300 kB; with sliders and lists bound to its parameters.
        fig, name: as in `show`; the two pictures share the name.
    """
    results.display_bundle(*bundle_of_chart(chart, fig, name))


def bundle_of_chart(
    chart,
    fig: Figure | None,
    name: str,
    caption: str = "",
    alt: str = "",
    instructions: str = "",
) -> tuple[dict, dict]:
    """Output that `explore` displays, as its data and metadata, with words that no Markdown says. Without a figure, a
    picture of the chart as it opens stands for it."""
    spec = specification_of_chart(chart, name, alt, instructions)
    if fig is None:
        import vl_convert

        png = vl_convert.vegalite_to_png(
            json.dumps(spec), vl_version=VEGA_LITE_VERSION, scale=DPI / 100
        )
    else:
        png = _drawn(fig)
    bundle, metadata = _bundle_of_png(png, name, caption, alt)
    return {**bundle, VEGA_LITE: spec}, metadata


def specification_of_chart(chart, name: str, alt: str, instructions: str) -> dict:
    """A chart in Vega-Lite as a page holds it: in the book's look, with a description, and with
    four significant digits of its data, so that it is not too heavy; a chart of one view is as wide
    as the page. Arguments and errors as for `explore`."""
    if not isinstance(chart, altair.TopLevelMixin):
        raise MiaError(f"{name}: chart is of type {type(chart).__name__}. Give a chart of Altair.")
    with altair.data_transformers.disable_max_rows():  # LIMIT takes its place
        spec = chart.to_dict()
    spec = {key: _rounded(part, key in ("data", "datasets")) for key, part in spec.items()}
    spec["config"] = LOOK | {
        key: LOOK.get(key, {}) | value if isinstance(value, dict) else value
        for key, value in spec.get("config", {}).items()
        if key != "view"
    }
    if not any(part in spec for part in PARTS):
        spec.setdefault("width", "container")
    spec |= {
        "background": "white",
        "description": " ".join(alt.split()),
        "usermeta": {"instructions": " ".join(instructions.split())},
    }
    size = len(json.dumps(spec, separators=(",", ":")).encode())
    if size > LIMIT:
        raise MiaError(
            f"{name}: the chart has {size / 1000:.0f} kB, and a page holds at most {LIMIT / 1000:.0f} kB of one. "
            "Give it fewer rows, or fewer columns."
        )
    return spec


def _rounded(part, data: bool):
    """A part of a specification in which floats of data have four significant digits, and None
    stands for those that are not finite. Floats outside of data are positions, and stay."""
    if isinstance(part, dict):
        return {key: _rounded(one, data or key == "data") for key, one in part.items()}
    if isinstance(part, list):
        return [_rounded(one, data) for one in part]
    if not data or not isinstance(part, float):
        return part
    if not math.isfinite(part):
        return None
    return int(part) if part.is_integer() and abs(part) < 2**53 else float(f"{part:.4g}")


def _bundle_of_png(png: bytes, name: str, caption: str, alt: str) -> tuple[dict, dict]:
    results.check_name(name)
    width, height = (side * 100 // DPI for side in Image.open(io.BytesIO(png)).size)
    caption, alt = " ".join(caption.split()), " ".join(alt.split())
    return (
        {"image/png": base64.b64encode(png).decode(), "text/plain": alt},
        {
            "image/png": {"width": width, "height": height},
            "mia": {"name": name, "caption": caption, "alt": alt, "width": width},
        },
    )
