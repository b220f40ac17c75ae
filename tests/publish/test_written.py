"""What is written by hand: no number that a run could contradict, and a main line that can be read in half an hour."""

import ast
import re

import jupytext
import pytest

from mia_lib.publish.parameters import find_root, notebooks

ROOT = find_root()
NOTEBOOKS = notebooks(ROOT)
CHAPTERS = [name for name in NOTEBOOKS if (ROOT / "book" / "quiz" / f"{name}.yaml").is_file()]
PROSE = sorted(path.stem for path in (ROOT / "book").glob("*.md"))
DEPTH = r"^## In more depth$"
WORDS, EXHIBITS = 2200, 8
# chapters that one run of the paper's size made shorter
CARRIED_OVER = dict.fromkeys(["bayes", "calibration", "curvature", "iha", "quantile"], (1500, 7))
COLUMNS = 84  # so many are seen of a block of code beside the contents
IN_CELLS = 86  # and of a notebook's cell, which has narrower edges
SHOWING = ("show", "explore", "show_table", "say")

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
    "bayes": {"1.2", "3.6", "3.96", "0.0001"},  # images of ImageNet in millions; where bounds are one; an axis
    "calibration": {"0.1", "0.2", "0.9", "2.1", "3.0"},  # an example
    "curvature": {"-50.66", "40 %"},  # a logarithm; what the paper's text has
    "iha": {"0.01", "0.02", "0.1", "0.2"},  # the paper's learning rates, threshold and damping
    "quantile": {"0.5 %"},  # a rate of its tables
    "data": {"4.0"},  # a licence's version
    "rerun": {"2.5", "3.11", "56.2", "57.0", "57.1", "57.8"},  # a version of Python, memory, an example
    "teaching": {"0.001", "0.05", "0.6", "0.9"},  # an exercise
}


def without_code(text):
    """Text without blocks of code; what stands in a directive is text."""
    kept, open_fences = [], []
    for line in text.splitlines():
        fence = re.match(r" *(`{3,}|~{3,})(.*)$", line)
        if fence and open_fences and fence[1] == open_fences[-1][0] and not fence[2].strip():
            open_fences.pop()
        elif fence and not (open_fences and open_fences[-1][1]):
            open_fences.append((fence[1], not fence[2].lstrip().startswith("{")))
            kept.append(fence[2])
        elif not (open_fences and open_fences[-1][1]):
            kept.append(line)
    return "\n".join(kept)


def loose(text, facts=()):
    """What looks like a result in text as it was written, and nothing looks up."""
    text = without_code(text)
    for pattern in ASIDE:
        text = re.sub(pattern, " ", text, flags=re.MULTILINE)
    return [number for number in map(str.strip, RESULT.findall(text)) if number not in RATES and number not in facts]


def cells(name):
    return jupytext.read(ROOT / "notebooks" / f"{name}.py").cells


def shown_texts(code):
    """Captions, alternative texts and sentences in calls that show something: what is typed in them, not what is computed."""
    for node in ast.walk(ast.parse(re.sub(r"^%.*$", "", code, flags=re.MULTILINE))):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in SHOWING:
            for part in [
                *(node.args if node.func.attr == "say" else []),
                *(word.value for word in node.keywords if word.arg in ("caption", "alt", "instructions")),
            ]:
                if isinstance(part, ast.Call):
                    continue
                yield "".join(
                    leaf.value for leaf in ast.walk(part) if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
                )


@pytest.mark.parametrize("text, found", [
    ("MATT leads by 1.9 points.", ["1.9"]), ("about 80 % of them", ["80 %"]), ("by 3 points", ["3"]),
    ("MATT leads by {ours}`lead` points in Table 3.2, Eqs. 34–35 and $n = 0.4$, on CIFAR-10.", []),
    ("`-p rate 0.5` and\n```python\n3.0\n```", []), ("intervals of 95 %, 12 models, C7r", []),
    ("```{admonition} Title\n1.2 times\n```", ["1.2"]),
])
def test_the_search_finds_results_and_leaves_the_rest(text, found):
    assert loose(text) == found


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_chapter_types_no_result(name):
    facts, typed = FACTS.get(name, ()), []
    for place, cell in enumerate(cells(name), 1):
        texts = [cell.source] if cell.cell_type == "markdown" else shown_texts(cell.source)
        typed += [f"cell {place}: {one!r}" for text in texts for one in loose(text, facts)]
    assert not typed, (
        "look these up with {ours}, {param} or {printed}, or list them as facts that no run can change:\n" + "\n".join(typed)
    )


@pytest.mark.parametrize("name", CHAPTERS)
def test_gates_of_solutions_hold_nothing(name):
    """What stands between a gate's fences, other than options, is on no page: sphinx-exercise drops it."""
    for cell in cells(name):
        for _, inside in re.findall(r"^(`{3,})\{\w+-(?:start|end)\}[^\n]*\n(.*?)^\1$", cell.source, re.DOTALL | re.MULTILINE):
            assert all(re.match(r":\w+:", line) for line in inside.splitlines()), inside


@pytest.mark.parametrize("name", [name for name in PROSE if name != "statistics"])  # see test_statistics_page.py
def test_a_page_of_prose_types_no_result(name):
    text = re.sub(r"^---\n.*?^---\n", "", (ROOT / "book" / f"{name}.md").read_text(), flags=re.DOTALL | re.MULTILINE)
    text = re.sub("<!-- written by .*?<!-- up to here -->", "", text, flags=re.DOTALL)  # from manifests
    assert not loose(text, FACTS.get(name, ()))


def main_line(name):
    """Cells before what is in depth, without solutions, which are closed, and without the quiz, of which `test_quiz.py` counts
    what stands open."""
    kept, solution = [], False
    for cell in cells(name):
        if cell.cell_type == "markdown":
            text, *depth = re.split(DEPTH, cell.source, maxsplit=1, flags=re.MULTILINE)
            text = re.sub(r"^(`{3,})\{solution\}.*?^\1 *$", "", text, flags=re.DOTALL | re.MULTILINE)
            for part in re.split(r"(^`{3,}\{solution-(?:start|end)\})", text, flags=re.MULTILINE):
                if "{solution-" in part[:20]:
                    solution = "start" in part
                elif not solution:
                    kept.append(("markdown", part))
            if depth:
                return kept
        elif not solution:
            kept.append(("code", cell.source))
    raise AssertionError(f"{name} has no {DEPTH!r}")


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_main_line_can_be_read_in_half_an_hour(name):
    line = main_line(name)
    prose = "\n".join(text for kind, text in line if kind == "markdown")
    prose = without_code(prose)
    for pattern in ASIDE[:2]:
        prose = re.sub(pattern, " ", prose, flags=re.MULTILINE)
    words = len(re.findall(r"[A-Za-z][\w'’-]*", re.sub(r"\{\w[\w:-]*\}`[^`]*`", "word", re.sub(r"\$[^$]+\$", "x", prose))))
    exhibits = sum(len(re.findall(r"\b(?:show|explore|show_table)\(", text)) for kind, text in line if kind == "code")
    most_words, most_exhibits = CARRIED_OVER.get(name, (WORDS, EXHIBITS))
    assert words <= most_words and 4 <= exhibits <= most_exhibits, (words, exhibits)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_code_that_is_shown_is_seen_whole(name):
    folded = {"hide-input", "remove-input", "parameters"}
    shown = [cell.source for cell in cells(name)
             if cell.cell_type == "code" and not folded & set(cell.metadata.get("tags", []))]
    assert len(shown) > 3
    assert [line for source in shown for line in source.splitlines() if len(line) > IN_CELLS] == []
@pytest.mark.parametrize("name", PROSE)
def test_code_on_a_page_is_seen_whole(name):
    opened, wide = None, []
    for line in (ROOT / "book" / f"{name}.md").read_text(encoding="utf-8").splitlines():
        if re.match("```(?!`)", line):  # four are a frame around text and code
            opened = None if opened is not None else line[3:]
        elif opened is not None and not opened.startswith("{") and len(line) > COLUMNS:
            wide.append(line)
    assert wide == []
