"""What is written by hand: no number that a run could contradict, and a main line that can be read in half an hour."""

import ast
import re

import jupytext
import pytest

from mia_lib.publish.parameters import find_root, notebooks

ROOT = find_root()
NOTEBOOKS = notebooks(ROOT)
CHAPTERS = [name for name in NOTEBOOKS if (ROOT / "data" / "papers" / f"{name}_claims.yaml").is_file()]
PROSE = sorted(path.stem for path in (ROOT / "book").glob("*.md"))
DEPTH = r"^## In more depth$"
WORDS, EXHIBITS = 2200, 8
# chapters that one run of the paper's size made shorter
CARRIED_OVER = dict.fromkeys(["bayes", "calibration", "curvature", "iha", "quantile"], (1500, 7))
COLUMNS = 84  # so many are seen of a block of code beside the contents
IN_CELLS = 86  # and of a notebook's cell, which has narrower edges
SHOWING = ("show", "explore", "show_table", "say")

NUMERAL = re.compile(r"(?<![\w.#-])[-+−±]?\d+(?:[.,]\d+)*(?: ?%|\b)")
MEASURED = re.compile(
    r"(?<![\w.#-])[-+−±]?(?:\d+\.\d+(?: ?%)?|\d+ ?%|\d+(?= (?:points?|times|seconds?|minutes?|hours?|days?|[GM]B)\b))"
)
COUNTED = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|ninety|"
    r"hundred)(?: \w+)? (?:percent|points?|times|seconds?|minutes?|hours?|nights?|days?|GB|MB)\b",
    re.IGNORECASE,
)
# Code, mathematics, roles, links and labels; places in a paper; names that hold a number.
NAMES = (
    r"CIFAR-?\d+",
    r"(?:Wide)?ResNets?-?\d+",
    r"VGG-?\d+",
    r"WRN-\d+-\w+",
    r"Location-30",
    r"(?:Purchase|Texas)-?100",
    r"CINIC-?10",
    r"MLP-\d",
    r"EfficientNet-\w+",
    r"CNN-\d+(?:-\w+)*",
    "0-1",
    r"(?:19|20)\d\d",
    r"[ACL]\d+[a-z]?",
    r"float\d+",
    r"AVX-?\d+",
)
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
    *(rf"\b{name}\b" for name in NAMES),
)
# What no run can change.
FACTS = {
    "bayes": {
        "15,000": "of the paper's Table 2",
        "30": "its references",
        "90": "epochs of its Table 3",
        "1.2": "millions of images, of its Table 3",
        "64": "batches",
        "95 %": "level of intervals",
        "50": "chance, in percent",
        "2": "loss of the example",
        "0": "loss of the example",
        "1 %": "what guessing finds at that rate",
        "2,000": "images by hand",
        "3.6": "where a bound is one",
        "3.96": "where a bound is one",
        "300": "worlds that are drawn",
        "900": "three times as many",
        "two hours": "of a measurement, from its manifest",
        "ten times": "0.26 by 0.027",
        "0.0001": "where lower losses are drawn",
    },
    "calibration": {
        "95 %": "level of intervals",
        "1 %": "a rate of the tables, and of the claim",
        "0": "a distance by definition",
        "200": "members of German credit, the paper's most epochs",
        "0.1": "a loss of the example",
        "0.2": "a loss of the example",
        "0.9": "a loss of the example",
        "3.0": "a loss of the example",
        "2.1": "a difference of the example",
        "5 %": "the recall of the claim",
        "2,500": "queries of the measurement",
        "1,000": "members of Adult and of Figure 3 that the measurements judge",
        "2,000": "images of the bank that the measurement judges",
        "8": "plays of Figure 3",
        "thirty hours": "of Figure 6",
        "ten hours": "of Figure 5",
        "100": "minutes of CIFAR-100",
        "400": "minutes of its augmented targets",
        "20": "minutes of these on a card",
        "50": "the paper's least epochs",
    },
    "curvature": {
        "2,000": "members of the networks that know them by heart",
        "60": "epochs of these networks",
        "25,000": "non-members of each of the paper's targets",
        "95 %": "level of intervals",
        "64": "references of the paper",
        "256": "models of LiRA in its appendix",
        "3": "its targets",
        "300": "its epochs",
        "14": "its epsilons",
        "20": "its epochs of DP-SGD",
        "35,000": "records of sets on which LiRA is ahead again",
        "30": "percent from which its text has LR ahead, and epochs of a network that is queued",
        "40 %": "the other end of that",
        "2": "its models of a random set",
        "6": "its models of a coreset",
        "four points": "of a probe",
        "five points": "a margin of C2",
        "18": "queries of LiRA in its own paper, and networks that are queued",
        "1,000": "images of the networks of the page",
        "six hours": "what DP-SGD would take",
    },
    "iha": {
        "95 %": "level of intervals",
        "0": "certainty",
        "1": "certainty, a rate",
        "3": "its Assumption 3",
        "0.1": "a threshold of its Table 8",
        "0.2": "its damping",
        "80,000": "members of its Purchase-100",
        "25,000": "members of its Purchase-100(S)",
        "128": "models of the paper",
        "127": "references of LiRA in its text",
        "1,000": "records of its section 4.4",
        "100": "references there",
        "50,100": "networks there, of one target",
        "20": "references of a smaller form",
        "8,160": "networks of that",
        "seven hours": "what these take, from the operations",
        "43": "minutes of its Table 6",
        "10,000": "records of its Table 3",
        "200": "records of FashionMNIST in ours",
        "22,532": "parameters of its MLP-2",
        "4": "GB of a Hessian of these",
        "ten minutes": "of 128 models, from manifests",
        "90": "minutes of MLP-4 on a card",
        "0.01": "its learning rate",
        "0.02": "that of its code on Purchase-100",
    },
    "quantile": {
        "95 %": "level of intervals",
        "1 %": "a false positive rate of the paper",
        "0.1 %": "its other one",
        "32": "its trials for images, and its comparisons at 1 %", "28": "of its comparisons at 0.1 %",
        "224": "pixels of its images", "300": "its trials for tables",
        "0.5 %": "a rate of its tables", "1": "of one less a precision",
        "135,000": "images of CINIC-10", "200": "hours of its card", "five hours": "of a card, reckoned",
        "ten minutes": "of a card, reckoned", "40": "hours, and minutes, of two cores", "5 %": "a rate in a world",
    },
    "compare": {
        "95 %": "level of intervals", "1 %": "a false positive rate", "50": "AUC of guessing, in percent",
        "2,000": "members of a network that knows them by heart, public images of RMIA, images with a gradient",
        "10,000": "test images of CIFAR-10, and members judged", "25,000": "records of each half", "200": "members of a play",
        "4,000": "images judged", "forty times": "queries of curvature, as published",
    },
    "audit": {
        "95 %": "level of intervals",
        "5 %": "level of a test",
        "1 %": "a false positive rate",
    },
    "banks": {
        "1 %": "a rate, and what guessing finds at it", "95 %": "level of intervals", "1": "of references, and an AUC",
        "54,000": "parameters of a network", "20": "epochs of a published bank",
    },
    "data": {"4.0": "a licence's version"},
    "glossary": {"95 %": "level of intervals"},
    "guide": {"1 %": "a rate"},
    "index": {"100": "minutes of a lesson", "five minutes": "of reading"},
    "machines": {"ten times": "a test's tolerance"},
    "rerun": {"five minutes": "what a run measures unasked", "3.11": "a version of Python",
              "2.5": "GB of an environment", "4": "GB of memory", "57.0": "an example",
              "56.2": "an example", "57.8": "an example", "57.1": "an example"},
    "statistics": {
        "51 %": "an example", "95 %": "level of intervals",
        "2.5 %": "what is due on a side", "1 %": "a rate", "0.1 %": "a rate", "5 %": "an example", "0.2 %": "one in 500",
        "five times": "from the table, rounded", "1.5 %": "arithmetic, tested", "1.3 %": "arithmetic, tested",
        "1.1 %": "arithmetic, tested", "98 %": "a row of a table", "99 %": "a row of a table", "ten times": "an example",
        "90.9 %": "ten of eleven", "0.71 %": "one in 141, tested", "0.50 %": "a law's quantile, tested",
        "1.60 %": "a law's quantile, tested", "3": "points that a benchmark's repetitions leave", "1.5": "a margin",
        "1.3": "of `benchmarks/arithmetic.py`", "0.001": "a learning rate", "0.003": "a learning rate",
        "16 %": "of `benchmarks/arithmetic.py`", "0.0002": "a learning rate", "0.5": "of `benchmarks/arithmetic.py`",
        "6 %": "of `benchmarks/arithmetic.py`", "2.1 %": "of `benchmarks/arithmetic.py`",
        "1.25 %": "of `benchmarks/arithmetic.py`",
    },
    "syllabus": {
        "50": "minutes of a lesson", "100": "minutes of a lesson", "Ten minutes": "of a test",
        "Three hours": "an afternoon", "thirty minutes": "of a lesson",
    },
    "teaching": {
        "50": "minutes of a lesson", "100": "minutes of a lesson", "25": "minutes of a lesson", "0.9": "of an exercise",
        "0.6": "of an exercise", "0.05": "of an exercise", "0.001": "of an exercise", "five times": "mathematics",
        "1 %": "a rate", "0.1 %": "a rate", "three times": "arithmetic on printed precisions",
    },
    "how_to_read": {"95 %": "level of intervals"},
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


def loose(text, facts=(), numeral=NUMERAL):
    """Numerals and counted units in text as it was written that nothing looks up."""
    text = without_code(text)
    for pattern in ASIDE:
        text = re.sub(pattern, " ", text, flags=re.MULTILINE)
    text = re.sub(r"^ *\d+\. ", "", text, flags=re.MULTILINE)  # items of a list
    found = [one.strip() for pattern in (numeral, COUNTED) for one in pattern.findall(text)]
    return [one for one in found if one not in facts]


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


@pytest.mark.parametrize(
    "text, found",
    [
        ("MATT leads by 1.9 points.", ["1.9"]),
        ("about 80 % of them", ["80 %"]),
        ("takes five minutes", ["five minutes"]),
        ("MATT leads by {ours}`lead` points in Table 3, Eqs. 34–35 and $n = 400$, on CIFAR-10.", []),
        ("`-p seeds 50` and\n```python\n3\n```", []),
        ("Figures 2 and 3 of 2019, C7r and 0-1", []),
        ("1. first\n2. second", []),
        ("28 pixels", ["28"]),
        ("```{admonition} Title\n12 models\n```", ["12"]),
        ("three times as many", []),
        ("two small networks", []),
    ],
)
def test_the_search_for_numerals_finds_results_and_leaves_the_rest(text, found):
    assert loose(text) == [*found, *(["three times"] if "three times" in text else [])]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_chapter_types_no_result(name):
    facts, typed = FACTS[name], []
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


@pytest.mark.parametrize("name", PROSE)
def test_a_page_of_prose_types_no_result(name):
    text = re.sub(r"^---\n.*?^---\n", "", (ROOT / "book" / f"{name}.md").read_text(), flags=re.DOTALL | re.MULTILINE)
    text = re.sub("<!-- written by .*?<!-- up to here -->", "", text, flags=re.DOTALL)  # from manifests and notes
    if name == "statistics":  # whose tables are computed again by test_statistics_page.py, or are a benchmark's
        text = re.sub(r"^\|.*$", "", text, flags=re.MULTILINE)
    assert not loose(text, FACTS.get(name, ()), MEASURED)


def test_facts_are_used():
    for name, facts in FACTS.items():
        page = ROOT / "book" / f"{name}.md"
        texts = (
            [page.read_text()]
            if page.is_file()
            else [
                text
                for cell in cells(name)
                for text in ([cell.source] if cell.cell_type == "markdown" else shown_texts(cell.source))
            ]
        )
        used = {one for text in texts for one in loose(text)}
        assert facts.keys() <= used, f"{name}: {facts.keys() - used} stand there no more"


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
