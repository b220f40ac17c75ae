"""Who is exposed: counts by plain loops, a world in which nobody is, and the records that are left of an onion."""

import numpy as np
import pytest

from mia_book.chapters.banks import exposure
from mia_lib import membership, metrics
from mia_lib.attacks import baselines
from mia_lib.published import Bank, load

RNG = np.random.default_rng(5)
MODELS, RECORDS, UNUSED = 20, 400, 100


def bank(lead):
    """Models whose members among the first forty records have log odds higher by `lead`."""
    members = np.pad(membership.balanced_halves(RECORDS, MODELS, 3), ((0, 0), (0, UNUSED)))
    few = np.arange(RECORDS + UNUSED) < 40
    margin = RNG.normal(size=members.shape) + lead * (members & few)
    return Bank("bank/toy", {}, {"margin": margin, "members": members}, [])


def first_tenth(frame, attack, metric, ranking="LiRA"):
    tenth = frame["part"] == "first tenth" if metric == "auc" else frame["tenth"] == 1
    rows = frame[tenth & (frame["ranking"] == ranking)]
    return metrics.estimate(rows, attack, metric)


def test_shares_are_those_that_a_loop_counts():
    toy, half = bank(4.0), MODELS // 2
    frame = exposure.by_ranking({"toy": toy}, RECORDS, 10)
    of_halves = []
    for models in (slice(half), slice(half, None)):
        scores, members = exposure.attack_models(toy, np.arange(RECORDS), models=models)
        own = [target ^ 1 for target in range(half)]  # its partner
        expected = [
            baselines.lira_online(
                toy.margin[models][t, :RECORDS],
                toy.margin[models][others, :RECORDS],
                toy.members[models][others, :RECORDS],
                fixed_variance=True,
            )
            for t in range(half)
            for others in [[m for m in range(half) if m not in (t, own[t])]]
        ]
        assert scores["LiRA"] == pytest.approx(np.stack(expected))
        calls = exposure.call_members(scores["LiRA"], members)
        assert ((calls & ~members).sum(1) <= exposure.FPR * (~members).sum(1)).all()
        of_halves.append((calls, members))
    (calls, members), (judged, inside) = of_halves
    often = [
        np.mean([calls[t, i] for t in range(half) if members[t, i]] or [0]) for i in range(RECORDS)
    ]
    tenth = sorted(range(RECORDS), key=lambda i: (-often[i], i))[: RECORDS // 10]
    found = [np.mean([judged[t, i] for i in tenth if inside[t, i]]) for t in range(half)]
    accused = [np.mean([judged[t, i] for i in tenth if not inside[t, i]]) for t in range(half)]
    assert first_tenth(frame, "LiRA", "found").values == pytest.approx(found)
    assert first_tenth(frame, "LiRA", "accused").values == pytest.approx(accused)
    shown = 2 * first_tenth(frame, "LiRA", "auc").values - 1
    assert shown == pytest.approx(np.subtract(found, accused))
    of_all = frame[(frame["part"] == "all") & (frame["ranking"] == "LiRA")]
    everyone = metrics.estimate(of_all, "LiRA", "auc").values
    assert everyone == pytest.approx(metrics.auc(judged.astype(float), inside))


def test_those_who_leak_are_found_again_and_where_nobody_does_nobody_is():
    """Were a half judged with references of the other, the tenth of noise would have an exposure of .04 on average."""
    leaking = exposure.by_ranking({"toy": bank(5.0), "others": bank(5.0)}, RECORDS, 10)
    noise = [
        exposure.by_ranking({"toy": bank(0.0), "others": bank(0.0)}, RECORDS, 10) for _ in range(8)
    ]
    for ranking in ("LiRA", "RMIA", "others"):
        assert (2 * first_tenth(leaking, "LiRA", "auc", ranking) - 1).interval().low > 0.3
        exposures = [2 * first_tenth(frame, "LiRA", "auc", ranking).value - 1 for frame in noise]
        # half a record in a hundred is the threshold's own
        assert abs(np.mean(exposures)) < 0.015, (ranking, exposures)


def test_of_an_onion_the_records_that_are_left_are_judged_under_both():
    toy = bank(3.0)
    without = toy.members[:, :RECORDS].copy()
    without[:, :50] = False
    after = Bank(
        "onion/toy", {"ranked": 8}, {"margin": toy.margin[8:, :RECORDS], "members": without[8:]}, []
    )
    frame = exposure.without_records(toy, {"some": after}, 10)
    frame = frame[(frame["by"] == "LiRA") & (frame["measure"] == "TPR at 1 %")]
    values = {
        how: metrics.estimate(frame, "with references", "found", trained=how).values
        for how in ("with them", "without them")
    }
    # the answers are the same ones
    assert values["with them"] == pytest.approx(values["without them"])
    left = np.arange(50, RECORDS)
    scores, members = exposure.attack_models(toy, left, ["LiRA"], slice(8, None))
    assert values["with them"] == pytest.approx(metrics.tpr_at_fpr(scores["LiRA"], members, 0.01))


def test_published_networks_were_trained_without_those_that_were_found_most_often():
    before = load("bank/fashion-mlp")
    for taken in ("exposed", "random"):
        after = load("onion/fashion-mlp", taken=taken)
        gone, first = ~after.members.any(0), after.parameters["ranked"]
        assert gone.sum() == 250
        assert np.array_equal(
            after.members, before.members[first : first + len(after), : len(gone)] & ~gone
        )
        scores, members = exposure.attack_models(
            before, np.arange(len(gone)), ["LiRA"], slice(first)
        )
        often = exposure.detection_rate(exposure.call_members(scores["LiRA"], members), members)
        assert (often[gone].min() >= often[~gone].max()) == (taken == "exposed")
