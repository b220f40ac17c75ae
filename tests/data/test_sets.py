"""Data sets: embedded ones as published, others from small files in the publishers' formats; refusals."""

import hashlib
import io
import json
import os
import sys
import tarfile
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from PIL import Image

from mia_lib import data
from mia_lib.data import readers, sets
from mia_lib.errors import MiaError

GIVEN = os.environ.get("MIA_DATA", "")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty data folder."""
    monkeypatch.setenv("MIA_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def place(folder, monkeypatch):
    """Write a publisher's file and let its hash be the expected one."""

    def write(name: str, file: str, content: bytes) -> None:
        (folder / name).mkdir(exist_ok=True)
        (folder / name / file).write_bytes(content)
        monkeypatch.setitem(readers.SHA256, file, hashlib.sha256(content).hexdigest())
        # was not known before
        monkeypatch.setitem(sets._KNOWN, name, sets._KNOWN[name]._replace(made=""))

    return write


SMALL = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 1), np.uint8)
SMALL_HASH = hashlib.sha256(SMALL).hexdigest()


def test_embedded_images_are_the_first_training_images():
    records = data.load("fashion_mnist_20k")
    assert records.x.shape == (20000, 28, 28, 1)
    assert records.x.dtype == np.uint8
    assert records.y.dtype == np.int64
    assert (len(records), records.n_train, records.shape, records.is_image) == (
        20000,
        20000,
        (28, 28, 1),
        True,
    )
    assert records.y[:5].tolist() == [9, 0, 0, 3, 0] and records.classes[9] == "Ankle boot"
    assert data.load("fashion_mnist_20k") is records  # read once
    with pytest.raises(ValueError, match="read-only"):
        records.x[0, 0] = 1


def test_a_reader_that_makes_other_records_of_a_genuine_file_is_refused_and_so_is_another_file(
    tmp_path, monkeypatch
):
    assert data.load("german_credit").fingerprint == sets.content("german_credit")
    sets._embedded.cache_clear()
    scaled = readers.scaled
    monkeypatch.setattr(readers, "scaled", lambda table: scaled(table) * np.float32(1.0001))
    with pytest.raises(
        MiaError,
        match=f"german_credit.csv gives records of .*are of {sets.content('german_credit')}",
    ):
        data.load("german_credit")
    (tmp_path / "german_credit.csv").write_text("a,b\n1,0\n")
    monkeypatch.setattr(sets, "EMBEDDED", tmp_path)
    with pytest.raises(
        MiaError,
        match="german_credit.csv is not the genuine file: its hash is sha256 .*, expected is",
    ):
        data.load("german_credit")


@pytest.mark.skipif(not GIVEN, reason="needs MIA_DATA, where the publishers' files lie")
@pytest.mark.parametrize("name", ["adult", "hepatitis", "location30"])
def test_publishers_files_make_the_records_that_are_pinned(name, monkeypatch):
    monkeypatch.setenv("MIA_DATA", GIVEN)
    if sets._find(name) is None or not sets._find(name).is_dir():
        pytest.skip(f"{name} is not in MIA_DATA as its publisher's files")
    assert data.load(name).fingerprint == sets.content(name)


def toy(n=10):
    return data.Dataset(
        "toy",
        np.arange(3.0 * n, dtype=np.float32).reshape(n, 3),
        np.arange(n) % 4,
        n - 2,
        tuple("abcd"),
    )


def test_records_are_taken_by_class_in_the_order_given_by_index_or_mask_and_known_by_their_content_alone():
    two = toy().of_classes((3, 1))
    assert two.y.tolist() == [1, 0, 1, 0, 1] and two.classes == ("d", "b")
    assert two.x[:, 0].tolist() == [3.0, 9.0, 15.0, 21.0, 27.0] and two.n_train == 4
    assert (
        toy().take([0, 3, 9]).fingerprint
        == toy().take(np.isin(np.arange(10), [0, 3, 9])).fingerprint
    )
    assert [toy().take(rows).n_train for rows in ([0, 3, 9], [9, 0], [2])] == [2, 0, 1]
    again = data.Dataset("other name", toy().x.copy(), toy().y.copy(), 3, tuple("abcd"))
    assert again.fingerprint == toy().fingerprint != toy().take(np.arange(10)[::-1]).fingerprint
    assert (
        data.Dataset("t", toy().x.astype(float), toy().y, 8, tuple("abcd")).fingerprint
        != toy().fingerprint
    )


def test_mirrored_images_have_left_and_right_exchanged_and_nothing_else():
    x = np.random.default_rng(0).integers(0, 256, (6, 3, 5, 2), np.uint8)
    images = data.Dataset("pictures", x, np.arange(6) % 3, 4, tuple("abc"))
    there = images.mirrored()
    assert (there.x == x[:, :, ::-1]).all()
    assert there.x.flags.c_contiguous
    assert there.x.dtype == np.uint8
    assert (there.y == images.y).all()
    assert (there.n_train, there.classes, there.name) == (4, images.classes, "pictures")
    assert there.fingerprint != images.fingerprint == there.mirrored().fingerprint


def test_a_prepared_file_goes_before_everything_else_if_its_pixels_are_the_genuine_ones(
    folder, monkeypatch
):
    np.savez(folder / "mnist.npz", x=SMALL, y=(np.arange(6) % 3).astype(np.uint8), n_train=4)
    with pytest.raises(
        MiaError, match=f"mnist.npz.*{SMALL_HASH}.*{sets._KNOWN['mnist'].pixels}.*Delete or rename"
    ):
        data.load("mnist")
    monkeypatch.setitem(sets._KNOWN, "mnist", sets._KNOWN["mnist"]._replace(pixels=SMALL_HASH))
    records = data.load("mnist")
    assert np.array_equal(records.x, SMALL)
    assert records.n_train == 4
    assert records.classes == tuple("0123456789")
    assert data.get("mnist") == folder / "mnist.npz"


@pytest.mark.parametrize(
    ("name", "arrays", "options", "words"),
    [
        ("purchase100", None, {}, "purchase100.npz cannot be read"),
        (
            "texas100",
            {"x": np.zeros((4, 2)), "y": [1, 2, 3, 100], "n_train": 4},
            {},
            "count from 0",
        ),
        (
            "acs_travel_time",
            {"x": np.zeros((5, 3)), "y": [0, 2, 1, 0, 2], "n_train": 5},
            {},
            "5 records, 5 labels, 2 classes",
        ),
        (
            "cinic10",
            {"x": np.zeros((4, 8, 8, 3), np.uint8), "y": np.zeros(4), "n_train": 3},
            {"image_size": 16},
            "image_size cannot be chosen",
        ),
    ],
)
def test_files_that_are_no_data_set_are_refused(folder, name, arrays, options, words):
    if arrays:
        np.savez(folder / f"{name}.npz", **arrays)
    else:
        (folder / f"{name}.npz").write_bytes(b"PK\3\4 cut off")
    with pytest.raises(MiaError, match=words):
        data.load(name, **options)


ADULT = b"""39, State-gov, 77516, Bachelors, 13, Never-married, Adm, Own, White, Male, 10, 0, 40, A, <=50K
50, ?, 83311, Bachelors, 13, Married, Exec, Husband, White, Female, 0, 5, 20, B, >50K

"""
ADULT_TEST = b"""|1x3 Cross validator
61, Private, 226802, 11th, 7, Married, Exec, Husband, Black, Male, 0, 0, 30, A, >50K.

"""


def test_adult_by_hand(place):
    place("adult", "adult.data", ADULT)
    place("adult", "adult.test", ADULT_TEST)
    records = data.load("adult")
    assert records.n_train == 2
    assert records.y.tolist() == [0, 1, 1]
    assert records.classes == ("<=50K", ">50K")
    age = np.array([39, 50, 61])
    assert_allclose(records.x[:, 0], (age - 50) / np.sqrt(242 / 3), rtol=1e-5)
    assert records.x.shape == (3, 6 + 3 + 2 + 2 + 2 + 2 + 2 + 2 + 2)
    # "?", Private, State-gov
    assert records.x[:, 6:9].tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]


def test_hepatitis_german_credit_and_location30_by_hand(place):
    rows = [
        "2,30,2,1" + ",2" * 10 + ",1.00,85,18,4.0,?,1",
        "1,60,1,?" + ",1" * 10 + ",0.50,?,36,2.0,80,2",
        "2,45,1,2" + ",1" * 10 + ",0.50,170,9,4.0,40,1",
    ]
    place("hepatitis", "hepatitis.data", "\n".join(rows * 5).encode() + b"\n")
    records = data.load("hepatitis")
    assert records.x.shape == (15, 19)
    assert records.n_train == 12
    assert records.y[:3].tolist() == [1, 0, 1]
    # age over 60; sex 0 or 1; steroid: the mean of 0 and 1; alkali: that of 85 and 170; protime: 60 of 80
    expected = [[0.5, 1, 0, 0.5, 0.75], [1, 0, 0.5, 0.75, 1], [0.75, 0, 1, 1, 0.5]]
    assert_allclose(records.x[:3, [0, 1, 2, 14, 17]], expected, rtol=1e-6)
    place("german_credit", "german.data", b"A11 6 A34 A43 1169 1\nA12 48 A32 A410 5951 2\n" * 5)
    records = data.load("german_credit")
    assert_allclose(records.x[:2], [[0, 6 / 48, 1, 0.3, 1169 / 5951], [1, 1, 0.5, 1, 1]], rtol=1e-6)
    assert records.y[:2].tolist() == [0, 1] and records.n_train == 8
    bits, out = np.random.default_rng(0).integers(0, 2, (5, 11)).astype(np.uint8), io.BytesIO()
    np.savez(out, features_packed=np.packbits(bits, axis=1), n_features=11, labels=np.arange(5))
    place("location30", "location30.npz", out.getvalue())
    assert np.array_equal(data.load("location30").x, bits) and data.load("location30").n_train == 5


@pytest.mark.parametrize(("name", "ending"), [("cinic10", "png"), ("imagenet", "JPEG")])
def test_image_folders(folder, name, ending):
    splits = sets._KNOWN[name].raw
    for split in splits:
        for label, cls in enumerate(("ape", "bee")):
            (folder / name / split / cls).mkdir(parents=True)
            for k in range(3):
                picture = np.full((20, 40, 3), 100 * label + k, np.uint8)
                picture[:, :10] = picture[:, 30:] = 255  # beside the centre, so cut off
                mode = Image.fromarray(picture).convert("L" if k == 2 else "RGB")
                mode.save(folder / name / split / cls / f"{k}.{ending}", quality=95)
    records = data.load(name, image_size=10)
    assert records.x.shape == (6 * len(splits), 10, 10, 3)
    assert records.n_train == 6
    assert records.classes == ("ape", "bee")
    middle = records.x[:6, 3:7, 3:7].astype(int)
    # JPEG rounds
    assert np.abs(middle - np.array([0, 1, 2, 100, 101, 102])[:, None, None, None]).max() <= 6
    assert records.y[:6].tolist() == [0, 0, 0, 1, 1, 1] and data.get(name) == folder / name
    assert len(data.load(name, image_size=10, per_class=1)) == 2 * len(splits)
    with pytest.raises(MiaError, match="image_size = 2 is out of range"):
        data.load(name, image_size=2)
    for file in (folder / name / splits[0]).rglob(f"*.{ending}"):
        file.unlink()
    with pytest.raises(MiaError, match="holds no images"):
        data.load(name)


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("purchase100", {"dataset_purchase": b"3,0,1,1\n1,1,0,0\n"}),
        ("location30", {"bangkok": b'"3",0,1,1\n"1",1,0,0\n'}),
        (
            "texas100",
            {
                "texas/100/feats": b"0,1,1\n1,0,0\n",
                "texas/100/labels": b"3\n1\n",
                "texas/10/labels": b"9\n9\n",
            },
        ),
    ],
)
def test_archives_of_shokri_et_al(folder, tmp_path, monkeypatch, name, files):
    with tarfile.open(tmp_path / "made.tgz", "w:gz") as archive:
        for file, content in files.items():
            (tmp_path / "made").write_bytes(content)
            archive.add(tmp_path / "made", file)
    content = (tmp_path / "made.tgz").read_bytes()

    def retrieve(url, known_hash, fname, path, progressbar):
        assert url.endswith(f"/datasets/raw/master/{fname}")
        (Path(path) / fname).write_bytes(content)
        return str(Path(path) / fname)

    monkeypatch.setattr("pooch.retrieve", retrieve)
    with pytest.raises(MiaError, match="git blob"):
        data.load(name)
    assert not list(folder.iterdir())
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    known = sets._KNOWN[name]
    fetch = partial(known.fetch, blob=blob)
    monkeypatch.setitem(sets._KNOWN, name, known._replace(fetch=fetch))
    records = data.load(name)
    assert records.x.tolist() == [[0, 1, 1], [1, 0, 0]] and records.x.dtype == np.float32
    assert records.y.tolist() == [2, 0] and records.n_train == 2
    assert [path.name for path in folder.iterdir()] == [f"{name}.npz"]


def test_image_sets_come_through_torchvision(folder, monkeypatch):
    class MNIST:
        classes = [f"{k} - digit" for k in range(10)]

        def __init__(self, root, train, download):
            rows = slice(0, 4) if train else slice(4, None)
            self.data, self.targets = SMALL[rows, ..., 0], (np.arange(6) % 3)[rows].tolist()

    torchvision = SimpleNamespace(datasets=SimpleNamespace(MNIST=MNIST))
    monkeypatch.setattr("mia_lib.data.readers.import_torchvision", lambda: torchvision)
    with pytest.raises(MiaError, match="the download of mnist"):
        data.load("mnist")
    monkeypatch.setitem(sets._KNOWN, "mnist", sets._KNOWN["mnist"]._replace(pixels=SMALL_HASH))
    records = data.load("mnist")
    assert np.array_equal(records.x, SMALL)
    assert records.y.tolist() == [0, 1, 2, 0, 1, 2]
    assert records.n_train == 4
    assert records.classes[0] == "0 - digit" and data.get("mnist") == folder / "mnist.npz"


def test_tables_come_from_uci_with_their_sha256_and_the_toy_is_standard_normal_and_seeded(
    folder, monkeypatch
):
    asked = []
    monkeypatch.setattr(
        "pooch.retrieve", lambda url, known_hash, fname, path: asked.append((url[-16:], known_hash))
    )
    assert data.get("adult") == folder / "adult"
    assert asked == [
        (f"adult/{file}", readers.SHA256[file]) for file in ("adult.data", "adult.test")
    ]
    records, again, other = (
        data.load("gaussian", records=400, dimension=50, seed=seed) for seed in (3, 3, 0)
    )
    # 20,000 draws: 4 standard errors
    assert abs(records.x.mean()) < 0.03 and abs(records.x.std() - 1) < 0.03
    assert again.fingerprint == records.fingerprint != other.fingerprint
    assert records.x.dtype == np.float32


TASK = {
    "task": {
        "task_id": "361070",
        "task_type_id": "1",
        "input": [
            {"name": "estimation_procedure", "estimation_procedure": {"id": "7"}},
            {
                "name": "source_data",
                "data_set": {"data_set_id": "44157", "target_feature": "label"},
            },
        ],
    }
}


@pytest.fixture
def openml(monkeypatch):
    """OpenML with one data set; what it was asked for."""
    asked = []

    def retrieve(url, known_hash, fname, path):
        asked.append(url)
        (Path(path) / fname).write_text(json.dumps(TASK))
        return str(Path(path) / fname)

    def fetch_openml(data_id, target_column, **_):
        asked.append((data_id, target_column))
        frame = pd.DataFrame(
            {
                "age": [20.0, 40.0, np.nan, 60.0, 9.0],
                "colour": pd.Categorical(["b", "a", None, "b", "a"]),
                "flag": [True, False, True, True, False],
                "count": [1, 2, 3, 2, 9],
                "nothing": [np.nan] * 5,
            }
        )
        return SimpleNamespace(
            data=frame, target=pd.Series(["1", "0", "1", "0", None], dtype="category", name="label")
        )

    monkeypatch.setattr("pooch.retrieve", retrieve)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    return asked


def test_an_openml_task_leads_to_its_data_set_or_is_refused(folder, openml, monkeypatch):
    records = data.load("openml_361070")
    assert openml == ["https://www.openml.org/api/v1/json/task/361070", (44157, "label")]
    assert records.y.tolist() == [1, 0, 1, 0]
    assert records.classes == ("0", "1")
    assert records.n_train == 4
    # the missing age is the mean of the others
    age, count = np.array([20, 40, 40, 60]), np.array([1, 2, 3, 2])
    numbers = [(age - 40) / np.sqrt(200), (count - 2) / np.sqrt(0.5)]
    assert_allclose(records.x[:, :2], np.transpose(numbers), rtol=1e-5)
    # colour a, b; missing is neither
    assert records.x[:, 2:4].tolist() == [[0, 1], [1, 0], [0, 0], [0, 1]]
    # flag
    assert records.x[:, 4:].tolist() == [[0, 1], [1, 0], [0, 1], [0, 1]]
    assert records.x.dtype == np.float32
    # from the file
    assert data.load("openml_361070").fingerprint == records.fingerprint and len(openml) == 2
    monkeypatch.setitem(TASK["task"], "task_type_id", "2")
    with pytest.raises(MiaError, match="no classification task .*openml_361057.npz"):
        data.load("openml_361057")
    assert [path.name for path in folder.iterdir()] == ["openml_361070.npz"]


class Folktables(ModuleType):
    """folktables with the persons of a state: ages 30 to 35, codes, more than 50 occupations, one value of ST."""

    class ACSDataSource:
        def __init__(self, survey_year, horizon, survey, root_dir):
            assert (survey_year, horizon, survey) == ("2018", "1-Year", "person")
            assert Path(root_dir).is_dir()

        def get_data(self, states, download):
            assert states == ["NY"] and download
            rows = np.arange(120)
            return pd.DataFrame(
                dict(AGEP=30 + rows % 6, COW=1 + rows % 3, OCCP=10 * rows, ST=36, PINCP=1000 * rows)
            )

    ACSIncome = SimpleNamespace(
        features=["AGEP", "COW", "OCCP", "ST"],
        df_to_numpy=lambda frame: (
            frame[["AGEP", "COW", "OCCP", "ST"]].to_numpy(float),
            (frame["PINCP"] > 50_000).to_numpy(),
            np.zeros(len(frame)),
        ),
    )


def test_acs_tables_come_through_folktables(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "folktables", Folktables("folktables"))
    records = data.load("acs_income")
    # age, occupation; three codes; ST left out
    assert records.x.shape == (120, 2 + 3) and records.n_train == 120
    assert records.y.tolist() == [0] * 51 + [1] * 69
    assert records.classes[1] == "above 50,000 dollars"
    assert_allclose(records.x[:6, 0], (np.arange(6) - 2.5) / np.sqrt(35 / 12), rtol=1e-5)
    assert_allclose(np.diff(records.x[:, 1]), 1 / np.sqrt((120**2 - 1) / 12), rtol=1e-4)
    assert np.array_equal(records.x[:, 2:], np.eye(3)[np.arange(120) % 3])
    assert (folder / "acs_income.npz").exists()


def test_no_network_says_how_to_get_it_and_what_works(folder, monkeypatch):
    def offline(*args, **options):
        raise ConnectionError("no route")

    monkeypatch.setattr("pooch.retrieve", offline)
    with pytest.raises(MiaError, match="no route.*`mia data get openml_361067` fetches it"):
        data.load("openml_361067")
    with pytest.raises(MiaError, match="mia data get purchase100") as error:
        data.load("purchase100")
    assert str(folder) in str(error.value)
    assert "fashion_mnist_20k, german_credit" in str(error.value)
    with pytest.raises(MiaError, match=r"cinic10/\{train,valid,test\}/CLASS/"):
        data.load("cinic10")
    monkeypatch.setattr(sets, "EMBEDDED", folder)
    with pytest.raises(MiaError, match="german_credit.npz"):
        data.get("german_credit")


def test_what_lies_under_a_name_is_told_apart_where_nothing_pins_it(folder):
    assert {
        sets.source_digest(name)
        for name in ("imagenet", "texas100", "fashion_mnist_20k", "gaussian")
    } == {""}
    for part in ("val/a", "train/a"):
        (folder / "imagenet" / part).mkdir(parents=True)
    before = sets.source_digest("imagenet")
    (folder / "imagenet" / "train" / "a" / "1.png").write_bytes(b"1")
    assert len({"", before, sets.source_digest("imagenet")}) == 3


def test_describe_lists_every_set_without_reading_any(folder, monkeypatch):
    (folder / "mnist.npz").write_bytes(b"not even an archive")
    monkeypatch.setattr(np, "load", None)
    table = data.describe().set_index("name")
    assert table.index.tolist() == data.names()
    assert table["where"][["fashion_mnist_20k", "gaussian", "mnist", "cifar10"]].tolist() == [
        "embedded",
        "made on demand",
        str(folder / "mnist.npz"),
        "not here",
    ]
    assert table.loc["cifar10", "how to get"] == "mia data get cifar10"
    assert table.loc["imagenet", "classes"] == 1000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: toy().of_classes((1,)), "at least two"),
        (lambda: toy().of_classes((1, 1)), "different"),
        (lambda: toy().of_classes((0, 4)), "out of range"),
        (
            lambda: toy().mirrored(),
            r"toy has table records of shape \(3,\), which have no mirror image: use one view, or images",
        ),
        (lambda: data.load("fashion_minst"), "Did you mean 'fashion_mnist'"),
        (lambda: data.get("gaussian"), "is not known"),
        (lambda: data.load("german_credit", seed=1), "takes no options; given: seed = 1"),
        (lambda: data.load("gaussian", dimensions=3), "Did you mean 'dimension'"),
        (lambda: data.load("gaussian", records="many"), "whole number"),
        (lambda: data.load("gaussian", records=0), "records = 0 is out of range"),
    ],
)
def test_impossible_classes_views_names_and_options_are_refused(call, message):
    with pytest.raises(MiaError, match=message):
        call()
