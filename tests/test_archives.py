"""Files of arrays: what is in them, or one error that names the file and what to do."""

import io
import zipfile

import numpy as np
import pytest

from mia_lib import archives
from mia_lib.archives import read_npz
from mia_lib.errors import MiaError

ARRAYS = {"x": np.arange(60, dtype=np.float32).reshape(20, 3), "y": np.array(["no", "yes"] * 10)}


def content(save=np.savez, **arrays) -> bytes:
    buffer = io.BytesIO()
    save(buffer, **arrays)
    return buffer.getvalue()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_damaged_file_gives_what_was_in_it_or_is_refused(save):
    whole = content(save, **ARRAYS)
    damaged = [whole[:end] for end in range(0, len(whole), 7)]
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        damaged.append(bytes(changed))
    refused = 0
    for one in damaged:
        try:
            for name, array in read_npz(one, "mine.npz", remedy="Save it again.").items():
                np.testing.assert_array_equal(array, ARRAYS[name])
        except MiaError as error:
            assert str(error).startswith("mine.npz cannot be read")
            assert str(error).endswith("Save it again.")
            refused += 1
    assert refused > len(damaged) // 2


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["x", "x.npy"])  # of which readers take different ones
def test_an_array_that_is_there_twice_is_refused(tmp_path, name):
    (path := tmp_path / "a.npz").write_bytes(content(**ARRAYS))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, archive.read("y.npy"))
    with pytest.raises(MiaError, match="twice"):
        read_npz(path, "mine.npz", ("y",), ())


def test_a_header_that_lies_is_refused(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    )
    huge = header.getvalue()
    for text in (
        huge + bytes(80),
        huge.replace(b"1000000000000000", b"3               ") + bytes(80),
    ):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("x.npy", text)
        with pytest.raises(MiaError, match="mine.npz cannot be read"):
            read_npz(tmp_path / "a.npz", "mine.npz")


def test_what_unpacks_to_more_than_memory_is_refused_before_it_is_read(monkeypatch):
    bomb = content(np.savez_compressed, x=np.zeros(10**6), y=np.zeros(3))
    assert len(bomb) < 20_000
    monkeypatch.setattr(archives, "MEMORY", 10**6)
    with pytest.raises(MiaError, match="8,000,128 bytes unpacked"):
        read_npz(bomb, "mine.npz", ["x"], ())
    assert list(read_npz(bomb, "mine.npz", ["y"], ())) == ["y"]


def test_only_what_is_asked_for_is_read():
    whole = content(**ARRAYS, region=np.array(["a", 1], object), ward=np.array([None]))
    assert list(read_npz(whole, "mine.npz", ["x"], ["y", "z"])) == ["x", "y"]
    with pytest.raises(
        MiaError, match=r"mine.npz holds objects of Python in region, ward, .* region.astype\(str\)"
    ):
        read_npz(whole, "mine.npz")
    with pytest.raises(
        MiaError, match=r"mine.npz has no array z and n \(it has x, y, region, ward\)"
    ):
        read_npz(whole, "mine.npz", ["x", "z", "n"])
