"""Pieces of figures: each draws the numbers it was given, where a reader looks for them."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest

from mia_lib.evidence import panels


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_panels_stand_in_the_order_of_reading_and_places_left_over_are_empty():
    figure, axes = panels.grid(["a", "b", "c"], 5.0, "rate", rows=2)
    assert [axis.get_title() for axis in axes] == ["a", "b", "c", ""]
    assert [axis.get_ylabel() for axis in axes[:3]] == ["rate", "", "rate"]
    assert [axis.axison for axis in axes] == [True, True, True, False]
    assert tuple(figure.get_size_inches()) == (panels.WIDTH, 5.0)
    assert len(panels.grid()[1]) == 1 and len(panels.grid(4)[1]) == 4


def test_a_legend_names_each_thing_once_and_fits():
    figure, axes = panels.grid(2)
    for axis in axes:
        axis.plot([0, 1], label="one")
        axis.plot([1, 0], label="another")
    names = [text.get_text() for text in panels.legend(figure, 3, marks={"mark": panels.hollow()}).get_texts()]
    assert names == ["one", "another", "mark"]
    figure, (axis,) = panels.grid()
    for k in range(4):
        axis.plot([0, 1], label=f"{k} is a name that takes about half of the width")
    made = panels.legend(figure, 4)
    figure.canvas.draw()
    assert len(figure.legends) == 1 and made.get_window_extent().width <= figure.bbox.width
    assert panels.legend(panels.grid()[0]) is None


@pytest.mark.parametrize("which", ["xaxis", "yaxis"])
def test_ticks_are_where_they_were_asked_for_and_nowhere_else(which):
    axis = panels.grid()[1][0]
    axis.set(xscale="log", yscale="log", xlim=(0.5, 200), ylim=(0.5, 200))
    one = getattr(axis, which)
    panels.ticks(one, [1, 2.5, 100])
    assert [text.get_text() for text in one.get_ticklabels()] == ["1", "2.5", "100"]
    assert not len(one.get_minorticklocs())
    panels.ticks(one, [1, 2], ["a", "b"])
    assert [text.get_text() for text in one.get_ticklabels()] == ["a", "b"]
