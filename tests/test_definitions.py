"""What bears on a number: an edit of it changes the fingerprints of what depends on it, and of nothing else."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial, wraps
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mia_lib import definitions, store
from mia_lib.definitions import Sources
from mia_lib.errors import MiaError
from mia_lib.publish import runner
from mia_lib.publish.parameters import validate

REPO = Path(__file__).resolve().parents[1]
CHAPTERS = ("bayes", "calibration", "curvature", "iha", "quantile")

# What is computed or shown, and where it starts.
STUDIES = {f"{chapter} study": [f"mia_lib.papers.{chapter}.study:{root}"] for chapter, root in zip(
    CHAPTERS, ("attack_bank", "attack_plays", "table_1", "play", "play"), strict=True)}
PAGES = {f"{chapter} page": chapter for chapter in (*CHAPTERS, "compare")}
EVERY = {*STUDIES, *PAGES}
ALL_PAGES, ALL_STUDIES = set(PAGES), set(STUDIES)


def fingerprints(library: Path) -> dict[str, str]:
    """Of everything above, with the library in a folder."""
    definitions.sources._held.clear()
    sources = Sources(library)
    found = {name: sources.reach(roots).fingerprint for name, roots in STUDIES.items()}
    for name, chapter in PAGES.items():
        cells = [c.source for c in runner.read(REPO / "notebooks" / f"{chapter}.py").cells if c.cell_type == "code"]
        found[name] = definitions.of_cells(cells, (), library).fingerprint
    return found


@pytest.fixture(scope="module")
def before() -> dict[str, str]:
    return fingerprints(REPO / "mia_lib")


@pytest.fixture
def library(tmp_path) -> Path:
    """A copy of the library to edit."""
    return Path(shutil.copytree(REPO / "mia_lib", tmp_path / "mia_lib", ignore=shutil.ignore_patterns("__pycache__")))


def edit(library: Path, file: str, old: str, new: str) -> None:
    path = library / file
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{old!r} is not in {file}: the row of the table has to follow the code"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


# But those whose measurements stand apart.
EVERYTHING_TRAINED = (ALL_STUDIES | ALL_PAGES) - {"bayes study", "calibration study", "curvature study"}
BEARS = {
    "an attack": ("attacks/bayes.py", "return -signed", "return +signed",
                  {"bayes study", "bayes page", "calibration page", "curvature study", "curvature page", "compare page"}),
    "a default of an attack": ("attacks/bayes.py", "temperature: float = 1.0", "temperature: float = 2.0",
                               {"bayes study", "bayes page", "calibration page", "curvature study", "curvature page",
                                "compare page"}),
    "a signal": ("signals/given.py", '"hinge": truth - others.max(-1)', '"hinge": truth - others.min(-1)',
                 EVERYTHING_TRAINED),
    "a training detail": ("training/backends/loop.py", "losses.mean(1).sum().backward()", "losses.sum(1).sum().backward()",
                          EVERYTHING_TRAINED),
    "a constant of the training": ("training/backends/loop.py", "VALIDATED_AT_ONCE = 1000", "VALIDATED_AT_ONCE = 100",
                                   EVERYTHING_TRAINED),
    "a network that nobody here names": ("models.py", '"Bottleneck", [3, 4, 6, 3]', '"Bottleneck", [3, 4, 6, 4]', set()),
    "a metric": ("metrics/ranking.py", "def _average_precision(", "@np.errstate()\ndef _average_precision(",
                 ALL_PAGES | {"bayes study", "calibration study", "curvature study"}),
    "a rule of verdicts": ("evidence/claims.py", "def judge(", "@cache\ndef judge(",
                           ALL_PAGES - {"bayes page", "calibration page", "curvature page", "compare page"}),
    "an evaluator of rules": ("evidence/rules.py", "def judge(", "@cache\ndef judge(",
                              {"bayes page", "calibration page", "curvature page", "compare page"}),
    "a chapter's study": ("papers/iha/study.py", "def placebo(", "@cache\ndef placebo(", {"iha page"}),
    "a constant of a chapter": ("papers/quantile/study.py", "CLASS_ALPHA = 0.05", "CLASS_ALPHA = 0.06",
                                {"quantile study", "quantile page"}),
    "a helper three calls down": ("training/stacking.py", "def _flat(", "@staticmethod\ndef _flat(",
                                 EVERYTHING_TRAINED),
    "a drawing": ("evidence/plotting.py", "def roc(", "@staticmethod\ndef roc(",
                  {"bayes page", "calibration page", "curvature page", "quantile page"}),
    "a piece of drawings": ("evidence/panels.py", "def legend(", "@staticmethod\ndef legend(", ALL_PAGES),
    "a reader of data": ("data/readers.py", "def hepatitis(", "@staticmethod\ndef hepatitis(", ALL_PAGES),
}
NOTHING = {
    "a comment": ("attacks/bayes.py", "    return -signed", "    # why\n    return -signed  # so"),
    "a docstring": ("attacks/bayes.py", "Membership attack with one loss threshold", "An attack with one threshold"),
    "a line break": ("attacks/bayes.py", "loss.astype(np.float64)  # of", "loss.astype(\n        np.float64)  # of"),
    "a renamed import": ("papers/bayes/study.py", "import membership, metrics,", "import membership, metrics as metrics,"),
    "what carries results": ("progress.py", "def say(", "@staticmethod\ndef say("),
    "the pool of processes": ("training/backends/pool.py", "def run_tasks(", "@staticmethod\ndef run_tasks("),
    "the publisher": ("publish/pages.py", "def stage(", "@staticmethod\ndef stage("),
    "where results are kept": ("store.py", "def write(", "@staticmethod\ndef write("),
    "the range of a check": ("errors.py", "difflib.get_close_matches(str(given)", "difflib.get_close_matches(repr(given)"),
}


@pytest.mark.parametrize("what", BEARS)
def test_an_edit_changes_what_depends_on_it_and_nothing_else(what, library, before):
    file, old, new, expected = BEARS[what]
    edit(library, file, old, new)
    after = fingerprints(library)
    assert {name for name in EVERY if after[name] != before[name]} == expected


@pytest.mark.parametrize("what", NOTHING)
def test_an_edit_that_bears_on_nothing_changes_nothing(what, library, before):
    edit(library, *NOTHING[what])
    assert fingerprints(library) == before


def test_a_moved_module_and_imports_by_other_names_change_nothing(library, before):
    (library / "attacks" / "bayes.py").rename(library / "sablayrolles.py")
    for path in library.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for others in ([], ["baselines"], ["baselines", "calibration"]):
            old = f"from mia_lib.attacks import {', '.join(sorted([*others, 'bayes']))}\n"
            rest = f"from mia_lib.attacks import {', '.join(others)}\n" if others else ""
            text = text.replace(old, f"from mia_lib import sablayrolles as bayes\n{rest}")
        path.write_text(text, encoding="utf-8")
    assert not any("attacks.bayes" in path.read_text(encoding="utf-8") and "import bayes" in path.read_text(encoding="utf-8")
                   for path in library.rglob("papers/*/*.py"))
    after = fingerprints(library)
    assert {name: after[name] for name in STUDIES} == {name: before[name] for name in STUDIES}


# ------------------------------------------------------------------------------------------------------- small modules


def reach(tmp_path, text: str, root: str = "f", words=(), **others: str) -> dict[str, str]:
    """What `root` of a package made of `text` (module one) and others reaches: names without the package -> digests."""
    library = tmp_path / "mia_lib"
    library.mkdir(exist_ok=True)
    for name, content in {"__init__": "", "one": text, **others}.items():
        (library / f"{name}.py").write_text(textwrap.dedent(content))
    found = Sources(library).reach([f"mia_lib.one:{root}"], words).definitions
    return {name.removeprefix("mia_lib."): digest for name, digest in found.items()}


def test_names_are_followed_through_imports_attributes_and_what_is_bound(tmp_path):
    found = reach(tmp_path, """
        import numpy as np
        from mia_lib import two
        from mia_lib.two import helper as aid, UNUSED
        LIMIT, OTHER = 3, 4
        def f(x, default=LIMIT):
            from mia_lib import three
            g = x
            def inner(): return two.deep(g) + three.late
            return [aid(h) for h in inner()] + np.zeros(default)
        def g(): ...
        def h(): ...
        """, two="""
        from mia_lib.three import deep
        def helper(x): return x
        UNUSED = 1
        """, three="""
        late = 5
        def deep(x): return x
        def shallow(x): return x
        """)
    assert set(found) == {"one:f", "one:LIMIT", "two:helper", "three:deep", "three:late"}


def test_local_names_hide_those_of_the_module_only_where_they_are_bound(tmp_path):
    text = """
        def loss(x): return x
        def score(x): return x
        def f(values, score):
            return [loss for loss in values] + [score]
        def k(values):
            return [loss for loss in values] + [loss(1)]
        """
    assert set(reach(tmp_path, text)) == {"one:f"}
    assert set(reach(tmp_path, text, "k")) == {"one:k", "one:loss"}


def test_an_annotation_by_hints_alone_is_as_good_as_none(tmp_path):
    """So that a type can be added without making stale what was computed without it."""
    bare = reach(tmp_path, "def f(scores, *rest, groups=None, level: float = 0.5): return scores")
    hinted = reach(tmp_path, """
        from mia_lib.hints import Members as Who, PerTarget, Scores
        def f(scores: Scores, *rest: Scores, groups: Who | None = None, level: float = 0.5) -> PerTarget: return scores
        """)
    assert hinted == bare
    assert reach(tmp_path, "def f(scores, *rest, groups=None, level=0.5): return scores") != bare
    assert reach(tmp_path, """
        from mia_lib.hints import Scores
        def f(scores: Scores | list[float], *rest, groups=None, level: float = 0.5): return scores
        """)["one:f"] != bare["one:f"]


def test_a_class_counts_whole_and_so_do_its_bases_and_annotations(tmp_path):
    found = reach(tmp_path, """
        from __future__ import annotations
        from mia_lib import two
        class Base:
            def never_called_here(self): return two.used()
        class Bank(Base):
            models: two.Ensemble
        def f(bank: Bank): return bank.anything
        """, two="""
        class Ensemble: ...
        def used(): ...
        def unused(): ...
        """)
    assert set(found) == {"one:f", "one:Bank", "one:Base", "two:Ensemble", "two:used"}


def test_a_module_that_is_handed_on_or_asked_dynamically_counts_whole(tmp_path):
    two = "def a(): ...\ndef b(): ...\n"
    assert {"two:a", "two:b"} <= set(reach(tmp_path, "from mia_lib import two\ndef f(n): return getattr(two, n)\n", two=two))
    assert {"two:a", "two:b"} <= set(reach(tmp_path, "from mia_lib import two\ndef f(): return two.made\n", two=two))


def test_constants_changed_at_import_count_with_what_changes_them(tmp_path):
    text = "KNOWN = {}\nKNOWN['a'] = 1\nKNOWN |= {'b': 2}\ndef f(): return KNOWN\n"
    before = reach(tmp_path, text)
    assert reach(tmp_path, text.replace("'b': 2", "'b': 3"))["one:KNOWN"] != before["one:KNOWN"]
    effect = "import os\nos.environ['X'] = '1'\ndef f(): ...\n"
    assert reach(tmp_path, effect) != reach(tmp_path, effect.replace("'1'", "'2'"))


def test_a_test_that_decides_which_definitions_there_are_counts(tmp_path):
    text = "import os\nif os.name == 'nt':\n    A = 1\nelse:\n    A = 2\ndef f(): return A\n"
    assert reach(tmp_path, text) != reach(tmp_path, text.replace("'nt'", "'posix'"))
    plain = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import os\ndef f(): ...\n"
    assert set(reach(tmp_path, plain)) == {"one:f"}


def test_what_a_users_decorator_may_put_into_a_table_counts(tmp_path):
    (tmp_path / "mine").mkdir()
    text = "ALL = {}\ndef noted(f):\n    ALL[f.__name__] = f\n    return f\n@noted\ndef a(): return 1\n" \
           "def b(): return 1\ndef asked(name): return ALL[name]()\n"
    def reached(text):
        (tmp_path / "mine" / "table.py").write_text(text)
        return Sources(beside=[tmp_path]).reach(["mine.table:asked"])
    before = reached(text)
    assert set(before.definitions) == {f"mine.table:{name}" for name in ("asked", "ALL", "noted", "a")}
    assert reached(text.replace("a(): return 1", "a(): return 2")).fingerprint != before.fingerprint


def test_a_package_that_is_handed_on_counts_with_what_it_hands_on(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("from mine.inner import a\n")
    (tmp_path / "mine" / "inner.py").write_text("def a(): ...\ndef b(): ...\n")
    (tmp_path / "asks.py").write_text("import mine\ndef f(name): return getattr(mine, name)\n")
    assert set(Sources(beside=[tmp_path]).reach(["asks:f"]).definitions) == {"asks:f", "mine.inner:a"}


def test_the_library_asks_no_package_of_its_own_for_a_name_that_is_made():
    """Whose functions lie in modules that would not be followed."""
    found, packages = set(), {one.parent.name for one in (REPO / "mia_lib").rglob("__init__.py")}
    for path in (REPO / "mia_lib").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        lines = re.findall("^ *(?:from .*)?import .*$", text, re.MULTILINE)
        named = {name for line in lines for name in re.findall(r"\w+", line)} & packages
        found |= {(path.stem, name) for name in re.findall(r"getattr\((\w+), (?![\"'])", text) if name in named}
    assert not found


def test_entries_by_name_are_reached_by_words_in_code_and_in_what_was_given(tmp_path):
    text = """
        from mia_lib.two import TABLE
        def f(name): return TABLE[name]
        def g(): return TABLE["mlp"]
        def h(width): return TABLE[f"cnn:{width}"]
        """
    two = """
        from mia_lib.definitions import ByName
        TABLE: ByName = {"mlp": make, "cnn": other}
        def make(): return "cnn"
        def other(): ...
        """
    assert set(reach(tmp_path, text, two=two)) == {"one:f"}
    assert set(reach(tmp_path, text, words=["mlp:64"], two=two)) == {"one:f", "two:TABLE[mlp]", "two:make"}
    assert set(reach(tmp_path, text, "g", two=two)) == {"one:g", "two:TABLE[mlp]", "two:make"}
    assert set(reach(tmp_path, text, "h", two=two)) == {"one:h", "two:TABLE[cnn]", "two:other"}


@pytest.mark.parametrize("new", [
    'def f(x):\n    """Other."""\n    return x + 1  # why\n', 'def f(x):\n\n    return (x + 1)\n'.replace("(x + 1)", "x + 1"),
    'import os\ndef f(x):\n    import sys\n    return x + 1\n', 'def f(x):\n  return x + \\\n 1\n'])
def test_the_same_tokens_are_the_same_definition(tmp_path, new):
    assert reach(tmp_path, 'def f(x):\n    """Say."""\n    return x + 1\n') == reach(tmp_path, new)


@pytest.mark.parametrize("new", [
    "def f(x):\n    return x - 1\n", "def f(x, y=1):\n    return x + 1\n", "@cache\ndef f(x):\n    return x + 1\n",
    "def f(x):\n    return x + 1.0\n", "def f(x):\n    return f'{x} + 1'\n", "async def f(x):\n    return x + 1\n",
    "def f(x):\n    if x:\n        x = 2\n    return x + 1\n", "def f(x):\n    if x:\n        x = 2\n        return x + 1\n"])
def test_other_tokens_are_another_definition(tmp_path, new):
    assert reach(tmp_path, "def f(x):\n    return x + 1\n") != reach(tmp_path, new)


def test_blocks_and_letters_of_more_than_one_byte_are_told_apart(tmp_path):
    here = "def f(x):\n    é = 'ü'; a = two.b(x)\n    return a\n"
    one = reach(tmp_path, "from mia_lib import two\n" + here, two="def b(x): ...\n")
    other = reach(tmp_path, "from mia_lib import two as zwei\n" + here.replace("two", "zwei"), two="def b(x): ...\n")
    assert one == other and set(one) == {"one:f", "two:b"}


# ------------------------------------------------------------------------------------------- what runs: users' own code

OWN = """
import numpy as np
from mia_lib import metrics

FACTOR = {factor}

class Scorer:
    def __init__(self, sign): self.sign = sign
    def score(self, x): return {formula} * FACTOR  # {comment}

def helper(x): return {formula}
def attack(x): return helper(x) * FACTOR
def through_a_metric(x): return metrics.auc(x, x > 0)
"""


def own_fingerprints(tmp_path, factor="2", formula="x + 1", comment="so") -> dict[str, str]:
    """Fingerprints, taken in a process of their own, of what a user's module defines."""
    (tmp_path / "mine.py").write_text(OWN.format(factor=factor, formula=formula, comment=comment))
    code = """if True:
        from functools import partial
        import mine
        from mia_lib import definitions
        def of(*things): return definitions.of(*things).fingerprint
        local = 3
        print(of(mine.attack), of(mine.Scorer), of(mine.Scorer(1)), of(partial(mine.attack, 1)), of(mine.Scorer(1).score),
              of(lambda: mine.attack(local)), of(mine.through_a_metric))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": f"{REPO}:{tmp_path}"})
    assert done.returncode == 0, done.stderr
    names = ("function", "class", "object", "partial", "method", "lambda", "metric")
    return dict(zip(names, done.stdout.split(), strict=True))


def test_a_users_own_functions_and_classes_are_followed(tmp_path):
    first = own_fingerprints(tmp_path)
    assert own_fingerprints(tmp_path, comment="another") == first
    for change in ({"factor": "3"}, {"formula": "x - 1"}):
        other = own_fingerprints(tmp_path, **change)
        assert {name for name in first if other[name] != first[name]} == set(first) - {"metric"}


def test_objects_say_by_their_classes_and_words_what_bears():
    from mia_lib.training import Ensemble
    from mia_lib.training.recipe import TrainConfig

    small, large = (definitions.of(Ensemble, TrainConfig(name)) for name in ("mlp:3", "tanh_cnn"))
    assert small.fingerprint != large.fingerprint
    assert definitions.of(Ensemble, TrainConfig("mlp:9")).fingerprint == small.fingerprint


def test_a_function_without_a_file_goes_by_what_it_runs():
    def made(body: str):
        space = {"np": np, "__name__": "__main__"}
        exec(f"LEVEL = 2\ndef helper(x): return x + 1\ndef f(x):\n    'Says.'\n    {body}", space)
        return space["f"]

    same = [definitions.of(made(body)).fingerprint for body in ("return helper(x) * LEVEL", "return helper(x) * LEVEL  # so")]
    assert same[0] == same[1] and definitions.of(made("return helper(x) + LEVEL")).fingerprint != same[0]
    other = made("return helper(x) * LEVEL")
    other.__globals__["LEVEL"] = 3
    assert definitions.of(other).fingerprint != same[0]
    assert definitions.of(partial(made("return helper(x) * LEVEL"), 1)).definitions


def test_what_a_function_without_a_file_was_given_counts():
    def made(value, give: str):
        space = {"__name__": "__main__", "value": value, "partial": partial}
        exec(f"def outer(k):\n    def f(x, *more, **named): return x + k\n    return f\nf = {give}", space)
        return definitions.of(space["f"]).fingerprint

    for give in ("outer(value)", "partial(outer(1), value)", "partial(outer(1), k=value)"):
        values = (1, 2, 2.0, "a", (1, 2), np.arange(3), np.arange(3.0), np.float32(1), {1, 2}, {"a": [np.ones(2)]}, None)
        found = [made(value, give) for value in values]
        assert found == [made(value, give) for value in values] and len(set(found)) == len(values), give


class Experiment:
    def __init__(self, n): self.n = n
    def run(self): return self.n
    def __call__(self): return self.n


def test_what_objects_hold_counts_for_a_function_without_a_file():
    def made(value, body: str = "return VALUE"):
        space = {"__name__": "__main__", "VALUE": value}
        exec(f"def f(): {body}", space)
        return definitions.of(space["f"]).fingerprint

    values = [SimpleNamespace(a=1), SimpleNamespace(a=2), range(3), range(4), Path("a"), Path("b"), Fraction(1, 3), {"n": 3,
              "m": object()}, {"n": 4, "m": object()}, np.array([1, "a"], object), np.array([2, "a"], object), Experiment(1),
              Experiment(2), Bounds(1), Bounds(2), [Experiment(1)]]
    around = []
    around.append(around)
    found = [made(value) for value in values]
    assert len(set(found)) == len(values) and found == [made(value) for value in values] and made(around)
    assert [definitions.of(Experiment(n).run).fingerprint for n in (3, 4, 3)].count(
        definitions.of(Experiment(3).run).fingerprint) == 2
    assert definitions.of(partial(Experiment, 1)).fingerprint != definitions.of(partial(Experiment, 2)).fingerprint


@dataclass
class Bounds:
    low: int


def test_the_decorator_of_a_function_without_a_file_counts():
    def made(by: str, body: str = "by * f(x)"):
        space = {"__name__": "__main__", "wraps": wraps, "cache": cache}
        exec(f"def scaled(by):\n    def decorate(f):\n        @wraps(f)\n        def inner(x): return {body}\n"
             f"        return inner\n    return decorate\n@scaled({by})\ndef f(x): return x\n@cache\ndef g(x): return {by}\n"
             "class A:\n    @cache\n    def m(self): return BY\n    class B:\n        by = BY\n".replace("BY", by), space)
        return [definitions.of(space[name]).fingerprint for name in ("f", "g", "A")]

    first = made("2")
    assert made("2") == first and all(one != other for one, other in zip(first, made("3"), strict=True))
    assert made("2", "by + f(x)")[0] != first[0]


HELP = "def g(): return 1\n"


@pytest.mark.parametrize(("asks", "files"), [
    ("from ns import h\ndef f(): return h.g()\n", {"ns/h.py": HELP}),
    ("import ns.h\ndef f(): return ns.h.g()\n", {"ns/h.py": HELP}),
    ("from ns.a import b\ndef f(): return b()\n", {"ns/h.py": HELP, "ns/a.py": "from . import h\ndef b(): return h.g()\n"}),
    ("from h import *\ndef f(): return g()\n", {"h.py": HELP}),
    ("import p\ndef f(): return p.g()\n", {"p/h.py": HELP, "p/__init__.py": "from p.h import *\n"}),
    ("try:\n    from h import g\nexcept ImportError:\n    def g(): ...\ndef f(): return g()\n", {"h.py": HELP}),
    ("import os\nif os.name:\n    from h import g\nelse:\n    from i import g\ndef f(): return g()\n",
     {"h.py": HELP, "i.py": "def g(): return 2\n"}),
    ("import contextlib\nwith contextlib.suppress(ImportError):\n    from h import g\ndef f(): return g()\n", {"h.py": HELP}),
    ("for i in range(3):\n    N = i + 1\ndef f(): return N\n", {}),
    ("(A, (B, C)) = 0, (2, 3 + 1)\ndef f(): return C\n", {}),
])
def test_users_imports_of_all_forms_are_followed(tmp_path, asks, files):
    for name, text in {"asks.py": asks, **files}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def reached() -> definitions.Reached:
        return Sources(beside=[tmp_path]).reach(["asks:f"])

    before, name = reached(), next(iter(files), "asks.py")
    (tmp_path / name).write_text((tmp_path / name).read_text().replace("1", "7"))
    assert reached().fingerprint != before.fingerprint
    if "i.py" in files:
        return  # in a process, what was not imported is not followed
    code = "from mia_lib import definitions\nimport asks\nprint(definitions.of(asks.f).fingerprint, end='')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": f"{REPO}:{tmp_path}"})
    assert done.stdout == reached().fingerprint, done.stderr  # as loaded, the same as read


def test_a_module_that_is_run_is_followed_with_what_it_imports_relatively(tmp_path, isolated_cache):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "inner.py").write_text("import numpy as np\ndef g(): return {'x': np.ones(1)}\n")
    (tmp_path / "pkg" / "main.py").write_text(
        "from mia_lib import store\nfrom .inner import g\ndef f(): return g()\n"
        "print(store.study('a.b', {}, f)['x'][0], end=' ')\n")

    def ran() -> str:
        return subprocess.run([sys.executable, "-m", "pkg.main"], capture_output=True, text=True, cwd=tmp_path,
                              env={**os.environ, "PYTHONPATH": f"{REPO}:{tmp_path}"}).stdout

    assert ran() == "1.0 "
    (tmp_path / "pkg" / "inner.py").write_text("import numpy as np\ndef g(): return {'x': np.full(1, 2.0)}\n")
    assert ran() == "2.0 "


def test_sets_of_texts_are_the_same_in_every_process(tmp_path):
    code = "def f(x): return x in {'a', 'b', 'c', 'd'}\nLEVELS = frozenset('abcd')\ndef g(x): return x in LEVELS\n" \
           "from mia_lib import definitions\nprint(definitions.of(f).fingerprint, definitions.of(g).fingerprint)"
    said = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPO,
                           env={**os.environ, "PYTHONHASHSEED": str(seed)}).stdout for seed in range(3)}
    assert len(said) == 1 and len(said.pop().split()) == 2


def test_functions_without_a_file_of_the_same_name_count_each():
    def made(*bodies: str):
        space = {"__name__": "__main__"}
        exec(f"both = [{', '.join(f'lambda x: {body}' for body in bodies)}]", space)
        return definitions.of(space["both"]).fingerprint

    whole = made("x + 1", "x + 2")
    assert whole == made("x + 1", "x + 2")
    assert len({whole, made("x + 3", "x + 2"), made("x + 1", "x + 3"), made("x + 2")}) == 4


def test_a_file_edited_while_it_runs_is_refused(tmp_path, isolated_cache):
    code = """if True:
        import pathlib
        import mine
        from mia_lib import store
        from mia_lib.errors import MiaError
        def fetched(study):
            return store.fetch({"kind": "study", "study": study}, mine.f).source
        path = pathlib.Path(mine.__file__)
        print(fetched("x"))
        path.write_text(path.read_text() + "# a comment")
        print(fetched("y"))
        path.write_text(path.read_text().replace("zeros", "ones"))
        print(fetched("x"))  # by the code that this process runs
        try:
            fetched("z")
        except MiaError as error:
            print(error)
    """
    (tmp_path / "mine.py").write_text("import numpy as np\ndef f(): return {'x': np.zeros(2)}\n")
    environment = {**os.environ, "PYTHONPATH": f"{REPO}:{tmp_path}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment).stdout
            for _ in range(2)]
    assert done[0].split("\n")[:3] == ["computed", "computed", "cache"]
    assert "mine.py was edited after this process had begun" in done[0]
    assert done[1].startswith("computed")  # by the code as it is now


RUNNING = """if True:
    import importlib, os, pathlib, sys
    import mia_lib
    from mia_lib import store
    from mia_lib.errors import MiaError
    def fetched(study, f):
        try:
            return store.fetch({"kind": "study", "study": study}, f).source
        except MiaError as error:
            return " ".join(str(error).split())
    def edit(path, old, new):
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        os.utime(path, (1e9, 1e9))
"""


def lines_of(code: str, *folders) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders)), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(RUNNING) + textwrap.dedent(code)], capture_output=True,
                          text=True, env=environment, cwd=folders[-1])
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


MINE = """
import functools
import numpy as np
COUNT, SUM, CHOSEN = 0, 0, None
FACTOR = 2
LEVELS = {"a": 1}
for step in range(3):
    SUM += step
try:
    from numpy import linspace as CHOSEN
except ImportError:
    pass
class Scale:
    by = 5
@functools.cache
def cached(): return 7
def f(x=0):
    global COUNT
    COUNT += 1
    y = x + 1
    return {'x': FACTOR * np.array(y) + LEVELS["a"] * Scale.by + cached() + SUM}
"""
EDITS = [("x + 1", "x + 2"), ("FACTOR = 2", "FACTOR = 3"), ("x=0", "x=1"), ('"a": 1', '"a": 2'), ("by = 5", "by = 6"),
         ("return 7", "return 8"), ("range(3)", "range(4)")]


def test_a_module_edited_between_its_import_and_its_first_use_serves_and_keeps_nothing(tmp_path, isolated_cache):
    (tmp_path / "mine.py").write_text(MINE)
    plain = """
        import mine
        print(fetched("x", mine.f))
        print(fetched("x", mine.f))
    """
    assert lines_of(plain, REPO, tmp_path) == ["computed", "cache"]  # its counter and its loop count without harm
    code = """
        import mine
        path, said = pathlib.Path(mine.__file__), pathlib.Path(mine.__file__).read_text()
        for number, (old, new) in enumerate(EDITS):
            edit(path, old, new)
            print(fetched(f"y {number}", mine.f))
            path.write_text(said)
    """
    for line in lines_of(code.replace("EDITS", repr(EDITS)), REPO, tmp_path):
        assert "mine.py was edited after this process had begun" in line
    early = "import mine\n" + textwrap.dedent(RUNNING)  # imported before the library
    done = subprocess.run([sys.executable, "-c", early + textwrap.dedent(plain)], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": f"{REPO}:{tmp_path}"})
    assert done.stdout.split() == ["cache", "cache"], done.stderr


def test_what_is_set_in_a_module_from_outside_serves_nothing(tmp_path, isolated_cache):
    (tmp_path / "mine.py").write_text(MINE)
    code = """
        import mine
        print(fetched("x", mine.f))
        mine.FACTOR = 3
        print(fetched("x", mine.f))
    """
    first, second = lines_of(code, REPO, tmp_path)
    assert first == "computed" and second.startswith("FACTOR, which runs, is not what ") and "set from outside" in second


def test_a_module_of_the_library_edited_before_it_is_imported_serves_nothing(library, isolated_cache):
    code = """
        import numpy as np
        EDIT
        from mia_lib.attacks import bayes
        print(fetched("x", lambda: {"x": bayes.malt(np.ones(2))}))
    """
    change = 'edit(pathlib.Path(mia_lib.__file__).parent / "attacks" / "bayes.py", "return -signed", "return +signed")'
    assert lines_of(code.replace("EDIT", ""), library.parent) == ["computed"]
    [said] = lines_of(code.replace("EDIT", change), library.parent)
    assert "bayes.py was edited between the start of this process and its import, or loaded anew" in said


def test_a_module_of_the_library_that_was_loaded_anew_serves_nothing(library, isolated_cache):
    code = """
        import numpy as np
        from mia_lib.attacks import bayes
        path = pathlib.Path(bayes.__file__)
        def compute(): return {"x": bayes.malt(np.ones(2))}
        print(fetched("x", compute))
        edit(path, "return -signed", "return +signed")
        print(fetched("x", compute))
        importlib.reload(bayes)
        print(fetched("x", compute))
    """
    said = lines_of(code, library.parent)
    assert said[:2] == ["computed", "cache"] and "bayes.py was edited between the start of this process and its" in said[2]


# -------------------------------------------------------------------------------------------------- pages of notebooks


def test_the_key_of_a_page_follows_code_and_parameters_not_text(tiny):
    def key(**given):
        return runner.key("tiny", validate("tiny", given, None, tiny), tiny)

    source, first = tiny / "notebooks" / "tiny.py", key()
    text = source.read_text()
    for old, new in (("# # A tiny page", "# # Another title"), ("# how many steps", "# the number of steps"),
                     ("\nclaims = [", "\n# judged\nclaims = [")):
        source.write_text(text.replace(old, new))
        assert key() == first, old
    for old, new in (('track(range(steps), "steps")', 'track(range(steps + 1), "steps")'), ("an abacus", "a slide rule"),
                     ("\n# %%\nfrom IPython", "\nfrom IPython")):
        source.write_text(text.replace(old, new))
        assert key() != first, old
    source.write_text(text)
    assert key() == first != key(steps=4)


def test_a_module_beside_the_notebooks_bears_on_the_page_that_imports_it(tiny):
    (tiny / "mine.py").write_text("RATE = 1\ndef f(): return RATE\ndef g(): return 2\n")
    source = tiny / "notebooks" / "tiny.py"
    source.write_text(source.read_text() + "\n# %%\nimport mine as my\nmy.f()\n")
    values = validate("tiny", {}, None, tiny)
    first = runner.key("tiny", values, tiny)
    (tiny / "mine.py").write_text("RATE = 1\ndef f(): return RATE\ndef g(): return 3\n")
    assert runner.key("tiny", values, tiny) == first
    (tiny / "mine.py").write_text("RATE = 2\ndef f(): return RATE\ndef g(): return 3\n")
    assert runner.key("tiny", values, tiny) != first


def test_magics_are_code_and_what_cannot_be_read_counts_as_it_stands():
    assert definitions.of_cells(["%time x = 1"]).fingerprint != definitions.of_cells(["%time x = 2"]).fingerprint
    assert definitions.of_cells(["x = = 1"]).fingerprint != definitions.of_cells(["x = = 2"]).fingerprint


def test_text_that_changed_is_put_around_the_outputs_of_a_finished_run(tiny):
    source = tiny / "notebooks" / "tiny.py"
    output = [{"output_type": "stream", "name": "stdout", "text": "of this cell"}]
    tags = ["parameters"], ["injected-parameters"], [], [], []
    ran = {"metadata": {"mia": 1}, "cells": [{"cell_type": "markdown", "source": "old", "metadata": {}}, *(
        {"cell_type": "code", "source": "old", "metadata": {"tags": tag}, "execution_count": n, "outputs": output * (n == 3)}
        for n, tag in enumerate(tags, 1))]}
    source.write_text(source.read_text().replace("# # A tiny page", "# # A new title"))
    told = runner.retold(ran, "tiny", tiny)
    assert told["cells"][0]["source"] == "# A new title" and told["metadata"] == {"mia": 1}
    assert [c.get("execution_count") for c in told["cells"] if c["cell_type"] == "code"] == [1, 2, 3, 4, 5]
    assert [c["source"].splitlines()[0] for c in told["cells"] if c.get("outputs")] == ["import os"]


def test_a_page_whose_source_changes_while_it_runs_is_made_anew(tiny, monkeypatch):
    keys = iter(["before", "after", "after", "after"])
    monkeypatch.setattr(runner, "key", lambda *a, **k: next(keys))
    values, target = validate("tiny", {}, "smoke", tiny), tiny / "runs" / "x" / "tiny.ipynb"
    assert runner.execute("tiny", values, target, preset="smoke", root=tiny)["key"] == runner.CHANGED_MEANWHILE
    assert runner.execute("tiny", values, target, preset="smoke", root=tiny)["key"] == "after"


def test_kept_results_follow_the_code_in_a_real_process(library, isolated_cache):
    """Attack, signal and training edited in a copy: what depends on each is computed anew, and the rest is read."""
    shutil.copytree(REPO / "data" / "embedded", library.parent / "data" / "embedded")
    code = """if True:
        import numpy as np
        from mia_lib import data, membership, signals, store, training
        from mia_lib.attacks import bayes
        records = data.load("german_credit").take(np.arange(60))
        models = training.train(records, membership.balanced_halves(60, 2), training.TrainConfig("mlp:2", epochs=1))
        def study(): return {"malt": bayes.malt(signals.loss(models, records)[0])}
        if __name__ == "__main__":
            there = not models.missing()
            found = store.fetch({"kind": "study", "study": "x", "models": models.key}, study)
            print(there, found.source, found.arrays["malt"].sum())
    """
    script = library.parent / "script.py"
    script.write_text(textwrap.dedent(code))

    def ran() -> list[str]:
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(library.parent)})
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    first = ran()
    assert first[:2] == ["False", "computed"]
    edit(library, *NOTHING["a comment"])
    edit(library, "training/backends/loop.py", "def fit_group(", "# why\ndef fit_group(")
    assert ran() == ["True", "cache", first[2]]
    edit(library, "attacks/bayes.py", "return -signed", "return +signed")
    flipped = ran()
    assert flipped[:2] == ["True", "computed"] and float(flipped[2]) == -float(first[2])
    edit(library, *BEARS["a training detail"][:3])
    assert ran()[:2] == ["False", "computed"]
    edit(library, "training/backends/loop.py", "losses.sum(1).sum().backward()", "losses.mean(1).sum().backward()")
    assert ran() == ["True", "cache", flipped[2]]  # back at code that was run before


def test_what_is_asked_of_the_store_by_a_study_is_not_asked_by_its_version():
    """No number that somebody would have to remember to raise."""
    for path in (REPO / "mia_lib").rglob("*.py"):
        assert '"version":' not in path.read_text(encoding="utf-8"), path
    assert store.SCHEMA == 1


def test_a_spec_of_no_code_is_refused_before_anything_is_kept(isolated_cache):
    with pytest.raises(MiaError, match="has no code"):
        store.keep({"kind": "study", "study": "x"}, {"x": np.ones(1)})
