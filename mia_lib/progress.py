"""Progress that reaches the person waiting, whether the code runs in a notebook, a terminal or under `mia`.

When `MIA_PROGRESS` names a file (the runner sets it), each step appends one JSON line there and the runner draws the
bars, so that nothing of them lands in the rendered page. Otherwise tqdm draws one bar on standard error.

`Bars` are these bars: drawn by rich in a terminal, a plain line now and then anywhere else.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from mia_lib import environment


def say(text: str) -> None:
    """Tell the person waiting something that is not progress."""
    if environment.progress_file():
        _append({"say": text})
    else:
        print(text, file=sys.stderr, flush=True)


def warn(text: str, stacklevel: int = 1) -> None:
    """Warn of what is of this machine and not of a result: where a page is made it reaches the person waiting, not the page.
    The level is as of `warnings.warn`; 1 is the caller."""
    if environment.progress_file():
        _append({"say": text})
    else:
        warnings.warn(text, stacklevel=stacklevel + 1)


def _append(line: dict) -> None:
    with open(environment.progress_file(), "a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


class Bar:
    """Counts finished steps of one piece of work, of which people are told the label."""

    def __init__(self, label: str, total: int):
        self.label, self.total, self.done = label, total, 0
        self._told = bool(environment.progress_file())
        self._tqdm = None
        if not self._told and total:
            from tqdm import tqdm

            self._tqdm = tqdm(total=total, desc=label, leave=False, delay=0.5)
        self.advance(0)

    def advance(self, steps: int = 1) -> None:
        """Report `steps` more finished steps."""
        self.done += steps
        if self._tqdm is not None:
            self._tqdm.update(steps)
        elif self._told:
            _append(
                {"label": self.label, "done": self.done, "total": self.total, "time": time.time()}
            )

    def close(self) -> None:
        """Take the bar away."""
        if self._tqdm is not None:
            self._tqdm.close()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def track(items: Sequence, label: str) -> Iterator:
    """Yield `items` one by one under a bar."""
    with Bar(label, len(items)) as bar:
        for item in items:
            yield item
            bar.advance()


EVERY = 10.0  # seconds between two plain lines of the same bar


def duration(seconds: float) -> str:
    """`seconds` for people: "42 s", "3 min 20 s", "1 h 5 min"."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


class Bars:
    """One bar a piece of work, by label: counts, and time left from the pace so far, on a rich console or standard output."""

    def __init__(self, console=None):
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        self.console = console or Console()
        self._drawn = None
        if self.console.is_terminal:
            self._drawn = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
                console=self.console,
                transient=True,
            )
        self._tasks: dict[str, dict] = {}

    def __enter__(self) -> Bars:
        if self._drawn:
            self._drawn.start()
        return self

    def __exit__(self, *_) -> None:
        if self._drawn:
            self._drawn.stop()

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def update(self, label: str, done: int, total: int, left: float | None = None) -> None:
        """Set the bar `label` to `done` of `total` steps; a finished bar goes away.

        `left` are the seconds to go: from the pace so far when None, not said when not a number.
        """
        task, now = self._tasks.get(label), time.monotonic()
        if task is None or done < task["done"] or total != task["total"]:
            self._remove(label)
            # What was done before the bar began (models found in the store) says nothing about the pace.
            task = self._tasks[label] = {"began": now, "from": done, "told": now, "total": total}
            if self._drawn:
                task["id"] = self._drawn.add_task(label, total=total, completed=done, left="")
        task |= {"done": done, "left": left}
        if self._drawn:
            self._drawn.update(task["id"], completed=done, left=self._left(task))
        elif now - task["told"] >= EVERY:
            task["told"] = now
            self.say(", ".join(filter(None, (f"{label}: {done}/{total}", self._left(task)))))
        if done >= total:
            self._remove(label)

    @staticmethod
    def _left(task: dict) -> str:
        seconds, moved = task["left"], task["done"] - task["from"]
        if seconds is None:
            seconds = (
                (time.monotonic() - task["began"]) / moved * (task["total"] - task["done"])
                if moved
                else math.nan
            )
        return "" if math.isnan(seconds) else f"about {duration(seconds)} left"

    def _remove(self, label: str) -> None:
        task = self._tasks.pop(label, None)
        if task and self._drawn:
            self._drawn.remove_task(task["id"])


class Tail:
    """Reads what `mia_lib.progress` appended to the file that `MIA_PROGRESS` names since the last look."""

    def __init__(self, path: Path):
        self.path, self._read = Path(path), 0

    def __iter__(self):
        """Yield the dictionaries of new complete lines."""
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            file.seek(self._read)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                # two processes may have written at once; the next line says it again
                continue
