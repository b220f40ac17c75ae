"""Programs of torch.export: what PyTorch writes is read, and what runs code when it is read, or is damaged, is refused."""

import json
import pickle
import re
import zipfile

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from mia_book.pages.cli import app
from mia_lib.audit import files
from mia_lib.errors import MiaError

AUTO = torch.export.Dim.AUTO
NETWORKS = {  # a network, example records, and which of their sizes may be others
    "mlp": (nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 3)), (4, 6), None),
    "dynamic batch": (nn.Linear(6, 3), (4, 6), ({0: AUTO},)),
    "even batch": (nn.Linear(6, 3), (4, 6), ({0: 2 * torch.export.Dim("half", min=2, max=64)},)),
    "cnn": (
        nn.Sequential(
            nn.Conv2d(1, 2, 3),
            nn.BatchNorm2d(2),
            nn.MaxPool2d(2),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        ),
        (4, 1, 8, 8),
        ({0: AUTO, 2: AUTO, 3: AUTO},),
    ),
    "attention": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (4, 2, 8), ({0: AUTO},)),
}
MODEL = "models/model.json"
INPUTS = "data/sample_inputs/model.pt"
WEIGHTS = "data/weights/model_weights_config.json"
RUNS = "__import__('pathlib').Path('ran').touch()"


class Boom:
    """Writes a file when it is unpickled."""

    def __reduce__(self):
        return (open, ("ran", "w"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> dict[str, bytes]:
    """The entries of a program of any number of records."""
    path = tmp_path_factory.mktemp("sound") / "model.pt2"
    torch.export.save(
        torch.export.export(
            nn.Linear(6, 3).eval(), (torch.zeros(4, 6),), dynamic_shapes=({0: AUTO},)
        ),
        path,
    )
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_program_is_read_as_it_was_saved(name, tmp_path):
    network, shape, sizes = NETWORKS[name]
    x = torch.rand(shape)
    torch.export.save(
        torch.export.export(network.eval(), (x,), dynamic_shapes=sizes), tmp_path / "model.pt2"
    )
    torch.testing.assert_close(
        files.model(str(tmp_path / "model.pt2"), trust=True).module()(x), network(x)
    )


def test_a_program_is_code_and_read_with_consent_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("m.npz", x=np.eye(4), y=[0, 1, 0, 1])
    (tmp_path / "model.pt2").write_bytes(b"")
    for consent, said in (
        ([], "is code.*--trust.*save_file.*--state"),
        (["--trust"], "is no program"),
    ):
        words = ["audit", "model.pt2", "--members", "m.npz", "--non-members", "m.npz", *consent]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 2 and re.search(said, " ".join(done.output.split()))


def text(entry: str, /, **planted):
    """Changes texts of the program, by their keys, wherever they are."""

    def walk(part, key=""):
        if isinstance(part, dict):
            return {name: walk(value, name) for name, value in part.items()}
        if isinstance(part, list) and key not in planted:
            return [walk(value, key) for value in part]
        return planted.get(key, part)

    return lambda entries: {entry: json.dumps(walk(json.loads(entries[entry]))).encode()}


def write_by_operator(entries):
    """In the place of the linear layer, an operator that makes a file."""
    whole = json.loads(entries[MODEL])
    inputs = [
        {"name": name, "arg": value, "kind": 1}
        for name, value in (
            ("filename", {"as_string": "ran"}),
            ("shared", {"as_bool": True}),
            ("size", {"as_int": 4}),
        )
    ]
    whole["graph_module"]["graph"]["nodes"][0] |= {
        "target": "torch.ops.aten.from_file.default",
        "inputs": inputs,
    }
    return {MODEL: json.dumps(whole).encode()}


def pickled(value: object, protocol: int = 3):
    return lambda entries: {
        "data/weights/weight_0": pickle.dumps(Boom(), protocol),
        **text(WEIGHTS, use_pickle=value)(entries),
    }


TREE = json.dumps(
    [
        1,
        {
            "type": "collections.defaultdict",
            "children_spec": [],
            "context": {
                "default_factory_module": "planted",
                "default_factory_name": "made",
                "dict_context": [],
            },
        },
    ]
)
MAKERS = {  # of what a program's file is made to hold in the place of, or beside, its own entries
    **{
        f"inputs, protocol {p}": lambda _, p=p: {INPUTS: pickle.dumps(Boom(), p)}
        for p in (0, 1, 2, 3, 5)
    },
    "inputs in capitals": lambda _: {
        "data/sample_inputs/MODEL.pt": pickle.dumps(Boom(), 3),
        INPUTS: None,
    },
    **{f"use_pickle {value!r}": pickled(value) for value in (True, 1, 2, "yes", 0.5)},
    "guards": text(MODEL, guards_code=[f"{RUNS} is None"]),
    "size": text(MODEL, expr_str=RUNS),
    "size by attributes": text(
        MODEL, expr_str=f"Symbol.__new__.__globals__['__builtins__']['eval']({RUNS!r})"
    ),
    "module of a tree": text(MODEL, in_spec=TREE),
    "file": write_by_operator,
    "library": lambda _: {
        "data/aotinductor/model/x.wrapper.so": b"\x7fELF",
        "data/aotinductor/model/x_metadata.json": b"{}",
    },
    "objects": lambda _: {
        "data/constants/opaque_obj_0": pickle.dumps(Boom()),
        "data/constants/model_constants_config.json": (
            b'{"config": {"c": {"path_name": "opaque_obj_0", "is_param": false, "use_pickle": true, "tensor_meta": null}}}'
        ),
    },
    "old weights": lambda _: {"data/weights/model.pt": pickle.dumps(Boom(), 0)},
    "old constants": lambda _: {"data/constants/model.pt": pickle.dumps(Boom(), 3)},
    "old layout": lambda entries: {
        "/version": b"8.8",
        "/serialized_exported_program.json": entries[MODEL],
        "/serialized_constants.pt": b"",
        "/serialized_state_dict.pt": pickle.dumps(Boom(), 3),
        "/serialized_example_inputs.pt": b"",
        "archive_version": None,
    },
    "no JSON": lambda _: {MODEL: b"{"},
    "JSON in bytes": lambda _: {WEIGHTS: b"\xff\xfe\xfd"},
    "deep JSON": lambda _: {WEIGHTS: b"[" * 200_000},
    "another JSON": lambda _: {WEIGHTS: b'{"config": []}'},
    "no program": lambda _: {MODEL: None},
    "no weight": lambda _: {"data/weights/weight_0": None},
    "cut weight": lambda _: {"data/weights/weight_0": bytes(4)},
    "empty weight": lambda _: {"data/weights/weight_0": b""},
    "guards that are none": text(MODEL, guards_code=["1 1"]),
    "a guard without end": text(MODEL, guards_code=["9**9**9**9 > 0"]),
    "a size without end": text(MODEL, expr_str="Pow(Integer(9), Pow(Integer(9), Integer(99)))"),
}


@pytest.mark.parametrize("case", MAKERS)
def test_what_no_export_has_is_refused_with_consent_and_runs_nothing(
    case, sound, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "planted.py").write_text(RUNS)
    with zipfile.ZipFile("bad.pt2", "w") as archive:
        for name, content in (sound | MAKERS[case](sound)).items():
            if content is not None:
                archive.writestr(
                    name.removeprefix("/") if name.startswith("/") else f"model/{name}", content
                )
    with pytest.raises(MiaError, match="bad.pt2 is no program"):
        files.model("bad.pt2", trust=True)
    assert not (tmp_path / "ran").exists() and capfd.readouterr() == ("", "")
