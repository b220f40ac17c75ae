"""Figures: one look, no overlapping text, and what is displayed."""

import base64
import io
import itertools
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from PIL import Image

from mia_book.evidence import figures, results
from mia_lib import drawing, metrics
from mia_lib.errors import MiaError


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def gaussian(targets=1, n=400):
    rng = np.random.default_rng(0)
    members = rng.random((targets, n)) < 0.5
    return rng.normal(size=members.shape) + members, members


def texts(fig):
    """Visible texts with their boxes in pixels."""
    fig.canvas.draw()
    axes = [axis for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)]
    ticks = {tick.label1 for axis in axes for tick in (*axis.majorTicks, *axis.minorTicks)}
    drawn = {
        tick.label1 for axis in axes for tick in axis._update_ticks()
    }  # the others are out of view
    return [
        (text.get_text(), text.get_window_extent())
        for text in fig.findobj(Text)
        if text.get_visible() and text.get_text().strip() and text not in ticks - drawn
    ]


def assert_tidy(fig, *named):
    """No text overlaps another or leaves the figure, none is smaller than 9 points, nothing is transparent."""
    found = texts(fig)
    assert {*named} <= {text for text, _ in found}
    for (one, a), (other, b) in itertools.combinations(found, 2):
        shared = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert min(shared) <= 1, f"{one!r} overlaps {other!r}"
    for text, box in found:
        assert box.x0 >= -1 and box.x1 <= fig.bbox.x1 + 1 and box.y1 <= fig.bbox.y1 + 1, (
            f"{text!r} is cut off"
        )
    for text in fig.findobj(
        Text
    ):  # exponents of logarithmic ticks are set smaller within their own text
        assert text.get_fontsize() >= 9, text.get_text()
    assert fig.get_facecolor() == (1, 1, 1, 1) and fig.axes[0].get_facecolor() == (1, 1, 1, 1)


def linear(color: str) -> np.ndarray:
    channels = np.array(to_rgb(color))
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(color: str, ground: str = "white") -> float:
    light, dark = sorted(
        (float(linear(one) @ (0.2126, 0.7152, 0.0722)) for one in (color, ground)), reverse=True
    )
    return (light + 0.05) / (dark + 0.05)


# What is left of red, green and blue light for who lacks one kind of cone (Machado, Oliveira and Fernandes 2009).
VISIONS = {
    "all cones": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
APART = 18.0  # in CIELAB, where 2.3 is just noticed and Okabe and Ito's seven colours keep 16
COLORS = tuple(drawing.COLORS.values())


def seen(color: str, vision) -> np.ndarray:
    """Lightness and two hues of a colour as somebody sees it, in CIELAB."""
    share = XYZ @ np.clip(np.array(vision) @ linear(color), 0, 1) / XYZ.sum(1)
    x, y, z = np.where(share > 216 / 24389, np.cbrt(share), (24389 / 27 * share + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISIONS)
def test_any_two_colours_are_apart_also_for_who_lacks_a_kind_of_cone(vision):
    for one, other in itertools.combinations(COLORS, 2):
        assert np.linalg.norm(seen(one, VISIONS[vision]) - seen(other, VISIONS[vision])) > APART, (
            one,
            other,
        )


def test_every_attack_and_every_spare_look_differ_also_without_colour():
    kept = {name: look for name, look in drawing.STYLE.items() if name != "MAST (best split)"}
    assert len({tuple(map(str, look.values())) for look in kept.values()}) == len(kept)
    lines = [
        (look["linestyle"], look["marker"])
        for name, look in kept.items()
        if name not in ("members", "non-members")
    ]
    assert len(set(lines)) == len(lines) and drawing.style_of("MALT", 5) == drawing.STYLE["MALT"]
    spare = [drawing.style_of("new attack", place) for place in range(28)]
    of_spare = {(look["linestyle"], look["marker"]) for look in spare}
    assert len(of_spare) == 28 and not of_spare & set(lines)
    assert all(one["color"] != other["color"] for one, other in itertools.pairwise(spare))


# What is pale on purpose: grounds, grids, shades behind marks, and squares that stand for records left alone or missed,
# whose numbers the figure says in words.
GROUNDS = {"#E2E2E2", "#E4E4E4", "#EDEDED", "#A9CDE4"}


def test_every_colour_of_every_figure_has_contrast_on_white():
    assert all(
        contrast(color) >= 3
        for color in (*COLORS, *(look["color"] for look in drawing.STYLE.values()))
    )
    library = Path(drawing.__file__).parents[1]
    sources = [*library.glob("*/*.py"), *(library / "mia_book").rglob("*.py")]
    named = {
        color: path.name
        for path in sources
        for color in re.findall(r"\"(#[0-9A-F]{6})\"", path.read_text())
    }
    pale = {color: where for color, where in named.items() if contrast(color) < 3}
    assert set(pale) == GROUNDS, pale
    letters = [
        drawing.INK,
        drawing.FAINT,
        "#555555",
        *(tuple(0.7 * c for c in to_rgb(color)) for color in COLORS),
    ]
    assert all(contrast(color) >= 4.5 for color in letters)
    assert contrast("#555555", "#E2E2E2") >= 4.5 and contrast(drawing.INK, "#E2E2E2") >= 4.5


def test_roc_draws_the_curve_of_the_metric_down_to_the_resolution_square_in_equal_decades():
    scores, members = gaussian(targets=3)
    fig = drawing.roc(
        {"MALT": scores, "MAST": 2 * scores + members}, members, paper={"MAST": [(0.01, 0.3)]}
    )
    ax = fig.axes[0]
    assert (
        ax.get_xlim() == ax.get_ylim()
        and ax.get_box_aspect() == 1
        and ax.get_xscale() == ax.get_yscale() == "log"
    )
    curve = next(line for line in ax.lines if line.get_label() == "MALT")
    assert curve.get_xdata().min() == pytest.approx(1 / (~members).sum(1).min())
    for x, y in list(zip(*curve.get_data(), strict=True))[::37]:
        exact = metrics.tpr_at_fpr(scores, members, x * (1 + 1e-12)).mean() if x < 1 else 1.0
        assert y == pytest.approx(exact) or exact == 0
    assert len(ax.collections) >= 1  # the band over targets
    assert_tidy(fig, "MALT", "MAST", "chance")


def test_roc_labels_five_curves_where_they_enter_and_gives_more_a_legend():
    scores, members = gaussian(targets=2, n=2000)
    rng = np.random.default_rng(1)
    five = {
        "0-1": (scores > 0.5) * 1.0,
        **{
            name: scores + 0.2 * rng.normal(size=scores.shape)
            for name in ("Shadow models", "MALT", "MAST (mean out)", "MATT")
        },
    }
    fig = drawing.roc(five, members)
    assert not fig.legends
    assert_tidy(fig, *five)
    six = drawing.roc({**five, "LiRA": scores}, members)
    assert {text.get_text() for text in six.legends[0].get_texts()} == {*five, "LiRA"}
    assert_tidy(six)
    with pytest.raises(MiaError, match="rates are shares"):
        drawing.roc(five, members, paper={"MALT": [(1.0, 50.0)]})
    with pytest.raises(MiaError, match="scores has 1 more than once"):
        drawing.roc({1: np.arange(4.0), "1": -np.arange(4.0)}, [True, False, True, False])
    with pytest.raises(MiaError, match="at least one attack"):
        drawing.roc({}, members)


def test_roc_writes_names_as_they_are():
    scores, members = gaussian(targets=1)
    named = {"$\\frac$ or $x$": scores, 0: scores + members}
    assert_tidy(drawing.roc(named, members), r"\$\frac\$ or \$x\$", "0")


def test_a_name_is_no_formula_whatever_stands_in_it():
    scores, members = gaussian()
    name = "$\\frac$"
    rows = pd.DataFrame(
        {"attack": name, "data": [name, "b"], "auc": 0.6, "low": 0.5, "high": 0.7, "set": name}
    )
    for figure in (
        drawing.roc({name: scores}, members),
        drawing.histograms({name: (scores[0], members[0])}),
        drawing.roc({f"{name}{k}": scores for k in range(6)}, members),
        drawing.lineplot(rows, "data", "auc", "attack", panel="set"),
    ):
        assert any(text.startswith("\\$\\frac\\$") for text, _ in texts(figure))


def test_a_lineplot_over_a_number_with_the_papers_values():
    frame = results.paper("bayes", "table1").query("metric == 'attack_accuracy'")
    frame = frame.assign(
        n=frame.setting.str.extract(r"n = (\d+)").astype(int), paper_value=frame.value / 100
    )
    frame = frame.assign(
        value=frame.paper_value + 0.01, low=frame.paper_value, high=frame.paper_value + 0.03
    )
    fig = drawing.lineplot(
        frame,
        "n",
        "value",
        "attack",
        paper="paper_value",
        log=True,
        percent=True,
        xlabel="records",
        ylabel="accuracy",
        chance=0.5,
    )
    assert_tidy(fig, "0-1", "MALT", "MATT", "printed in the paper", "400", "6k", "52 %")
    hollow = [line for line in fig.axes[0].lines if line.get_markerfacecolor() == "white"]
    assert sorted(y for line in hollow for y in line.get_ydata()) == sorted(frame.paper_value)


def test_a_lineplot_over_names_in_panels_and_more_than_five_lines():
    frame = results.paper("bayes", "table3").assign(
        x=lambda f: f.setting.str.removeprefix("augmentation: "),
        low=lambda f: f.value - 1,
        high=lambda f: f.value + 1,
    )
    assert_tidy(
        drawing.lineplot(frame, "x", "value", "attack", panel="model", ylabel="accuracy (%)"),
        "ResNet-101",
        "VGG-16",
    )
    many = pd.DataFrame(
        {"x": [1, 2] * 6, "y": np.arange(12.0), "who": np.repeat(list("abcdef"), 2)}
    )
    many = many.assign(low=many.y + 0.1, high=many.y + 0.3)
    fig = drawing.lineplot(many, "x", "y", "who")
    assert len(fig.legends[0].get_texts()) == 6
    ends = np.concatenate([bars.get_segments() for bars in fig.axes[0].collections])[..., 1]
    np.testing.assert_allclose(
        sorted(map(tuple, ends)),
        [(y, y + 0.3) for y in many.y],
        err_msg="never beyond the estimate",
    )
    assert_tidy(fig)
    three = pd.concat([many.assign(panel=panel) for panel in "uvw"])
    axes = drawing.lineplot(three, "x", "y", "who", panel="panel", rows=2).axes
    assert [(ax.get_title(), ax.get_xlabel()) for ax in axes[:3]] == [
        ("u", ""),
        ("v", "x"),
        ("w", "x"),
    ] and not axes[3].axison
    with pytest.raises(MiaError, match="lacks the columns z"):
        drawing.lineplot(many, "z", "y", "who")


def test_show_displays_once_in_double_resolution(monkeypatch):
    shown = []
    monkeypatch.setattr(results, "display_bundle", lambda *bundle: shown.append(bundle))
    fig = drawing.histograms({"MALT": (np.arange(8.0), np.arange(8) < 4)})
    figures.show(fig, "fig-posterior", "A caption\n  on two lines.", "Points on the diagonal.")
    ((data, metadata),) = shown
    assert metadata["mia"] == {
        "name": "fig-posterior",
        "caption": "A caption on two lines.",
        "alt": "Points on the diagonal.",
        "width": 700,
    }
    image = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
    assert image.size == (1400, 680) and image.convert("RGBA").getextrema()[3] == (255, 255)
    assert not plt.fignum_exists(fig.number)
    with pytest.raises(MiaError, match="linked"):
        figures.show(fig, "fig x")


def test_a_legend_names_each_thing_once_and_fits():
    figure, axes = drawing.panels(2)
    for axis in axes:
        axis.plot([0, 1], label="one")
        axis.plot([1, 0], label="another")
    names = [
        text.get_text()
        for text in drawing.legend(figure, 3, marks={"mark": drawing.hollow()}).get_texts()
    ]
    assert names == ["one", "another", "mark"]
    figure, (axis,) = drawing.panels()
    for k in range(4):
        axis.plot([0, 1], label=f"{k} is a name that takes about half of the width")
    made = drawing.legend(figure, 4)
    figure.canvas.draw()
    assert len(figure.legends) == 1 and made.get_window_extent().width <= figure.bbox.width
    assert drawing.legend(drawing.panels()[0]) is None
