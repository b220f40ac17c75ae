"""An audit by the canaries of one run: what it says, on which conditions, and what it refuses."""

import numpy as np
import pytest
from typer.testing import CliRunner

from mia_lib import audit, metrics
from mia_lib.audit.one_run import run_canaries
from mia_lib.errors import MiaError
from mia_lib.publish.cli import app

RNG = np.random.default_rng(5)
COINS = RNG.random(400) < 0.5
SCORES = COINS + 0.2 * RNG.normal(size=400)


def test_the_answer_has_the_bound_and_its_conditions():
    found = audit.canaries(SCORES, COINS, 1e-5)
    assert found.bound == metrics.epsilon_one_run(SCORES, COINS, None, 1e-5) > 2 and found.inside == COINS.sum()
    assert f"not (epsilon, delta = 1e-05)-private for an epsilon below {found.bound:.2f}, at a confidence of 95%" in str(found)
    assert "fair coin" in str(found) and f"{found.bound.right} were right" in str(found)
    found = str(audit.canaries(RNG.random(400), COINS, confidence=0.999))
    assert "not that there is nothing" in found and "confidence of 99.9%" in found


def test_the_command_reads_a_table(tmp_path):
    path = tmp_path / "canaries.csv"
    path.write_text("\n".join(["loss,coin", *(f"{score},{int(coin)}" for score, coin in zip(SCORES, COINS, strict=True))]))
    done = CliRunner().invoke(app, ["audit", "--canaries", str(path), "--score", "loss", "--member", "coin"])
    assert done.output.strip() == str(audit.canaries(SCORES, COINS)) and not done.exit_code


@pytest.mark.parametrize("make, says", [
    (lambda: audit.canaries(SCORES[COINS], COINS[COINS]), "no non-member"),
    (lambda: audit.canaries(np.r_[SCORES[COINS], SCORES[:5]], np.r_[COINS[COINS], COINS[:5]]), "fair coins"),
    (lambda: run_canaries("nowhere.csv", "score", "member", 0.0, 0.95, 0), "no such file")])
def test_what_cannot_be_judged_is_refused(make, says):
    with pytest.raises(MiaError, match=says):
        make()
