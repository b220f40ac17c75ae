"""The numbers of the page on statistics that mathematics has, computed again."""

import re
from math import ceil

import numpy as np
import pytest
from scipy.stats import beta, betabinom

from mia_book.pages.parameters import find_root
from mia_lib import metrics

PAGE = (find_root() / "book" / "statistics.md").read_text()


def table(header: str) -> list[list[str]]:
    """Cells of the table whose first line begins so."""
    lines = PAGE[PAGE.index(f"\n| {header}") + 1 :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def said(cell: str, *true: float) -> bool:
    """Whether the percentages of a cell are these numbers, to the digits that it has."""
    printed = re.findall(r"[\d.]+(?= %)", cell)
    return len(printed) == len(true) and all(
        float(one) == round(100 * number, len(one.partition(".")[2]))
        for one, number in zip(printed, true, strict=True)
    )


def fpr(n: int, above: int) -> tuple[float, float]:
    """Clopper and Pearson's interval."""
    return beta.ppf(0.025, above, n - above + 1), beta.isf(0.025, above + 1, n - above)


def number(cell: str) -> int:
    return int(cell.replace(",", ""))


def test_how_well_non_members_know_a_rate_and_what_is_left_of_a_precision():
    rows = table("non-members | above it")
    assert len(rows) == 4
    for n, at_first, first, at_second, second in rows:
        n = number(n)
        assert (number(at_first), number(at_second)) == (n // 1000, n // 100)
        assert said(first, *fpr(n, n // 1000)) and said(second, *fpr(n, n // 100))
    for n, *cells in table("non-members | precision at"):
        for cell, rate in zip(cells, (0.001, 0.01), strict=True):
            low, high = fpr(number(n), round(rate * number(n)))
            assert said(cell, *(10 * rate / (10 * rate + one) for one in (high, low)))
    for n, rate in ((200, "1.5 %"), (300, "1.3 %"), (1000, "1.1 %")):
        assert said(rate, metrics.chance_tpr(np.arange(n + 1) == 0, 0.01))
    assert "1.5 % for 1 % with 200 of them, 1.3 % with 300, 1.1 % with 1,000" in PAGE


def test_precisions_as_true_positive_rates():
    for precision, *rates in table("precision | TPR"):
        odds = float(precision.split()[0]) / (100 - float(precision.split()[0]))
        for cell, rate in zip(rates, (0.001, 0.01), strict=True):
            assert said(cell, rate * odds) if rate * odds <= 1 else cell == "cannot be"


def test_what_a_promised_rate_is_worth():
    for n, *cells in table("records set aside"):
        for cell, alpha in zip(cells, (0.001, 0.01), strict=True):
            k = ceil((number(n) + 1) * (1 - alpha))
            promised = k <= number(n)
            assert (
                said(cell, *beta.interval(0.95, number(n) + 1 - k, k))
                if promised
                else cell == "cannot be promised"
            )
    assert said(re.search(r"the rate is ([\d.]+ %) on average", PAGE)[1], 1 / 141)
    both = re.search(
        r"With 4,000 set aside and 2,000 to measure on, 1 % comes out between ([\d.]+ % and [\d.]+ %)",
        PAGE,
    )[1]
    k = ceil(4001 * 0.99)
    assert said(both, *(count / 2000 for count in betabinom.interval(0.95, 2000, 4001 - k, k)))


@pytest.mark.parametrize("row", range(3))
def test_what_the_best_threshold_makes_of_noise(row):
    n, mean, exceeded = table("records | mean")[row]
    n, rng = number(n), np.random.default_rng(row)
    peaks = metrics.balanced_accuracy(rng.normal(size=(3000, n)), np.arange(n) < n // 2)
    assert abs(peaks.mean() - float(mean)) < 0.003
    assert abs(np.quantile(peaks, 0.95) - float(exceeded)) < 0.011
