"""Progress that reaches the person waiting, whether the code runs in a notebook, a terminal or under `mia`.

When `MIA_PROGRESS` names a file (the runner sets it), each step appends one JSON line there and the runner draws the
bars, so that nothing of them lands in the rendered page. Otherwise tqdm draws one bar on standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator


def say(text: str) -> None:
    """Tell the person waiting something that is not progress."""
    if os.environ.get("MIA_PROGRESS"):
        _append({"say": text})
    else:
        print(text, file=sys.stderr, flush=True)


def _append(line: dict) -> None:
    with open(os.environ["MIA_PROGRESS"], "a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


class Bar:
    """Counts finished steps of one piece of work.

    Args:
        label: what is being done, for people.
        total: number of steps.
    """

    def __init__(self, label: str, total: int):
        self.label, self.total, self.done = label, total, 0
        self._told = bool(os.environ.get("MIA_PROGRESS"))
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
            _append({"label": self.label, "done": self.done, "total": self.total, "time": time.time()})

    def close(self) -> None:
        """Take the bar away."""
        if self._tqdm is not None:
            self._tqdm.close()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def track(items: Iterable, label: str, total: int | None = None) -> Iterator:
    """Yield `items` one by one under a bar."""
    items = list(items) if total is None else items
    with Bar(label, len(items) if total is None else total) as bar:
        for item in items:
            yield item
            bar.advance()
