"""How often the intervals of `mia_lib.metrics` hold the truth, at the sizes of the chapters, with a leak and without one.

Run `python benchmarks/coverage.py --write` for the table between the markers in book/statistics.md. `--repetitions` says how
many experiments a row: 100 take some minutes and tell a coverage of 95 % to about two points, 1,000 an hour and less than one.

A made-up attack scores ``a g_i (1 + c t) m + d r_i + e``: m says whether the record is a member, g_i how much it gives away
(exponential), r_i how hard it is, t how much the target leaks (normal, c = 0.3, but for a single target, which is given) and
e is noise, so a target, a record and their meeting are all chance. ``a`` = 0 is a world without a leak. A second attack has
half of the difficulty and noise of its own. The truth is the mean of the very number that is shown, over four times as
many new experiments: what is asked is whether the interval holds it, not what else is wrong with it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mia_lib import metrics

PAGE = Path(__file__).parents[1] / "book" / "statistics.md"
START, END = "<!-- coverage: start -->", "<!-- coverage: end -->"
NUMBERS = ("auc", "conformal_tpr_at_fpr=0.01", "conformal_tpr_at_fpr=0.001")
COLUMNS = (
    "AUC",
    "TPR 1 %",
    "TPR 0.1 %",
    "difference of AUC",
    "of TPR 1 %",
    "falsely above",
    "falsely below",
)
DRAWS = 100


@dataclass(frozen=True)
class Cell:
    """One kind of interval at one size.

    Attributes:
        rule: what the page calls it. where: who uses it. kind: how targets share records: "one", "pairs", "banks", "splits",
            "apart", or "targets alone" for Student's t over targets that share their records.
        targets, records: T, and N judged by each. pool: of splits.
    """

    rule: str
    where: str
    kind: str
    targets: int
    records: int
    pool: int = 0


CELLS = (
    Cell("one target, its records", "single runs", "one", 1, 1000),
    Cell("three targets of a bank and their records", "least", "pairs", 3, 1000),
    Cell("targets of a bank and their records", "iha, quantile", "pairs", 4, 2000),
    Cell("targets of a bank and their records", "curvature", "pairs", 6, 1000),
    Cell("four pairs or more, and their records", "longer runs", "pairs", 10, 600),
    Cell("banks", "bayes", "banks", 4, 600),
    Cell("splits of one pool and its records", "calibration, tables", "splits", 20, 400, 800),
    Cell("splits of one pool and its records", "Hepatitis", "splits", 20, 62, 124),
    Cell("games on records of their own", "calibration, images", "apart", 5, 1000),
    Cell("over targets alone", "stored numbers", "targets alone", 4, 1000),
)


def world(cell: Cell, leak: float, rng: np.random.Generator) -> tuple:
    """Scores of two attacks [T, N], members [T, N], records [T, N] or None and banks or None."""
    t, n = cell.targets, cell.records
    half, groups = np.arange(n) < n // 2, None
    if cell.kind == "splits":
        records, members = (
            np.stack([rng.permutation(cell.pool)[:n] for _ in range(t)]),
            np.tile(half, (t, 1)),
        )
    elif cell.kind == "apart":
        records, members = np.arange(t * n).reshape(t, n), np.tile(half, (t, 1))
    else:
        members = np.stack([rng.permutation(half) for _ in range(t)])
        if cell.kind == "pairs":
            members[1::2] = ~members[:-1:2]
        records = np.tile(np.arange(n), (t, 1))
        if cell.kind == "banks":
            groups = np.repeat(np.arange(t), 3)
            members = np.stack([rng.permutation(half) for _ in range(3 * t)])
            records = groups[:, None] * n + np.arange(n)
    given = rng.exponential(size=records.max() + 1)[records]
    hard = rng.normal(size=records.max() + 1)[records]
    target = 1 + 0.3 * rng.normal(size=(len(records), 1)) * (
        cell.kind != "one"
    )  # which is the one that is given
    signal = leak * given * target * members
    one, two = (signal + share * hard + rng.normal(size=records.shape) for share in (1.0, 0.5))
    shared = cell.kind in ("one", "pairs", "targets alone", "banks")
    return one, two, members, None if shared else records, groups


def numbers(cell: Cell, leak: float, rng: np.random.Generator) -> np.ndarray:
    """What is shown, without intervals: of the first attack, and the differences of both, [5]."""
    one, two, members, _, groups = world(cell, leak, rng)
    return np.array(
        [_mean(name, one, members) for name in NUMBERS]
        + [_mean(name, two, members) - _mean(name, one, members) for name in NUMBERS[:2]]
    )


def _mean(name: str, scores: np.ndarray, members: np.ndarray) -> float:
    metric, _, rate = name.partition("=")
    return float(
        np.mean(getattr(metrics, metric)(scores, members, *([float(rate)] if rate else [])))
    )


def intervals(cell: Cell, leak: float, rng: np.random.Generator) -> list[metrics.Interval]:
    """The same with the library's intervals."""
    one, two, members, records, groups = world(cell, leak, rng)
    if cell.kind == "targets alone":
        values = [
            [
                getattr(metrics, name.partition("=")[0])(
                    of, members, *map(float, filter(None, [name.partition("=")[2]]))
                )
                for name in NUMBERS
            ]
            for of in (one, two)
        ]
        return [
            *(metrics.t_interval(value) for value in values[0]),
            *(metrics.t_interval(values[1][k] - values[0][k]) for k in (0, 1)),
        ]
    if cell.kind == "one":
        one, two, members = one[0], two[0], members[0]
    how = {"groups": groups, "records": records, "draws": DRAWS, "seed": int(rng.integers(2**31))}
    alone = metrics.intervals(NUMBERS, one, members, **how)
    paired = metrics.intervals(NUMBERS[:2], two, members, one, **how)
    return [*alone.values(), *paired.values()]


def coverage(
    cell: Cell, leak: float, repetitions: int, truths: int, seed: int = 0, level: float = 0.95
) -> dict[str, float]:
    """Share of intervals that hold the truth, by `COLUMNS` without the last two; and how often a verdict on the sign of
    the first AUC less its truth would be wrong on either side, "falsely above" and "falsely below". In a world without a leak
    the truth is chance, and these are false findings. Rates that the non-members do not resolve have
    none."""
    truth = np.mean(
        [numbers(cell, leak, np.random.default_rng([seed, 1, k])) for k in range(truths)], 0
    )
    found = [
        [one.at(level) for one in intervals(cell, leak, np.random.default_rng([seed, 2, k]))]
        for k in range(repetitions)
    ]
    coverages = np.mean(
        [
            [one.low <= true <= one.high for one, true in zip(each, truth, strict=True)]
            for each in found
        ],
        0,
    )
    first = [each[0] for each in found if not each[0].degenerate]
    above, below = (
        sum(one.low > truth[0] for one in first),
        sum(one.high < truth[0] for one in first),
    )
    out = dict(zip(COLUMNS, [*coverages, above / repetitions, below / repetitions], strict=True))
    half = np.arange(cell.records) < cell.records // 2
    for column, rate in (("TPR 1 %", 0.01), ("TPR 0.1 %", 0.001), ("of TPR 1 %", 0.01)):
        if not metrics.resolves(half, rate):
            out[column] = float("nan")
    return out


def markdown(rows: Sequence[tuple[Cell, float, dict[str, float]]], repetitions: int) -> str:
    """The table of the page."""
    lines = [
        f"| rule | targets x records | leak | {' | '.join(COLUMNS)} |",
        "| --- | --- | --- |" + " ---: |" * len(COLUMNS),
    ]
    for cell, leak, found in rows:
        size = (
            f"{cell.targets} x {cell.records:,}"
            if cell.kind != "banks"
            else f"{cell.targets} x 3 x {cell.records:,}"
        )
        size += f" of {cell.pool:,}" if cell.pool else ""
        cells = ["no interval" if np.isnan(one) else f"{100 * one:.1f}" for one in found.values()]
        lines.append(f"| {cell.rule} | {size} | {'yes' if leak else 'no'} | {' | '.join(cells)} |")
    sure = 196 * (0.05 * 0.95 / repetitions) ** 0.5
    note = f"*In percent; with {repetitions:,} experiments a row 95 is told to {sure:.0f} points either way.*"
    return "\n".join(["", *lines, "", note, ""])


def parsed(text: str) -> list[dict[str, str]]:
    """Rows of the table in the page, by its headings."""
    part = text.partition(START)[2].partition(END)[0]
    lines = (line.strip().strip("|") for line in part.splitlines() if line.startswith("|"))
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and write it into the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=100, help="experiments a row")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    given = parser.parse_args(arguments)
    repetitions, rows = given.repetitions, []
    for cell in CELLS:
        for leak in (1.0, 0.0):
            rows.append((cell, leak, coverage(cell, leak, repetitions, 4 * repetitions)))
            print(markdown(rows[-1:], repetitions).splitlines()[3], file=sys.stderr, flush=True)
    table = markdown(rows, repetitions)
    print(table)
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.partition(START)[0], text.partition(END)[2]
        PAGE.write_text(f"{before}{START}{table}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
