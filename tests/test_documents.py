"""YAML and JSON: what is damaged is refused by the name of its file, whatever a parser would have raised."""

import re

import pytest

from mia_lib import documents
from mia_lib.errors import MiaError


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.yaml", b"", "holds nothing"),
        ("a.yaml", b"- 1", "holds a list, not a dict"),
        ("a.yaml", b"a: [1", "is not YAML"),
        ("a.yaml", "a: 1".encode("utf-16"), "is not YAML in UTF-8"),
        ("a.yaml", b"a: \xff", "UTF-8"),
        ("a.yaml", b"[" * 9000, "recursion"),
        ("a.yaml", b"a: 1\nb: {c: 1, c: 2}", "'c' is given twice"),
        ("a.yaml", b"a: !!int ''", "is not YAML"),
        ("a.yaml", b"a: &one [1, 2]\nb: [*one, *one]", "one is an alias"),
        *(
            ("a.yaml", f"a: {number}".encode(), "no whole number as one counts")
            for number in ("010", "0x10", "0b1", "1:30")
        ),
        ("a.yaml", b"a: 1" + b"0" * 5000, "digits"),
        ("a.json", b"", "is not JSON"),
        ("a.json", b'{"a": 1', "is not JSON"),
        ("a.json", b"[" * 200_000, "recursion"),
        ("a.ipynb", b'{"a": 1, "a": 1}', "'a' is given twice"),
        ("a.json", b"1", "a int"),
    ],
)
def test_what_is_no_document_of_the_kind_is_refused_by_name(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MiaError, match=f"/{name} .*{said}.* Bring it back."):
        documents.load(tmp_path / name, remedy="Bring it back.")


def test_files_of_yaml_and_json_are_read_in_one_place(repo):
    reads = re.compile(r"yaml\.(safe_)?load|json\.load\(|json\.loads\([^\n]*read_(text|bytes)")
    found = {
        path.name
        for path in (repo / "mia_lib").rglob("*.py")
        if reads.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"documents.py"}


def test_what_is_no_file_is_refused_by_name(tmp_path):
    for path in (tmp_path, tmp_path / "none.json", "a\0b"):
        with pytest.raises(MiaError, match=".* cannot be read: "):
            documents.load(path)


def test_what_is_sound_is_read(tmp_path):
    (path := tmp_path / "a.yaml").write_text(
        "\ufeffone: {a: -1_000}\ntwo: {<<: {a: 1}, a: 2, b: 0}\n", encoding="utf-8"
    )
    assert documents.load(path) == {"one": {"a": -1000}, "two": {"a": 2, "b": 0}}
    assert (
        documents.parse("[1, 2]", "a.json", list)
        == documents.parse("- 1\n- 2", "a list", list)
        == [1, 2]
    )
