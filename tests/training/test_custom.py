"""Networks of the user's own: what is taken, what is refused, and when one is another model."""

import importlib
import importlib.util
import os
import sys
import textwrap
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from mia_lib import curvature, custom, data, hessian, membership, models, signals, store, training
from mia_lib.errors import MiaError
from mia_lib.signals import boundary, outputs
from mia_lib.training import TrainConfig, loop, recipe
from mia_lib.training.stacking import stackable

RNG = np.random.default_rng(0)
TABLE = data.from_arrays(RNG.normal(size=(40, 5)), RNG.integers(0, 2, 40), "a table")
IMAGES = data.from_arrays(
    RNG.integers(0, 256, (24, 8, 8, 1), np.uint8), np.arange(24) % 3, "images"
)
NUMBERS = count()
HERE = ThreadPoolExecutor(1)  # processes of the pool, which take seconds to start, are tried once

MLP = """
    from torch import nn
    WIDTH = 6
    class Net(nn.Module):
        def __init__(self, shape, classes, hidden=WIDTH):
            super().__init__()
            self.first, self.last = nn.Linear(shape[0], hidden), nn.Linear(hidden, classes)
        def forward(self, x):
            return self.last(squash(self.first(x)))
    def squash(x):
        return x.relu()
    """
CNN = """
    from torch import nn
    def net(shape, classes, filters=3):
        return Net(shape, classes, filters)
    class Net(nn.Module):
        def __init__(self, shape, classes, filters):
            super().__init__()
            self.layer, self.norm = nn.Conv2d(shape[2], filters, 3, padding=1), nn.BatchNorm2d(filters)
            self.last = nn.Linear(filters * shape[0] * shape[1], classes)
        def forward(self, x):
            x = self.norm(self.layer(x.view(x.shape))).tanh()
            return self.last(x.view(len(x), -1))
    """

pytestmark = pytest.mark.usefixtures("isolated_cache")


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module into a folder that Python looks in, and imports it."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(text: str, name: str = ""):
        name = name or f"own_models_{next(NUMBERS)}"
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        return __import__(name)

    return write


def config(architecture, **how):
    return TrainConfig(architecture, **{"epochs": 3, "batch_size": 8, **how})


def ensemble(records, architecture, executor=HERE, **how):
    return training.train(
        records,
        membership.balanced_halves(len(records), 2),
        config(architecture, **how),
        executor=executor,
    )


def test_it_is_held_as_text_that_says_all(module):
    mine = module(MLP)
    for given, text in (
        (mine.Net, ""),
        (partial(mine.Net, hidden=4), "(hidden=4)"),
        (partial(partial(mine.Net, hidden=4), (5,), classes=2), "((5,), classes=2, hidden=4)"),
    ):
        found = TrainConfig(given)
        assert found.architecture == f"{mine.__name__}:Net{text}"
        assert found == TrainConfig(found.architecture) and hash(found) == hash(TrainConfig(given))
        again = custom.from_text(found.architecture)
        assert again.func is mine.Net and custom.to_text(again) == found.architecture
        assert isinstance(models.build(given, (5,), 2, seed=0), mine.Net)
    assert models.canonical_architecture("mlp:8") == "mlp:8"


@pytest.mark.parametrize(
    "text,name,records", [(MLP, "Net", TABLE), (CNN, "net", IMAGES)], ids=["class", "function"]
)
def test_it_has_every_signal(module, text, name, records):
    bank, some = ensemble(records, getattr(module(text), name)), records.take(np.arange(6))
    model = bank.model(1)
    assert_allclose(
        signals.logits(bank, records)[1], signals.model_outputs(model, records.x), atol=1e-6
    )
    assert type(model).__name__ == "Net" and not model.training
    assert np.isfinite(curvature.traces(bank, some)).all()
    assert (boundary.distance(bank, some, 300).distance >= 0).all()
    gradients = np.concatenate(
        list(signals.record_gradients(model, some.x, some.y, dtype="float64"))
    )
    assert_allclose(
        signals.gradient_norm(bank, some)[1], np.linalg.norm(gradients, axis=1), rtol=1e-4
    )
    if records is TABLE:
        matrix = hessian.exact(model, some.x, some.y)
        vector = RNG.normal(size=(1, len(matrix)))
        assert_allclose(hessian.operator(model, some.x, some.y)(vector), vector @ matrix, atol=1e-9)
    with pytest.raises(MiaError, match="has no body"):
        signals.features(model, records.x)


RETURN = "return self.last(squash(self.first(x)))"


def test_logits_of_what_a_network_returns_are_taken_in_training_and_what_has_none_is_refused(
    module,
):
    """As of the network that returns them alone, also where models are stacked."""
    plain, mine, pair = (
        module(MLP),
        *(
            module(MLP.replace(RETURN, f"z = {RETURN[7:]}\n            return {what}"))
            for what in ('{"logits": z}', "z, None")
        ),
    )
    expected, bank = ensemble(TABLE, plain.Net), ensemble(TABLE, mine.Net)
    assert_allclose(signals.loss(bank, TABLE), signals.loss(expected, TABLE), rtol=1e-5)
    for signal in (
        signals.model_outputs,
        lambda network, x: next(signals.record_gradients(network, x, TABLE.y)),
    ):
        with pytest.raises(
            MiaError, match="model = Net returns a tuple: a tensor .* or an object with `logits`"
        ):
            signal(pair.Net((5,), 2).eval(), TABLE.x)


def test_processes_that_are_older_than_the_folder_find_the_module(module, tmp_path, monkeypatch):
    monkeypatch.setenv("MIA_WORKERS", "1")
    ensemble(TABLE, "mlp:3", None).fit()  # starts them
    late, name = tmp_path / "late", f"own_models_{next(NUMBERS)}"
    late.mkdir()
    monkeypatch.syspath_prepend(str(late))
    (late / f"{name}.py").write_text(textwrap.dedent(MLP))
    there = signals.loss(ensemble(TABLE, f"{name}:Net", None), TABLE)
    monkeypatch.setenv("MIA_CACHE", str(tmp_path / "another cache"))
    assert_allclose(there, signals.loss(ensemble(TABLE, f"{name}:Net"), TABLE), rtol=1e-5)


def test_what_can_be_stacked_is_and_what_cannot_is_trained_one_by_one(module):
    mine = module("""
        import torch
        from torch import nn
        from mia_lib.models import Dropout

        class Net(nn.Module):
            def __init__(self, kind):
                super().__init__()
                self.kind, self.first, self.last = kind, nn.Linear(5, 5), nn.Linear(5, 2)
                self.again = {"tied": self.first, "dropout": Dropout(0.5)}.get(kind, nn.Identity())
                if kind == "frozen":
                    self.first.requires_grad_(False)
                if kind == "passing":
                    self.register_buffer("scale", torch.ones(1), persistent=False)

            def forward(self, x):
                x = self.first(x)
                if self.kind == "looks" and x.sum() > 0:
                    x = -x
                return self.last(self.again(x.relu()).relu())
        """)
    for kind in ("plain", "dropout", "tied", "frozen", "passing", "looks"):
        architecture = TrainConfig(partial(mine.Net, kind)).architecture
        assert (
            stackable(architecture, (5,), 2)
            is (kind in ("plain", "dropout"))
            is loop.stacks(architecture, (5,), 2)
        )
        if kind == "looks":
            continue  # depends on its batch, see below
        bank = ensemble(TABLE, partial(mine.Net, kind))
        alone, _ = training.fit(
            TABLE.x[bank.members[1]], TABLE.y[bank.members[1]], 2, bank.config, 1
        )
        assert_allclose(
            signals.logits(bank, TABLE)[1], signals.model_outputs(alone, TABLE.x), atol=1e-5
        )
        if kind == "frozen":
            start = models.build(
                bank.config.architecture, (5,), 2, seed=recipe.seed_of(bank.config, 1)
            )
            assert torch.equal(bank.model(1).first.weight, start.first.weight)
            assert not torch.equal(bank.model(1).last.weight, start.last.weight)


class Here(nn.Linear):
    """Of the tests, for arguments are what is asked about."""


def inside():
    return type(
        "Local", (nn.Linear,), {"__module__": __name__, "__qualname__": "inside.<locals>.Local"}
    )


MAIN = type("Main", (nn.Linear,), {"__module__": "__main__"})
REFUSED = [
    (
        lambda: TrainConfig(lambda: nn.Linear(5, 2)),
        "lambda: give it a name.*my_models.py.*functools.partial",
    ),
    (lambda: TrainConfig(inside()), "made within a function: put it at the top of a module"),
    (lambda: TrainConfig(MAIN), "Main is of the script or notebook.*__main__.*my_models.py"),
    (lambda: TrainConfig(nn.Linear(5, 2)), "Give its class"),
    (lambda: TrainConfig(data.Dataset), "no class of networks: give a subclass of torch.nn.Module"),
    (lambda: TrainConfig(TABLE.take), "a name, a class or a function is needed"),
    (
        lambda: TrainConfig(partial(Here, np.int64(5), 2)),
        r"argument .*5.* of type numpy.int64.*as int\(n\)",
    ),
    (lambda: TrainConfig(partial(Here, 5, float("inf"))), "argument inf"),
    (lambda: TrainConfig(Here), "needs in_features, out_features: bind them.*in_features=..."),
    (lambda: TrainConfig(partial(Here, 5, 2, width=3)), "unexpected keyword argument 'width'"),
    (
        lambda: TrainConfig("no_such_module:Net"),
        "no module no_such_module here. Put its folder on PYTHON",
    ),
    (lambda: TrainConfig("mia_lib.models:Net"), "has no Net"),
    (lambda: TrainConfig("mia_lib.models:Network(print())"), "cannot be read: MODULE:NAME"),
    (
        lambda: ensemble(TABLE, "mlp:3", scaling="0 to 1"),
        "a table is a table, which is fed as it is",
    ),
    (lambda: TrainConfig("mlp", scaling="0-1"), "scaling = '0-1' is not known"),
]


@pytest.mark.parametrize("call,words", REFUSED)
def test_refused_before_anything_is_trained(call, words):
    with pytest.raises(MiaError, match=words):
        call()


NETWORKS = [
    ("return 3", "gives an object of int"),
    (
        "return nn.Linear(shape[9], 2)",
        r"cannot be made for records of shape \(5,\) and 2 classes: IndexError",
    ),
    ("return nn.Flatten()", "has no parameters to train.*nn.ModuleList"),
    ("return nn.LazyLinear(2)", "lazy layers"),
    ("return nn.Linear(5, 2).double()", "weight of type torch.float64"),
    ("return nn.Linear(shape[0] // 9, 2)", r"weight without any entry, of shape \(2, 0\)"),
    ("return nn.Linear(5, 1)", r"shape \(2, 1\).*logits \[2, 2\].*torch.cat"),
    ("return nn.Linear(4, 2)", r"cannot take a batch of shape \(2, 5\).*tables \[B, D\]"),
    ("return Tuple()", "outputs of tuple"),
    (
        "return nn.Sequential(nn.Linear(5, 2), nn.Softmax(1))",
        "gives probabilities: logits are needed",
    ),
    (
        "return nn.Sequential(nn.Linear(5, 2), nn.Dropout(0.5))",
        r"in 1 \(Dropout\).*mia_lib.models.Dropout",
    ),
    ("return Noisy()", "draws random numbers while it is trained, which"),
    ("return Stopped()", "no gradient leads back"),
    ("return SHARED", "share weights: make all layers anew"),
    (
        "made = Tuple(); made.epsilon = nn.Parameter(torch.ones(1)); return made",
        "weights called eps",
    ),
    ("return Hidden()", "state_dict does not hold all of it.*register_buffer"),
    ("return Mean()", "depend on the others of the batch"),
]
PARTS = """
    import torch
    from torch import nn

    class Tuple(nn.Linear):
        def __init__(self):
            super().__init__(5, 2)
            self.scale = torch.rand(2)
        def forward(self, x):
            return super().forward(x), x
    class Noisy(Tuple):
        def forward(self, x):
            return nn.Linear.forward(self, x) + torch.rand(1)
    class Stopped(Tuple):
        def forward(self, x):
            return nn.Linear.forward(self, x).detach()
    class Hidden(Tuple):
        def forward(self, x):
            return nn.Linear.forward(self, x) * self.scale
    class Mean(Tuple):
        def forward(self, x):
            return nn.Linear.forward(self, x - x.mean(0))
    SHARED = nn.Linear(5, 2)
    def net(shape, classes):
        BODY
    """


@pytest.mark.parametrize("body,words", NETWORKS)
def test_a_network_that_cannot_be_trained_here_is_refused(module, body, words):
    mine = module(PARTS.replace("BODY", body))
    with pytest.raises(MiaError, match=words):
        ensemble(TABLE, mine.net)


SPLIT = {
    "my_base": """
    from torch import nn
    class Base(nn.Module):
        def activate(self, x):
            return x.relu()
    """,
    "my_nets": """
    from torch import nn
    from my_base import Base
    import my_layers as parts
    class Net(Base):
        def __init__(self, shape, classes, hidden=6):
            super().__init__()
            self.first, self.last = nn.Linear(shape[0], hidden), nn.Linear(hidden, classes)
        def forward(self, x):
            return self.last(parts.scaled(self.activate(self.first(x))))
    """,
    "my_layers": """
    FACTOR = 2.0
    def scaled(x):
        return FACTOR * x
    """,
}
EDITS = [  # module, what stands there, what is put in its place, whether that is another model
    ("my_nets", "hidden=6", "hidden=7", True),
    ("my_nets", "self.last(parts", "-self.last(parts", True),
    ("my_base", "x.relu()", "x.tanh()", True),
    ("my_layers", "FACTOR * x", "FACTOR * x + 1", True),
    ("my_layers", "FACTOR = 2.0", "FACTOR = 3.0", True),
    ("my_nets", "def forward", "# a comment\n\n    def forward", False),
]


def test_an_edit_is_another_model_and_a_comment_is_not(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path / "0"))

    def code(number, module="my_nets", old="", new="") -> str:
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, text in SPLIT.items():
            assert old in text or name != module
            text = textwrap.dedent(text)
            (folder / f"{name}.py").write_text(
                text.replace(old, new) if old and name == module else text
            )
        return store.code_of(store.MODELS, *(folder / f"{name}.py" for name in SPLIT))

    before, bank = code(0), ensemble(TABLE, "my_nets:Net")
    assert bank.spec(0)["code"] == before and {path.stem for path in bank.modules()} == set(SPLIT)
    for number, edit in enumerate(EDITS, 1):
        assert (code(number, *edit[:3]) != before) is edit[3], edit


@pytest.mark.parametrize("optimizer, momentum", [("adam", 0.0), ("sgd", 0.9)])
def test_a_run_that_was_stopped_goes_on_also_where_a_layer_is_frozen(module, optimizer, momentum):
    mine = module(
        MLP.replace(
            "nn.Linear(hidden, classes)",
            "nn.Linear(hidden, classes)\n            self.first.requires_grad_(False)",
        )
    )
    task = loop.Task(
        TABLE.x,
        TABLE.y,
        2,
        config(mine.Net, optimizer=optimizer, momentum=momentum),
        [np.arange(40)],
        [0],
    )
    whole, stopped, later = (loop.Group(task, torch.device("cpu"), False) for _ in range(3))
    for group in (whole, whole, whole, stopped):
        group.run_epoch()
    later.load(stopped.state())
    for _ in range(2):
        later.run_epoch()
    before, after = (group.outcomes(0.0)[0].arrays for group in (whole, later))
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_the_source_of_an_editable_installation_is_followed(module, monkeypatch):
    mine = module(MLP)
    path, place = mine.__file__, mine.__name__
    monkeypatch.setattr(
        sys, "path", [folder for folder in sys.path if folder != os.path.dirname(path)]
    )
    finder = types.SimpleNamespace(
        find_spec=lambda name, places, target=None: (
            importlib.util.spec_from_file_location(name, path) if name == place else None
        )
    )
    assert custom.sources(f"{place}:Net") == []
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, finder])
    assert [str(one) for one in custom.sources(f"{place}:Net")] == [path]


def test_a_class_edited_while_a_process_runs_is_refused_however_it_is_loaded(module, tmp_path):
    mine = module(MLP)
    bank = ensemble(TABLE, mine.Net)
    bank.fit()
    path = tmp_path / f"{mine.__name__}.py"
    path.write_text(path.read_text().replace("x.relu()", "x.tanh()") + "\n")

    def refused():
        for again in (
            lambda: TrainConfig(mine.Net),
            lambda: signals.loss(bank, TABLE),
            lambda: bank.model(0),
        ):
            with pytest.raises(MiaError, match="edited after this process"):
                again()

    refused()
    importlib.reload(mine)
    refused()


def test_two_threads_may_look_for_modules_at_once(module, monkeypatch):
    mine, plain, asked = module(MLP), importlib.invalidate_caches, []

    def gone():  # what Python's own does when another thread was there before
        asked.append(True)
        if len(asked) == 1:
            raise KeyError("python311.zip")
        plain()

    monkeypatch.setattr(importlib, "invalidate_caches", gone)
    assert custom.sources(f"{mine.__name__}:Net") and len(asked) == 2


def test_a_function_with_two_generators_or_two_lambdas_is_as_its_file_says(module, tmp_path):
    mine = module(
        "from torch import nn\n\ndef net(shape, classes):\n"
        "    wide = sum(side for side in shape) + sum(2 * side for side in shape)\n"
        "    deep = (lambda side: side + 1)(wide) + (lambda side: side + 2)(wide)\n"
        "    return nn.Linear(shape[0], classes)\n"
    )
    assert TrainConfig(mine.net).architecture == f"{mine.__name__}:net"
    path = tmp_path / f"{mine.__name__}.py"
    path.write_text(path.read_text().replace("2 * side", "3 * side"))
    with pytest.raises(MiaError, match="edited after this process"):
        TrainConfig(mine.net)


def test_an_installed_class_enters_by_name_and_version(monkeypatch):
    linear = TrainConfig(partial(nn.Linear, 5, 2))
    assert linear.spec()["architecture"] == "torch.nn.modules.linear:Linear(5, 2)"
    assert linear.spec()["package"] == f"torch {torch.__version__.partition('+')[0]}"
    custom.package.cache_clear()
    monkeypatch.setattr(custom.importlib.metadata, "version", lambda name: "99.0")
    assert linear.spec()["package"] == "torch 99.0"
    custom.package.cache_clear()


def test_a_scaling_holds_in_training_and_in_every_signal():
    """A mean and a spread of one half are [-1, 1] under another name; bytes as they are, what the network itself says."""
    default, scaled = (
        TrainConfig("logistic_regression", scaling=one) for one in ("-1 to 1", ((0.5,), 0.5))
    )
    assert scaled != default and scaled.scaling == ((0.5,), 0.5)
    members = membership.balanced_halves(len(IMAGES), 2)
    usual, same = (
        training.train(IMAGES, members, replace(one, epochs=3), executor=HERE)
        for one in (default, scaled)
    )
    for of in (
        signals.loss,
        signals.gradient_norm,
        curvature.traces,
        lambda *given: curvature.between_kinks(*given)[0],
        lambda *given: boundary.distance(*given, 500).distance,
    ):
        assert_allclose(of(same, IMAGES), of(usual, IMAGES), rtol=1e-3, atol=1e-5)
    some = slice(0, 5)
    assert_allclose(
        *(hessian.exact(bank.model(0), IMAGES.x[some], IMAGES.y[some]) for bank in (usual, same)),
        rtol=1e-3,
        atol=1e-5,
    )
    other = training.train(
        IMAGES, members, replace(default, epochs=3, scaling="0 to 255"), executor=HERE
    )
    network = other.model(0)
    raw = torch.tensor(IMAGES.x).permute(0, 3, 1, 2).float()
    assert_allclose(
        signals.logits(other, IMAGES)[0], network(raw).detach().numpy(), rtol=1e-4, atol=1e-4
    )
    assert (
        outputs.scaling_of(network, IMAGES.x, None)
        == "0 to 255"
        != outputs.scaling_of(network, IMAGES.x, "0 to 1")
    )
