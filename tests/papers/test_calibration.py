"""What the chapter on difficulty calibration plays and shows, beside the paper's numbers."""

from dataclasses import replace
from types import SimpleNamespace

import jupytext
import numpy as np
import pandas as pd
import pytest
import torch

from mia_lib import data, metrics, signals, store, training
from mia_lib.errors import MiaError
from mia_lib.evidence import claims, tables
from mia_lib.metrics.interval import Interval
from mia_lib.papers.calibration import exhibits, study, theory
from mia_lib.publish.parameters import find_root
from mia_lib.signals import boundary
from mia_lib.signals.views import augmented
from mia_lib.training import TrainConfig, losses

RNG = np.random.default_rng(0)
TABLE = data.Dataset("toy", RNG.normal(size=(80, 5)).astype(np.float32), RNG.integers(0, 2, 80), 80, ("no", "yes"))
PICTURES = data.Dataset("fashion_mnist_20k", RNG.integers(0, 255, (200, 8, 8, 1)).astype(np.uint8), RNG.integers(0, 3, 200),
                        200, ("a", "b", "c"))
CONFIG = TrainConfig("leino_cnn:2,3,8", epochs=2, batch_size=8)

pytestmark = pytest.mark.usefixtures("module_cache")


@pytest.fixture(scope="module")
def games():
    return study.on_images(PICTURES, 48, 3, CONFIG, 2, 0.01)


@pytest.fixture(scope="module")
def played(games):
    return study.play(games)


def test_no_model_of_the_attacker_saw_a_private_record_and_the_rehearsal_is_the_same_game_within_the_public_half(games):
    for one, size in ((games, 48), (games.rehearsal, 24)):
        for t in range(len(games)):
            members, private, public = one.members[t], one.private[t], one.public[t]
            assert not (private & public).any() and private.sum() == public.sum() == size // 2
            assert (members[0] <= private).all() and members[0].sum() == size // 4
            assert not (members[1:].any(0) & private).any()
            assert one.calibrating[t].sum() == size // 4 and not (one.calibrating[t] & one.validation[t]).any()
            assert (one.calibrating[t] | one.validation[t] == public).all()
            assert not (games.rehearsal.private[t] | games.rehearsal.public[t])[games.private[t]].any()
    blocks = [games.private[t] | games.public[t] for t in range(3)]
    assert not (blocks[0] & blocks[1]).any() and games.covers == "3 games on records of their own"
    assert games.covering(2) == "2 games on records of their own"
    assert study.on_images(PICTURES, 100, 3, CONFIG, 2, 0.01).covers == "3 splits of one pool"


def test_each_kind_of_model_has_seeds_of_its_own(games):
    ensembles = [one for g in (games, games.rehearsal) for one in (g.models, g.scratch, g.forgotten)]
    seeds = [one.config.seed for one in [*ensembles, study._forgetful(games, 1, 0.5)]]
    assert len(set(seeds)) == len(seeds)


def test_forgetting_starts_from_the_model_that_is_attacked(games):
    start, numbers = games.forgotten.start
    assert start is games.models and numbers == [0, 3, 6]
    still = study.forgetting_curve(games, [0])
    np.testing.assert_allclose(still, 0.5)  # the copy is the target, and all scores are zero


def test_a_play_is_what_its_models_say(games, played):
    records, private = games.models.records, games.private[1]
    target, reference, copy = (models.model(m) for models, m in ((games.models, 3), (games.scratch, 1), (games.forgotten, 1)))
    loss = [signals.scalars(signals.model_outputs(m, records.x[private]), records.y[private])["loss"].astype(float)
            for m in (target, reference, copy)]
    np.testing.assert_allclose(played.scores["loss", "original"][1], -loss[0], rtol=1e-5)
    np.testing.assert_allclose(played.scores["loss", "scratch"][1], loss[1] - loss[0], atol=1e-5)
    np.testing.assert_allclose(played.scores["loss", "forgetting"][1], loss[2] - loss[0], atol=1e-5)
    assert (played.members[1] == games.members[1, 0, private]).all()
    assert played.reference_loss.shape == (3, 2, 24)
    logits = signals.model_outputs(target, records.x[private]).astype(float)
    confidence = (logits - np.log(np.exp(logits).sum(1, keepdims=True))).max(1)
    np.testing.assert_allclose(played.scores["confidence", "original"][1], confidence, atol=1e-5)
    spec = {"kind": "study", "study": "calibration.play", **games.spec, "rehearsal": games.rehearsal.spec}
    assert store.look_up(store.under(spec, study._play, games)) is not None


def test_every_calibrated_score_comes_from_the_function_that_the_page_shows(games, played, monkeypatch):
    monkeypatch.setattr(study.calibration, "calibrate", lambda score, references, own="refuse": np.full(len(score), 7.0))
    monkeypatch.setattr(study.store, "study", lambda name, spec, compute: compute())  # nothing of this is kept
    changed = {attack for attack, score in study.scores(games).items() if (score == 7).all()}
    assert changed == {(score, variant) for score in study.SCORES for variant in ("scratch", "forgetting")}
    np.testing.assert_allclose(study.reference_aucs(played), 0.5)
    for copied in (study.more_forgetting(games, 1, [0.25]).auc, study.forgetting_curve(games, [1]),
                   study.whole_public_half(games), study.with_dropout(games)["scratch"],
                   study.stopping(games, [1]).auc, study.gradient_by_entry(games)["scratch"]):
        np.testing.assert_allclose(copied, 0.5)


def test_the_threshold_is_the_best_of_the_rehearsal(games, played):
    rehearsal = games.rehearsal
    score, inside = study.scores(rehearsal)["loss", "scratch"][1], rehearsal.members[1, 0, rehearsal.private[1]]
    expected = metrics.accuracy_at_threshold(score, inside, metrics.best_threshold(score, inside))
    assert metrics.accuracy_at_threshold(score, inside, played.thresholds["loss", "scratch"][1]) == expected
    assert study.per_target(played, ("loss", "scratch"), "accuracy")[1] == metrics.accuracy_at_threshold(
        played.scores["loss", "scratch"][1], played.members[1], played.thresholds["loss", "scratch"][1])


def test_with_views_scores_are_means_over_them():
    plain = study.on_images(PICTURES, 48, 2, replace(CONFIG, augmentation="flip_crop:1"), 1, 0.01)
    once, twice = (replace(plain, views=augmented(plain.models.records, "flip_crop:1", k)) for k in (1, 2))
    assert (once.views[0].x == twice.views[0].x).all() and (twice.views[0].x != twice.views[1].x).any()
    assert once.views[0].x.shape == plain.models.records.x.shape
    second = replace(plain, views=twice.views[1:])
    one, two, both = (study.play(g).scores["loss", "scratch"] for g in (once, second, twice))
    np.testing.assert_allclose(both, (one + two) / 2, atol=1e-5)


def test_images_without_augmentation_survive_the_trip_to_floats_and_back():
    [same] = augmented(PICTURES, "none", 1)
    assert (same.x == PICTURES.x).all()


def test_too_few_records_for_public_ones_are_refused():
    for size in (4, 201):
        with pytest.raises(MiaError, match=f"size = {size} records of a game: fashion_mnist_20k has 200"):
            study.on_images(PICTURES, size, 2, CONFIG, 1, 0.01)
    with pytest.raises(MiaError, match="tables = 'german'"):
        study.on_table("german", 1, 0.1)


def test_a_shadow_set_must_leave_records_to_validate(games):
    with pytest.raises(MiaError, match="leaves 24 to train on and 0 to validate"):
        study.more_forgetting(games, 1, [1.0])


@pytest.mark.parametrize("wrong,words", [
    ({"queries": 10}, "queries = 10"), ({"queries": None}, "queries = None"), ({"epsilons": [1.0, 0.0]}, "epsilon"),
    ({"shadow_shares": [0.5, 1.0]}, "shadow_shares")])
def test_a_plan_refuses_what_cannot_be_run_before_anything_is_trained(games, wrong, words, monkeypatch):
    right = {"queries": 2500, "epsilons": [1.0], "shadow_shares": [0.5], "copies": 2, "stops": [1, 2]}
    plan = study.plan({"one": games}, [6], 2, games, **right)
    assert set(plan.columns) == {"exhibit", "models", "members of each", "epochs"}
    assert plan.set_index("exhibit").models["references, stopped by hand, one"] == 6
    monkeypatch.setattr(training.Ensemble, "fit", None)
    with pytest.raises(MiaError, match=words):
        study.plan({"one": games}, [6], 2, games, **{**right, **wrong})


def test_a_reference_that_diverges_is_said():
    wild = study.on_images(PICTURES, 48, 2, replace(CONFIG, optimizer="sgd", learning_rate=500.0), 1, 0.01)
    with pytest.raises(MiaError, match="diverged: its loss is .* Lower learning_rate"):
        study.play(wild)


def test_a_reference_stopped_by_hand_at_its_best_epoch_is_the_stopped_reference(games, played):
    found = study.stopping(games, [2, 1])
    assert found.epochs == [1, 2] and found.scores.shape == (2, *played.members.shape)
    best = np.stack([found.scores[found.epochs.index(epoch), t] for t, epoch in enumerate(played.epoch)])
    np.testing.assert_allclose(best, played.scores["loss", "scratch"], atol=1e-5)
    np.testing.assert_allclose(found.original, played.scores["loss", "original"], atol=1e-6)
    with pytest.raises(MiaError, match="epochs = 3"):
        study.stopping(games, [3])


def test_a_shorter_training_is_no_beginning_of_a_longer_one_where_the_rate_follows_the_length():
    falling = study.on_images(PICTURES, 48, 2, replace(CONFIG, schedule="cosine"), 1, 0.01)
    with pytest.raises(MiaError, match="schedule = 'cosine'"):
        study.stopping(falling, [1])


def test_one_target_by_hand_is_the_first_play_of_its_row(monkeypatch):
    """The cells of the page themselves, with a recipe of two epochs."""
    name, get = "german_credit_mlp_double_softmax", study.ensembles.get

    def short(asked):
        bank = get(asked)
        return replace(bank.part(range(12)), config=replace(bank.config, epochs=2))

    monkeypatch.setattr(study.ensembles, "get", short)
    page = jupytext.read(find_root() / "notebooks" / "calibration.py")
    cells = [cell.source for cell in page.cells if cell.cell_type == "code"]
    imports, parameters = cells[0], {"tables": [name]}
    exec(imports, parameters)
    first = next(k for k, source in enumerate(cells) if source.startswith("bank = shared.get("))
    for source in cells[first:first + 2]:
        exec(source, parameters)
    played = study.play(study.on_table(name, 1, 0.1))
    for word, variant in (("Orig", "original"), ("Cal.", "scratch")):
        assert parameters["auc"][word] == pytest.approx(study.per_target(played, ("loss", variant), "auc")[0], abs=1e-9)


# -------------------------------------------------------------------------------------------------------------- theory


def test_a_second_softmax_bounds_the_loss_of_two_classes():
    margin = np.linspace(-30, 30, 7)
    found, logits = theory.losses_of_two_classes(margin), torch.tensor(np.stack([margin, 0 * margin], 1))
    labels = torch.zeros(len(margin), dtype=torch.long)
    for word, kind in (("once", "cross_entropy"), ("twice", "double_softmax")):
        np.testing.assert_allclose(found[word], losses.record_loss(logits, labels, kind).numpy(), atol=1e-12)
    assert found["twice"][[-1, 0]] == pytest.approx([np.log(1 + 1 / np.e), np.log(1 + np.e)])


@pytest.mark.parametrize("difficulty,noise,original,calibrated", [
    (1.0, 0.3, 0.633, [0.798, 0.833, 0.860, 0.870, 0.880]), (1.0, 1.0, 0.599, [0.598, 0.612, 0.626, 0.632, 0.637]),
    (0.3, 1.0, 0.634, [0.599, 0.614, 0.627, 0.632, 0.638])])
def test_the_law_is_what_a_simulation_finds(difficulty, noise, original, calibrated):
    law = theory.calibration_auc(difficulty, noise, 0.5, 100)
    assert law["original"] == pytest.approx(original, abs=0.003)
    np.testing.assert_allclose(law["calibrated"][[0, 1, 4, 9, 99]], calibrated, atol=0.003)
    rng, n = np.random.default_rng(1), 60_000
    d, inside = difficulty * rng.normal(size=n), np.arange(n) < n // 2
    target = -d + 0.5 * inside + noise * rng.normal(size=n)
    reference = (-d + noise * rng.normal(size=(5, n))).mean(0)
    assert metrics.auc(target - reference, inside) == pytest.approx(law["calibrated"][4], abs=0.006)


def test_the_law_recovers_the_spreads_it_was_made_with():
    t, r, n = 20, 5, 2000
    d, inside = RNG.normal(size=(t, n)), RNG.random((t, n)) < 0.5
    own, references = -d + 0.5 * inside + 0.5 * RNG.normal(size=(t, n)), d[:, None] + 0.5 * RNG.normal(size=(t, r, n))
    played = replace(made_up(0, 0), members=inside, scores={("loss", "original"): own}, reference_loss=references)
    law = study.law(played)
    assert (law["difficulty"], law["noise"], law["gain"]) == pytest.approx((1.0, 0.5, 0.5), abs=0.03)
    np.testing.assert_allclose(law["calibrated"], study.reference_aucs(played).mean(1), atol=0.01)


def test_precision_by_hand():
    assert metrics.precision(0.05, 0.001, np.array([0.5, 0.1, 0.01])) == pytest.approx([0.980, 0.847, 0.336], abs=5e-4)
    assert metrics.precision(0.0, 0.0, 0.5) == 0.0
    assert metrics.precision(0.9, 0.6, 0.1) == pytest.approx(0.143, abs=5e-4)


def test_mean_and_soft_minimum_agree_for_one_reference_and_the_mean_is_never_below(played):
    own, losses = played.scores["loss", "original"], played.reference_loss
    mean = [study.calibrated(own, -losses[:, :r]) for r in (1, 2)]
    np.testing.assert_allclose(study.softmin_scores(played, 1), mean[0], atol=1e-5)
    assert (study.softmin_scores(played, 2) <= mean[1] + 1e-5).all()


def test_calibration_is_its_relatives_where_it_must(played):
    found = study.coincidences(played)
    assert found["MAST, mean out"] < 1e-12 and found["LiRA offline, fixed variance"] < 0.1


# ------------------------------------------------------------------------------------------------ the other experiments


def test_label_only_scores_are_differences_of_distances_on_at_most_so_many_records(games, monkeypatch):
    monkeypatch.setattr(study, "LABEL_ONLY_RECORDS", 5)
    found = study.label_only(games, 300, 2)
    assert found.members.shape == (2, 10) and (found.members.sum(1) == 5).all()
    assert 0 < found.queries <= 300 and set(found.scores) == set(found.thresholds) == set(study.VARIANTS)
    np.testing.assert_allclose(found.scores["original"], np.maximum(found.distances["target"], 0))
    np.testing.assert_allclose(found.scores["scratch"], found.distances["target"] - found.distances["scratch"])
    right = study.play(games).correct
    whole = boundary.distance(games.attacked.part([0]), games.models.records, 300, signed=True).distance[0]
    assert ((whole[games.private[0]] >= 0) == right[0]).all()


def test_boundaries_that_were_not_found_are_as_far_as_the_farthest():
    assert study._finite(np.array([[1.0, np.inf, -np.inf], [5.0, np.inf, 0.0]])).tolist() == [[1, 1, -1], [5, 5, 0]]


@pytest.mark.parametrize("others", [1, 4])
def test_at_a_ratio_so_many_members_are_left(played, others):
    attack = ("loss", "original")
    big = replace(played, members=np.repeat((np.arange(1000) < 500)[None], 2, 0),
                  scores={attack: RNG.normal(size=(2, 1000))}, thresholds={attack: np.full(2, np.inf)})
    frame = study.at_ratio(big, attack, others)
    np.testing.assert_allclose(frame["nobody"], others / (1 + others), atol=0.01)
    np.testing.assert_allclose(frame["rehearsed"], frame["nobody"])  # an infinite threshold calls nobody
    assert (frame["best"] >= frame["nobody"]).all()


@pytest.mark.parametrize("others, rehearsed, best", [(1, (0.6 + 0.8) / 2, 0.7), (4, (0.6 + 4 * 0.8) / 5, 0.8)])
def test_accuracy_at_a_ratio_weighs_members_and_others_by_it(played, others, rehearsed, best):
    """Of members 60 % are called, of others 20 %; the best threshold calls these or, of few members, nobody."""
    attack, inside = ("loss", "original"), np.arange(20_000) < 10_000
    score = np.where(np.arange(20_000) % 10 < np.where(inside, 6, 2), 1.0, 0.0)
    one = replace(played, members=inside[None], scores={attack: score[None]}, thresholds={attack: np.array([0.5])})
    [found] = study.at_ratio(one, attack, others).to_dict("records")
    assert (found["rehearsed"], found["best"]) == pytest.approx((rehearsed, best), abs=0.01)


def test_more_copies_and_variants_of_the_code_have_the_shapes_they_state(games):
    more = study.more_forgetting(games, 2, [0.25, 0.5])
    assert more.auc.shape == more.accuracy.shape == (2, 2, 3)
    by_entry = study.gradient_by_entry(games)
    judged, loss = games.private[1], games.models.config.loss
    own, reference = (next(signals.record_gradients(models.model(1), games.models.records.x[judged],
                                                    games.models.records.y[judged], loss))
                      for models in (games.attacked, games.scratch))
    by_hand = [-max(a - b) for a, b in zip(own, reference, strict=True)]
    assert study.released_gradient(games)[1] == pytest.approx(metrics.auc(by_hand, games.members[1, 0, judged]))
    largest = [-np.abs(one).max(1) for one in (own, reference)]
    assert by_entry["original"][1] == pytest.approx(metrics.auc(largest[0], members := games.members[1, 0, judged]))
    assert by_entry["scratch"][1] == pytest.approx(metrics.auc(largest[0] - largest[1], members))
    played = study.play(games)
    assert not np.allclose(study.with_dropout(games)["original"], study.per_target(played, ("loss", "original"), "auc"))


def test_dropout_is_compared_where_networks_have_it(games):
    assert study.drops_out(games)
    rows = exhibits.code_differences({games.name: study.play(games)}, {games.name: games}, games.name)
    assert list(rows["score"]) == ["loss, dropout off", "loss, dropout left on, as released"]
    without = training.train(games.models.records, games.models.members, replace(games.models.config, architecture="mlp:4"))
    none = exhibits.code_differences({}, {games.name: replace(games, models=without)}, games.name)
    assert list(none["score"]) == ["loss, dropout left on: this network has none"] and (none["Cal."] == tables.NOTHING).all()


# -------------------------------------------------------------------------------------------------------------- exhibits


def made_up(gain: float, calibrated: float, targets: int = 6, n: int = 400):
    """A play whose attacks are as good as wished."""
    members = np.repeat((np.arange(n) < n // 2)[None], targets, 0)
    scores, thresholds, correct = {}, {}, RNG.random(members.shape) < 0.7 + 0.1 * members
    references, sides = RNG.random((targets, 3, n)), ("train", "test", "scratch", "forgetting")
    accuracy = {side: RNG.random(targets) for side in sides}
    for score in study.SCORES:
        strength = {"original": gain, "scratch": calibrated, "forgetting": 0.8 * calibrated}
        for variant, size in strength.items():
            size = gain if score == "confidence" else size
            scores[score, variant] = size * members + RNG.normal(size=members.shape)
            thresholds[score, variant] = np.full(targets, size / 2)
    return study.Play(members, correct, scores, thresholds, accuracy, np.full(targets, 3), references)


@pytest.fixture(scope="module")
def shown(games):
    credit = replace(games, name="Credit, softmax twice", paper="German Credit",
                     models=training.train(TABLE, np.repeat(games.private[:, :80] | True, 3, 0)[:9],
                                           TrainConfig("mlp:4", loss="double_softmax")))
    drawn = np.argsort(RNG.random((6, 1600)), 1) < 400  # six splits of a pool of 1,600
    return {"Credit, softmax twice": replace(credit, private=drawn), "FashionMNIST": replace(games, private=drawn)}, {
        "Credit, softmax twice": made_up(0.2, 1.0), "FashionMNIST": made_up(0.2, 1.0)}


def test_every_number_the_paper_printed_has_its_place(shown):
    all_games, plays = shown
    for metric, table in (("auc", "table2"), ("accuracy", "table3")):
        run, rest = (exhibits.table_of(plays, all_games, metric, table, which) for which in (True, False))
        assert "not run" not in run.to_string() and "not run" in rest.to_string()
        text = run.to_string() + rest.to_string()
        for value in exhibits.printed(table).values():
            assert f"/ {value:.3f}" in text
    run, rest = (exhibits.table_one(plays, all_games, which) for which in (True, False))
    assert len(run) + len(rest) == 7 and "not run" not in run.to_string()
    assert rest.train[0] == "not run / 0.998"


def test_verdicts_follow_the_numbers(shown):
    all_games, plays = shown
    found = {v.claim: v for v in exhibits.judge_tables(plays, all_games)}
    assert {found[c].verdict for c in ("C3", "C9")} == {"reproduced"} and found["C8"].verdict == "not run"
    assert (exhibits.largest_spread("Hepatitis"), exhibits.largest_spread("Adult")) == (0.034, 0.015)
    assert found["A2"].verdict == "contradicted" and len(found["A2"].parts) == 6
    assert {found[c].verdict for c in ("C2", "C4", "C7")} == {"reproduced"} and len(found["C7"].parts) == 4
    assert found["C1"].parts["confidence"].value < 0.05 < found["C1"].parts["loss"].low
    weak = {name: made_up(1.0, 0.2) for name in plays}
    worse = {v.claim: v.verdict for v in exhibits.judge_tables(weak, all_games)}
    assert {worse[c] for c in ("C1", "C2", "C3", "C4")} == {"contradicted"}


def test_without_a_leak_nothing_is_reproduced_by_its_margins(shown):
    """Attacks that know nothing are alike, and no threshold beats another: such claims need an attack above chance."""
    all_games, _ = shown
    nothing = {name: made_up(0.0, 0.0) for name in all_games}
    found = {v.claim: v for v in exhibits.judge_tables(nothing, all_games)}
    assert not {c for c in found if found[c].verdict == "reproduced"} - {"C6", "A2"}
    for claim in ("C4", "C16"):
        control = [part for name, part in found[claim].parts.items() if exhibits.CONTROL in name]
        assert control and all(part.low <= 0 for part in control)


def test_a_rate_that_few_non_members_cannot_resolve_is_not_judged(shown):
    all_games, plays = shown
    few = {name: made_up(0.2, 1.0, n=120) for name in plays}
    games = {name: replace(one, private=one.private & (np.cumsum(one.private, 1) <= 120)) for name, one in all_games.items()}
    five = {v.claim: v for v in exhibits.judge_tables(few, games)}["C5"]
    assert five.verdict == "not run" and "fewer than 100 non-members" in five.reason
    table = exhibits.low_rates(plays, all_games)
    assert table["chance, 1 %"][0] == "1.5"  # of 200 non-members


def test_verdicts_of_the_other_exhibits(shown):
    all_games, plays = shown
    played, one = plays["FashionMNIST"], all_games["FashionMNIST"]
    small, large = made_up(1.0, 2.0), made_up(0.2, 1.0)
    both = {100: one, 400: one}
    assert [v.verdict for v in exhibits.judge_sizes({100: small, 400: large}, both)] == ["reproduced"] * 2
    assert [v.verdict for v in exhibits.judge_sizes({100: large, 400: small}, both)] == ["contradicted", "reproduced"]
    assert [v.verdict for v in exhibits.judge_sizes({100: small}, both)] == ["not run", "reproduced"]
    assert exhibits.judge_sizes({100: made_up(1.0, 0.2)}, both)[1].verdict == "contradicted"
    assert [v.claim for v in exhibits.judge_ratio(played, "x")] == ["C12", "C12m", "C12a"]
    assert exhibits.judge_private(None, [1.0], one, "no Opacus").reason == "no Opacus"
    rising = np.sort(RNG.random((2, 3, 5)), 1)
    rising[1] += 1
    more = study.MoreForgetting(rising, rising)
    thirteen = exhibits.judge_more(more, [0.25, 0.5], "x")
    assert [v.claim for v in thirteen] == ["C13", "C13s"] and thirteen[1].verdict == "reproduced"
    level = rising[:1] + np.array([0, 1e-4])[:, None, None] * RNG.normal(size=(2, 1, 5))
    assert exhibits.judge_more(study.MoreForgetting(level, level), [0.25, 0.5], "x")[1].verdict == "no difference"
    one_size = study.MoreForgetting(rising[:1], rising[:1])
    assert exhibits.judge_more(one_size, [0.25], "x")[1].verdict == "not run"
    every = set(claims.claims("calibration"))
    assert {v.claim for v in exhibits.judge_tables(plays, shown[0])} < every


def found_by(verdicts):
    return {v.claim: v.verdict for v in verdicts}


def test_the_claims_about_rare_members_have_their_direction():
    assert found_by(exhibits.judge_ratio(made_up(0.2, 1.5, 12, 4000), "x")) | {"C12a": ""} == {
        "C12": "reproduced", "C12m": "reproduced", "C12a": ""}
    assert found_by(exhibits.judge_ratio(made_up(1.5, 0.2, 12, 4000), "x")) | {"C12a": ""} == {
        "C12": "contradicted", "C12m": "contradicted", "C12a": ""}
    played = made_up(0.2, 0.2)
    for threshold, verdict in ((2.0, "reproduced"), (-2.0, "contradicted")):  # nearly nobody is called, nearly everybody
        moved = replace(played, thresholds={attack: np.full(6, threshold) for attack in played.thresholds})
        assert found_by(exhibits.judge_ratio(moved, "x"))["C12a"] == verdict


def test_the_claims_about_more_copies_and_larger_shadow_sets_have_their_direction():
    rng, copies = np.random.default_rng(0), np.array([0.0, 0.1, 0.2])[:, None]

    def auc(by_copies, by_size):  # [sizes, copies, plays]
        return 0.5 + by_copies * copies + np.array([0, by_size])[:, None, None] + rng.normal(0, 1e-3, (2, 3, 6))

    for by_copies, by_size, expected in ((1, 0.1, ("reproduced", "reproduced")), (-1, 0.1, ("contradicted", "reproduced")),
                                         (1, -0.1, ("reproduced", "contradicted"))):
        values = auc(by_copies, by_size)
        for shares, of_share in (([0.25, 0.5], values), ([0.5, 0.25], values[::-1])):
            found = found_by(exhibits.judge_more(study.MoreForgetting(of_share, of_share), shares, "x"))
            assert (found["C13"], found["C13s"]) == expected


@pytest.mark.parametrize("turned", [None, *range(5)])
def test_the_claim_about_privacy_has_its_directions(shown, turned):
    """AUCs of Orig and Cal. as in the paper, and with one part of the claim the other way round."""
    rng, plays, n = np.random.default_rng(0), 40, 400
    drawn = np.argsort(rng.random((plays, 1600)), 1) < n
    games, members = replace(shown[0]["FashionMNIST"], private=drawn), np.repeat((np.arange(n) < n // 2)[None], plays, 0)
    gain = {"original": [0.0, 0.2, 0.4], "scratch": [0.0, 0.6, 1.0]}  # at epsilon 1, at 10, without privacy
    if turned == 0:
        gain["original"][0] = 0.8
    elif turned == 1:
        gain["original"][1] = 0.9
    elif turned in (2, 3):
        gain["scratch"][0] = 0.5 if turned == 2 else -0.5
    elif turned == 4:
        gain = {variant: [0.0, 0.6 * (variant == "scratch"), -0.5] for variant in gain}
    scores = {variant: np.stack([size * members + rng.normal(size=members.shape) for size in sizes])
              for variant, sizes in gain.items()}
    private = study.PrivateTraining(members, scores, np.ones(2), np.ones(2), np.ones((3, plays)), np.ones((3, plays)))
    found = exhibits.judge_private(private, [1.0, 10.0], games, "")
    signs = [interval.sign for interval in found.parts.values()]
    expected = {None: [1, 1, 1, 1, 1, 1], 0: [-1, 1, 1, 1, 1, 1], 1: [1, 1, -1, 1, 1, 1], 2: [1, 1, 1, -1, 1, 1],
                3: [1, 1, 1, 1, -1, 1], 4: [-1, -1, 1, 1, 1, -1]}
    assert signs == expected[turned]
    assert (found.verdict == "reproduced") == (turned is None)


def test_the_claim_about_labels_alone_has_its_direction(shown, monkeypatch):
    games = shown[0]["FashionMNIST"]
    which = games.private & (np.cumsum(games.private, 1) <= 200)
    monkeypatch.setattr(study, "label_only_records", lambda private, members: which)
    members, rng = np.tile(np.arange(200) % 2 == 0, (6, 1)), np.random.default_rng(0)
    for sizes, verdict in (((0.0, 1.0, 1.0), "reproduced"), ((1.0, 0.0, 0.0), "contradicted"),
                           ((0.5, 0.0, 1.0), "contradicted"), ((0.5, 1.0, 0.0), "contradicted")):
        scores = {variant: size * members + rng.normal(size=members.shape)
                  for variant, size in zip(study.VARIANTS, sizes, strict=True)}
        found = study.LabelOnly(members, {}, scores, {}, 1.0)
        assert exhibits.judge_label_only({"a": found}, {"a": games}).verdict == verdict


def test_most_cells_are_those_that_no_interval_denies():
    def cell(value, spread=0.1):
        return Interval(value, value - spread, value + spread)

    clear = exhibits.most_of([cell(1), cell(2), cell(0.05), cell(-1)])
    assert (clear.low, clear.value, clear.high) == (0.0, 0.25, 0.25) and clear.sign == 0
    assert exhibits.most_of([cell(1), cell(2), cell(-1)]).sign == 1
    assert exhibits.most_of([cell(1), cell(-2), cell(-1)]).sign == -1
    assert exhibits.most_of([cell(1), cell(2), cell(-1)]).at(0.99).sign == 1
    alone = Interval(0.3, 0.2, 0.4, se=0.1).without("2 games: too few for an interval")
    mixed = exhibits.most_of([cell(1), cell(2), alone, replace(alone, value=-0.3), cell(-1)])
    assert (mixed.low, mixed.value, mixed.high) == pytest.approx((-0.1, 0.1, 0.3)), "what has no interval denies nothing"
    assert mixed.at(0.99).low <= mixed.value <= mixed.at(0.99).high


def test_a_mean_over_data_sets_has_an_interval_only_where_each_has_one():
    many, two = metrics.t_interval([0.1, 0.2, 0.3, 0.2]), metrics.t_interval([0.1, 0.2])
    assert exhibits.mean_of_intervals([many, many]).sign == 1
    found = exhibits.mean_of_intervals([many, two])
    assert found.value == pytest.approx(0.175) and np.isnan(found.low) and found.sign == 0


def test_networks_on_the_same_data_are_one_data_set_to_labels_alone(shown, monkeypatch):
    games = shown[0]["FashionMNIST"]
    which = games.private & (np.cumsum(games.private, 1) <= 200)
    monkeypatch.setattr(study, "label_only_records", lambda private, members: which)
    members = np.tile(np.arange(200) % 2 == 0, (6, 1))
    noise = RNG.normal(size=members.shape)
    found = study.LabelOnly(members, {}, {"original": noise, "scratch": noise + 0.4 * members, "forgetting": noise}, {}, 1.0)
    other = replace(games, paper="Hepatitis")
    alone, twice, apart = (exhibits.judge_label_only(dict.fromkeys(names, found), names).parts["Cal. - Orig"]
                           for names in ({"a": games}, {"a": games, "b": games}, {"a": games, "b": other}))
    assert (twice.value, twice.low, twice.high) == pytest.approx((alone.value, alone.low, alone.high)), "one data set, not two"
    assert apart.high - apart.low < 0.9 * (alone.high - alone.low)


def test_a_claim_about_epsilon_near_one_is_judged_near_one(shown):
    all_games, plays = shown
    played, one = plays["FashionMNIST"], all_games["FashionMNIST"]
    scores = np.stack([played.scores["loss", "scratch"]] * 3)
    private = study.PrivateTraining(played.members, {v: scores for v in ("original", "scratch")}, np.ones(2), np.ones(2),
                                    np.ones((3, 6)), np.ones((3, 6)))
    near, far = (exhibits.judge_private(private, epsilons, one, "") for epsilons in ([1.0, 10.0], [10.0, 100.0]))
    assert near.parts["near chance from above, ε = 1"].sign == -1
    assert far.parts["near chance from above, ε = 10"] is None and far.reason == "no epsilon near 1"
    assert "not run" in far.said


def test_the_threshold_of_greatest_accuracy_is_the_one_on_the_records_judged(shown):
    played, one = shown[1]["FashionMNIST"], shown[0]["FashionMNIST"]
    found = exhibits.false_positives(played, "original", one)
    ranges = []
    for score, member in zip(played.scores["loss", "original"], played.members, strict=True):
        right = {t: (score[member] >= t).sum() - (score[~member] >= t).sum() for t in score}
        at = [(score[~member] >= t).mean() for t in right if right[t] == max(right.values())]
        ranges.append((min(at), max(at)))
    low, high = np.mean(ranges, 0)
    assert low <= found.value <= high


def test_a_mean_over_data_sets_has_the_variance_of_a_mean(shown):
    all_games, plays = shown
    attack = ("loss", "scratch")
    one, two = (exhibits.interval(plays, all_games, name, attack, "auc") for name in plays)
    mean = exhibits.mean_of(plays, all_games, "auc", {attack: 1.0})
    assert mean.value == pytest.approx((one.value + two.value) / 2)
    assert mean.se == pytest.approx(np.hypot(one.se, two.se) / 2)
    same = exhibits.mean_of(plays, {name: replace(games, paper="German Credit") for name, games in all_games.items()}, "auc",
                            {attack: 1.0})
    assert same.value == pytest.approx(mean.value) and "1 data sets" in same.covers


def test_plays_share_the_records_of_their_pool(shown):
    all_games, plays = shown
    games, played = all_games["FashionMNIST"], plays["FashionMNIST"]
    records = exhibits.places(games.private)
    assert all(games.private[t][records[t]].all() for t in range(6)) and records.shape == played.members.shape
    made = exhibits.interval(plays, all_games, "FashionMNIST", ("loss", "scratch"), "accuracy")
    assert made.value == pytest.approx(study.per_target(played, ("loss", "scratch"), "accuracy").mean())
    assert made.covers == f"{games.covers} and {len(np.unique(records))} records"
    np.testing.assert_allclose(metrics.auc(exhibits.unstopped(played, 2), played.members), study.reference_aucs(played)[1])


def test_precision_at_a_recall_by_hand():
    played = replace(made_up(0, 0), members=np.array([[True, False, True, False]]),
                     scores={("loss", "original"): np.array([[4.0, 3.0, 2.0, 1.0]])})
    assert exhibits.precision_at_recall(played, "original", 0.5, 0.5) == pytest.approx([1.0])
    assert exhibits.precision_at_recall(played, "original", 0.6, 0.5) == pytest.approx([2 / 3])


def test_figures_draw(shown):
    all_games, plays = shown
    played = plays["FashionMNIST"]
    scores = np.stack([played.scores["loss", "scratch"]] * 3)
    stopped = {name: study.Stopping([1, 5, 20], played.members, scores, played.scores["loss", "original"]) for name in plays}
    covers = dict.fromkeys(plays, "x")
    private = study.PrivateTraining(played.members, {v: scores for v in ("original", "scratch")}, np.ones(2), np.ones(2),
                                    np.ones((3, 6)), np.ones((3, 6)))
    for figure, axes in ((exhibits.idea(played), 1), (exhibits.histograms(played), 2), (exhibits.curves(played), 2),
                         (exhibits.top_figure(played), 1), (exhibits.softmax_twice(), 1),
                         (exhibits.stopping_figure(stopped, plays, covers), 2),
                         (exhibits.private_figure(private, [1.0, 10.0], all_games["FashionMNIST"]), 2),
                         (exhibits.ratio_figure(played, [1, 5], "x"), 2), (exhibits.law_figure(plays), 2),
                         (exhibits.sizes_figure(exhibits.sizes_frame(
                             {100: played, 200: played}, dict.fromkeys((100, 200), all_games["FashionMNIST"]))), 2)):
        assert len(figure.axes) == axes
    assert list(exhibits.law_table(plays, all_games)["data"]) == list(plays)
    assert len(exhibits.low_rates(plays, all_games)) == 6 and len(exhibits.thresholds(plays, all_games)) == 18


def test_epochs_tried_by_hand_are_said_to_be_picked_only_where_there_are_several(shown):
    _, plays = shown
    played = plays["FashionMNIST"]
    scores = np.stack([size * played.members + RNG.normal(size=played.members.shape) for size in (0.0, 3.0)])
    several = study.Stopping([1, 20], played.members, scores, played.scores["loss", "original"])
    one = study.Stopping([7], played.members, scores[:1], played.scores["loss", "original"])
    assert "Of the epochs tried by hand 20 has" in exhibits.stopped_by_hand(several)
    assert exhibits.stopped_by_hand(one).startswith("Stopped by hand after epoch 7")


def test_the_paper_is_quoted_for_the_data_that_were_run():
    games = SimpleNamespace(paper="Hepatitis")
    value = exhibits.printed("table2")["Hepatitis", "Loss Cal."]
    assert exhibits.printed_of(games, "Loss Cal.") == f"the paper prints {value:.3f} for Hepatitis"
    assert exhibits.printed_of(SimpleNamespace(paper="FashionMNIST"), "Loss Cal.") == "the paper has no FashionMNIST"


def test_a_private_batch_larger_than_a_training_set_is_refused_by_its_name():
    games = SimpleNamespace(members=np.ones((2, 3, 31), bool))
    study.check_private_batch(games, 31)
    with pytest.raises(MiaError, match="private_batch_size = 64 is out of range: allowed is from 1 to 31"):
        study.check_private_batch(games, 64)


def test_the_chart_of_stopping_says_what_the_arrays_say(shown):
    _, plays = shown
    played = plays["FashionMNIST"]
    scores = np.stack([size * played.members + RNG.normal(size=played.members.shape) for size in (0.0, 1.0)])
    stopped = {"FashionMNIST": study.Stopping([1, 20], played.members, scores, played.scores["loss", "original"])}
    chart = exhibits.stopping_chart(stopped, plays).to_dict()
    points, bars = chart["datasets"]["points"], chart["datasets"]["bars"]
    assert [one["epoch"] for one in points] == [1, 20]
    assert [one["auc"] for one in points] == pytest.approx([metrics.auc(score, played.members).mean() for score in scores])
    for step in (0, 1):
        for kind in ("members", "non-members"):
            assert sum(b["share"] for b in bars if (b["step"], b["kind"]) == (step, kind)) == pytest.approx(1)


def test_members_among_the_best_scores_by_hand():
    members = np.array([[True, False, True, False]])
    found = exhibits.members_among(np.array([[4.0, 3.0, 2.0, 1.0]]), members, np.array([0.25, 0.5, 1.0]))
    assert found[0] == pytest.approx([1, 0.5, 0.5])
    tied = exhibits.members_among(np.zeros((1, 4)), members, np.array([0.25, 0.5]))
    assert tied[0] == pytest.approx([0.5, 0.5])  # as if shuffled


def test_a_printed_number_is_nearer_to_the_peak_or_to_the_rehearsal():
    def cells(*values):
        return [value if value == tables.NOTHING else tables.cell(value) for value in values]

    frame = pd.DataFrame({"data": ["a", "", "", "b"], "rehearsed": cells(*[0.5] * 4), "peak": cells(*[0.5999] * 4),
                          "paper": cells(0.59, 0.51, "–", 0.6)})
    assert exhibits.nearer_to_peaks(frame, ["a"]) == (1, 2) and exhibits.nearer_to_peaks(frame, ["a", "b"]) == (2, 3)
    beyond = frame.assign(paper=cells(0.61, 0.51, "–", 0.7))  # what our peak does not reach is nearer to it by any rule
    assert exhibits.nearer_to_peaks(beyond, ["a", "b"]) == (0, 1)
