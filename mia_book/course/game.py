"""A competition: functions attack models that nobody has seen, all with the same references and one query a record.

The models of a published bank are everybody's: some are the references, others the targets to practise on. `hide` trains
further targets with the bank's recipe, on halves of its records that follow from a secret seed. `judge` runs the functions
that were handed in on half of the hidden targets, as often as one likes, and at the end, once, on the others. `practise` has
published targets, of which everybody can look up the members.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import combinations
from pathlib import Path
from statistics import NormalDist

import numpy as np

from mia_book import publishing
from mia_book.course import child
from mia_book.course.bank import NAME, packed
from mia_book.course.export import empty_folder
from mia_lib import metrics, progress, published, store, templates
from mia_lib.archives import read_npz
from mia_lib.attacks import registry
from mia_lib.errors import MiaError, check_range, check_whole, first_line, is_full

FPR, METRICS = 0.01, ("tpr_at_fpr=0.01", "auc")
DRAWS = 200
MOST_TARGETS = 256  # that a lecturer would train
TITLE = "Who was in the training set?"  # of the page
SECONDS = 600  # for one function on all targets
PRACTICE = 8  # published targets
TEMPLATE = Path("team_name.py")  # that is handed out
TARGETS_FILE, SEED_FILE = "hidden.npz", "seed"
WRITTEN = {TARGETS_FILE, SEED_FILE, "game.json", "hand_out"}
# ranked with the others
OF_THE_BOOK = {f"{name} (the book)": name for name in ("MALT", "LiRA, offline", "LiRA", "RMIA")}
ARRAYS = ("margin", "members")  # of a bank
ARGUMENTS = (
    "margin",
    "reference_margin",
    "reference_members",
    "public_margin",
    "reference_public_margin",
)
RUN = """
import runpy, sys
import numpy as np
path, given, written = sys.argv[1:]
sys.argv[1:] = []
attack = runpy.run_path(path, run_name="attack").get("attack")
if not callable(attack):
    sys.exit("There is no function `attack` in it.")
with np.load(given) as arrays:
    targets = [dict(margin=margin, public_margin=public,
                    **{name: arrays[name] for name in arrays.files if "reference" in name})
               for margin, public in zip(arrays["margin"], arrays["public_margin"])]
scores = [np.asarray(attack(**target)) for target in targets]
if any(score.dtype.hasobject for score in scores):
    sys.exit("`attack` returns objects of Python. One number a record is needed.")
np.savez(written, *scores)
"""


@dataclass(frozen=True, eq=False)
class Challenge:
    """Targets, and what everybody has to attack them."""

    margin: np.ndarray  # log odds of the true class under each target, [T, N]
    members: np.ndarray  # its training set, bool [T, N]
    public_margin: np.ndarray  # of records that no model was trained on, [T, Q]
    reference_margin: np.ndarray  # [R, N]
    reference_members: np.ndarray  # bool [R, N]
    reference_public_margin: np.ndarray  # [R, Q]

    def half(self, final: bool) -> Challenge:
        """The challenge with the targets of the ranking on the way alone, or of the final one."""
        middle = len(self.margin) // 2
        targets = slice(middle, None) if final else slice(middle)
        return replace(
            self,
            margin=self.margin[targets],
            members=self.members[targets],
            public_margin=self.public_margin[targets],
        )


def practise(
    bank: str = NAME, references: int = 16, records: int = 2000, public: int = 1000
) -> Challenge:
    """The last models of a published bank, one of each pair, as targets, and its first as references.

    Args:
        bank: its name. references: R, even. records: N of those that the models were trained on, always the same
            ones, or all where there are fewer. public: Q of the others.

    Raises:
        MiaError: nothing such is published, or fewer models.
    """
    published_bank = published.load(bank, arrays=ARRAYS)
    targets = range(len(published_bank) - 2 * PRACTICE, len(published_bank), 2)
    if references % 2 or not 2 <= references <= targets.start:
        raise MiaError(
            f"references = {references}: an even number from 2 to {targets.start} is needed, the models of "
            f"{published_bank.name} but the {2 * PRACTICE} to practise on."
        )
    return _challenge(
        published_bank,
        published_bank.margin[targets],
        published_bank.members[targets],
        references,
        records,
        public,
    )


def _challenge(
    bank: published.Bank,
    margin: np.ndarray,
    members: np.ndarray,
    references: int,
    records: int,
    public: int,
) -> Challenge:
    """A challenge on records of a bank that are drawn. The targets are given by their answers to
    all records, `margin`, and their members; the bank's first models are the references."""
    rng = np.random.default_rng(0x67616D)
    some, others = (
        np.sort(rng.permutation(numbers)[: check_range(name, count, 20, 100_000)])
        for name, numbers, count in (
            ("records", bank.trained, records),
            ("public", bank.untrained, public),
        )
    )
    return Challenge(
        margin[:, some],
        members[:, some],
        margin[:, others],
        bank.margin[:references, some],
        bank.members[:references, some],
        bank.margin[:references, others],
    )


def hide(
    to: Path,
    root: Path,
    bank: str = NAME,
    targets: int = 16,
    seed: int | None = None,
    references: int = 16,
    records: int = 2000,
    public: int = 1000,
) -> Path:
    """Train hidden targets, and write what the lecturer keeps and, in `hand_out`, what everybody gets.

    Args:
        to: a folder that does not exist or is empty. root: of the book, whose `course/competition` is handed out.
        bank: a published bank, with whose recipe the targets are trained.
        targets: T, even: half of them for the ranking on the way, half for the final one.
        seed: that their training sets follow from. Who knows it knows the answers: it is drawn when None.
        references, records, public: as for `practise`.

    Raises:
        MiaError: as `practise`; a folder that is not empty, but of a call that was stopped, which goes on.
    """
    if check_whole("targets", targets, 2, 200) % 2:
        raise MiaError(
            f"targets = {targets}: an even number is needed, for half of them decide at the end."
        )
    published_bank = published.load(bank, arrays=ARRAYS)
    practice = practise(bank, references, records, public)
    measurement = publishing.catalogue()[bank]
    measurement.check_answers(published_bank)
    begun = to / SEED_FILE
    if (
        begun.is_file()
        and {path.name for path in to.iterdir() if not path.name.startswith(".writing-")} <= WRITTEN
    ):
        try:  # a call that was stopped: of that seed some targets are there
            seed = int(begun.read_bytes()) if seed is None else seed
        except ValueError:
            raise MiaError(
                f"{begun} is damaged: the seed of a game that was begun there is lost. Remove the folder, and "
                "begin anew."
            ) from None
    else:
        empty_folder(to)
        seed = secrets.randbits(48) if seed is None else seed
    store.write(begun, str(seed).encode())
    index = range(0, 2 * targets, 2)  # of each pair one: the other would tell its members
    parameters = measurement.complete({**published_bank.parameters, "seed": seed})
    progress.say(measurement.cost_in_words(targets, parameters))
    secret = measurement.compute(index, parameters)  # as many at a time as there are processors
    hidden = _challenge(
        published_bank, *(secret[name] for name in ARRAYS), references, records, public
    )
    store.write(to / TARGETS_FILE, packed(vars(hidden)))
    sizes = {
        "bank": bank,
        "targets": targets,
        "references": references,
        "records": hidden.margin.shape[1],
        "public": hidden.public_margin.shape[1],
        "practice": PRACTICE,
        "seconds": SECONDS,
    }
    store.write(to / "game.json", (json.dumps({**sizes, "seed": seed}, indent=1) + "\n").encode())
    template = root / "course" / "competition"
    store.write(
        to / "hand_out" / "README.md", (template / "README.md").read_text().format(**sizes).encode()
    )
    store.write(to / "hand_out" / TEMPLATE, (template / TEMPLATE).read_bytes())
    store.write(to / "hand_out" / "practice.npz", packed(vars(practice)))
    begun.unlink()
    return to


def read_hidden(folder: Path) -> Challenge:
    """The challenge that `hide` kept in a folder; a `MiaError` if there is none."""
    names = [field.name for field in fields(Challenge)]
    return Challenge(
        **read_npz(
            folder / TARGETS_FILE,
            f"{folder} has no hidden targets: {TARGETS_FILE}",
            names,
            (),
            "Give the folder that `mia course play --to FOLDER` wrote.",
        )
    )


# --------------------------------------------------------------------------------------------------- what is handed in


def run(path: Path, challenge: Challenge, seconds: float = SECONDS) -> np.ndarray:
    """Scores [T, N] of the function `attack` in a file, which runs in a process of its own and is never given the members.

    Its code has the rights of whoever runs it.

    Raises:
        MiaError: a file that cannot be ranked, in words that its author understands.
    """
    with tempfile.TemporaryDirectory() as folder:
        given, written = Path(folder, "given.npz"), Path(folder, "scores.npz")
        np.savez(given, **{name: getattr(challenge, name) for name in ARGUMENTS})
        try:
            command = [sys.executable, "-c", RUN, str(path.absolute()), str(given), str(written)]
            done = child.run(command, Path(folder), seconds, os.environ)
        except subprocess.TimeoutExpired:
            raise MiaError(
                f"{path.name} ran for more than {seconds:g} s. Is there a loop over records that arrays could "
                "do?"
            ) from None
        if done.code or not os.path.lexists(written):
            raise MiaError(f"{path.name} stopped: {done.complaint or 'it ended Python'}")
        try:
            scores = _read_scores(written)
        except Exception as error:  # what was handed in can write anything there
            raise MiaError(
                f"{path.name} ended Python, and what it left in the place of its scores cannot be read: "
                f"{first_line(error)}"
            ) from None
    if len(scores) != len(challenge.margin):
        raise MiaError(
            f"{path.name} ended Python, and left scores of {len(scores)} models, not of {len(challenge.margin)}."
        )
    return np.stack([_check(path, score, challenge.margin.shape[1]) for score in scores])


def _read_scores(written: Path) -> list[np.ndarray]:
    """The arrays of an .npz that may be anything: the reader waits for no pipe, and unpacks no more
    than a file may have."""
    if not stat.S_ISREG(written.lstat().st_mode):
        raise ValueError("it is no file")
    with zipfile.ZipFile(written) as archive:
        if sum(member.file_size for member in archive.infolist()) > child.LARGEST:
            raise ValueError(f"it has more than {child.LARGEST} bytes")
    return list(read_npz(written, "what `attack` returns").values())


def _check(path: Path, score: np.ndarray, records: int) -> np.ndarray:
    if score.dtype.kind not in "biuf":
        raise MiaError(
            f"{path.name}: `attack` returns {score.dtype} and no numbers. One number a record is needed."
        )
    if score.shape != (records,):
        raise MiaError(
            f"{path.name}: `attack` returns the shape {score.shape}; one number for each of the {records} records "
            "is needed."
        )
    if bad := int((~np.isfinite(score.astype(float))).sum()):
        raise MiaError(
            f"{path.name}: {bad} scores are NaN or infinite. A record that your attack says nothing about gets the "
            "score in the middle, not NaN."
        )
    if len(values := np.unique(score)) <= 2:
        raise MiaError(
            f"{path.name}: the scores are labels, {' or '.join(f'{value:g}' for value in values)} for everybody. "
            "Return how *sure* you are, a number for each record from before it is compared with a threshold."
        )
    return score.astype(np.float64)


def of_the_book(challenge: Challenge) -> dict[str, np.ndarray]:
    """Scores [T, N] of this book's attacks, which see the same as everybody, by their names."""
    views = [
        registry.ArraySignals(
            {registry.LOG_ODDS: np.vstack([margin[None], challenge.reference_margin])},
            challenge.reference_members,
            {registry.LOG_ODDS: np.vstack([public[None], challenge.reference_public_margin])},
        )
        for margin, public in zip(challenge.margin, challenge.public_margin, strict=True)
    ]
    return {
        team: np.stack([registry.score(name, view) for view in views])
        for team, name in OF_THE_BOOK.items()
    }


@dataclass(frozen=True)
class Place:
    """A team, or an attack of the book, in the ranking."""

    team: str
    tpr: metrics.Interval  # mean over targets; the interval is over targets and records
    auc: metrics.Interval  # the same
    best: int  # with the next, the ranks that no difference speaks against, all teams together
    worst: int
    behind: frozenset[str] = frozenset()  # teams that are ahead of it by more than chance

    @property
    def is_person(self) -> bool:
        """True unless it is an attack of the book, which wins nothing."""
        return self.team not in OF_THE_BOOK


def judge(
    challenge: Challenge, paths: Sequence[Path], kept: bool = False
) -> tuple[list[Place], list[str]]:
    """Run the submissions, and rank them with the attacks of the book.

    Args:
        challenge: targets with their members. paths: of the files; each team is called as its file is, and of
            several by one name the last counts. kept: whether this is a ranking, not a trial: scores stay in the working
            cache, and are taken from there for a file that did not change.

    Returns:
        places, the highest TPR first; and why files were refused.
    """
    book, handed_in, refused = of_the_book(challenge), {}, []
    teams = [child.printable(path.stem) for path in paths]
    last = dict(zip(teams, paths, strict=True))
    for team, path in zip(teams, paths, strict=True):
        try:
            if team in book:
                raise MiaError(
                    f"{path}: {team} is an attack of the book. Give the file your team's name."
                )
            if kept and team == TEMPLATE.stem:
                raise MiaError(
                    f"{path} is called as what was handed out: give it your team's name."
                )
            if last[team] != path:
                raise MiaError(
                    f"{path}: there is another file of {team} after it. One a team is ranked, the last."
                )
            if not path.is_file() or path.stat().st_size > child.LARGEST:
                raise MiaError(f"{path} is no file that can be run.")
            spec = {
                "kind": "scores",
                "file": hashlib.sha256(path.read_bytes()).hexdigest(),
                "given": [store.fingerprint(getattr(challenge, name)) for name in ARGUMENTS],
                "code": store.code_of((), Path(__file__)),
            }
            entry = store.look_up(spec) if kept else None
            scores = entry.arrays["scores"] if entry else run(path, challenge)
        except (MiaError, OSError) as error:
            if is_full(error):  # which is not the team's fault
                raise
            refused.append(child.printable(str(error)))
            continue
        if kept and not entry:
            with suppress(MiaError):  # without room it runs again at the next ranking
                store.keep(spec, {"scores": scores})
        handed_in[team] = scores
    return ranking(book | handed_in, challenge.members), refused


def ranking(scores: Mapping[str, np.ndarray], members: np.ndarray) -> list[Place]:
    """Teams by TPR at 1 % FPR, with the ranks that paired differences leave open.

    Two teams are told apart where the interval of their difference on the same targets and records, widened for the number of
    pairs (Bonferroni), does not contain zero.

    Args:
        scores: team -> [T, N]. members: bool [T, N].
    """
    rates = {
        team: metrics.intervals(METRICS, score, members, draws=DRAWS)
        for team, score in scores.items()
    }
    names = sorted(
        scores, key=lambda team: (-rates[team][METRICS[0]].value, -rates[team]["auc"].value, team)
    )
    pairs, ahead = list(combinations(names, 2)), Counter()
    behind: dict[str, set[str]] = {team: set() for team in names}
    for better, other in pairs:
        gap = metrics.compare(
            METRICS[0],
            scores[better],
            scores[other],
            members,
            level=1 - 0.05 / len(pairs),
            draws=DRAWS,
        )
        if gap.sign > 0:
            ahead[better] += 1
            behind[other].add(better)
    return [
        Place(
            team,
            *rates[team].values(),
            1 + len(behind[team]),
            len(names) - ahead[team],
            frozenset(behind[team]),
        )
        for team in names
    ]


def write_page(
    path: Path, places: list[Place], members: np.ndarray, final: bool, refused: Sequence[str] = ()
) -> Path:
    """Write the ranking as one page that needs no network and no script, in the place of an earlier one.

    Args:
        places, refused: from `judge`. members: bool [T, N], of the targets that were judged.
        final: whether the ranking is the final one.
    """
    text = templates.template(Path(__file__).with_name("leaderboard.html")).render(
        title=TITLE,
        places=places,
        final=final,
        verdicts=[say_who_won(places, members.shape[0]), *say_whom_to_read(places)],
        refused=refused,
        targets=members.shape[0],
        records=members.shape[1],
        chance=FPR,
        pairs=len(places) * (len(places) - 1) // 2,
        most=max(0.02, *(min(1.0, 1.05 * place.tpr.high) for place in places)),
        date=time.strftime("%d %B %Y").lstrip("0"),
    )
    store.write(path, text.encode())
    return path


def say_who_won(places: list[Place], targets: int) -> str:
    """Words that name the winner, or the teams that so many targets cannot tell apart and how many targets might. Attacks of
    the book win nothing; where one is ahead of whoever is first, that is said."""
    people = [place for place in places if place.is_person]
    names = {place.team for place in people}
    first = [place for place in people if not place.behind & names]
    if not people:
        return "No team is ranked."
    if len(first) == 1:
        others = "of the other teams, by differences that are more than chance"
        said = f"{first[0].team} is ahead {others}." if people[1:] else f"{first[0].team} is alone."
    else:
        may = [place.team for place in first]
        said = (
            f"Who is first cannot be told: {', '.join(may[:-1])} and {may[-1]} may each be the best. The order in which "
            "they stand is that of these targets. Where spans of ranks overlap the difference may be chance, and a team with "
            "a wide interval may be the best though one with a higher rate cannot be: its difference from the first is less "
            f"sure. {propose(people, targets, len(places))}"
        )
    ahead = frozenset.intersection(*(place.behind for place in first))
    better = [place.team for place in places if place.team in ahead]
    return (
        f"{said} Ahead of {'it' if len(first) == 1 else 'them'}: {', '.join(better)}."
        if better
        else said
    )


def propose(people: list[Place], targets: int, ranked: int) -> str:
    """A sentence that says how many targets would tell the first of the teams from the next, if both keep their rates.

    The width of the interval shrinks with the root of their number; its level allows for all pairs of those `ranked`.
    """
    first, second = people[0].tpr, people[1].tpr
    pairs = ranked * (ranked - 1) / 2
    wider = NormalDist().inv_cdf(1 - 0.025 / pairs) / NormalDist().inv_cdf(0.975)
    width, lead = wider * (first.high - first.low) / 2, first.value - second.value
    wanted = targets * (width / lead) ** 2 if lead > 0 else math.inf
    if not wanted <= MOST_TARGETS:
        return (
            f"No number of targets up to {MOST_TARGETS} would tell the first two apart: they find the same within "
            f"{100 * abs(lead):.1f} points. Let them share the place."
        )
    more = max(2 * targets, 4 * math.ceil(wanted / 2))
    return f"About {more} would (`mia course play --targets {more}`, half of them for the end), if both keep their rates."


def say_whom_to_read(places: list[Place]) -> list[str]:
    """A sentence for each team that finds more than half of the members that the best attack of the
    book misses. Its code should be read, for the answers lie on the machine that judges."""
    best = max(
        (place for place in places if not place.is_person),
        key=lambda place: place.tpr.value,
        default=None,
    )
    return [
        f"{place.team} finds {place.tpr.value:.1%} of the members, where the best attack of the book finds "
        f"{best.tpr.value:.1%}. Read its file before you believe it: does it look the answers up?"
        for place in places
        if best and place.tpr.value > (1 + best.tpr.value) / 2
    ]
