"""Records of token ids: verses in two translations, and sequences of the user's own."""

import numpy as np
import pytest

from mia_lib import data
from mia_lib.errors import MiaError


def test_a_verse_says_the_same_in_both_translations_and_no_other_verse_has_its_words():
    kjv, web, lower = (data.load(f"verses_{name}") for name in ("kjv", "web", "kjv_lower"))
    assert len(kjv) == len(web) == len(data.places()) and len(lower) == data.JUDGED
    first = data.places().index[(data.places() == [0, 1, 1, "Ge"]).all(axis=1)]
    assert data.texts(kjv.take(first)) == ["In the beginning God created the heaven and the earth."]
    assert data.texts(web.take(first)) == [
        "In the beginning, God created the heavens and the earth."
    ]
    said, plain = data.texts(kjv), data.texts(lower)
    assert [text.lower() for text in said[: data.JUDGED]] == plain
    for texts in (said, data.texts(web)):
        words = ["".join(filter(str.isalpha, text.lower())) for text in texts]
        values, counts = np.unique(words, return_counts=True)
        once = set(values[counts == 1])
        assert all(text in once for text in words[: data.JUDGED])
    assert (kjv.x[:, 0] == 0).all() and kjv.kind == "tokens"


@pytest.mark.parametrize(
    "sequences, message",
    [
        ([[1, 2], [3]], r"sequences\[1\] has shape \(1,\)"),
        ([[1, 2.5]], "whole numbers"),
        ([[1, 8]], "allowed are 0 to 7"),
        ([[-1, 2]], "allowed are 0 to 7"),
        (np.array([[3, -1, 4], [1, 2, -1]]), r"sequences\[0\] holds ids from -1"),
        ([], "at least one"),
        ([["a", "b"]], "sequences"),
    ],
)
def test_ids_that_are_none_are_refused(sequences, message):
    with pytest.raises(MiaError, match=message):
        data.from_tokens(sequences, "wrong", 8)


@pytest.mark.parametrize(
    "vocabulary, message",
    [
        (10**15, "more than fits into this machine's memory"),
        ({"b": 1, "a": 0}, r"give sorted\(vocabulary, key=vocabulary.get\)"),
        (True, "a whole number is needed"),
        ("ab", "a whole number is needed"),
        (None, "a whole number is needed"),
    ],
)
def test_a_vocabulary_is_a_number_or_tokens_in_the_order_of_their_ids(vocabulary, message):
    with pytest.raises(MiaError, match=message):
        data.from_tokens([[0, 1]], "wrong", vocabulary)


def test_a_padded_array_and_lists_are_the_same_records():
    lists = data.from_tokens([[0, 5, 2], [0, 3]], "lists", 8)
    padded = data.from_tokens(np.array([[0, 5, 2], [0, 3, -1]]), "padded", 8)
    assert lists.fingerprint == padded.fingerprint
    labelled = data.from_tokens([[0, 5, 2], [0, 3]], "labelled", 8, ["good", "bad"])
    assert labelled.classes == ("bad", "good") and labelled.y.tolist() == [1, 0]


def test_whole_numbers_of_a_table_are_not_taken_for_token_ids():
    table = np.array([[1, -5], [2, 3]])
    assert data.from_arrays(table, [0, 1], "table").kind == "table"
    with pytest.raises(MiaError, match="table records: texts are of token ids"):
        data.texts(data.from_arrays(table, [0, 1], "table"))
    with pytest.raises(MiaError, match="none of a byte-pair encoding"):
        data.texts(data.from_tokens([[0, 1]], "words", ["plain", "snow ☃"]))
