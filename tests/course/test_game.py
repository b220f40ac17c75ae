"""The competition: what is dealt tells no answer, what comes back is checked, and ranks say no more than the records do."""

import io
import json
import pickle
import re
import zipfile

import numpy as np
import pytest

from mia_lib import metrics
from mia_lib.course import bank, game, leaderboard
from mia_lib.errors import MiaError

SMALL = bank.Size(records=200, models=6, public=40, epochs=2)
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def dealt(tmp_path_factory):
    return game.deal(tmp_path_factory.mktemp("game") / "dealt", 3, seed=1, tries=2, size=SMALL)


@pytest.fixture
def table(dealt, tmp_path):
    """The competition, before anybody handed anything in."""
    import shutil

    return shutil.copytree(dealt, tmp_path / "table")


def _deal(folder, team: str) -> dict:
    with np.load(folder / "teams" / team / game.DEAL, allow_pickle=False) as held:
        return dict(held)


def _hand_in(folder, path, whose: str, score=None, **other):
    deal = _deal(folder, whose)
    np.savez(path, **{"team": deal["team"], "score": -deal["loss"] if score is None else score, **other})
    return path


def test_a_deal_holds_no_answer(dealt):
    kept = game.answers(dealt)
    assert kept.teams == ("team-01", "team-02", "team-03") and kept.tries == 2
    for place, team in enumerate(kept.teams):
        deal, members = _deal(dealt, team), kept.members[kept.order[place]]
        assert set(deal) == set(game.KNOWN) and str(deal["team"]) == f"{team} {kept.tokens[place]}"
        for row in deal["reference_members"]:  # neither the target nor its counterpart
            assert not np.array_equal(row, members) and not np.array_equal(row, ~members)
        assert (deal["reference_members"].sum(0) == len(deal["reference_members"]) // 2).all()
        assert "members" not in deal and team in (dealt / "teams" / team / "README.md").read_text()
        assert sorted(path.name for path in (dealt / "teams" / team).iterdir()) == ["README.md", game.DEAL]


def test_a_deal_for_practice_is_of_published_models_and_trains_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(bank.training, "train", lambda *args, **options: pytest.fail("trained"))
    folder = game.deal(tmp_path / "dealt", 1, seed=5, size=SMALL, source="bank/cifar10-small")
    deal, kept = _deal(folder, "team-01"), game.answers(folder)
    assert set(deal) == {"team", "loss", "margin", "public_margin", "reference_loss", "reference_margin", "reference_members"}
    assert deal["reference_margin"].shape == (4, 200) and deal["public_margin"].shape == (40,)
    signals = bank.from_published("bank/cifar10-small", SMALL, 3)
    assert np.array_equal(signals["members"][0], ~signals["members"][1])
    assert metrics.auc(signals["margin"], signals["members"]).min() > 0.5 and kept.members.shape == (200,)
    assert np.allclose(signals["loss"], np.log1p(np.exp(-signals["margin"].astype(float))), atol=1e-6)
    assert "`features`" not in (folder / "teams" / "team-01" / "README.md").read_text()
    with pytest.raises(MiaError, match="models = 80: bank/cifar10-small has 64"):
        bank.from_published("bank/cifar10-small", bank.Size(models=80))


def test_every_team_has_the_same_records_in_its_own_order(dealt):
    kept = game.answers(dealt)
    deals = [_deal(dealt, team) for team in kept.teams]
    assert not np.array_equal(deals[0]["loss"], deals[1]["loss"])
    for key in ("loss", "y", "margin"):
        sorted_back = [np.empty_like(deal[key]) for deal in deals]
        for back, deal, places in zip(sorted_back, deals, kept.order, strict=True):
            back[places] = deal[key]
        assert all(np.array_equal(sorted_back[0], one) for one in sorted_back)


def test_halves_hold_as_many_members_each(dealt):
    kept = game.answers(dealt)
    assert kept.public.sum() == 100 and kept.members[kept.public].sum() == 50


def test_a_seed_repeats_a_deal_and_none_is_secret(dealt, tmp_path):
    again = game.deal(tmp_path / "again", 3, seed=1, tries=2, size=SMALL)
    for path in dealt.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (again / path.relative_to(dealt)).read_bytes()
    for text in (dealt / "teams").rglob("*.md"):
        assert "seed" not in text.read_text()


def test_scores_come_back_into_the_order_of_the_answers(dealt, tmp_path):
    """Whoever knew the answer in their own order would find everyone."""
    kept = game.answers(dealt)
    for place, team in enumerate(kept.teams):
        path = _hand_in(dealt, tmp_path / f"{team}.npz", team, kept.members[kept.order[place]] + np.linspace(0, 0.1, 200))
        name, score = game.read(path, kept)
        assert name == team and metrics.auc(score, kept.members) == 1.0


def _write(path, content: bytes):
    path.write_bytes(content)
    return path


def _bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("score.npy", bytes(game.LARGEST + 1))
    return path


def _npy(values) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def _zip(path, members: dict):
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return path


def _patched(path, whole):
    """A file whose members claim a compression that nobody knows."""
    return _write(path, re.sub(rb"(PK\x01\x02.{6})\x00\x00", lambda found: found[1] + b"\x63\x00", whole.read_bytes(),
                                  flags=re.DOTALL))


N = 200
BAD = {
    "too short": (lambda f, p: _hand_in(f, p / "a.npz", "team-01", np.arange(N - 1.0)), "199 numbers.*each of the 200 "
    "records"),
    "too long": (lambda f, p: _hand_in(f, p / "a.npz", "team-01", np.arange(N + 1.0)), "201 numbers"),
    "two axes": (lambda f, p: _hand_in(f, p / "a.npz", "team-01", np.zeros((N, 2))), "one axis"),
    "NaN": (lambda f, p: _hand_in(f, p / "a.npz", "team-01", np.where(np.arange(N) == 7, np.nan, 1.0)), "1 scores are "
    "NaN.*place 7"),
    "infinite": (lambda f, p: _hand_in(f, p / "a.npz", "team-01", np.where(np.arange(N) == 7, np.inf, 1.0)), "infinite"),
    "labels": (lambda f, p: _hand_in(f, p / "a.npz", "team-01", np.arange(N) % 2), "labels.*how .sure. you are"),
    "bool labels": (lambda f, p: _hand_in(f, p / "a.npz", "team-01", np.arange(N) % 2 == 0), "labels"),
    "text": (lambda f, p: _hand_in(f, p / "a.npz", "team-01", np.array(["member"] * N)), "text and no numbers"),
    "constant": (lambda f, p: _hand_in(f, p / "a.npz", "team-01", np.full(N, 0.5)), "all scores are 0.5"),
    "another's id": (lambda f, p: _hand_in(f, p / "team-02.npz", "team-01"), "named after team-02, and inside it says "
    "team-01"),
    "another's name": (lambda f, p: _hand_in(f, p / "a.npz", "team-01", team=np.array("team-02")), "not what the deal of "
    "team-02 says"),
    "another's name, one's own word": (lambda f, p: _hand_in(f, p / "a.npz", "team-01", team=np.array(
        str(_deal(f, "team-01")["team"]).replace("team-01", "team-02"))), "not what the deal of team-02 says"),
    "no array": (lambda f, p: _zip(p / "a.npz", {"score.npy": b"none", "team.npy": b"none"}), "is damaged"),
    "a header of 1e13 numbers": (lambda f, p: _zip(p / "a.npz", {
        "score.npy": _npy(np.zeros(N)).replace(b"(200,)", b"(10000000000000,)").replace(b" " * 11 + b"\n", b"\n"),
        "team.npy": _npy(np.array("team-01"))}), "is damaged"),
    "another way to pack": (lambda f, p: _patched(p / "a.npz", _hand_in(f, p / "b.npz", "team-01")), "is damaged"),
    "unknown id": (lambda f, p: _hand_in(f, p / "a.npz", "team-01", team=np.array("Alice")), "'Alice' takes no part"),
    "no id": (lambda f, p: _hand_in(f, p / "a.npz", "team-01", team=np.array(["team-01", "team-02"])), "takes no part"),
    "no scores": (lambda f, p: np.savez(p / "a.npz", team=np.array("team-01")) or p / "a.npz", "has no score"),
    "nothing in it": (lambda f, p: np.savez(p / "a.npz") or p / "a.npz", "has no score and no team.*nothing"),
    "no file": (lambda f, p: p / "gone.npz", "no such file"),
    "a folder": (lambda f, p: p, "is a folder"),
    "an empty file": (lambda f, p: _write(p / "a.npz", b""), "is empty"),
    "a pickle": (lambda f, p: _write(p / "a.pkl", pickle.dumps([1, 2])), "a pickle, which is never opened"),
    "a pickle by another name": (lambda f, p: _write(p / "a.npz", pickle.dumps([1, 2])), "a pickle, which is never opened"),
    "objects": (lambda f, p: _hand_in(f, p / "a.npz", "team-01", np.array([None] * N)), "objects of Python"),
    "a single array": (lambda f, p: _write(p / "a.npy", _npy(np.zeros(N))), "a single array"),
    "a table": (lambda f, p: _write(p / "a.csv", b"record,score\n1,2\n"), "no .npz file"),
    "half a file": (lambda f, p: _write(p / "a.npz", _hand_in(f, p / "b.npz", "team-01").read_bytes()[:600]), "no .npz "
    "file"),
    "a bomb": (lambda f, p: _bomb(p / "a.npz"), "unpacks to more"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_file_that_is_no_submission_is_refused_in_words_of_its_author(dealt, tmp_path, bad):
    make, said = BAD[bad]
    path = make(dealt, tmp_path)
    with pytest.raises(MiaError, match=re.compile(said, re.DOTALL)) as refused:
        game.read(path, game.answers(dealt))
    assert path.name in str(refused.value) and str(refused.value)[-1] in ".?)"


@pytest.mark.parametrize("call, said", [
    (lambda to: game.deal(to, 0, size=SMALL), "teams = 0"),
    (lambda to: game.deal(to, 3, tries=0, size=SMALL), "tries = 0"),
    (lambda to: game.answers(to), "holds no answers"),
    (lambda to: game.judge(to, []), "holds no answers"),
])
def test_a_game_that_cannot_be_is_refused(tmp_path, call, said):
    with pytest.raises(MiaError, match=said):
        call(tmp_path)


def test_a_deal_overwrites_nothing(table):
    with pytest.raises(MiaError, match="not empty"):
        game.deal(table, 3, seed=1, size=SMALL)


# ---------------------------------------------------------------------------------------------------------- the ranking


def test_tries_are_counted_and_bounded(table, tmp_path):
    kept = game.answers(table)
    first = _hand_in(table, tmp_path / "1.npz", "team-01")
    (place,), refused = game.judge(table, [first])
    assert (place.team, place.tries, place.best, place.worst, refused) == ("team-01", 1, 1, 1, [])
    (place,), refused = game.judge(table, [first])
    assert place.tries == 1 and not refused  # the same again is no further try
    more = [_hand_in(table, tmp_path / f"{k}.npz", "team-01", RNG.random(N)) for k in (2, 3)]
    (place,), refused = game.judge(table, more)
    assert place.tries == kept.tries == 2 and place.file == "2.npz"
    assert len(refused) == 1 and "2 are allowed" in refused[0]


def test_an_earlier_file_that_is_handed_in_again_counts(table, tmp_path):
    """Under another name or its own, and as no further try; judging the whole folder again changes nothing."""
    good, other = (_hand_in(table, tmp_path / f"{name}.npz", "team-01", RNG.random(N)) for name in ("a", "b"))
    assert game.judge(table, [good, other])[0][0].file == "b.npz"
    again = tmp_path / "c.npz"
    again.write_bytes(good.read_bytes())
    for paths in ([again], [good, other, again], [other], [good]):
        (place,), refused = game.judge(table, paths)
        assert (place.file, place.tries, refused) == ("c.npz", 2, [])
    again.write_bytes(other.read_bytes())  # the same name, every time
    assert game.judge(table, [again])[0][0].auc == game.judge(table, [good, other, again])[0][0].auc
    lines = [json.loads(line) for line in (table / "lecturer" / game.JOURNAL).read_text().splitlines()]
    assert [line["file"] for line in lines] == ["a.npz", "b.npz", "c.npz", "c.npz"]
    assert lines[-1]["sha256"] == lines[1]["sha256"]


def test_what_is_refused_does_not_stop_the_others(table, tmp_path):
    good = _hand_in(table, tmp_path / "good.npz", "team-02")
    places, refused = game.judge(table, [tmp_path / "gone.npz", good])
    assert [one.team for one in places] == ["team-02"] and len(refused) == 1
    lines = (table / "lecturer" / game.JOURNAL).read_text().splitlines()
    assert len(lines) == 1 and json.loads(lines[0])["file"] == "good.npz"


def test_nothing_to_rank_is_said(table, tmp_path):
    with pytest.raises(MiaError, match="no file was given"):
        game.judge(table, [])
    with pytest.raises(MiaError, match="no such file"):
        game.judge(table, [tmp_path / "gone.npz"])


def test_the_final_half_is_another_one_and_ends_the_game(table, tmp_path):
    """Who fits the public half exactly wins the public ranking, and nothing at the end."""
    kept = game.answers(table)
    honest = kept.members + 1.5 * RNG.normal(size=N)
    fitted = np.where(kept.public, kept.members + 0.1 * RNG.random(N), RNG.random(N))
    paths = [_hand_in(table, tmp_path / f"{team}.npz", team, score[kept.order[place]])
             for place, (team, score) in enumerate(zip(kept.teams, (honest, fitted), strict=False))]
    assert [one.team for one in game.judge(table, paths)[0]] == ["team-02", "team-01"]
    places, _ = game.judge(table, [], final=True)
    assert places[0].team == "team-01"
    late = _hand_in(table, tmp_path / "late.npz", "team-03")
    _, refused = game.judge(table, [late], final=True)
    assert "final ranking has been made" in refused[0]


def _kept(n: int = 2000) -> game.Answers:
    members = np.arange(n) % 2 == 0
    return game.Answers(members, np.ones(n, bool), np.zeros((9, n), int), tuple(f"team-{k}" for k in range(9)), ("",) * 9, 5)


def test_equal_attacks_share_all_ranks_and_a_far_better_one_has_its_own():
    kept = _kept(600)
    scores = {f"team-{k}": 0.5 * kept.members + RNG.normal(size=600) for k in range(3)}
    scores["team-8"] = 3 * kept.members + RNG.normal(size=600)
    places = {one.team: one for one in game.ranking(scores, kept, final=False)}
    assert (places["team-8"].best, places["team-8"].worst) == (1, 1)
    assert {(one.best, one.worst) for team, one in places.items() if team != "team-8"} == {(2, 4)}


def test_monotone_maps_and_the_order_of_teams_change_no_rank():
    kept = _kept(400)
    scores = {f"team-{k}": k * kept.members + RNG.normal(size=400) for k in range(3)}
    mapped = {team: np.exp(score) for team, score in reversed(scores.items())}
    one, other = (game.ranking(given, kept, final=False) for given in (scores, mapped))
    assert [(p.team, p.best, p.worst, p.tpr.value) for p in one] == [(p.team, p.best, p.worst, p.tpr.value) for p in other]


def test_guessing_is_at_the_level_of_chance():
    kept = _kept()
    place, = game.ranking({"team-1": RNG.random(2000)}, kept, final=False)
    assert place.tpr.low < game.FPR < place.tpr.high and place.auc.low < 0.5 < place.auc.high


def test_the_page_says_what_it_does_not_know_and_needs_nothing():
    kept = _kept(400)
    scores = {f"team-{k}": kept.members + 2 * RNG.normal(size=400) for k in range(2)}
    places = game.ranking(scores, kept, final=False)
    html = leaderboard.page(places, kept, final=False)
    assert "cannot be told" in html and "1–2" in html and "team-8" in html  # the last handed nothing in
    assert "<script" not in html and "http" not in html and "final" not in leaderboard.TITLE
    assert "on the way" in html and "The final ranking" not in html
    assert "alone" in leaderboard.verdict(places[:1])


@pytest.mark.browser
def test_the_page_is_accessible_in_light_and_dark_and_on_a_phone(browser, tmp_path):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    kept = _kept(400)
    scores = {f"team-{k}": k * kept.members + RNG.normal(size=400) for k in range(4)}
    path = leaderboard.write(tmp_path / "page.html", game.ranking(scores, kept, final=False), kept, final=False)
    for theme, width in (("light", 1280), ("dark", 390)):
        with browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme) as context:
            tab = context.new_page()
            tab.goto(path.as_uri())
            assert axe.Axe().run(tab).violations_count == 0
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


# ------------------------------------------------------------------------------------------------------ command line


def _mia(*words):
    from typer.testing import CliRunner

    from mia_lib.publish.cli import app

    return CliRunner().invoke(app, ["course", *map(str, words)])


def test_a_lecturer_judges_from_the_command_line(table, tmp_path):
    handed_in = tmp_path / "in"
    handed_in.mkdir()
    _hand_in(table, handed_in / "team-01.npz", "team-01")
    _hand_in(table, handed_in / "team-02.npz", "team-02", np.arange(N) % 2)
    done = _mia("judge", table, handed_in)
    assert done.exit_code == 1 and "Refused: team-02.npz (team-02): the scores are labels" in done.output
    assert "team-01" in done.output and (table / "leaderboard.html").is_file()
    assert _mia("judge", table, "--final").exit_code == 0 and (table / "final.html").is_file()


@pytest.mark.parametrize("words, said", [
    (("export", "--to", "{full}"), "not empty"),
    (("export", "--to", "{full}/new", "--edition", "teachers"), "edition = 'teachers'"),
    (("data", "--to", "{full}/signals.txt"), "end in .npz"),
    (("play", "--to", "{full}", "--teams", "3"), "not empty"),
    (("play", "--to", "{full}/new", "--teams", "0"), "teams = 0"),
    (("judge", "{full}"), "holds no answers"),
    (("judge", "{full}", "{full}"), "no .npz file in it"),
    (("check", "{full}/lira.ipynb"), "no file"),
])
def test_what_a_lecturer_types_wrong_is_said_in_a_sentence(tmp_path, words, said):
    (tmp_path / "mine.txt").write_text("mine")
    done = _mia(*(word.replace("{full}", str(tmp_path)) for word in words))
    assert done.exit_code in (1, 2) and said in done.output and "Traceback" not in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
