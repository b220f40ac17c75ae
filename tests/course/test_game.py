"""The competition: what is handed out tells no answer, functions run on what all have, ranks say no more than targets do."""

import functools
import json
import os
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from mia_book import publishing
from mia_book.course import child, game
from mia_book.pages.cli import app
from mia_book.pages.parameters import find_root
from mia_lib import metrics, published
from mia_lib.errors import MiaError

ROOT = find_root()
RNG = np.random.default_rng(0)
N, T = 200, 4


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A game of tiny models: the recipe of the bank, but for one epoch of training."""
    compute = publishing.Measurement.compute

    def short(measurement, index, parameters):
        return compute(measurement, index, {**parameters, "epochs": 1})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publishing.Measurement, "compute", short)
        return game.hide(
            tmp_path_factory.mktemp("game") / "game",
            ROOT,
            targets=T,
            seed=3,
            references=4,
            records=N,
            public=40,
        )


def _targets(n: int, targets: int = 8) -> np.ndarray:
    return np.stack([RNG.permutation(n) < n // 2 for _ in range(targets)])


@pytest.fixture
def challenge():
    """Random margins, to which membership adds 1."""
    members, halves = _targets(N, T), _targets(N, 2)
    references = np.concatenate([halves, ~halves])
    return game.Challenge(
        RNG.normal(size=members.shape) + members,
        members,
        RNG.normal(size=(len(members), 40)),
        RNG.normal(size=(4, N)) + references,
        references,
        RNG.normal(size=(4, 40)),
    )


def _file(folder, code: str, name: str = "team_one"):
    path = folder / f"{name}.py"
    path.write_text(code)
    return path


def test_what_is_handed_out_tells_no_answer(played):
    hidden, out = game.read_hidden(played), played / "hand_out"
    kept = json.loads((played / "game.json").read_text())
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md",
        "practice.npz",
        "team_name.py",
    ]
    assert hidden.members.shape == (T, N)
    assert (hidden.members.mean(1) > 0.3).all()
    assert kept["seed"] == 3
    told = (out / "README.md").read_text()
    assert not (played / game.SEED_FILE).exists() and "seed" not in told and "4 references" in told
    with np.load(out / "practice.npz", allow_pickle=False) as practice:
        assert practice["members"].shape == (game.PRACTICE, N)
        assert practice["reference_margin"].shape == (4, N)
        known = np.concatenate([practice["members"], practice["reference_members"]])
    # no published model's training set, nor what that leaves, nor another's
    for place, target in enumerate(hidden.members):
        agree = [np.mean(target == row) for row in [*known, *np.delete(hidden.members, place, 0)]]
        assert 0.2 < min(agree) and max(agree) < 0.8
    first, second = hidden.half(final=False), hidden.half(final=True)
    assert np.array_equal(np.concatenate([first.members, second.members]), hidden.members)
    assert first.reference_margin is hidden.reference_margin


def test_the_template_runs_with_numpy_and_finds_what_malt_finds(played, monkeypatch, capsys):
    monkeypatch.chdir(played / "hand_out")
    runpy.run_path("team_name.py", run_name="__main__")
    practice = game.practise(references=4, records=N, public=40)
    expected = np.mean(
        [
            metrics.tpr_at_fpr(*pair, 0.01)
            for pair in zip(practice.margin, practice.members, strict=True)
        ]
    )
    assert f"{expected:.1%}, over {game.PRACTICE} targets" in capsys.readouterr().out


def test_published_targets_are_no_references_and_share_no_pair():
    practice = game.practise(references=16, records=N, public=40)
    bank = published.load(game.NAME, arrays=("margin", "members"))
    rows = [
        next(k for k, row in enumerate(bank.margin) if np.isin(target, row).all())
        for target in practice.margin
    ]
    assert rows == list(range(16, 32, 2)) and len(practice.reference_members) == 16
    assert (practice.reference_members.sum(0) == 8).all()
    with pytest.raises(MiaError, match="even number from 2 to 16"):
        game.practise(references=18)


def test_a_function_gets_what_all_have_and_not_the_members(challenge, tmp_path):
    path = _file(
        tmp_path,
        "def attack(**given):\n    global names\n    names = sorted(given)\n"
        "    given['reference_margin'][:] = 0\n"
        "    return given['margin'] + given['reference_members'].sum(0) * 0 + len(names) + "
        "given['public_margin'].mean() * 0",
    )
    scores = game.run(path, challenge)
    assert np.allclose(scores, challenge.margin + len(game.ARGUMENTS))
    assert "members" not in game.ARGUMENTS


@pytest.mark.parametrize(
    "code, told",
    [
        ("def attack(**given): return given['margin'][:5]", r"shape \(5,\)"),
        ("def attack(**given): return given['margin'] * float('nan')", "200 scores are NaN"),
        ("def attack(**given): return given['margin'] > 0", "labels"),
        ("def attack(**given): return 0 * given['margin'] + 1", "labels, 1 for everybody"),
        ("def attack(**given): return ['member'] * 200", "no numbers"),
        ("def attack(**given): return 1 / 0", "ZeroDivisionError"),
        ("def attack(margin): return margin", "unexpected keyword argument"),
        ("def attacks(**given): return 1", "no function `attack`"),
        ("import os; os._exit(0)", "ended Python"),
        ("while True: pass", "ran for more than 3 s"),
    ],
)
def test_what_cannot_be_ranked_is_refused_in_words_of_its_author(challenge, tmp_path, code, told):
    with pytest.raises(MiaError, match=told) as refused:
        game.run(_file(tmp_path, code), challenge, seconds=3 if "while" in code else 600)
    assert str(refused.value).startswith("team_one.py")


def test_a_file_that_is_not_there_and_a_team_twice_stop_nobody_else(challenge, tmp_path):
    good = _file(tmp_path, "def attack(margin, **given): return margin")
    other = _file(tmp_path, "def attack(margin, **given): return -margin", "team_two")
    (tmp_path / "more").mkdir()
    twice = _file(tmp_path / "more", "def attack(margin, **given): return margin")
    huge = _file(tmp_path, "", "huge")
    os.truncate(huge, 10**12)  # bytes that take no room on the disk
    unnamed = _file(tmp_path, "def attack(margin, **given): return margin", "team_name")
    paths = [tmp_path / "gone.py", huge, good, other, twice, unnamed]
    places, refused = game.judge(challenge, paths, kept=True)
    assert {place.team for place in places} == {"team_one", "team_two", *game.OF_THE_BOOK}
    assert len(refused) == 4
    assert "gone.py" in refused[0]
    assert "give it your team's name" in refused[3]
    assert "huge.py is no file that can be run" in refused[1]
    assert "another file of team_one" in refused[2]
    assert places[-1].team == "team_two"
    score = game.of_the_book(challenge)["MALT (the book)"]
    assert score.shape == (T, N) and np.array_equal(np.argsort(score), np.argsort(challenge.margin))


def test_a_game_that_cannot_be_is_refused(tmp_path):
    for how, said in (({"bank": "bank/none"}, "bank/none"), ({"references": 40}, "from 2 to 16")):
        with pytest.raises(MiaError, match=said):
            game.hide(tmp_path, ROOT, **how)
    assert not list(tmp_path.iterdir())


WRITTEN_INSTEAD = {
    "nothing": "open('scores.npz', 'w')",
    "a folder": "os.mkdir('scores.npz')",
    "a pipe": "os.mkfifo('scores.npz')",
    "an npy": "np.save(open('scores.npz', 'wb'), np.ones(200))",
    "one": "np.savez('scores.npz', np.arange(200.))",
    "none": "np.savez('scores.npz')",
    "objects": "np.savez('scores.npz', *[np.array([{}])] * 4)",
    "a bomb": "np.savez_compressed('scores.npz', *[np.zeros(10**5)] * 4)",
    "a lie": "import io, zipfile\nheld = io.BytesIO()\nnp.save(held, np.arange(200.))\n"
    "lie = held.getvalue().replace(b'(200,), }         ', b'(999999999999,), }')\n"
    "with zipfile.ZipFile('scores.npz', 'w') as out:\n    [out.writestr(f'arr_{k}.npy', lie) for k in range(4)]",
}


def test_whatever_is_left_in_the_place_of_scores_stops_nobody_else(
    challenge, tmp_path, monkeypatch
):
    monkeypatch.setattr(child, "LARGEST", 10**6)
    good = (
        "import sys\nsys.stdout.buffer.write(b'\\xff')\ndef attack(margin, **given): return margin"
    )
    paths = [
        _file(tmp_path, f"import os, numpy as np\n{code}\nos._exit(0)", name)
        for name, code in WRITTEN_INSTEAD.items()
    ]
    paths.append(
        _file(
            tmp_path, "import sys\nsys.stderr.buffer.write(b'\\xff\\x1b[31m')\nsys.exit(3)", "bytes"
        )
    )
    places, refused = game.judge(challenge, [*paths, _file(tmp_path, good)])
    assert {place.team for place in places} == {"team_one", *game.OF_THE_BOOK}
    assert len(refused) == len(paths) and all(reason.isprintable() for reason in refused)
    for path, reason in zip(paths, refused, strict=True):
        assert reason.startswith(path.name) and (
            "ended Python" in reason or path.stem == "bytes"
        ), reason


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere what leaves its group is not found")
@pytest.mark.parametrize("environment", ["os.environ", "{}"])
def test_nothing_that_a_process_started_lives_on(tmp_path, environment):
    code = (
        "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork():\n        os._exit(0)\n"
        "    open('pid.new', 'w').write(str(os.getpid()))\n    os.rename('pid.new', 'pid')\n"
        f"    os.execvpe('sleep', ['sleep', '600'], {environment})\nwhile not os.path.exists('pid'): pass\n"
    )
    assert child.run([sys.executable, "-c", code], tmp_path, 60, os.environ).code == 0
    status = Path("/proc", (tmp_path / "pid").read_text(), "status")
    assert not status.exists() or "State:\tZ" in status.read_text()


def test_what_is_judged_is_kept_when_judging_is_stopped(challenge, tmp_path, monkeypatch):
    paths = [_file(tmp_path, f"# {RNG.random()}", name) for name in ("team_one", "team_two")]
    ran = []

    def stopped(path, challenge):
        ran.append(path.stem)
        if len(ran) == 2:
            raise KeyboardInterrupt
        return challenge.margin

    monkeypatch.setattr(game, "run", stopped)
    with pytest.raises(KeyboardInterrupt):
        game.judge(challenge, paths, kept=True)
    for _ in range(2):
        places, refused = game.judge(challenge, paths, kept=True)
        assert len(places) == 2 + len(game.OF_THE_BOOK) and not refused
    assert ran == ["team_one", "team_two", "team_two"]


def test_on_a_full_disk_a_team_is_ranked_or_nobody_is_and_no_team_is_refused_for_it(
    challenge, tmp_path, monkeypatch
):
    def full(*given, **named):
        raise OSError(28, "No space left on device")

    path = _file(tmp_path, f"# {RNG.random()}\ndef attack(margin, **rest):\n    return margin\n")
    with monkeypatch.context() as patch:
        patch.setattr(game.store, "write", full)  # of the cache
        places, refused = game.judge(challenge, [path], kept=True)
        assert len(places) == 1 + len(game.OF_THE_BOOK) and not refused
    monkeypatch.setattr(game.tempfile, "TemporaryDirectory", full)
    with pytest.raises(OSError, match="No space"):
        game.judge(challenge, [path])


def test_a_team_far_above_the_book_is_to_be_read(tmp_path):
    members = _targets(600)
    noise = {team: RNG.normal(size=members.shape) for team in (*game.OF_THE_BOOK, "good", "cheat")}
    gain = {"good": 2, "cheat": 9}
    places = game.ranking(
        {team: score + gain.get(team, 1) * members for team, score in noise.items()}, members
    )
    [said] = game.say_whom_to_read(places)
    assert said.startswith("cheat finds 100.0%") and "Read its file" in said
    assert said in game.write_page(tmp_path / "page.html", places, members, False).read_text()


def _stub(monkeypatch, compute):
    measurement = SimpleNamespace(
        complete=dict,
        cost_in_words=lambda *_: "",
        compute=compute,
        check_answers=lambda bank: None,
    )
    monkeypatch.setattr(publishing, "catalogue", lambda: {game.NAME: measurement})
    return functools.partial(game.hide, root=ROOT, targets=T, references=4, records=N, public=40)


def test_a_game_that_was_stopped_goes_on_with_its_seed(tmp_path, monkeypatch):
    seeds = []
    shape = published.load(game.NAME, arrays=("members",)).members.shape[1]
    stops = [True, False, False]

    def trained(index, parameters):
        assert index == range(0, 2 * T, 2)  # all at once, so that all processors have work
        seeds.append(parameters["seed"])
        if stops.pop(0):
            raise KeyboardInterrupt
        return {"margin": RNG.normal(size=(T, shape)), "members": RNG.random((T, shape)) < 0.5}

    hide, folder = _stub(monkeypatch, trained), tmp_path / "game"
    with pytest.raises(KeyboardInterrupt):
        hide(folder)
    hide(folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted(game.WRITTEN - {game.SEED_FILE})
    # as when it is stopped before the last step
    (folder / game.SEED_FILE).write_text(str(seeds[0]))
    (folder / ".writing-1-a").write_text("")
    hide(folder)
    assert len(set(seeds)) == 1 and not (folder / game.SEED_FILE).exists()
    with pytest.raises(MiaError, match="not empty"):
        hide(folder)
    (folder / game.SEED_FILE).write_text("12x")
    with pytest.raises(MiaError, match="seed is damaged"):
        hide(folder)


def test_equal_attacks_share_all_ranks_and_a_far_better_one_has_its_own():
    members = _targets(600)
    scores = {
        f"team-{k}": gain * members + RNG.normal(size=members.shape)
        for k, gain in enumerate((0.5, 0.5, 0.5, 3))
    }
    # which is another unit and another order
    mapped = {team: np.exp(score) for team, score in reversed(scores.items())}
    for given in (scores, mapped):
        places = {one.team: (one.best, one.worst) for one in game.ranking(given, members)}
        assert places == {"team-0": (2, 4), "team-1": (2, 4), "team-2": (2, 4), "team-3": (1, 1)}


def test_the_ranking_says_how_many_targets_would_tell_the_first_from_the_next():
    def place(team, value, width):
        interval = metrics.Interval(value, value - width, value + width)
        return game.Place(team, interval, interval, 1, 2)

    far = [place("a", 0.30, 0.02), place("b", 0.25, 0.02)]
    assert "About 16 would (`mia course play --targets 16`" in game.say_who_won(far, 8)
    near = [place("a", 0.30, 0.04), place("b", 0.27, 0.04)]
    assert "`mia course play --targets 32`" in game.say_who_won(near, 8)
    for same in (0.30, 0.2999):
        said = game.say_who_won([place("a", 0.30, 0.02), place("b", same, 0.02)], 8)
        assert "Let them share the place" in said and "Where spans of ranks overlap" in said


def test_whoever_wins_is_a_person_and_attacks_of_the_book_that_are_ahead_are_named():
    interval = metrics.Interval(0.3, 0.28, 0.32)
    lira, rmia = "LiRA (the book)", "RMIA (the book)"

    def said(**behind):
        names = {"rmia": rmia, "lira": lira}
        return game.say_who_won(
            [
                game.Place(names.get(team, team), interval, interval, 1, 4, frozenset(ahead))
                for team, ahead in behind.items()
            ],
            8,
        )

    shared = said(rmia=(), a=(), lira=(), b=())
    assert "cannot be told: a and b may each be the best." in shared and "the book" not in shared
    assert said(rmia=(), a=(rmia,), b=(rmia, "a"), lira=(rmia,)) == (
        "a is ahead of the other teams, by differences that are more than chance. Ahead of it: RMIA (the book)."
    )
    assert said(rmia=(), lira=(), a=(rmia, lira), b=(rmia,)).endswith(
        "Let them share the place. Ahead of them: RMIA (the book)."
    )
    assert said(rmia=(), a=()) == "a is alone." and said(rmia=(), lira=()) == "No team is ranked."


def test_guessing_is_at_the_level_of_chance():
    members = _targets(2000)
    place, _ = game.ranking(
        {"a": RNG.random(members.shape), "b": RNG.random(members.shape)}, members
    )
    assert place.tpr.low < game.FPR < place.tpr.high and place.auc.low < 0.5 < place.auc.high


def _page(folder):
    members = _targets(400)
    scores = {f"team-{k}": members + 2 * RNG.normal(size=members.shape) for k in range(2)}
    return game.write_page(
        folder / "page.html", game.ranking(scores, members), members, False, ["team-x: <stopped>"]
    )


def test_the_page_says_what_it_does_not_know_and_needs_nothing(tmp_path):
    html = _page(tmp_path).read_text()
    assert all(
        words in html
        for words in ("cannot be told", "1–2", "8 models", "on the way", "team-x: &lt;stopped&gt;")
    )
    assert not any(words in html for words in ("<script", "http", "The final ranking"))


@pytest.mark.browser
def test_the_page_is_accessible_in_light_and_dark_and_on_a_phone(browser, tmp_path):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed"
    )
    path = _page(tmp_path)
    for theme, width in (("light", 1280), ("dark", 390)):
        with browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=theme
        ) as context:
            tab = context.new_page()
            tab.goto(path.as_uri())
            assert axe.Axe().run(tab).violations_count == 0
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def _mia(*words):
    return CliRunner().invoke(app, ["course", *map(str, words)])


def test_a_lecturer_judges_from_the_command_line(played, tmp_path):
    _file(tmp_path, "def attack(margin, **given): return margin")
    _file(tmp_path, "def attack(margin, **given): return margin > 0", "team_two")
    done = _mia("judge", played, tmp_path)
    assert done.exit_code == 0 and "Refused: team_two.py: the scores are labels" in done.output
    assert "team_one" in done.output
    assert "MALT (the book)" in done.output
    assert (played / "leaderboard.html").is_file()
    assert _mia("judge", played, tmp_path / "team_one.py", "--final").exit_code == 0
    assert (played / "final.html").is_file()
    done = _mia("judge", played, tmp_path / "team_one.py", "--final")
    assert done.exit_code == 2 and "was made already" in done.output
    assert _mia("try", tmp_path / "team_two.py").exit_code == 1


@pytest.mark.parametrize(
    "words, said",
    [
        (("export", "--to", "{full}"), "not empty"),
        (("export", "--to", "{full}/new", "--edition", "teachers"), "edition = 'teachers'"),
        (("data", "--to", "{full}/signals.txt"), "end in .npz"),
        (("play", "--to", "{full}"), "not empty"),
        (("play", "--to", "{full}/new", "--targets", "3"), "targets = 3"),
        (("judge", "{full}", "{full}/team.py"), "no hidden targets"),
        (("try", "{full}"), "no .py file in it"),
        (("check", "{full}/lira.ipynb"), "no file"),
    ],
)
def test_what_a_lecturer_types_wrong_is_said_in_a_sentence(tmp_path, words, said):
    (tmp_path / "mine.txt").write_text("mine")
    done = _mia(*(word.replace("{full}", str(tmp_path)) for word in words))
    assert done.exit_code in (1, 2) and said in done.output and "Traceback" not in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
