"""Environment variables: what cannot be used is refused by name, and `~` is the user's folder."""

import re

import pytest

from mia_lib import environment, progress, published, store
from mia_lib.data import sets
from mia_lib.errors import MiaError
from mia_lib.training import pool

FOLDERS = {
    "MIA_CACHE": store.cache_dir,
    "MIA_DATA": sets.data_dir,
    "MIA_PUBLISHED": published.folder,
}


@pytest.mark.parametrize(
    ("name", "value", "read", "said"),
    [
        ("MIA_WORKERS", "abc", pool.default_workers, "a whole number is needed"),
        ("MIA_WORKERS", "2.5", pool.default_workers, "a whole number is needed"),
        ("MIA_WORKERS", "0", pool.default_workers, "from 1 to 1024"),
        ("MIA_WORKERS", "999999999999", pool.default_workers, "from 1 to 1024"),
        ("MIA_MOST_SECONDS", "abc", environment.most_seconds, "a number is needed"),
        ("MIA_MOST_SECONDS", "nan", environment.most_seconds, "at least 0"),
        ("MIA_MOST_SECONDS", "-1", environment.most_seconds, "at least 0"),
        (
            "MIA_PROGRESS",
            "/nowhere/at/all",
            lambda: progress.say("hello"),
            "a file in a folder that is there",
        ),
        *(
            (name, value, read, said)
            for name, read in FOLDERS.items()
            for value, said in (
                (__file__, "is no folder"),
                ("~nobody-of-this-name/x", "is no folder"),
            )
        ),
    ],
)
def test_a_variable_that_cannot_be_used_is_refused_by_name(name, value, read, said, monkeypatch):
    monkeypatch.setenv(name, value)
    with pytest.raises(MiaError, match=f"{name} = .*{said}"):
        read()


def test_a_tilde_is_the_users_folder_and_what_is_empty_is_not_set(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, read in FOLDERS.items():
        monkeypatch.setenv(name, "")
        default = read()
        monkeypatch.setenv(name, "~/x")
        assert read() == tmp_path / "x" != default
    unset = {
        "MIA_MOST_SECONDS": (environment.most_seconds, float("inf")),
        "MIA_WORKERS": (environment.workers, None),
    }
    for name, (read, usual) in unset.items():
        monkeypatch.setenv(name, "")
        assert read() == usual
        monkeypatch.setenv(name, "7")
        assert read() == 7


def test_variables_of_the_library_are_read_in_one_place(repo):
    reads = re.compile(r"""environ(\.get\("MIA_|\["MIA_\w+"\](?! = ))""")
    found = {
        path.name
        for path in (repo / "mia_lib").rglob("*.py")
        if reads.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"environment.py"}
