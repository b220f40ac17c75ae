"""What is written by hand: no number that a run could contradict, and a main line that can be read in half an hour."""

import re

import jupytext
import pytest

from mia_book import folders
from mia_book.pages.parameters import find_root, notebooks

ROOT = find_root()
NOTEBOOKS = notebooks(ROOT)
CHAPTERS = [name for name in NOTEBOOKS if name in folders.find("quiz.yaml")]
PROSE = sorted(path.stem for path in (ROOT / "book").glob("*.md"))

# What looks like a result: decimals, percentages, points.
RESULT = re.compile(r"(?<![\w.#-])[-+−±]?(?:\d+\.\d+(?: ?%)?|\d+ ?%|\d+(?= points?\b))")
RATES = {"95 %", "1 %", "5 %", "0.1 %"}  # levels of intervals, and false positive rates
# Places in a paper or in the book; code, mathematics, roles, links and labels.
PLACES = (
    r"(?:Tables?|Figures?|Fig\.|Eqs?\.|Equations?|Sections?|Appendix|Theorems?|Propert(?:y|ies)|Lemmas?|Definitions?|Algorithms?|"
    r"Exercises?|Chapters?|[Cc]laims?|[Pp]ages?|[Mm]odels?|Part) [A-Z]?\.?\d+[a-z]?(?:\.\d+)*"
    r"(?:(?:, (?:and )?| and |–|-| to )[A-Z]?\.?\d+[a-z]?(?:\.\d+)*)*"
)
ASIDE = (
    r"^ *:\w+:.*$",
    r"\$\$(?s:.*?)\$\$",
    r"\$[^$]+\$",
    r"\{\w[\w:-]*\}`[^`]*`",
    r"(?<!`)(`{1,2})(?!`)(?s:.+?)(?<!`)\1(?!`)",
    r"\]\([^)]*\)",
    r"^\([\w-]+\)=$",
    r"<[^>]*>",
    r"https?://\S+",
    rf"\b{PLACES}",
)
FACTS = {  # what no run can change
    # images of ImageNet in millions; where bounds are one; an axis
    "bayes": {"1.2", "3.6", "3.96", "0.0001"},
    "calibration": {"0.1", "0.2", "0.9", "2.1", "3.0"},  # an example
    "curvature": {"-50.66", "40 %"},  # a logarithm; what the paper's text has
    "iha": {"0.01", "0.02", "0.1", "0.2"},  # the paper's learning rates, threshold and damping
    "quantile": {"0.5 %"},  # a rate of its tables
    "course": {"4.2", "2.8"},  # standard errors by the number of teams
    "data": {"4.0"},  # a licence's version
    # a version of Python, memory, an example
    "rerun": {"2.5", "3.11", "56.2", "57.0", "57.1", "57.8"},
    "teaching": {"0.001", "0.05", "0.6", "0.9"},  # an exercise
}


def without_code(text):
    """Text without blocks of code; what stands in a directive is text."""
    kept, opened = [], []
    for line in text.splitlines():
        fence = re.match(r" *(`{3,}|~{3,})(.*)$", line)
        if fence and opened and fence[1] == opened[-1][0] and not fence[2].strip():
            opened.pop()
        elif opened and opened[-1][1]:
            continue
        elif fence:
            opened.append((fence[1], not fence[2].lstrip().startswith("{")))
            kept.append(fence[2])
        else:
            kept.append(line)
    return "\n".join(kept)


def loose(text, facts=()):
    """What looks like a result in text as it was written, and nothing looks up."""
    text = without_code(text)
    for pattern in ASIDE:
        text = re.sub(pattern, " ", text, flags=re.MULTILINE)
    return [
        number
        for number in map(str.strip, RESULT.findall(text))
        if number not in RATES and number not in facts
    ]


def cells(name):
    return jupytext.read(ROOT / "notebooks" / f"{name}.py").cells


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_chapter_types_no_result(name):
    typed = [
        f"cell {place}: {one!r}"
        for place, cell in enumerate(cells(name), 1)
        if cell.cell_type == "markdown"
        # what a caption says for those who cannot see is text, too
        for one in loose(
            re.sub(r"^:(alt|instructions): ", "", cell.source, flags=re.MULTILINE),
            FACTS.get(name, ()),
        )
    ]
    assert not typed, (
        "look these up with {ours}, {param} or {printed}, or list them as facts that no run can change"
    )


# see test_statistics_page.py
@pytest.mark.parametrize("name", [name for name in PROSE if name != "statistics"])
def test_a_page_of_prose_types_no_result(name):
    text = re.sub(
        r"^---\n.*?^---\n",
        "",
        (ROOT / "book" / f"{name}.md").read_text(),
        flags=re.DOTALL | re.MULTILINE,
    )
    assert not loose(
        re.sub("<!-- written by .*?<!-- up to here -->", "", text, flags=re.DOTALL),
        FACTS.get(name, ()),
    )


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_main_line_can_be_read_in_half_an_hour(name):
    """What stands before what is in depth, without captions, and solutions, which are closed."""
    text = "\n".join(cell.source for cell in cells(name) if cell.cell_type == "markdown")
    main, depth, _ = text.partition("\n## In more depth\n")
    assert depth
    for closed in (
        r"^(`{3,})\{solution\}.*?^\1 *$",
        r"^`{3,}\{solution-start\}.*?^`{3,}\{solution-end\}",
        r"^:::\{caption\}.*?^:::$",
    ):
        main = re.sub(closed, " ", main, flags=re.DOTALL | re.MULTILINE)
    prose = without_code(main)
    for pattern, word in (
        (ASIDE[0], " "),
        (ASIDE[1], " "),
        (r"\$[^$]+\$", "x"),
        (r"\{\w[\w:-]*\}`[^`]*`", "word"),
    ):
        prose = re.sub(pattern, word, prose, flags=re.MULTILINE)
    assert len(re.findall(r"[A-Za-z][\w'’-]*", prose)) <= 1500


@pytest.mark.parametrize("name", [*NOTEBOOKS, *PROSE])
def test_code_that_is_shown_is_seen_whole(name):
    """On a page that has its contents beside it, in notebooks between the edges of a cell."""
    shown, opened = [], None
    if name in NOTEBOOKS:
        folded = {"hide-input", "remove-input", "parameters"}
        shown = [
            line
            for cell in jupytext.read(ROOT / "notebooks" / f"{name}.py").cells
            for line in cell.source.splitlines()
            if cell.cell_type == "code" and not folded & {*cell.metadata.get("tags", [])}
        ]
    for line in (
        (ROOT / "book" / f"{name}.md").read_text(encoding="utf-8").splitlines() if not shown else ()
    ):
        if re.match("```(?!`)", line):  # four are a frame around text and code
            opened = None if opened is not None else line[3:]
        elif opened is not None and not opened.startswith("{"):
            shown.append(line)
    assert [line for line in shown if len(line) > (86 if name in NOTEBOOKS else 84)] == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_gates_of_solutions_hold_nothing(name):
    """What stands between a gate's fences, other than options, is on no page: sphinx-exercise drops it."""
    text = "\n".join(cell.source for cell in jupytext.read(ROOT / "notebooks" / f"{name}.py").cells)
    for _, inside in re.findall(
        r"^(`{3,})\{\w+-(?:start|end)\}[^\n]*\n(.*?)^\1$", text, re.DOTALL | re.MULTILINE
    ):
        assert all(re.match(r":\w+:", line) for line in inside.splitlines()), inside


def test_paths_that_the_documents_name_are_there():
    """Those with a word in capitals, NAME or CHAPTER, stand for many."""
    documents = [
        *(ROOT / "book").rglob("*.md"),
        *(ROOT / "course").glob("*.md"),
        *ROOT.glob("*.md"),
    ]
    missing = {
        (path.name, named)
        for path in documents
        if path.name != "CHANGELOG.md"
        for named in re.findall(
            r"`((?:mia_lib|mia_book|tests|notebooks|book|data|benchmarks)/[\w./-]+)`",
            path.read_text(encoding="utf-8"),
        )
        if not re.search(r"[A-Z]{3,}", named) and not (ROOT / named).exists()
    }
    assert not {one for one in missing if "leakage" not in one[1]}
