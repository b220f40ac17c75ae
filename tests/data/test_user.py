"""Records of the user's own: what is read is what was given, and what cannot be used is refused with the way out."""

import os
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from mia_lib import data
from mia_lib.errors import MiaError

RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (6, 8, 7, 3), np.uint8)
ROWS = RNG.normal(size=(6, 4))
Y = [0, 1, 2, 0, 1, 2]


def test_arrays_come_back_as_they_were_given_closed_and_copied():
    images = data.from_arrays(BYTES, Y, "mine", ("a", "b", "c"), 4)
    assert images.x.tobytes() == BYTES.tobytes() and images.y.tolist() == Y and images.n_train == 4
    assert images.y.dtype == np.int64
    assert images.classes == ("a", "b", "c")
    assert images.name == "mine"
    assert not images.x.flags.writeable
    assert not images.y.flags.writeable
    assert not np.shares_memory(images.x, BYTES)
    large = np.stack([np.arange(6) * 2**26, np.arange(6)], 1)
    assert data.from_arrays(large, Y, "x").x[:, 0].tolist() == large[:, 0].tolist()
    assert data.from_arrays(torch.ones(6, 2, requires_grad=True), Y, "x").shape == (2,)
    table = data.from_arrays(ROWS, Y, "rows")
    assert table.x.dtype == np.float32
    assert np.array_equal(table.x, ROWS.astype(np.float32))
    assert table.n_train == 6
    assert table.classes == ("0", "1", "2")
    assert str(table) == "rows: 6 records of 4 numbers, 3 classes"
    assert table.fingerprint == data.from_arrays(ROWS.tolist(), Y, "another name").fingerprint


def test_a_number_of_any_type_is_the_same_number():
    whole = RNG.integers(0, 100, (6, 4))
    frame = pd.DataFrame(whole, columns=list("abcd")).astype(
        {"a": "Int64", "b": "float32", "c": "int8"}
    )
    found = {
        data.from_arrays(x, y, "x").fingerprint
        for x in (
            whole,
            whole.astype(float),
            frame,
            whole.astype("uint8"),
            np.asfortranarray(whole),
        )
        for y in (
            Y,
            np.array(Y, np.uint8),
            np.array(Y, float),
            pd.Series(Y),
            pd.Series(Y, index=range(9, 15)),
        )
    }
    assert len(found) == 1


def test_labels_in_words_are_numbered_in_their_order():
    words = pd.Series(["z", "a", "m"] * 2)
    for y in (
        words.tolist(),
        np.array(words.tolist()),
        words.astype("category"),
        words.astype("string"),
    ):
        found = data.from_arrays(ROWS, y, "x")
        assert found.classes == ("a", "m", "z") and found.y.tolist() == [2, 0, 1] * 2
    for y in (
        [True, False, True] * 2,
        np.array([True, False, True] * 2),
        pd.Series([True, False, True] * 2),
    ):
        found = data.from_arrays(ROWS, y, "x")
        assert found.classes == ("False", "True") and found.y.tolist() == [1, 0, 1] * 2


TEXTS = pd.DataFrame({"age": [1.0] * 6, "city": list("abcabc"), "day": pd.Timestamp("2020-01-01")})
HOLED = pd.DataFrame(ROWS, columns=list("abcd")).mask(ROWS > 1.2)
REFUSED = [
    (lambda: (BYTES / 255, Y), r"bytes are needed.*\(255 \* x\).round\(\).astype\(np.uint8\)"),
    (lambda: (BYTES / 127.5 - 1, Y), r"255 \* \(x - low\)"),
    (lambda: (BYTES.transpose(0, 3, 1, 2), Y), r"x.transpose\(0, 2, 3, 1\)"),
    (lambda: (BYTES[..., 0], Y), r"x\[..., None\]"),
    (lambda: (ROWS[:, :, None], Y), r"x.reshape\(len\(x\), -1\)"),
    (lambda: (ROWS[:, 0], Y), r"x\[:, None\]"),
    (lambda: (ROWS[:0], []), "at least one record"),
    (lambda: (BYTES.astype(float), Y), r"Give \(x\).round"),
    (lambda: (ROWS[:, :0], Y), "holds nothing"),
    (
        lambda: (np.where(ROWS == ROWS[3, 2], np.nan, ROWS), Y),
        "1 missing values, in columns 2, first in record 3",
    ),
    (lambda: (np.where(ROWS == ROWS[3, 2], np.inf, ROWS), Y), "float32 cannot hold, in columns 2"),
    (lambda: (ROWS * 1e300, Y), "another unit"),
    (lambda: ([["a", "b"]] * 6, Y), "such as 'a'.*get_dummies"),
    (lambda: (TEXTS, Y), "no numbers: city, day"),
    (lambda: (np.ma.masked_equal(ROWS, ROWS[3, 2]), Y), "x has 1 masked value:"),
    (lambda: (ROWS, np.ma.masked_equal(Y, Y[0])), "y has 2 masked values: "),
    (lambda: (HOLED, Y), r"missing values in the columns .*x.fillna\(x.mean\(\)\)"),
    (lambda: (ROWS, np.array(Y)[:, None]), r"\[6\] is needed.*y.ravel\(\)"),
    (lambda: (ROWS, np.array(Y) + 1, ("a", "b", "c")), "y - 1"),
    (lambda: (ROWS, np.array(Y) + 1), "no record is of class 0.*from 1 become y - 1"),
    (
        lambda: (ROWS, [0, 1, 3] * 2),
        r"of class 2: name all classes.* classes=\(\.\.\.\), 4 or more",
    ),
    (lambda: (ROWS, [0, 10**12] * 3), "but no record is of class 1, 2, 3, 4, 5 and 1 "),
    (lambda: (ROWS, ["a", None, "b"] * 2), "2 missing labels, the first of record 1"),
    (lambda: (ROWS, np.array(["a", 1, "b"] * 2, object)), "int and str"),
    (lambda: (pd.DataFrame(ROWS), pd.Series(Y)[::-1]), "y and x have the same index in another"),
    (lambda: (ROWS, [0] * 6), "one class, '0'"),
    (lambda: ([[1, 2], [3]], [0, 1]), "equally long"),
    (
        lambda: (np.ones((24, 2)), [str(k % 12) for k in range(24)]),
        r"0, 1, 10, 11, 2 .*y.astype\(int\)",
    ),
    (
        lambda: (np.stack([np.arange(6) + 2**30, np.arange(6)], 1), Y),
        "6 values in column 0, .* tells 1",
    ),
    (lambda: (ROWS, Y, "abc"), "names of the classes"),
    (lambda: (ROWS, Y, ("a", "b", "a")), "a name of its own"),
    (lambda: (ROWS, ["a", "b"] * 3, ("b", "c")), "y holds a, too"),
    (lambda: (ROWS, Y, None, 0), "n_train = 0 is out of range: allowed is from 1 to 6"),
]


@pytest.mark.parametrize("given,words", REFUSED)
def test_arrays_that_cannot_be_used_are_refused(given, words):
    x, y, *more = given()
    with pytest.raises(MiaError, match=words):
        data.from_arrays(x, y, "mine", *more)


def test_a_file_of_arrays_is_the_arrays(tmp_path):
    np.savez(
        tmp_path / "mine.npz", x=BYTES, y=Y, n_train=4, classes=["a", "b", "c"], more=np.ones(3)
    )
    found = data.from_npz(tmp_path / "mine.npz")
    expected = data.from_arrays(BYTES, Y, "mine", ("a", "b", "c"), 4)
    assert found.fingerprint == expected.fingerprint
    assert (found.name, found.classes, found.n_train) == ("mine", ("a", "b", "c"), 4)
    np.savez(tmp_path / "words.npz", x=ROWS, y=np.array(["no", "yes"] * 3))
    found = data.from_npz(str(tmp_path / "words.npz"), "a name")
    assert (found.name, found.classes, found.n_train) == ("a name", ("no", "yes"), 6)


@pytest.mark.parametrize(
    "given,words",
    [
        (None, "there is no such file"),
        (b"PK\x03\x04 no more", "mine.npz cannot be read as an .npz file"),
        ({"x": ROWS}, "mine.npz has no array y .it has x.*np.savez"),
        # would have to be unpickled
        ({"x": ROWS, "y": np.array(["a", None] * 3, object)}, "objects of Python in y.*astype"),
        ({"x": ROWS, "y": [0] * 6}, "mine.npz cannot be used: y has one class"),
        ({"x": ROWS, "y": Y, "n_train": [1, 2]}, "n_train has shape"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, given, words):
    if isinstance(given, dict):
        np.savez(tmp_path / "mine.npz", **given)
    elif given:
        (tmp_path / "mine.npz").write_bytes(given)
    with pytest.raises(MiaError, match=words):
        data.from_npz(tmp_path / "mine.npz")


@pytest.mark.parametrize(
    "path, words",
    [
        ("~nobody-here/x.npz", "there is no such file"),
        ("a\0b.npz", "can be no path"),
        (f"{'x' * 300}.npz", r"xxx\.\.\. can be no path \(.*too long"),
    ],
)
def test_what_can_be_no_path_is_refused(path, words):
    for read in (data.from_npz, data.load, data.from_folder, lambda path: data.from_csv(path, "y")):
        with pytest.raises(MiaError, match=words.replace("file", "f(ile|older)")):
            read(path)


def csv(tmp_path, text: str):
    (tmp_path / "people.csv").write_text(text)
    return tmp_path / "people.csv"


@pytest.mark.parametrize(
    "stem, name",
    [
        ("my_set-2.0 Größe", "my_set-2.0 Größe"),
        ('s<svg onload="x">', "s-svg onload-x-"),
        ("a|b", "a-b"),
        ("*x* __y__", "-x- -y-"),
        ("`c` {ours}", "-c- -ours-"),
        ("$\\frac$", "-frac-"),
        ("two\nlines\u2028\udcff", "two-lines-"),
        ("[a](b)&lt;", "-a-b-lt-"),
    ],
)
def test_the_name_of_a_file_is_no_markup(tmp_path, stem, name):
    np.savez(file := tmp_path / f"{stem}.npz", x=ROWS, y=Y)
    (table := tmp_path / f"{stem}.csv").write_text("a,y\n1,0\n2,1\n3,0\n4,1\n")
    for label in "ab":
        (folder := tmp_path / stem / label).mkdir(parents=True)
        Image.fromarray(BYTES[0]).save(folder / "one.png")
    assert data.title(str(file)) == data.from_npz(file).name == name
    assert data.from_csv(table, "y").name == data.from_folder(tmp_path / stem).name == name
    assert data.from_npz(file, "my *own*").name == "my *own*"


def test_columns_of_numbers_stay_and_words_become_columns(tmp_path):
    path = csv(
        tmp_path,
        "age,city,member,income,left\n20,Ulm,True,1.5,yes\n30,Bonn,False,2.5,no\n40,Ulm,True,3.5,no\n",
    )
    found = data.from_csv(path, "left")
    np.testing.assert_allclose(
        found.x, [[20, 0, 1, 0, 1, 1.5], [30, 1, 0, 1, 0, 2.5], [40, 0, 1, 0, 1, 3.5]]
    )  # Bonn, Ulm
    assert found.classes == ("no", "yes")
    assert found.y.tolist() == [1, 0, 0]
    assert found.name == "people"
    assert data.from_csv(path, "city", "cities").classes == ("Bonn", "Ulm")
    found = data.from_csv(
        csv(tmp_path, "a,y\n" + "".join(f"{k},{(2, 10, 7)[k % 3]}\n" for k in range(9))), "y"
    )
    # numbers as labels keep their order
    assert found.classes == ("2", "7", "10") and found.y[:3].tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    "text,label,words",
    [
        ("a,y\n1,x\n2,z\n", "z", "label = 'z' is not known"),
        ("a,b,y\n1,,x\n2,3,z\n", "y", r"missing values in b \(1\)"),
        ("y\nx\nz\n", "y", "no column besides y"),
        ("a,y\n1,0.5\n2,1.5\n", "y", "holds fractions, such as 0.5"),
        ("", "y", "cannot be read as a CSV"),
        ("a,y\n1,x\n2,x\n", "y", "people.csv cannot be used: y has one class, 'x'"),
        (
            "id,y\n" + "".join(f"p{k},{k % 2}\n" for k in range(80)),
            "y",
            "text of 80 values in id, for 80 records",
        ),
        ("a,b,y\n1,2,0,9\n3,4,1,8\n", "y", "and no field more"),
        ("a,y,y\n1,2,2\n3,4,4\n", "y", "several columns y: give each a name of its own"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path, text, label, words):
    with pytest.raises(MiaError, match=words):
        data.from_csv(csv(tmp_path, text), label)


def test_a_column_of_a_long_table_is_read_as_a_whole(tmp_path):
    text = "a,y\n" + "1,01\n" * 300_000 + "2,x\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert data.from_csv(csv(tmp_path, text), "y").classes == ("01", "x")


def save(folder, name: str, pixels: np.ndarray):
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(folder / name)


def test_a_folder_is_its_images_in_the_order_of_their_names_and_of_splits_training_records_come_first(
    tmp_path,
):
    for k, (kind, name) in enumerate(
        [("dog", "b.png"), ("cat", "a.png"), ("cat", "10.png"), ("dog", "B.PNG")]
    ):
        save(tmp_path / "own" / kind, name, BYTES[k])
    (tmp_path / "own" / "cat" / "notes.txt").write_text("no image")
    (tmp_path / "own" / ".hidden").mkdir()
    found = data.from_folder(tmp_path / "own", "pets")
    assert found.classes == ("cat", "dog")
    assert found.y.tolist() == [0, 0, 1, 1]
    assert found.n_train == 4
    assert found.x.tobytes() == BYTES[[2, 1, 3, 0]].tobytes()
    for k, (split, kind) in enumerate(
        [("test", "b"), ("train", "a"), ("train", "b"), ("test", "a")]
    ):
        save(tmp_path / "splits" / split / kind, "1.png", BYTES[k, :, :, 0])
    found = data.from_folder(tmp_path / "splits")
    assert found.shape == (8, 7, 1) and found.n_train == 2 and found.y.tolist() == [0, 1, 0, 1]
    assert found.x.tobytes() == BYTES[[1, 2, 3, 0], :, :, :1].tobytes() and found.name == "splits"


def test_a_folder_that_cannot_be_used_is_refused(tmp_path, monkeypatch):
    def refused(words: str, folder=tmp_path, **options):
        with pytest.raises(MiaError, match=words):
            data.from_folder(folder, **options)

    refused("there is no such folder", tmp_path / "none")
    save(tmp_path / "a", "1.png", BYTES[0])
    refused("holds 1 folders: one for each class")
    save(tmp_path / "b", "1.png", np.arange(56, dtype=np.uint16).reshape(8, 7))
    refused("more than 8 bits a pixel")
    (tmp_path / "b" / "1.png").unlink()
    refused("b holds no images: files that end in .png")
    (tmp_path / "b" / "broken.png").write_bytes((tmp_path / "a" / "1.png").read_bytes()[:60])
    refused("broken.png cannot be read as an image.*mend it")
    (tmp_path / "gs").write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\n")
    (tmp_path / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "b" / "broken.png").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n")
    refused("broken.png cannot be read as an image")
    assert not (tmp_path / "asked").exists(), "a stranger's PostScript is a program"
    refused("image_size = 0", image_size=0)
    (tmp_path / "b" / "broken.png").unlink()
    save(tmp_path / "b", "1.png", np.full((9, 9, 3), 5, np.uint8))
    refused("1.png has 9 x 9 pixels, .* has 7 x 8: give image_size")
    assert data.from_folder(tmp_path, image_size=4).x[1].tolist() == [[[5] * 3] * 4] * 4
    for split, kind in (("train", "a"), ("train", "b"), ("test", "c")):
        save(tmp_path / "splits" / split / kind, "1.png", BYTES[0])
    refused("test has the class c, which .*train has not", tmp_path / "splits")
    save(tmp_path / "train" / "a", "1.png", BYTES[0])
    refused("holds train, and a, b, splits beside")
