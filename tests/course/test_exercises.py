"""Every exercise: its checks accept right answers of all kinds, refuse the usual wrong ones, and give nothing away."""

import ast
import csv
import doctest
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat
import numpy as np
import pytest
from absent import WITHOUT_TORCH
from typer.testing import CliRunner

from mia_book import folders
from mia_book.course import bank, exercises, export, marking
from mia_book.pages.cli import app
from mia_book.pages.parameters import find_root, validate
from mia_lib.errors import MiaError

ROOT = find_root(Path(__file__).resolve().parents[2])
CHAPTERS = [name for name in folders.in_order(ROOT) if name in folders.find("quiz.yaml")]
ALL = exercises.load_exercises(ROOT)
MALT = next(one for one in ALL if one.name == "malt_mast")
ANSWERS = [
    pytest.param(one, answer, id=f"{one.name}: {answer.title if answer else 'the solution'}")
    for one in ALL
    for answer in (None, *one.answers)
]
# each answer is checked once, also where it is exported
said_of = functools.cache(exercises.Exercise.failures)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_exercises_are_in_every_chapter_and_week_and_have_right_and_wrong_answers():
    counted = [one.about["chapter"] for one in ALL]
    assert set(counted) == set(CHAPTERS) and max(map(counted.count, counted)) <= 3
    weeks = [
        line
        for line in (ROOT / "book" / "syllabus.md").read_text().splitlines()
        if re.match(r"\| \d \|", line)
    ]
    weeks = "".join(weeks[:5])  # the other tables have fewer
    assert all(f"`{one.name}`" in weeks for one in ALL)
    assert all(f"notebooks/{chapter}.ipynb" in weeks for chapter in CHAPTERS)
    for one in ALL:
        titles = [answer.title for answer in one.answers if not answer.right]
        assert 5 <= len(titles) == len(set(titles)) < len(one.answers)


@pytest.mark.parametrize("exercise, answer", ANSWERS)
def test_right_answers_are_accepted_and_wrong_ones_told_why(exercise, answer):
    said = said_of(exercise, answer)
    assert bool(said) == (answer is not None and not answer.right), said
    for one in said:
        assert one[0] == "`" and one.rstrip()[-1] in ".?", one
        assert "nan" not in one.replace("NaN", ""), one


@pytest.mark.parametrize("exercise", ALL, ids=lambda one: one.name)
def test_a_students_copy_holds_no_solution_and_what_was_not_written_is_not_accepted(exercise):
    made, functions = exercise.student(), exercise.about["functions"]
    nbformat.validate(made)
    text = jupytext.writes(made, fmt="py:percent")
    tags = [cell.metadata.get("tags", []) for cell in made.cells]
    assert "SOLUTION" not in text
    assert "Wrong" not in text
    assert not {"right", "wrong"} & set(sum(tags, []))
    assert sum("parameters" in some for some in tags) == 1
    code = [
        cell.source
        for cell, some in zip(made.cells, tags, strict=True)
        if cell.cell_type == "code"
        and "signals" not in some
        and not exercises.CHECK.search(cell.source)
    ]
    stubs = {
        node.name: node
        for source in code
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name in functions
    }
    assert list(stubs) == functions
    for stub in stubs.values():  # signature and docstring, and a line to be written
        assert ast.get_docstring(stub) and [type(one) for one in stub.body] == [ast.Expr, ast.Raise]
    with exercises.importable(ROOT / "course") as checks:
        work = {}
        exec("\n".join(code), work)
        said, nothing = (
            [
                checks.one(exercise.name, k, given, 0)
                for k in range(len(checks.titles(exercise.name)))
            ]
            for given in (work, {})
        )
    assert "right" not in said + nothing
    assert any("still to be written" in one for one in said)
    assert all("no function" in one for one in nothing)


@pytest.mark.parametrize("exercise", ALL, ids=lambda one: one.name)
def test_no_other_exercise_carries_its_solution(exercise):
    """Lines of signals that look at a result calibrate by `checks`, whose functions are no answer."""
    of_signals = "\n".join(
        cell.source
        for cell in exercise.student().cells
        if "signals" in cell.metadata.get("tags", [])
    )
    assert not re.search(r"outside\.sum\(0\)|linalg\.solve|np\.delete", of_signals)


@pytest.mark.parametrize(
    "name, code",
    [
        ("calibrated", "return checks.less_the_others(score, members, target)"),
        (
            "iha",
            "return checks.told(members, loss, gradients, hessian, members, learning_rate, damping)",
        ),
    ],
)
def test_what_the_checks_have_for_looking_is_no_answer(name, code):
    exercise = next(one for one in ALL if one.name == name)
    function = exercise.about["functions"][-1]
    stub = re.search(rf"def {function}\(.*?\):", exercise.solution)[0]
    with exercises.importable(ROOT / "course") as checks:
        work: dict = {}
        exec(exercise.solution, work)
        exec(f"import checks\n{stub}\n    {code}", work)
        said = [checks.one(name, k, work) for k in range(len(checks.titles(name)))]
    assert "right" not in said[-1:] and any("an answer is to be your own" in one for one in said)


@pytest.mark.parametrize(
    "answer, told",
    [
        ("def malt(loss): return None", "returns nothing"),
        ("def malt(loss): return loss[:3]", "shape (3,)"),
        ("def malt(loss): return -loss * float('nan')", "not finite"),
        ("def malt(loss): loss *= -1; return loss", "changes an array"),
        ("def malt(loss): return ['low'] * len(loss)", "numbers are needed"),
        ("def malt(loss): return 1 / 0", "ZeroDivisionError"),
        ("malt = 3", "no function `malt`"),
    ],
)
def test_what_is_no_answer_at_all_is_told_apart(answer, told):
    assert told in MALT.failures(exercises.Answer(False, "none", answer))[0]


@pytest.mark.parametrize(
    "exercise, code, failing",
    [
        ("malt_mast", "def malt(loss): return loss < loss.mean()", {0, 1}),
        ("malt_mast", "def malt(loss): return (loss < np.median(loss)).astype(int)", {0, 1}),
        ("malt_mast", "def malt(loss): return loss < 0.5", {0}),
        ("malt_mast", "def malt(loss): return -np.round(loss, 1)", {0}),
        ("calibrated", "the target among its references", {0, 1, 3, 4}),
        ("calibrated", "the other model of the pair among the references", {0}),
        ("lira", "the target among its references", {0}),
        ("lira", "the other model of the pair among the references", {0}),
        ("threshold", "members among those who make the threshold", {2}),
        ("verses", "the target among its references", {4}),
        ("verses", "references that read the record", {7}),
        ("verses", "the length alone", {9}),
    ],
)
def test_a_wrong_answer_fails_the_same_checks_in_every_draw_and_none_by_way_of_another(
    exercise, code, failing
):
    exercise = next(one for one in ALL if one.name == exercise)
    answer = next(
        (one for one in exercise.answers if one.title == code),
        exercises.Answer(False, "wrong", code),
    )
    with exercises.importable(ROOT / "course") as checks:
        work, numbers = exercise.work(answer), range(len(checks.titles(exercise.name)))
        for seed in range(8):
            assert {
                k for k in numbers if checks.one(exercise.name, k, work, seed) != "right"
            } == failing


def test_what_several_checks_say_is_printed_once(capsys):
    with exercises.importable(ROOT / "course") as checks:
        assert checks.run("lira", {}) == 0
    shown = capsys.readouterr().out
    assert shown.count("There is no function `lira`") == 1 and shown.count("WRONG") == 5


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    signals = bank.arrays()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bank, "arrays", lambda: signals)
        patch.setattr(
            exercises.Exercise, "failures", lambda exercise, answer: said_of(exercise, answer)
        )
        return {
            edition: export.write(folder / edition, ROOT, edition) for edition in export.EDITIONS
        }


def test_an_export_has_all_that_a_student_needs_and_otter_reads(exported):
    student, lecturer = exported["student"], exported["lecturer"]
    readme = (student / "README.md").read_text()
    assert not list(student.rglob("__pycache__"))
    assert "https://github.com/" in readme and (student / "attack_a_bank.ipynb").is_file()
    for one in ALL:
        for folder in (student, lecturer):
            assert {f"{one.name}.ipynb", f"{one.name}.py", "README.md", "signals.npz"} <= {
                p.name for p in folder.iterdir()
            }
        assert "BEGIN SOLUTION" in (lecturer / f"{one.name}.py").read_text() and one.title in readme
        shown = "".join(
            "".join(cell["source"])
            for cell in json.loads((lecturer / f"{one.name}.ipynb").read_text())["cells"]
        )
        for answer in one.answers:
            assert f"**{'Right' if answer.right else 'Wrong'}: {answer.title}**" in shown
            assert all(remark in shown for remark in said_of(one, answer))
            assert answer.code.strip() not in (student / f"{one.name}.py").read_text()
        namespace = {}
        exec((student / "tests" / f"{one.name}.py").read_text(), namespace)
        cases = namespace["test"]["suites"][0]["cases"]
        assert namespace["OK_FORMAT"] is True and namespace["test"]["name"] == one.name
        with exercises.importable(ROOT / "course") as checks:
            assert len(cases) == len(checks.titles(one.name))
            for case in cases if one is MALT else ():
                test = doctest.DocTestParser().get_doctest(
                    case["code"], one.work(), "case", None, 0
                )
                assert doctest.DocTestRunner().run(test).failed == 0


def test_the_exercises_of_a_week_are_exported_alone(tmp_path):
    export.write(tmp_path / "week", ROOT, only=["lira", "malt_mast"])
    assert {path.stem for path in (tmp_path / "week").glob("*.ipynb")} == {"lira", "malt_mast"}
    assert {path.stem for path in (tmp_path / "week" / "checks").glob("*.py")} == {
        "__init__",
        "__main__",
        "lira",
        "malt_mast",
    }
    readme = (tmp_path / "week" / "README.md").read_text()
    assert "2 exercises" in readme and "jupyter lab malt_mast.ipynb" in readme
    links = re.findall(r"\]\((?!http)([^)]*)\)", readme)
    assert links and all((tmp_path / "week" / link).exists() for link in links)
    assert re.findall("mia run ([a-z]+)", readme) == ["bayes", "compare"]  # their chapters
    with pytest.raises(MiaError, match="Did you mean 'malt_mast'"):
        export.write(tmp_path / "other", ROOT, only=["maltmast"])
    assert not (tmp_path / "other").exists()


def test_the_first_notebook_has_its_bank_beside_it_and_says_what_is_missing_without_a_network(
    exported, tmp_path
):
    folder = exported["student"]
    cells = json.loads((folder / f"{export.FIRST}.ipynb").read_text())["cells"]
    first = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    opened = f"{first}\nfrom mia_lib import published\nprint(len(published.load({export.BANK!r})))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", opened], cwd=folder, capture_output=True, text=True
    )
    assert done.stdout == "64\n", done.stderr
    done = subprocess.run(
        [sys.executable, "-c", first],
        cwd=tmp_path,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("The book is not here") and "Traceback" not in done.stderr


def test_an_export_is_the_same_each_time_and_needs_no_torch(exported, tmp_path):
    code = WITHOUT_TORCH + (
        f"from pathlib import Path\nfrom mia_book.course import export\n"
        f"export.write(Path({str(tmp_path / 'student')!r}), Path({str(ROOT)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for path in exported["student"].rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert (
                path.read_bytes()
                == (tmp_path / "student" / path.relative_to(exported["student"])).read_bytes()
            ), path


@pytest.mark.parametrize("full", ["a student's work.ipynb", ".hidden"])
def test_a_folder_that_is_not_empty_is_left_alone_and_one_without_exercises_is_no_book(
    tmp_path, full
):
    (tmp_path / full).write_text("mine")
    with pytest.raises(MiaError, match="not empty"):
        export.write(tmp_path, ROOT, "student")
    assert [path.name for path in tmp_path.iterdir()] == [full]
    assert (tmp_path / full).read_text() == "mine"
    with pytest.raises(MiaError, match="no exercises"):
        export.write(tmp_path / "new", tmp_path, "student")


def test_on_a_full_disk_no_half_of_an_export_is_left_and_the_same_command_works_when_there_is_room(
    tmp_path, monkeypatch
):
    def full(*given):
        raise OSError(28, "No space left on device")

    (tmp_path / ".writing-killed").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(bank, "write", full)
        with pytest.raises(OSError, match="No space"):
            export.write(tmp_path, ROOT, "student")
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(bank, "write", lambda to: to.touch())
    assert (export.write(tmp_path, ROOT, "student") / "checks" / "lira.py").is_file()
    assert not list(tmp_path.glob(".*"))


def test_marks_are_printed_where_they_cannot_be_written(tmp_path, monkeypatch):
    real, table = marking.record, tmp_path / "marks.csv"

    def full(to, cells, mode="a"):
        if mode == "a":
            raise MiaError("--to marks.csv cannot be written")
        real(to, cells, mode)

    monkeypatch.setattr(marking, "record", full)
    done = CliRunner().invoke(
        app,
        ["course", "check", "--to", str(table), str(tmp_path / "one.py"), str(tmp_path / "two.py")],
    )
    assert done.exit_code == 2
    assert "one.py" in done.stdout
    assert "two.py" in done.stdout
    assert "cannot be written" in done.output
    monkeypatch.setattr(
        marking.csv,
        "writer",
        lambda out: (_ for _ in ()).throw(OSError(28, "No space left on device")),
    )
    with pytest.raises(MiaError, match="No space"):
        real(tmp_path / "other.csv", (), "x")
    assert not (tmp_path / "other.csv").exists()  # or the same command would be refused


def test_signals_say_what_is_in_them(exported):
    card = json.loads((exported["student"] / "signals.json").read_text())
    path = exported["student"] / "signals.npz"
    assert path.stat().st_size == card["bytes"] < bank.LARGEST
    assert "MIT" in card["licence"]
    assert bank.NAME in card["what"]
    with np.load(path, allow_pickle=False) as signals:
        assert set(signals) == set(card["arrays"]) == set(bank.WHAT)
        for name, one in card["arrays"].items():
            assert (
                list(signals[name].shape) == one["shape"]
                and str(signals[name].dtype) == one["dtype"]
            )
        hidden = np.maximum(signals["x"] / 255 @ signals["w1"] + signals["b1"], 0)
        logits = hidden @ signals["w2"] + signals["b2"]
        loss = np.log(np.exp(logits).sum(1)) - logits[np.arange(len(logits)), signals["y"]]
        # weights of model 0, in half precision
        np.testing.assert_allclose(loss, signals["loss"][0], atol=0.03)
        assert (signals["members"][::2] ^ signals["members"][1::2]).all()
    with pytest.raises(MiaError, match="is there already"):
        bank.write(path)
    with pytest.raises(MiaError, match="can be mailed"):
        bank.packed({"x": np.random.default_rng(0).random(bank.LARGEST // 4)})


def test_runs_in_class_are_runs_that_are_allowed():
    assert list(export.class_runs(ROOT)) == CHAPTERS
    for chapter, command in export.class_runs(ROOT).items():
        key, value = command.removeprefix(f"mia run {chapter} -p ").split(" ")
        validate(chapter, {key: value}, "quick", ROOT)


def test_a_look_at_a_result_that_is_none_says_what_is_wrong(capsys):
    with exercises.importable(ROOT / "course") as checks:
        checks.tell("mine", 0.5, np.arange(10) < 5)
        checks.tell("mine", np.arange(10), np.arange(10) > 4)
        checks.tell("mine", np.where(np.arange(10) > 4, np.nan, 0), np.arange(10) > 4)
        checks.tell("mine", ["high"] * 10, np.arange(10) > 4)
        checks.tell("mine", np.arange(10), np.ones(10))
        with pytest.raises(ValueError, match="Keep the notebook in the folder"):
            checks.run("unknown", {})
    shown = capsys.readouterr().out
    assert "scores of shape () and type float64 for 10 records" in shown
    assert shown.count("AUC 1.000") == 1
    assert "5 of 10 scores are NaN" in shown
    assert "type <U4" in shown
    assert "both kinds are needed" in shown


def test_notebooks_are_marked_as_they_come_back(exported, tmp_path):
    """With the book's checks, not with those beside them."""
    path, own = tmp_path / "malt_mast.ipynb", tmp_path / "checks"
    path.write_text(jupytext.writes(MALT._without_answers(), fmt="ipynb"))
    full = marking.mark(path, ROOT, seed=1)
    assert (full.exercise, full.right, full.remarks) == ("malt_mast", full.of, ())
    own.mkdir()
    (own / "__init__.py").write_text(
        "def one(*given): return 'right'\ndef titles(*given): return ['all'] * 9\n"
    )
    path.write_text((exported["student"] / "malt_mast.ipynb").read_text())
    empty = marking.mark(path, ROOT, seed=1)
    assert empty.right == 0 and empty.of == full.of and "still to be written" in empty.remarks[0]
    gone = marking.mark(tmp_path / "gone" / "lira.ipynb", ROOT)
    assert gone.refused and "no file" in gone.remarks[0]


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda text: text.replace("checks.run", "print"), "no cell with `checks.run"),
        (
            lambda text: text.replace('checks.run(\\"malt_mast', 'checks.run(\\"my_own'),
            "do not exist",
        ),
        (lambda text: text[:500], "no Jupyter notebook"),
        (lambda text: "[]", "no Jupyter notebook"),
        (lambda text: "", "malt_mast.ipynb is empty"),
        (
            lambda text: text.replace("import numpy as np", "import numpy as np, os; os._exit(3)"),
            "ended Python",
        ),
        (
            lambda text: text.replace(
                "import numpy as np", "import numpy as np, time; time.sleep(600)"
            ),
            "never ends",
        ),
    ],
)
def test_a_notebook_that_cannot_be_marked_is_refused(exported, tmp_path, change, said):
    path = tmp_path / "malt_mast.ipynb"
    path.write_text(change((exported["student"] / "malt_mast.ipynb").read_text()))
    made = marking.mark(path, ROOT, seconds=3 if "never" in said else 600)
    assert made.refused and said in made.remarks[0]


def test_marks_are_written_one_by_one_and_no_notebook_stops_those_after_it(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    codes = {
        "malt_mast_anna": "\n".join(CELLS),
        "malt_mast_bytes": "\n".join(
            [
                *CELLS,
                "sys = __import__('sys')",
                "sys.stderr.buffer.write(b'\\xff')",
                "raise ValueError('\\ud800')",
            ]
        ),
        "lira_brackets": "import os\nos.write(1, b'[' * 200000)\nos._exit(0)\nchecks.run('lira', globals())",
    }
    paths = [tmp_path / f"{name}.py" for name in codes]
    for path, code in zip(paths, codes.values(), strict=True):
        path.write_text(code)
    table = tmp_path / "marks.csv"
    command = [
        "course",
        "check",
        "--seed",
        "1",
        "--to",
        str(table),
        *map(str, [tmp_path / "malt_mast.ipynb", *paths]),
    ]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1 and "6 of 6  malt_mast" in done.output
    marks = {row["student"]: row for row in csv.DictReader(table.open(encoding="utf-8"))}
    assert {name: (row["exercise"], row["points"]) for name, row in marks.items()} == {
        tmp_path.name: ("malt_mast", "0"),
        "anna": ("malt_mast", "6"),
        "bytes": ("malt_mast", "6"),
        "brackets": ("lira", "0"),
    }
    assert marks["anna"]["complaint"] == "" and "ValueError" in marks["bytes"]["complaint"]
    assert "printed at its end" in marks["brackets"]["complaint"]
    assert "no file" in marks[tmp_path.name]["complaint"]
    assert {row["of"] for row in marks.values()} == {"6", "5"}  # also of what was refused
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 2 and "marks.csv cannot be written (File exists)" in again.output


@pytest.mark.parametrize(
    "name", ["malt_mast_Anna Ö", "Malt_Mast-Anna Ö", "malt-mast Anna Ö", "MALT MAST_Anna Ö"]
)
def test_a_student_is_what_stands_behind_the_exercise_however_it_is_written(tmp_path, name):
    path = tmp_path / f"{name}.ipynb"
    for mark in (marking.Mark(path, "malt_mast", 6, 6), marking.Mark(path)):
        row = dict(zip(marking.COLUMNS, marking.row(mark, ROOT), strict=True))
        assert (row["student"], row["exercise"], row["of"]) == ("Anna Ö", "malt_mast", 6)


@pytest.mark.parametrize(
    "name, student",
    [
        ("Anna Ö_12345_assignsubmission_file_/malt_mast.ipynb", "Anna Ö"),
        ("Anna Ö_12345_assignsubmission_file/homework/MALT MAST (2).ipynb", "Anna Ö"),
        ("Anna Maria de la O_1_assignsubmission_file_malt_mast.ipynb", "Anna Maria de la O"),
        ("Participant_12345_assignsubmission_file_/malt_mast.ipynb", "Participant 12345"),
    ],
)
def test_a_student_is_whom_moodle_names(tmp_path, name, student):
    for mark in (marking.Mark(tmp_path / name, "malt_mast", 6, 6), marking.Mark(tmp_path / name)):
        row = dict(zip(marking.COLUMNS, marking.row(mark, ROOT), strict=True))
        assert (row["student"], row["exercise"], row["of"]) == (student, "malt_mast", 6)


def test_folders_are_searched_for_notebooks(tmp_path):
    one = tmp_path / "Bo Li_7_assignsubmission_file_" / "lira.ipynb"
    two = tmp_path / "Anna Ö_12_assignsubmission_file_" / "more" / "lira.ipynb"
    kept = two.parent / ".ipynb_checkpoints" / "lira-checkpoint.ipynb"
    for path in (one, two, kept, two.parent / "helper.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    assert marking.notebooks([tmp_path, Path("gone.py")]) == [two, one, Path("gone.py")]
    (tmp_path / "empty").mkdir()
    done = CliRunner().invoke(app, ["course", "check", str(tmp_path / "empty")])
    assert done.exit_code == 2 and "is a folder without a notebook (.ipynb)" in done.output


def test_links_to_devices_pipes_and_huge_files_are_refused_unread(tmp_path):
    (tmp_path / "lira_device.ipynb").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "lira_pipe.ipynb")
    with (tmp_path / "lira_huge.ipynb").open("wb") as huge:
        huge.truncate(10**12)
    for path in sorted(tmp_path.iterdir()):
        made = marking.mark(path, ROOT, seconds=5)
        assert made.refused and "no file that can be read" in made.remarks[0]


def test_a_folder_is_refused_with_what_to_give_and_named_as_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("handed_in").mkdir()
    [remark] = marking.mark(Path("handed_in"), ROOT).remarks
    assert remark == "handed_in is a folder: name the notebooks in it, as handed_in/*.ipynb."


def test_a_table_of_marks_holds_no_formulas(tmp_path):
    marking.record(tmp_path / "marks.csv", ("=1+1", "@x", "-anna", "+b", "ok", 5), "x")
    assert (tmp_path / "marks.csv").read_text() == "'=1+1,'@x,'-anna,'+b,ok,5\n"


CELLS = [
    cell.source
    for cell in MALT._without_answers().cells
    if cell.cell_type == "code" and "signals" not in cell.metadata.get("tags", [])
]


def mark(tmp_path, text: str) -> marking.Mark:
    path = tmp_path / "malt_mast.py"
    path.write_text(text)
    return marking.mark(path, ROOT, seed=1, seconds=600)


def test_right_answers_are_right_however_a_script_is_cut(tmp_path):
    """All in one cell with its check, a line that begins with an operator, imports above the first cell, no cells at all."""
    whole, cut = "\n".join(CELLS), "\n# %%\n".join(CELLS)
    operator = "\n\nrest = (7\n        % 4)\nassert rest == 3\nremaining = (7\n% 4)\nassert remaining == 3\n"
    for text in (whole, "# %%\n" + whole + operator, cut, "# %%\n%matplotlib inline\n" + cut):
        made = mark(tmp_path, text)
        assert (made.right, made.remarks) == (made.of, ()) and made.of > 0, text


@pytest.mark.parametrize(
    "forged",
    [
        'import atexit\natexit.register(lambda: print(\'{"exercise": "malt_mast", "failed": [], "said": ["right"]}\'))',
        "import atexit\natexit.register(lambda: print('{}'))",
        "import checks.malt_mast\nchecks.malt_mast.CHECKS[:] = []",
        'import os\nprint(\'{"exercise": "malt_mast", "failed": [], "said": ["right"]}\', flush=True)\nos._exit(0)',
    ],
)
def test_forged_marks_are_refused_and_another_check_in_place_of_the_book_s_counts_nothing(
    forged, tmp_path
):
    assert mark(tmp_path, "\n".join([*CELLS, forged])).refused
    if "CHECKS" in forged:
        made = mark(
            tmp_path,
            "import checks\nchecks.one = lambda *given: 'right'\nchecks.run('malt_mast', globals())\n"
            "x = input('wait')\n",
        )
        assert made.right == 0 and made.of > 0 and any("EOFError" in one for one in made.remarks)


SOLVED = """
import contextlib, io, json, sys
for name in ("torch", "scipy", "pandas", "sklearn", "mia_lib", "matplotlib"):
    sys.modules[name] = None
import checks, numpy as np

def tell(name, scores, members):
    bar = np.sort(scores[~members])[::-1][int(0.05 * (~members).sum())]
    told[name] = checks.auc(scores, members), float((scores[members] > bar).mean())
    real(name, scores, members)

real, checks.tell, shown = checks.tell, tell, {}
for exercise, cells in json.load(sys.stdin).items():
    told, work, _ = {}, {}, checks.titles(exercise)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        for cell in cells:
            exec(cell, work)
    shown[exercise] = out.getvalue(), told
print(json.dumps(shown))
"""


@pytest.fixture(scope="module")
def shown(exported):
    """What each solved notebook prints about the signals that are handed out, beside them and with NumPy alone, as the checks
    are imported, and name -> (AUC, TPR at 5 % FPR) of what it tells."""
    cells = {
        one.name: [
            cell.source
            for cell in one._without_answers().cells
            if cell.cell_type == "code" and not exercises.CHECK.search(cell.source)
        ]
        for one in ALL
    }
    done = subprocess.run(
        [sys.executable, "-c", SOLVED],
        input=json.dumps(cells),
        cwd=exported["student"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("AUC") >= 10 and "nan" not in done.stdout
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "name, better, worse, by",
    [
        ("malt_mast", "MAST", "MALT", 0.1),
        ("malt_mast", "MAST", "mean of the others", 0.02),
        ("calibrated", "calibrated by 16 references", "calibrated by 2 references", 0.05),
        ("lira", "LiRA on the margin", "LiRA on the loss", 0.05),
        ("iha", "IHA", "loss alone", 0.3),
        ("broken", "published", "repaired", 0.05),
        ("verses", "random verses, less the usual", "random verses, the loss", 0.3),
        (
            "verses",
            "Old Testament and New, words without a model",
            "Old Testament and New, the loss",
            0.3,
        ),
    ],
)
def test_real_signals_show_the_point_of_an_exercise(name, better, worse, by, shown):
    told = shown[name][1]
    assert told[better][1] > told[worse][1] + by and told[better][0] >= told[worse][0] - 0.005


def test_real_signals_show_what_is_alike_what_is_chance_and_what_a_threshold_promises(shown):
    said = {name: printed for name, (printed, _) in shown.items()}
    assert (
        abs(
            shown["iha"][1]["IHA told random flags, finds the flags"][0] - shown["iha"][1]["IHA"][0]
        )
        < 0.05
    )
    bending, loss = (
        shown["curvature"][1][name][0]
        for name in ("little bending means a member", "a low loss, of the same records")
    )
    assert bending > 0.55 and abs(bending - loss) < 0.05
    (low, _), (lower, upper) = (
        [float(number) for number in line.split("from ")[1].split(" to ")]
        for line in said["difference"].splitlines()
    )
    assert low > 0 and lower < 0 < upper
    nothing, something = (
        [float(number) for number in re.findall(r"(?:p|AUC) ([\d.]+)[,;]", line)]
        for line in said["winner"].splitlines()
    )
    assert max(nothing) > 0.54
    assert min(nothing) > 0.05
    assert min(something) < 0.01
    assert "number 31" in said["winner"]
    promised, counted, found = (
        float(number) for number in re.findall(r"([\d.]+)%", said["threshold"])
    )
    assert promised == 5 and abs(counted - promised) < 3 and found > 4 * counted
    one, own = (
        [float(number) for number in re.findall(r"([\d.]+)%", line)]
        for line in said["quantile"].splitlines()
    )
    assert own[1] <= one[1] + 1 and own[2] > 1.5 * one[2]  # at no more false alarms
    assert any(
        float(line.split()[3]) > float(line.split()[5]) for line in said["privacy_cap"].splitlines()
    )
