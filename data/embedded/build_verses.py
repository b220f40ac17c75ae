"""Build `verses.npz`: each verse of the Bible in two translations in the public domain, as token ids.

    apt-get install bible-kjv bible-kjv-text sword-text-web libsword-utils
    pip install tokenizers
    python data/embedded/build_verses.py

`bible` prints the King James Version (1611), `mod2imp` the World English Bible (2015) as OSIS, of which notes, titles and
marks of structure are taken out. A verse is kept where both have it and neither has more than `MOST_WORDS` words. The first
`JUDGED` records are those that attacks judge: drawn at random among the verses whose words no other verse has, in either
translation. The others follow in the order of the canon, and the byte-pair encoding is learned on them alone. Of the judged
ones there is the King James Version in lower case, too. Texts follow from the token ids, so none is kept.
"""

import collections
import re
import subprocess

import numpy as np
from build import keep, packed  # of this folder
from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
from tokenizers.models import BPE

JUDGED, VOCABULARY, MOST_WORDS = 8000, 2048, 100
DEUTEROCANON = {
    "Tobit", "Judith", "Esther (Greek)", "Wisdom", "Sirach", "Baruch", "Prayer of Azariah", "Susanna",
    "Bel and the Dragon", "I Maccabees", "II Maccabees", "I Esdras", "Prayer of Manasses", "Additional Psalm",
    "III Maccabees", "II Esdras", "IV Maccabees",
}  # fmt: skip


def printed(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def king_james() -> tuple[dict[tuple, str], list[str]]:
    """Text of each (book, chapter, verse), books counted from 0; and the books' names."""
    texts, books = {}, []
    for line in printed("bible", "-f", "gen1:1-rev22:21").splitlines():
        book, chapter, verse, text = re.fullmatch(r"(\w+?)(\d+):(\d+) (.*)", line).groups()
        if book not in books:
            books.append(book)
        texts[books.index(book), int(chapter), int(verse)] = text
    return texts, books


def world_english() -> dict[tuple, str]:
    """Text of each (book, chapter, verse), books of the King James Version counted from 0."""
    texts, books = {}, []
    for entry in printed("mod2imp", "engWEB2015eb").split("$$$")[1:]:
        place, _, osis = entry.partition("\n")
        match = re.fullmatch(r"(.+) (\d+):(\d+)", place)
        if not match or "0" in match.groups()[1:] or match[1] in DEUTEROCANON:
            continue
        if match[1] not in books:
            books.append(match[1])
        osis = re.sub(r"<(note|title)\b[^>]*?(?<!/)>.*?</\1>", " ", osis, flags=re.DOTALL)
        text = " ".join(re.sub(r"<[^>]*>", "", osis).split())
        texts[books.index(match[1]), int(match[2]), int(match[3])] = re.sub(
            r" ([,.;:?!’”])", r"\1", text
        )
    assert len(books) == 66, books
    return texts


def words(text: str) -> str:
    return " ".join(re.findall(r"[a-z]+", text.lower()))


def main() -> None:
    kjv, books = king_james()
    web = world_english()
    places = [
        place
        for place in kjv
        if kjv[place]
        and web.get(place)
        and max(len(t.split()) for t in (kjv[place], web[place])) <= MOST_WORDS
    ]
    count = collections.Counter(words(text) for of in (kjv, web) for text in of.values())
    alone = [k for k, p in enumerate(places) if all(count[words(of[p])] == 1 for of in (kjv, web))]
    judged = np.random.default_rng(0).permutation(alone)[:JUDGED]
    rest = np.setdiff1d(np.arange(len(places)), judged)
    order = [places[k] for k in [*judged, *rest]]

    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        [of[place] for of in (kjv, web) for place in order[JUDGED:]],
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=["<end>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    arrays = {
        "place": np.array(order, np.uint8),
        "books": np.array(books),
        "vocabulary": np.array([tokenizer.id_to_token(token) for token in range(VOCABULARY)]),
    }
    lower = {place: kjv[place].lower() for place in order[:JUDGED]}
    for name, of in (("kjv", kjv), ("web", web), ("lower", lower)):
        kept = [place for place in order if place in of]
        ids = [tokenizer.encode(of[place]).ids for place in kept]
        assert [tokenizer.decode(row) for row in ids] == [of[place] for place in kept]
        arrays[f"{name}_ids"] = np.concatenate(ids).astype(np.uint16)
        arrays[f"{name}_lengths"] = np.array([len(row) for row in ids], np.uint8)
        print(name, len(arrays[f"{name}_ids"]), arrays[f"{name}_lengths"].max(), of[order[0]])
    keep("verses.npz", packed(arrays))


if __name__ == "__main__":
    main()
