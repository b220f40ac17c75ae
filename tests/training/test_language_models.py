"""Language models: trained as a plain loop trains them, whatever is padded, stacked or stopped."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from mia_lib import data, membership, models, signals, store, training
from mia_lib.attacks import text
from mia_lib.errors import MiaError
from mia_lib.signals import tokens
from mia_lib.training import objectives, recipe
from mia_lib.training.loop import Group, Task, fit_group

pytestmark = pytest.mark.usefixtures("isolated_cache")

V = 11
CONFIG = training.TrainConfig(
    "gpt:8,1,2", epochs=3, batch_size=4, learning_rate=1e-2, schedule="one_cycle", loss="next_token"
)


def sequences(count=13, seed=0):
    rng = np.random.default_rng(seed)
    return [[0, *rng.integers(1, V, rng.integers(1, 9))] for _ in range(count)]


@pytest.fixture
def records():
    return data.from_tokens(sequences(), "sequences", V)


def plain_loss(network, row):
    """Mean over a record's tokens, one token at a time, each from exactly those before."""
    ids = torch.tensor(row[row >= 0])
    losses = [-network(ids[None, :t])[0, -1].log_softmax(-1)[ids[t]] for t in range(1, len(ids))]
    return torch.stack(losses).mean()


def task_of(records, config=CONFIG, models=1):
    return Task(
        records.x, records.y, V, config, [np.arange(9)] * models, list(range(models)), None, None
    )


def test_a_group_takes_the_steps_of_a_plain_loop(records):
    group = Group(task_of(records), torch.device("cpu"), False)
    for _ in range(CONFIG.epochs):
        group.run_epoch()

    network = models.build("gpt:8,1,2", records.shape, V, seed=recipe.seed_of(CONFIG, 0))
    optimizer = torch.optim.Adam(network.parameters(), CONFIG.learning_rate)
    generator = torch.Generator().manual_seed(recipe.seed_of(CONFIG, 0))
    for epoch in range(CONFIG.epochs):
        order = objectives.NextToken.batch_order(
            torch.randperm(9, generator=generator), torch.tensor(records.x[:9, 1:]), 4, generator
        )
        for start in (0, 4):  # a last batch of one record is left out
            optimizer.param_groups[0]["lr"] = recipe.learning_rate(CONFIG, epoch + start / 9)
            rows = [plain_loss(network, records.x[i]) for i in order[start : start + 4]]
            optimizer.zero_grad()
            torch.stack(rows).mean().backward()
            optimizer.step()
    for ours, theirs in zip(group.network.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


def test_models_that_are_stacked_are_those_that_are_trained_alone(records):
    together = fit_group(task_of(records, models=3), stacked=True)
    for number, outcome in enumerate(together):
        [alone] = fit_group(task_of(records, models=3).part([number]), stacked=False)
        for name, value in alone.arrays.items():
            np.testing.assert_allclose(outcome.arrays[name], value, rtol=1e-3, atol=1e-5)


def test_batches_hold_every_record_once_and_those_of_like_length():
    labels = torch.full((400, 50), -1)
    for row, length in zip(labels, torch.randint(1, 50, (400,)), strict=True):
        row[:length] = 1
    order = objectives.NextToken.batch_order(
        torch.randperm(400), labels, 10, torch.Generator().manual_seed(0)
    )
    assert sorted(order.tolist()) == list(range(400))
    lengths = objectives.lengths(labels[order]).view(40, 10)
    assert (lengths.amax(1) - lengths.amin(1)).float().mean() < 4
    assert not torch.equal(lengths.amax(1).sort()[0], lengths.amax(1))  # drawn in random order


def test_a_training_goes_on_from_one_that_stopped_earlier(records, monkeypatch):
    members = membership.balanced_halves(len(records), 2, 0)
    whole = training.train(records, members, CONFIG, workers=1)
    passes = []
    plain = Group.run_epoch
    monkeypatch.setattr(Group, "run_epoch", lambda self: (passes.append(self.epoch), plain(self)))
    outcomes = {}
    for stop in (1, 2, None):
        ensemble = replace(whole, config=replace(CONFIG, stop_epoch=stop))
        slot = ensemble._checkpoint([0])
        [outcomes[stop]] = fit_group(ensemble._task([0], records.x), checkpoint=slot)
    assert passes == [0, 1, 2]  # none of them twice
    monkeypatch.undo()
    [straight] = fit_group(whole._task([0], records.x))
    for name, value in straight.arrays.items():
        np.testing.assert_array_equal(outcomes[None].arrays[name], value)
    [early] = fit_group(ensemble_of(whole, 1)._task([0], records.x))
    np.testing.assert_array_equal(
        outcomes[1].arrays["tokens.weight"], early.arrays["tokens.weight"]
    )
    # a later state is no use to a training that stops earlier
    [again] = fit_group(
        ensemble_of(whole, 1)._task([0], records.x), checkpoint=whole._checkpoint([0])
    )
    np.testing.assert_array_equal(again.arrays["history"], early.arrays["history"])


def ensemble_of(whole, stop):
    return replace(whole, config=replace(CONFIG, stop_epoch=stop))


def test_the_state_of_a_training_that_ends_is_not_kept(records):
    members = membership.balanced_halves(len(records), 2, 0)
    whole = training.train(records, members, CONFIG, workers=1)
    ensemble_of(whole, 1).fit()
    slots = [*whole._checkpoint([0]).items()], whole._checkpoint([0])
    assert any(store.look_up({**slots[1], "slot": slot}) for slot in (0, 1))
    whole.fit()
    assert not any(store.look_up({**slots[1], "slot": slot}) for slot in (0, 1))


def test_what_is_said_of_a_record_depends_on_no_other_and_not_on_padding(records):
    network = models.build("gpt:8,1,2", records.shape, V, seed=0)
    whole = tokens.model_statistics(network, records.x)
    for i, row in enumerate(records.x):
        alone = tokens.model_statistics(network, row[row >= 0][None])
        here = slice(*whole.offsets[i : i + 2])
        for part, of_all in zip(alone[:3], whole[:3], strict=True):
            np.testing.assert_allclose(part, of_all[here], rtol=1e-4, atol=1e-6)
        expected = plain_loss(network, row).item()
        assert -alone.log_prob.mean() == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(
        tokens.model_loss(network, records.x), text.loss(whole.log_prob, whole.offsets), rtol=1e-5
    )


def test_a_record_beyond_the_context_is_refused_with_what_to_do(records):
    def of(longest):
        return data.from_tokens([[0, 1], [1] * longest], "texts", V).x

    network = models.build("gpt:8,1,2", (5,), V, seed=0)
    assert tokens.model_statistics(network, of(6)).offsets[-1] == 1 + 5
    with pytest.raises(
        MiaError,
        match=r"1 of 2 records of more than 6 tokens, the longest of 7: .* Keep the first 6",
    ):
        tokens.model_statistics(network, of(7))

    class Configured(
        torch.nn.Module
    ):  # as models of transformers are, whose positions are often computed
        config = SimpleNamespace(max_position_embeddings=5)

        def __init__(self):
            super().__init__()
            self.head = torch.nn.Embedding(V, V)

        def forward(self, ids):
            return self.head(ids)

    assert tokens.model_loss(Configured(), of(6)).shape == (2,)
    with pytest.raises(MiaError, match="Configured has a context of 5 tokens"):
        tokens.model_loss(Configured(), of(7))
    with pytest.raises(MiaError, match=f"all token ids of x, which reach {V} .* own tokenizer"):
        tokens.model_loss(Configured(), np.array([[0, V, 1]]))


class Table(torch.nn.Module):
    """Logits of the next token by the one before; `change` makes something else of them."""

    def __init__(self, change=lambda logits: logits):
        super().__init__()
        self.table, self.change = torch.nn.Embedding(V, V), change

    def forward(self, ids):
        return self.change(self.table(ids))


@pytest.mark.parametrize(
    "change, ids, message",
    [
        (None, [[-1, 3, 4], [1, 2, 3]], "below 0 before the last token in 1 of 2 records"),
        (None, [[1, -1, 4, 2]], "below 0 before the last token"),
        (None, [[1, 2, V]], f"ids up to {V}, and model = Table knows those from 0 to {V - 1}"),
        (None, [[1, V, 2]], f"does not know all token ids of x, which reach {V}"),
        (None, [[1.0, 2.0]], "token ids int64"),
        (None, [[1, 2], [1]], "rows must be equally long"),
        (lambda logits: logits.softmax(-1), [[1, 2, 3]], "gives probabilities"),
        (lambda logits: logits[:, -1], [[1, 2, 3]], "of the token that follows each"),
        (lambda logits: logits.roll(-1, 1), [[1, 2, 3, 4, 5]], "no masked one"),
        (lambda logits: logits + logits.sum(1, keepdim=True), [[1, 2, 3, 4]], "no masked one"),
    ],
)  # fmt: skip
def test_what_is_no_causal_language_model_and_what_are_no_ids_is_refused(change, ids, message):
    model = Table(change) if change else Table()
    for asked in (tokens.model_loss, tokens.model_statistics):
        with pytest.raises(MiaError, match=message):
            asked(model, ids)


def test_a_function_is_no_language_model():
    with pytest.raises(MiaError, match="Module is needed"):
        tokens.model_loss(lambda ids: ids, [[1, 2]])


def test_mean_and_variance_are_of_a_token_drawn_from_the_model():
    logits = torch.randn(3, 5, V, generator=torch.Generator().manual_seed(1))
    own, mean, variance = tokens.token_statistics(logits, torch.full((3, 5), 4))
    p = logits.double().softmax(-1)
    log_p = p.log()
    torch.testing.assert_close(own.double(), log_p[..., 4], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(mean.double(), (p * log_p).sum(-1), rtol=1e-5, atol=1e-6)
    spread = (p * log_p**2).sum(-1) - (p * log_p).sum(-1) ** 2
    torch.testing.assert_close(variance.double(), spread, rtol=1e-4, atol=1e-6)


def test_signals_of_an_ensemble_are_those_of_its_models(records):
    members = membership.balanced_halves(len(records), 2, 0)
    ensemble = training.train(records, members, CONFIG, workers=1)
    said = tokens.statistics(ensemble, records)
    losses = signals.loss(ensemble, records)
    assert losses.shape == (2, 13) and said.log_prob.shape == (2, said.offsets[-1])
    for m in (0, 1):
        np.testing.assert_array_equal(
            said.log_prob[m], tokens.model_statistics(ensemble.model(m), records.x).log_prob
        )
        np.testing.assert_allclose(losses[m], tokens.model_loss(ensemble.model(m), records.x))
    with pytest.raises(MiaError, match="have no hinge|have no logit_scaled_confidence"):
        signals.logit_scaled_confidence(ensemble, records)


class Counts(torch.nn.Module):
    """A classifier of one's own that takes token ids."""

    def __init__(self, classes):
        super().__init__()
        self.table = torch.nn.EmbeddingBag(V, classes)

    def forward(self, ids):
        return self.table(ids)


def test_a_classifier_of_ones_own_gets_token_ids_as_they_are():
    labels = np.arange(13) % 2
    records = data.from_tokens(sequences(), "labelled", V, labels)
    ensemble = training.train(
        records, np.ones((1, 13), bool), training.TrainConfig(Counts, epochs=2), workers=1
    )
    assert signals.loss(ensemble, records).shape == (1, 13)
    assert signals.model_outputs(ensemble.model(0), records.x).shape == (13, 2)


@pytest.mark.parametrize(
    "architecture, loss, message",
    [
        ("gpt:8,1,2", "cross_entropy", "does not fit loss = 'cross_entropy'"),
        ("mlp:4", "next_token", "does not fit loss = 'next_token'"),
    ],
)
def test_a_language_model_predicts_tokens_and_a_classifier_classes(
    records, architecture, loss, message
):
    with pytest.raises(MiaError, match=message):
        training.train(
            records, np.ones((1, 13), bool), training.TrainConfig(architecture, loss=loss)
        )


@pytest.mark.parametrize(
    "x",
    [
        np.eye(2, dtype=np.float32),
        np.array([[1, V], [1, 2]]),
        np.array([[1, -2], [1, 2]]),
        np.array([[1, -1], [1, 2]]),
        np.array([[1, 2, -1, 3], [1, 2, 3, 4]]),
    ],
)
def test_records_that_a_language_model_cannot_predict_are_refused(x):
    wrong = data.Dataset("wrong", x, np.zeros(2, np.int64), 2, tuple(map(str, range(V))))
    with pytest.raises(MiaError, match="at least two token ids"):
        training.train(wrong, np.ones((1, 2), bool), CONFIG)


def test_whole_numbers_are_token_ids_to_what_embeds_them_and_numbers_to_all_else(records):
    labelled = replace(records, y=np.arange(13) % 2, classes=("no", "yes"))
    config = training.TrainConfig("logistic_regression", epochs=1)
    as_numbers = replace(labelled, x=labelled.x.astype(np.float32))
    losses = [
        signals.loss(training.train(of, np.ones((1, 13), bool), config, workers=1), of)
        for of in (labelled, as_numbers)
    ]
    np.testing.assert_array_equal(*losses)


def test_a_width_that_heads_do_not_divide_is_refused():
    with pytest.raises(MiaError, match="multiple of its heads"):
        models.build("gpt:9,1,2", (5,), V)
