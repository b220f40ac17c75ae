"""What a notebook takes: read from its source, held to what its brackets say, refused by name before anything runs."""

import json
import sys

import numpy as np
import pytest

from mia_book.pages import parameters, runner
from mia_lib import data
from mia_lib.errors import MiaError

ROOT = parameters.find_root()
# what no brackets of the repository allow
ODD = {"int": -(10**9), "float": -1e9, "str": "no-such-name"}


def test_a_declaration_is_read_whole_and_a_preset_stands_over_the_defaults_and_the_given_over_both(
    tiny,
):
    found = {p.name: p for p in parameters.parameters("tiny")}
    assert list(found) == ["steps", "rate", "mode", "noisy", "sizes", "kinds"]
    assert found["steps"] == parameters.Parameter("steps", "int", 3, "1..10", "how many steps")
    assert found["mode"].allowed == "plain | fancy" and found["noisy"].allowed == ""
    assert found["sizes"].type == "list[int]" and found["kinds"].type == "list[str]"
    assert parameters.presets("tiny") == ["published", "quick", "smoke"]
    values = parameters.validate("tiny", {"steps": "7"}, "smoke")
    assert values["steps"] == 7 and values["rate"] == 1e-3 and values["mode"] == "plain"
    (tiny / "notebooks" / "more.py").write_text(
        '# %% tags=["parameters"]\nstart: int = 0  # where it starts [-1..]\n'
    )
    assert parameters.validate("more", {"start": "1000"})["start"] == 1000
    with pytest.raises(MiaError, match="greater than or equal to -1"):
        parameters.validate("more", {"start": -2})


@pytest.mark.parametrize(
    "name, text, value",
    [
        ("steps", "10", 10),
        ("rate", "1", 1.0),
        ("mode", "fancy", "fancy"),
        ("noisy", "Yes", True),
        ("sizes", "3,40", [3, 40]),
        ("sizes", "[3, 40]", [3, 40]),
        ("sizes", "", []),
        ("kinds", "a;b", ["a", "b"]),
        ("kinds", "[a, b]", ["a", "b"]),
    ],
)
def test_text_is_read_according_to_the_type(tiny, name, text, value):
    got = parameters.validate("tiny", {name: text})[name]
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    "given, says",
    [
        ({"stepz": 1}, "Did you mean 'steps'"),
        ({"steps": 2.5}, "valid integer"),
        ({"steps": True}, "neither true nor false"),
        ({"steps": "11"}, "equal to 10. It means: how many steps [1..10]."),
        ({"rate": "nan"}, "finite number"),
        ({"mode": "fancier"}, "Did you mean 'fancy'"),
        ({"noisy": "perhaps"}, "valid boolean"),
        ({"sizes": "3,x"}, "sizes = 'x'"),
        ({"sizes": 3}, "valid list"),
        ({"kinds": "c"}, "kinds"),
        ({"mode": 3}, "valid string"),
    ],
)
def test_bad_values_are_refused_by_name(tiny, given, says):
    with pytest.raises(MiaError, match=next(iter(given))) as error:
        parameters.validate("tiny", given)
    assert says in str(error.value)


@pytest.mark.parametrize(
    "name, preset, text, says",
    [
        ("tinny", "published", "", "Did you mean 'tiny'"),
        ("tiny", "smokey", "", "Did you mean 'smoke'"),
        ("tiny", "smoke", "steps: 99\n", "preset smoke: steps = 99"),
        ("tiny", "smoke", "stepz: 1\n", "preset smoke: parameter"),
        ("tiny", "smoke", "[1", "smoke.yaml is not YAML"),
        ("tiny", "smoke", "- 1\n", "one `name: value`"),
        ("tiny", "smoke", "# steps: 1\n", "holds nothing.*the published parameters need no file"),
    ],
)
def test_a_bad_notebook_or_preset_is_refused(tiny, name, preset, text, says):
    (tiny / "mia_book" / "chapters" / "tiny" / "presets" / "smoke.yaml").write_text(text)
    with pytest.raises(MiaError, match=says):
        parameters.validate(name, {}, preset)


@pytest.mark.parametrize(
    "line, says",
    [
        ("a = 1", "is no parameter"),
        ("a: complex = 1", "has type 'complex'"),
        ("a: int = f()", "plain value"),
        ("a: int =", "not Python"),
        ("a: int = 1  # how many [a..b]", "brackets of a, .a..b., cannot be read.*low..high"),
        (
            "a: list[int] = [1]  # how many [as many as nope]",
            "brackets of a, .*nope.*as many as NAME, another parameter",
        ),
        ("a: int = 1  # how many [1..2..3]", "brackets of a"),
        ("a: int = 1  # how many [few]", "'few' says nothing"),
        ("a: str = '1'  # which [1..3]", "'1..3' says nothing"),
        ("a: str = 'b'  # which [not empty]", "it is no list"),
    ],
)
def test_a_bad_declaration_is_refused(tiny, line, says):
    (tiny / "notebooks" / "bad.py").write_text(f'# %% tags=["parameters"]\n{line}\n')
    with pytest.raises(MiaError, match=says):
        parameters.parameters("bad")


@pytest.mark.parametrize("name", parameters.notebooks(ROOT))
def test_a_chapter_is_read_as_jupytext_reads_it_and_what_its_brackets_do_not_allow_is_refused_by_name(
    name,
):
    text = (ROOT / "notebooks" / f"{name}.py").read_text()
    cells = [
        cell
        for cell in parameters.read(ROOT / "notebooks" / f"{name}.py").cells
        if cell.cell_type == "code"
    ]
    assert parameters.code_cells(text) == [cell.source for cell in cells]
    [declared] = parameters.code_cells(text, "parameters")
    assert [declared] == [
        cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])
    ]
    known = parameters.parameters(name, root=ROOT)
    assert all(p.meaning for p in known), "each says what it means"
    for preset in parameters.presets(name, ROOT):
        parameters.validate(name, {}, preset, ROOT)
    for p in (
        p for p in known if any(kind in p.allowed for kind in ("..", "|", *parameters.KINDS))
    ):
        value = ODD[p.type.removeprefix("list[").rstrip("]")]
        with pytest.raises(MiaError, match=p.name):
            parameters.validate(name, {p.name: [value] if p.is_list else value}, root=ROOT)


RULES = """# %% tags=["parameters"]
counts: list[int] = [2, 4]  # of references [2..; even; ascending; not empty]
pair: list[int] = [1, 2]  # two of them [0..9; 2 items; distinct]
names: list[str] = ["a", "b"]  # of cases
sets: list[str] = ["adult"]  # beside each other [data set]
each: list[int] = [3, 4]  # one a case [1..; as many as names]
data: str = "own"  # where records come from [own | data set]
nets: list[str] = ["mlp:8"]  # that are trained [architecture; not empty]
change: str = "none"  # of images [augmentation]
body: str = "mlp:4"  # that gives features [architecture by name]
"""


@pytest.fixture
def rules(tiny):
    (tiny / "notebooks" / "rules.py").write_text(RULES)
    presets = tiny / "mia_book" / "chapters" / "rules" / "presets"
    presets.mkdir(parents=True)
    (presets / "small.yaml").write_text("counts: [2]\nnets: [logistic_regression]\n")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"counts": "2,4,6"},
        {"pair": "9,0"},
        {"names": "a", "each": "7"},
        {"data": "german_credit"},
        {"nets": "mlp:4,4;tanh_cnn:8,8,8"},
        {"nets": "mlp:4,4;"},
        {"change": "flip_crop:2"},
    ],
)
def test_rules_between_brackets_let_pass_what_fits(rules, given):
    values = parameters.validate("rules", given)
    assert all(str(parameters.as_typed(values[name])) == text for name, text in given.items())


@pytest.mark.parametrize(
    "given, says",
    [
        (
            {"counts": "2,3"},
            "counts = '3': Input should be a multiple of 2. It means: of references [2..; even; ascending",
        ),
        ({"counts": "4,2"}, "counts = '4,2': its items must be ascending"),
        ({"counts": ""}, "at least 1 item"),
        ({"pair": "1"}, "at least 2 items"),
        ({"pair": "1,1"}, "its items must be distinct"),
        ({"each": "3"}, "It means: one a case [1..; as many as names]"),
        (
            {"data": "german"},
            "data = 'german': data set = 'german' is not known. Did you mean 'german_credit'",
        ),
        (
            {"sets": "fashion_mnist,fashion_mnist_20k"},
            "tables call both fashion_mnist and fashion_mnist_20k 'FashionMNIST'",
        ),
        ({"nets": "mpl"}, "architecture = 'mpl' is not known. Did you mean 'mlp'"),
        (
            {"nets": "tanh_cnn:8,8,8"},
            "by semicolons, 'a,b;c' or 'a,b;', where one has a comma itself",
        ),
        ({"change": "flip_crop:far"}, "must be a number"),
    ],
)
def test_rules_between_brackets_refuse_what_does_not(rules, given, says):
    with pytest.raises(MiaError) as error:
        parameters.validate("rules", given)
    assert says in str(error.value)


def test_outside_a_book_it_says_so(tmp_path, monkeypatch):
    with pytest.raises(MiaError, match="inside a clone"):
        parameters.find_root(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert (parameters.find_root() / "mia_lib").is_dir(), (
        "an installed checkout is found from anywhere"
    )


NET = (
    "from torch import nn\n\ndef Net(shape, classes, hidden=4):\n"
    "    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0], hidden), nn.Linear(hidden, classes))\n"
)


@pytest.fixture
def mine(rules, tmp_path, monkeypatch):
    """A folder of somebody's own: records, and a module with a network."""
    (folder := tmp_path / "elsewhere").mkdir()
    np.savez(folder / "mine.npz", x=np.eye(6), y=[0, 1] * 3)
    (folder / "further").mkdir()
    np.savez(folder / "further" / "mine.npz", x=np.eye(6) + 1, y=[0, 1] * 3)
    (folder / "own_net_of_tests.py").write_text(NET)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.path", list(sys.path))
    return folder


def test_records_and_networks_of_the_readers_own_are_taken_where_the_brackets_have_their_kind(mine):
    root, net = mine.parent, "own_net_of_tests:Net"
    values = parameters.validate(
        "rules", {"data": "mine.npz", "nets": f"{net}(hidden=2);mlp:4"}, root=root
    )
    assert values["data"] == str(mine / "mine.npz")
    assert values["nets"] == [f"{net}(hidden=2)", "mlp:4"]
    assert parameters.own(values) == {"records": [values["data"]], "networks": [f"{net}(hidden=2)"]}
    assert data.load(values["data"]).x.shape == (6, 6) and data.title(values["data"]) == "mine"
    before = runner.key("rules", values, root)
    (mine / "own_net_of_tests.py").write_text(
        NET.replace("nn.Flatten(), ", "nn.Flatten(), nn.ReLU(), ")
    )
    edited = runner.key("rules", values, root)
    np.savez(mine / "mine.npz", x=np.eye(6) + 1, y=[0, 1] * 3)
    assert len({before, edited, runner.key("rules", values, root)}) == 3, "an edit is another run"
    assert mine in runner.beside(root, values)
    assert mine not in runner.beside(root, {"nets": ["mlp:4"]})


@pytest.mark.parametrize(
    "written",
    ["own_net_of_tests:Net", ["mlp:4", "own_net_of_tests:Net"], "mlp:4;own_net_of_tests:Net"],
)
def test_a_preset_names_no_code(mine, monkeypatch, written):
    preset = mine.parent / "mia_book" / "chapters" / "rules" / "presets" / "small.yaml"
    preset.write_text(json.dumps({"nets": written}))
    imported: list[str] = []
    monkeypatch.setattr(parameters.custom, "from_text", imported.append)
    with pytest.raises(MiaError, match="preset small: 'own_net.*is code"):
        parameters.validate("rules", {}, "small", mine.parent)
    assert not imported


@pytest.mark.parametrize(
    "given, says",
    [
        ({"data": "none.npz"}, "there is no such file"),
        ({"nets": "no_such_module:Net"}, "there is no module no_such_module"),
        (
            {"nets": "own_net_of_tests:Net(hidden='<b>')"},
            "(hidden='<b>')\": < is markup in the tables",
        ),
        (
            {"sets": "mine.npz,further/mine.npz"},
            "mine.npz 'mine', and their results would be counted together",
        ),
        ({"nets": "own_net_of_tests:nn"}, "has no nn (any more) that makes a network"),
        (
            {"body": "own_net_of_tests:Net"},
            "own_net_of_tests:Net is of your own: this notebook takes",
        ),
        (
            {"dataset": "mine.npz"},
            "takes records (FILE.npz) or networks (MODULE:NAME) of your own by sets, data, nets",
        ),
    ],
)
def test_what_is_wrong_with_the_readers_own_is_said_before_anything_runs(mine, given, says):
    with pytest.raises(MiaError) as error:
        parameters.validate("rules", given, root=mine.parent)
    assert says in str(error.value)


def test_a_chapter_that_takes_none_says_why():
    with pytest.raises(MiaError, match="takes none, for it attacks models that are published"):
        parameters.validate("compare", {"dataset": "mine.npz"}, root=ROOT)
    takes = {
        name: {p.name for p in parameters.parameters(name, root=ROOT) if p.takes_own}
        for name in parameters.notebooks(ROOT)
    }
    assert [name for name, own in takes.items() if not own] == ["banks", "compare"]
    assert {"dataset", "architecture"} <= takes["bayes"]
