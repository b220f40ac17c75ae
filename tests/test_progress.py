"""Progress as whoever waits sees it."""

import io
import math
import time

from rich.console import Console

from mia_lib.progress import Bars, Tail


def test_plain_lines_say_counts_and_time_left_or_what_whoever_knows_better_says(
    capsys, monkeypatch
):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with Bars() as bars:
        for clock[0], label, *given in (
            (0.0, "models", 2, 10),
            (5.0, "models", 3, 10),
            (20.0, "models", 6, 10),
            (31.0, "models", 7, 10),
            (31.0, "models", 10, 10),
            (31.0, "models", 0, 4),
            (31.0, "cells", 0, 3),
            (51.0, "cells", 1, 3, 3900.0),
            (71.0, "cells", 1, 3, math.nan),
        ):
            bars.update(label, *given)  # after ten of ten the label is of other work
    assert capsys.readouterr().out.splitlines() == [
        "models: 6/10, about 20 s left",
        "models: 7/10, about 19 s left",
        "cells: 1/3, about 1 h 5 min left",
        "cells: 1/3",
    ]


def test_bars_are_drawn_in_a_terminal():
    out = io.StringIO()
    with Bars(Console(file=out, force_terminal=True, width=100)) as bars:
        bars.update("models [/mine]", 1, 4)  # a name may look like a tag
        bars.say("a line")
        bars._drawn.refresh()
        bars.update("models [/mine]", 4, 4)
    assert "models [/mine]" in out.getvalue()
    assert "1/4" in out.getvalue()
    assert "a line" in out.getvalue()


def test_the_tail_yields_whole_lines_only(tmp_path):
    path = tmp_path / "p"
    tail = Tail(path)
    assert list(tail) == []
    path.write_text('{"a": 1}\nbroken\n{"a"')
    assert list(tail) == [{"a": 1}]
    with open(path, "a") as file:
        file.write(": 2}\n")
    assert list(tail) == [{"a": 2}] and list(tail) == []
