"""Banks: what half precision costs, what lies in data/published, and the page that attacks it, without PyTorch."""

import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from absent import WITHOUT_TORCH

from mia_book import publishing
from mia_book.chapters.banks import measure, study
from mia_book.pages import runner
from mia_book.pages.parameters import code_cells, validate
from mia_book.publishing import banks, writing
from mia_lib import data, membership, metrics, models, published, signals
from mia_lib.attacks import baselines, bayes
from mia_lib.errors import MiaError
from mia_lib.game import Game
from mia_lib.published.reading import DEFINITIONS

SMALL = "bank/cifar10-small"


def rates(margin, members):
    """AUC and true positive rates at 1 and 0.1 % of MALT and LiRA on the first two models."""
    found = []
    for target in (0, 1):
        others = membership.references_of(target, len(margin))
        loss = signals.loss_of(margin[target])
        for score in (
            bayes.malt(loss),
            baselines.lira_online(margin[target], margin[others], members[others], True),
        ):
            found.append(
                [
                    metrics.auc(score, members[target]),
                    metrics.tpr_at_fpr(score, members[target], 0.01),
                    metrics.tpr_at_fpr(score, members[target], 0.001),
                ]
            )
    return np.array(found)


def test_half_precision_of_the_log_odds_moves_no_rate_where_that_of_the_loss_ruins_low_ones():
    """In half precision small losses are few numbers, so the most confident records tie. The log odds keep them apart."""
    rng = np.random.default_rng(0)
    members = membership.balanced_halves(40_000, 8)
    margin = 4 * rng.normal(size=40_000) + 3 + rng.normal(size=(8, 40_000)) + 1.0 * members
    exact = rates(margin, members)
    rounded = rates(margin.astype(np.float16).astype(np.float32), members)
    assert (np.abs(exact - rounded).max(0) <= [1e-4, 5e-4, 5e-4]).all()
    confident = margin[0] > 13
    kinds = [
        len(np.unique(one[confident].astype(np.float16)))
        for one in (signals.loss_of(margin[0]), margin[0])
    ]
    assert 2 * kinds[0] < kinds[1]


def test_half_precision_of_weights_moves_no_rate():
    import torch

    recipe = banks.RECIPE | {
        "dataset": "fashion_mnist_20k",
        "architecture": "batchnorm_cnn:4,8,16",
        "epochs": 8,
        "batch_size": 64,
        "records": 1000,
    }
    ensemble, pool = banks.models_of(range(6), recipe)
    exact = signals.logit_scaled_confidence(ensemble, pool)
    bank = banks.weights(range(6), recipe)
    rounded = np.empty_like(exact)
    for row in range(6):
        network = models.build(recipe["architecture"], pool.shape, 10, seed=0)
        state = {
            name: torch.from_numpy(array[row].astype(np.float32)) for name, array in bank.items()
        }
        network.load_state_dict(network.state_dict() | state)
        rounded[row] = signals.scalars(signals.model_outputs(network.eval(), pool.x), pool.y)[
            "logit_scaled_confidence"
        ]
    assert not np.array_equal(exact, rounded)
    gap = np.abs(rates(exact, ensemble.members) - rates(rounded, ensemble.members)).max(0)
    assert (gap[:2] <= [2e-3, 1e-2]).all()  # one in a thousand is not resolved here


def test_published_weights_give_the_published_answers():
    """Of the whole data set, where it is here: half precision of the weights moves rates by less than one in a thousand."""
    try:
        pool = data.load("cifar10")
    except MiaError:
        pytest.skip("CIFAR-10 is not here (MIA_DATA names its folder)")
    bank, [network] = published.load(SMALL, models=8), measure.networks(SMALL, 1)
    answers = signals.scalars(signals.model_outputs(network, pool.x), pool.y)
    train = bank.trained
    again = bank.margin.copy()
    again[0] = answers["logit_scaled_confidence"]
    gap = np.abs(
        rates(bank.margin[:, train], bank.members[:, train])
        - rates(again[:, train], bank.members[:, train])
    )
    assert (gap[:2].max(0) <= [2e-4, 1e-3, 1e-3]).all()
    assert np.mean(bank.correct[0] != (answers["correctness"] > 0.5)) < 1e-3


def test_test_records_are_trained_on_by_no_model_of_a_bank(monkeypatch):
    pool = data.load("fashion_mnist_20k").take(np.arange(120))
    monkeypatch.setattr(data, "load", lambda name: replace(pool, n_train=100))
    tiny = {"architecture": "batchnorm_cnn:4,8,8", "epochs": 1, "batch_size": 25}
    bank = banks.answers(range(2), banks.RECIPE | tiny)
    assert bank["margin"].shape == bank["correct"].shape == (2, 120)
    assert (bank["members"].sum(0) == np.r_[np.ones(100), np.zeros(20)]).all()
    assert (bank["members"].sum(1) == 50).all()


def test_all_that_is_published_is_sound_served_and_within_its_limits():
    files = [path for path in published.folder().rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= writing.TOTAL_LIMIT
    assert max(path.stat().st_size for path in files) <= writing.FILE_LIMIT
    served = {
        piece.path for _, _, blocks in publishing.groups() for piece in blocks if piece.sound_rows()
    }
    pieces = {path for path in files if path.suffix == ".json" and path.name != DEFINITIONS}
    assert served == pieces, "a piece that nothing serves is to be removed"
    assert (
        len(files)
        == 2 * len(served) + len(list((published.folder() / "probes").rglob("*.npz"))) + 3
    )  # README, queue, definitions


@pytest.mark.parametrize(
    "name", sorted({name for name in published.ls()["name"] if name.startswith("bank/")})
)
def test_a_bank_is_of_complementary_pairs_and_no_model_saw_a_test_record(name):
    bank = published.load(name)
    if name.endswith("-weights"):
        assert all(np.isfinite(array).all() for array in bank.arrays.values()) and len(bank) >= 2
        return
    train = bank.members.any(0)
    assert train.sum() == train.nonzero()[0].max() + 1 and not bank.members[:, ~train].any()
    assert (bank.members[0::2, train] ^ bank.members[1::2, train]).all()
    assert np.isfinite(bank.margin).all() and (bank.correct[bank.margin > 0]).all()
    inside = bank.correct[bank.members].mean()
    assert inside > bank.correct[:, ~train].mean() > 2 / 100


def test_one_reference_is_judged_on_those_that_it_left_out():
    bank = published.load(SMALL, models=6)
    few = published.Bank(
        bank.name,
        bank.parameters,
        {k: a[:, np.r_[:400, 50_000:50_100]] for k, a in bank.arrays.items()},
        [],
    )
    view = Game.of(few, 1, 1).view(0)
    [other], scores = view.models, study.attack(view)
    assert scores.keys() == {"LiRA, offline", "RMIA, offline"}
    assert (np.isnan(scores["LiRA, offline"]) == few.members[other, :400]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # so few records resolve no rate
        frame, most = study.by_references(few, 4, [1, 2, 4, 8], draws=10)
    assert set(frame["references"]) == {1, 2, 4}
    assert frame["value"].between(0, 1).equals(frame["resolved"]), "what is not resolved has none"
    assert most.keys() == set(frame["attack"]) and most["RMIA"].shape == (4, 400)
    first, second, ahead = study.lead(most, few.members[:4, :400], draws=10)
    assert {first, second} < most.keys() and ahead.value >= 0
    with pytest.raises(MiaError, match="from 2 to 4 is needed"):
        study.by_references(few, 4, [1])
    of_malt = frame[frame["attack"] == "MALT"].groupby("metric")["value"]
    assert of_malt.nunique(dropna=False).eq(1).all()
    assert set(frame[frame["references"] == 1]["attack"]) == {
        "MALT",
        "LiRA, offline",
        "RMIA, offline",
    }


def test_the_page_is_made_anew_when_what_is_published_is_another(repo, monkeypatch, tmp_path):
    key = runner.key("banks", validate("banks", {}, "quick", repo), repo)
    monkeypatch.setenv("MIA_PUBLISHED", str(tmp_path))
    assert key != runner.key("banks", validate("banks", {}, "quick", repo), repo)


def test_the_page_runs_where_there_is_no_torch(repo, tmp_path):
    code = "\n".join(code_cells((repo / "notebooks" / "banks.py").read_text(encoding="utf-8")))
    for asked, few in (
        ("draws: int = 20", "draws: int = 10"),
        ("= [1, 2, 4, 8, 16, 32, 62, 126]", "= [1, 2, 4]"),
        ("targets: int = 8", "targets: int = 4"),
        ("exposed_records: int = 8000", "exposed_records: int = 900"),
        ("published.load(bank)", "published.load(bank, 32)"),
        ("min(len(one), 64)", "min(len(one), 32)"),
        ('name.startswith("bank/")', 'name.startswith("bank/fashion")'),
    ):
        assert asked in code
        code = code.replace(asked, few)
    script = tmp_path / "page.py"
    script.write_text(WITHOUT_TORCH + "import matplotlib; matplotlib.use('agg')\n" + code)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=repo)
    assert done.returncode == 0, done.stderr[-2000:]
