"""Every exercise: its checks accept right answers of all kinds, refuse the usual wrong ones, and give nothing away."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat
import pytest
from absent import WITHOUT_TORCH

from mia_lib.course import bank, exercises, export, marking
from mia_lib.errors import MiaError
from mia_lib.publish.parameters import find_root, validate

ROOT = find_root(Path(__file__).resolve().parents[2])
ALL = exercises.load_exercises(ROOT)
BY_NAME = {one.name: one for one in ALL}
MALT = BY_NAME["malt_mast"]
ANSWERS = [pytest.param(one, answer, id=f"{one.name}: {answer.title}") for one in ALL for answer in one.answers]
NUMPY_ALONE = """
import sys
for name in ("torch", "scipy", "pandas", "sklearn", "mia_lib", "matplotlib"):
    sys.modules[name] = None
"""
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_there_are_enough_in_every_chapter():
    assert len(ALL) >= 8
    counted = [one.about["chapter"] for one in ALL]
    assert set(counted) == set(exercises.CHAPTERS) and max(map(counted.count, counted)) <= 3


def test_every_exercise_is_in_a_week_of_the_syllabus():
    weeks = [line for line in (ROOT / "book" / "syllabus.md").read_text().splitlines() if re.match(r"\| \d \|", line)]
    weeks = weeks[:5]  # the other tables have fewer
    assert all(f"`{one.name}`" in "".join(weeks) for one in ALL)
    assert all(f"notebooks/{chapter}.ipynb" in "".join(weeks) for chapter in exercises.CHAPTERS)


@pytest.mark.parametrize("exercise", ALL, ids=lambda one: one.name)
def test_the_solution_is_accepted(exercise):
    assert exercise.failures(seed=3) == []


@pytest.mark.parametrize("exercise, answer", ANSWERS)
def test_right_answers_are_accepted_and_wrong_ones_told_why(exercise, answer):
    said = exercise.failures(answer, seed=4)
    assert bool(said) != answer.right, said
    for one in said:
        assert one[0] == "`" and one.rstrip()[-1] in ".?", one
        assert "nan" not in one.replace("NaN", ""), one


@pytest.mark.parametrize("exercise", ALL, ids=lambda one: one.name)
def test_the_usual_mistakes_are_among_the_wrong_answers(exercise):
    titles = [one.title for one in exercise.answers if not one.right]
    assert len(titles) >= 5 and len([one for one in exercise.answers if one.right]) >= 1
    assert len(set(titles)) == len(titles)


def test_the_five_commonest_mistakes_are_made_somewhere():
    titles = " | ".join(answer.title for one in ALL for answer in one.answers if not answer.right)
    for mistake in ("wrong sign", "target among its references", "test set used for the threshold", "variance for deviation",
                    "AUC for TPR"):
        assert mistake in titles, mistake


@pytest.mark.parametrize("exercise", ALL, ids=lambda one: one.name)
def test_nothing_is_accepted_that_was_not_written(exercise):
    with exercises.importable(ROOT / "course") as checks:
        made = exercise.student()
        work = {}
        for cell in made.cells:
            data = "signals" in cell.metadata.get("tags", [])
            if cell.cell_type == "code" and not data and not exercises.CHECK.search(cell.source):
                exec(cell.source, work)
        said = [checks.one(exercise.name, k, work, 0) for k in range(len(checks.titles(exercise.name)))]
        nothing = [checks.one(exercise.name, k, {}, 0) for k in range(len(checks.titles(exercise.name)))]
    assert "right" not in said and "right" not in nothing
    assert any("still to be written" in one for one in said) and all("no function" in one for one in nothing)


@pytest.mark.parametrize("answer, told", [
    ("def malt(loss): return None", "returns nothing"),
    ("def malt(loss): return loss[:3]", "shape (3,)"),
    ("def malt(loss): return -loss * float('nan')", "not finite"),
    ("def malt(loss): loss *= -1; return loss", "changes an array"),
    ("def malt(loss): return ['low'] * len(loss)", "numbers are needed"),
    ("def malt(loss): return 1 / 0", "ZeroDivisionError"),
    ("def malt(): return 1", "TypeError"),
    ("malt = 3", "no function `malt`"),
])
def test_what_is_no_answer_at_all_is_told_apart(answer, told):
    assert told in MALT.failures(exercises.Answer(False, "none", answer))[0]


@pytest.mark.parametrize("exercise", ALL, ids=lambda one: one.name)
def test_a_students_copy_holds_no_solution(exercise):
    made = exercise.student()
    nbformat.validate(made)
    text = jupytext.writes(made, fmt="py:percent")
    assert "SOLUTION" not in text and "Wrong" not in text and not {"right", "wrong"} & {
        tag for cell in made.cells for tag in cell.metadata.get("tags", [])}
    stubs = {node.name: node for cell in made.cells if cell.cell_type == "code" for node in ast.walk(ast.parse(cell.source))
             if isinstance(node, ast.FunctionDef) and node.name in exercise.about["functions"]}
    assert list(stubs) == exercise.about["functions"]
    for stub in stubs.values():  # signature and docstring, and a line to be written
        assert ast.get_docstring(stub) and [type(one) for one in stub.body] == [ast.Expr, ast.Raise]
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in made.cells) == 1


def test_checks_import_nothing_but_numpy_and_python():
    for path in (ROOT / "course" / "checks").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = ([alias.name for alias in node.names] if isinstance(node, ast.Import) else
                     [node.module] if isinstance(node, ast.ImportFrom) else [])
            assert all(name.split(".")[0] in {"numpy", "checks", *sys.stdlib_module_names} for name in names), path


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    return {edition: export.write(folder / edition, ROOT, edition) for edition in export.EDITIONS}


def test_an_export_has_all_that_a_student_needs(exported):
    student, lecturer = exported["student"], exported["lecturer"]
    for one in ALL:
        for folder in (student, lecturer):
            assert {f"{one.name}.ipynb", f"{one.name}.py", "README.md", "signals.npz"} <= {p.name for p in folder.iterdir()}
        assert "BEGIN SOLUTION" in (lecturer / f"{one.name}.py").read_text()
        assert one.title in (student / "README.md").read_text()
        for answer in one.answers:
            assert answer.title in (lecturer / f"{one.name}.ipynb").read_text()
            assert answer.code.strip() not in (student / f"{one.name}.py").read_text()
    assert not list(student.rglob("__pycache__"))
    assert "https://github.com/" in (student / "README.md").read_text() and (student / "attack_a_bank.ipynb").is_file()


def test_an_export_needs_no_torch(tmp_path):
    code = WITHOUT_TORCH + (f"from pathlib import Path\nfrom mia_lib.course import export\n"
                            f"export.write(Path({str(tmp_path / 'student')!r}), Path({str(ROOT)!r}))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_exports_are_the_same_each_time(exported, tmp_path):
    again = export.write(tmp_path / "again", ROOT, "student")
    for path in exported["student"].rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (again / path.relative_to(exported["student"])).read_bytes(), path


@pytest.mark.parametrize("full", ["a student's work.ipynb", ".hidden"])
def test_a_folder_that_is_not_empty_is_left_alone(tmp_path, full):
    (tmp_path / full).write_text("mine")
    with pytest.raises(MiaError, match="not empty"):
        export.write(tmp_path, ROOT, "student")
    assert [path.name for path in tmp_path.iterdir()] == [full] and (tmp_path / full).read_text() == "mine"


def test_a_folder_without_exercises_is_no_book(tmp_path):
    with pytest.raises(MiaError, match="no exercises"):
        export.write(tmp_path / "new", tmp_path, "student")


def test_solved_notebooks_run_on_their_signals_with_numpy_alone(exported):
    """Each solved notebook as a script, in the folder that was handed out."""
    code = NUMPY_ALONE + "".join(
        f"\nprint({one.name!r})\nwork = dict()\n" + "".join(
            f"exec({cell.source!r}, work)\n" for cell in one._without_answers().cells
            if cell.cell_type == "code" and not exercises.CHECK.search(cell.source)).replace("probes = 20", "probes = 1")
        for one in ALL)
    done = subprocess.run([sys.executable, "-c", code], cwd=exported["student"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("AUC") >= 10 and "nan" not in done.stdout


def test_signals_say_what_is_in_them(exported):
    import numpy as np

    card = json.loads((exported["student"] / "signals.json").read_text())
    path = exported["student"] / "signals.npz"
    assert path.stat().st_size == card["bytes"] < bank.LARGEST
    assert "MIT" in card["licence"] and bank.NAME in card["what"]
    with np.load(path, allow_pickle=False) as held:
        assert set(held) == set(card["arrays"]) == set(bank.WHAT)
        for name, one in card["arrays"].items():
            assert list(held[name].shape) == one["shape"] and str(held[name].dtype) == one["dtype"]
        hidden = np.maximum(held["x"] / 255 @ held["w1"] + held["b1"], 0)
        logits = hidden @ held["w2"] + held["b2"]
        loss = np.log(np.exp(logits).sum(1)) - logits[np.arange(len(logits)), held["y"]]
        np.testing.assert_allclose(loss, held["loss"][0], atol=0.03)  # weights of model 0, in half precision
        assert (held["members"][::2] ^ held["members"][1::2]).all()
    with pytest.raises(MiaError, match="is there already"):
        bank.write(path)
    with pytest.raises(MiaError, match="can be mailed"):
        bank.packed({"x": np.random.default_rng(0).random(bank.LARGEST // 4)})


# ------------------------------------------------------------------------------------------------ what is handed in


def test_notebooks_are_marked_as_they_come_back(exported, tmp_path):
    path = tmp_path / "malt_mast.ipynb"
    path.write_text(jupytext.writes(MALT._without_answers(), fmt="ipynb"))
    full = marking.mark(path, ROOT, seed=1)
    assert (full.exercise, full.right, full.remarks) == ("malt_mast", full.of, ())
    empty = marking.mark(exported["student"] / "malt_mast.ipynb", ROOT, seed=1)
    assert empty.right == 0 and empty.of == full.of and "still to be written" in empty.remarks[0]


def _edited(exported, tmp_path, change) -> Path:
    path = tmp_path / "malt_mast.ipynb"
    path.write_text(change((exported["student"] / "malt_mast.ipynb").read_text()))
    return path


@pytest.mark.parametrize("change, said", [
    (lambda text: text.replace("checks.run", "print"), "no cell with `checks.run"),
    (lambda text: text.replace('checks.run(\\"malt_mast', 'checks.run(\\"my_own'), "do not exist"),
    (lambda text: text[:500], "no Jupyter notebook"),
    (lambda text: "[]", "no Jupyter notebook"),
    (lambda text: text.replace("import numpy as np", "import numpy as np, os; os._exit(3)"), "ended Python"),
    (lambda text: text.replace("import numpy as np", "import numpy as np, time; time.sleep(60)"), "never ends"),
])
def test_a_notebook_that_cannot_be_marked_is_refused(exported, tmp_path, change, said):
    made = marking.mark(_edited(exported, tmp_path, change), ROOT, seconds=8 if "never" in said else 60)
    assert made.refused and said in made.remarks[0]


def _script(tmp_path, text: str) -> Path:
    path = tmp_path / "malt_mast.py"
    path.write_text(text)
    return path


CELLS = [cell.source for cell in MALT._without_answers().cells
         if cell.cell_type == "code" and "signals" not in cell.metadata.get("tags", [])]


def test_right_answers_are_right_however_a_script_is_cut(tmp_path):
    """Imports above the first cell, all in one cell with its check, a line that begins with an operator, no cells at all."""
    whole, (first, *rest) = "\n".join(CELLS), CELLS
    operator = "\n\nrest = (7\n        % 4)\nassert rest == 3\nremaining = (7\n% 4)\nassert remaining == 3\n"
    cut = first + "\n# %%\n" + "\n# %%\n".join(rest)
    for text in (whole, "# %%\n" + whole + operator, cut, "# %%\n%matplotlib inline\n" + cut):
        made = marking.mark(_script(tmp_path, text), ROOT, seed=1)
        assert (made.right, made.remarks) == (made.of, ()) and made.of > 0, text


@pytest.mark.parametrize("forged", [
    "import atexit\natexit.register(lambda: print(1))", "import atexit\natexit.register(lambda: print('{}'))",
    "import atexit\natexit.register(lambda: print('[1]'))", "import checks.malt_mast\nchecks.malt_mast.CHECKS[:] = []",
    "import os\nprint('{\"exercise\": \"malt_mast\", \"failed\": [], \"said\": [\"right\"]}', flush=True)\nos._exit(0)"])
def test_a_count_of_checks_that_is_not_the_exercise_s_is_refused(forged, tmp_path):
    made = marking.mark(_script(tmp_path, "\n".join([*CELLS, forged])), ROOT, seed=1)
    assert made.refused, made


def test_a_notebook_cannot_put_another_check_in_place_of_the_book_s(tmp_path):
    text = "import checks\nchecks.one = lambda *given: 'right'\nchecks.run('malt_mast', globals())\nx = input('wait')\n"
    made = marking.mark(_script(tmp_path, text), ROOT, seed=1, seconds=60)
    assert made.right == 0 and made.of > 0 and any("EOFError" in one for one in made.remarks)


def test_a_notebook_that_is_not_there_is_refused(tmp_path):
    made = marking.mark(tmp_path / "gone" / "lira.ipynb", ROOT)
    assert made.refused and "no file" in made.remarks[0]


def test_checks_beside_a_notebook_are_not_those_that_mark_it(exported, tmp_path):
    own = tmp_path / "checks"
    own.mkdir()
    (own / "__init__.py").write_text("def one(*given): return 'right'\ndef titles(*given): return ['all'] * 9\n")
    path = _edited(exported, tmp_path, lambda text: text)
    assert marking.mark(path, ROOT).right == 0


def test_a_notebook_without_its_checks_says_so(tmp_path):
    with exercises.importable(ROOT / "course") as checks, pytest.raises(ValueError, match="Keep the notebook in the "
    "folder"):
        checks.run("unknown", {})


def test_otter_reads_the_checks(exported):
    """Its files hold a plain dictionary; each case is a doctest that prints `right` for a solved notebook."""
    import doctest

    for exercise in ALL:
        held = {}
        exec((exported["student"] / "tests" / f"{exercise.name}.py").read_text(), held)
        cases = held["test"]["suites"][0]["cases"]
        assert held["OK_FORMAT"] is True and held["test"]["name"] == exercise.name
        with exercises.importable(ROOT / "course") as checks:
            assert len(cases) == len(checks.titles(exercise.name))
            if exercise.name != "malt_mast":
                continue
            work = exercise.work()
            for case in cases:
                test = doctest.DocTestParser().get_doctest(case["code"], work, "case", None, 0)
                assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("chapter", exercises.CHAPTERS)
def test_runs_in_class_are_runs_that_are_allowed(chapter):
    name, _, given = export.CLASS_RUNS[chapter].removeprefix("mia run ").partition(" -p ")
    key, value = given.split(" ")
    assert name == chapter and re.fullmatch(r"\w+", key)
    validate(chapter, {key: value}, "quick", ROOT)


def test_a_look_at_a_result_that_is_none_says_what_is_wrong(repo, monkeypatch, capsys):
    monkeypatch.syspath_prepend(repo / "course")
    import checks
    import numpy as np

    checks.tell("mine", 0.5, np.arange(10) < 5)
    assert "scores of shape () for 10 records" in capsys.readouterr().out
    checks.tell("mine", np.arange(10), np.arange(10) > 4)
    assert "AUC 1.000" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------- what real signals show

SHOWN = {  # exercise -> what its last lines are to show: better, worse, by at least so much TPR at 5 % FPR
    "malt_mast": ("MAST", "MALT", 0.1), "calibrated": ("calibrated by 16 references", "calibrated by 2 references", 0.05),
    "lira": ("LiRA on the margin", "LiRA on the loss", 0.05), "iha": ("IHA", "loss alone", 0.3),
    "broken": ("published", "repaired", 0.05)}


def _shown(name, exported, monkeypatch, capsys) -> tuple[str, dict]:
    """What the solved exercise prints about the signals that are handed out, and name -> (AUC, TPR) of what it tells."""
    exercise = BY_NAME[name]
    monkeypatch.chdir(exported["student"])
    work, told = exercise.work(), {}
    checks = work["checks"]
    monkeypatch.setattr(checks, "tell", lambda name, scores, members: told.update({name: (
        checks.auc(scores, members), (scores[members] > sorted(scores[~members])[-int(0.05 * (~members).sum()) - 1]).mean())}))
    exec("\n".join(cell.source for cell in exercise.notebook.cells if "signals" in cell.metadata.get("tags", [])), work)
    return capsys.readouterr().out, told


@pytest.mark.parametrize("name", SHOWN)
def test_real_signals_show_the_point_of_an_exercise(name, exported, monkeypatch, capsys):
    better, worse, by = SHOWN[name]
    told = _shown(name, exported, monkeypatch, capsys)[1]
    assert told[better][1] > told[worse][1] + by and told[better][0] >= told[worse][0]
    if name == "malt_mast":
        assert told["MAST"][1] > told["mean of the others"][1] + 0.02 and told["MAST"][0] > told["mean of all"][0] - 0.02
    if name == "iha":
        assert abs(told["IHA told random flags, finds the flags"][0] - 0.5) < 0.05


def test_bending_and_loss_find_the_same_members(exported, monkeypatch, capsys):
    told = _shown("curvature", exported, monkeypatch, capsys)[1]
    bending, loss = told["little bending means a member"][0], told["a low loss, of the same records"][0]
    assert bending > 0.55 and abs(bending - loss) < 0.05


def test_a_difference_is_told_from_one_that_is_chance(exported, monkeypatch, capsys):
    lines = _shown("difference", exported, monkeypatch, capsys)[0].splitlines()
    (low, _), (lower, upper) = ([float(number) for number in line.split("from ")[1].split(" to ")] for line in lines)
    assert low > 0 and lower < 0 < upper


def test_the_best_of_thirty_that_know_nothing_looks_good_and_is_found_out(exported, monkeypatch, capsys):
    nothing, something = _shown("winner", exported, monkeypatch, capsys)[0].splitlines()
    highest, p, honest = (float(re.search(pattern, nothing)[1])
                          for pattern in (r"AUC ([\d.]+),", r"p ([\d.]+);", r"([\d.]+) on the other"))
    assert highest > 0.54 and p > 0.05 and honest < highest
    assert float(re.search(r"p ([\d.]+);", something)[1]) < 0.01 and "number 31" in something


def test_thresholds_find_more_members_than_strangers(exported, monkeypatch, capsys):
    promised, counted, found = _percent(_shown("threshold", exported, monkeypatch, capsys)[0])
    assert promised == 5 and abs(counted - promised) < 3 and found > 4 * counted
    one, own = map(_percent, _shown("quantile", exported, monkeypatch, capsys)[0].splitlines())
    assert own[1] <= one[1] + 1 and own[2] > 1.5 * one[2]  # at no more false alarms


def test_rates_that_refute_an_epsilon_are_counted(exported, monkeypatch, capsys):
    lines = _shown("privacy_cap", exported, monkeypatch, capsys)[0].splitlines()
    assert any(float(line.split()[3]) > float(line.split()[5]) for line in lines)


def _percent(line: str) -> list[float]:
    return [float(number) for number in re.findall(r"([\d.]+)%", line)]
