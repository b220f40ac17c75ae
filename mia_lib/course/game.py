"""A competition: everybody attacks the same target, nobody sees its members, and the ranking says what it does not know.

`deal` writes what each team gets and, apart from it, the answers; `judge` reads the scores that come back. The records of
each team lie in an order of their own, so a file fits one team only. Half of the records, nobody knows which, make the public
ranking that is shown as often as one likes; the other half is judged once, at the end, from each team's last file.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
import zipfile
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from mia_lib import metrics, store
from mia_lib.course import bank
from mia_lib.course.export import empty_folder
from mia_lib.errors import MiaError, check_range

ANSWERS, JOURNAL, CLOSED, DEAL = "answers.npz", "submissions.jsonl", "closed", "deal.npz"
SHOWN = ("x", "y", "loss", "margin", "features", "public_features", "public_margin")
TEAMS = 200
LARGEST = 5_000_000  # bytes of a submission, unpacked
FPR = 0.05
DRAWS = 500  # for each pair of teams
SIZE = bank.Size(records=2000, models=18, public=2000)

README = """\
# Who was in the training set? ({team})

`deal.npz` holds what you know about {records} records and a model that was trained on half of them. Find out which half.

    import numpy as np
    deal = np.load("deal.npz")
    score = -deal["loss"]                     # your attack in this line's place: higher = more likely a member
    np.savez("{team}.npz", team=deal["team"], score=score)

Hand in `{team}.npz`: your team, and one number for each record in the order of the deal. Not a decision but a score: only its
order counts.

| name | what |
| --- | --- |
{table}

The references were trained as the target was; you know their training sets, and not the target's. Nothing else was trained on
these records together with it: no reference is its counterpart.

The ranking is by the share of members found where one non-member in twenty is accused (TPR at 5 % FPR). It is made on half of
the records, nobody knows which; at the end the other half decides, with the **last** file that you handed in. You may hand in
{tries} files, and it is shown how many you used.
"""
KNOWN = {
    "team": "your team, and a word that shows it is you",
    "x": "pixels, uint8 [N, 784]", "y": "class of each record, [N]", "loss": "under the target, [N]",
    "margin": "log(p / (1 - p)) of the true class under the target, [N]", "features": "eleven numbers a record, [N, 11]",
    "reference_loss": "under each reference, [R, N]", "reference_margin": "the same of the margin, [R, N]",
    "reference_members": "bool [R, N], whether reference r was trained on record i",
    "public_features": "of records that no model was trained on, [Q, 11]", "public_margin": "their margin under the "
    "target, [Q]",
}


@dataclass(frozen=True, eq=False)
class Answers:
    """What the lecturer keeps.

    Attributes:
        members: bool [N], of the target.
        public: bool [N], the records of the public ranking.
        order: int [T, N], which record stands in each place of a team's deal.
        teams: their T names. tokens: what each deal, and no other, has behind its team's name.
        tries: files that a team may hand in.
    """

    members: np.ndarray
    public: np.ndarray
    order: np.ndarray
    teams: tuple[str, ...]
    tokens: tuple[str, ...]
    tries: int


def deal(to: Path, teams: int, seed: int | None = None, tries: int = 10, size: bank.Size = SIZE,
         source: str | None = None) -> Path:
    """Write a folder `teams/TEAM` for each team, and `lecturer` with the answers.

    Args:
        to: a folder that does not exist or is empty.
        teams: how many.
        seed: of everything. Who knows it knows the solution, so by default it is drawn and kept in the lecturer's folder.
        tries: files that a team may hand in.
        size: of the bank. source: a published bank to deal from, for practice, see `bank.from_published`; models are trained
            when None.

    Raises:
        MiaError: other numbers, or a folder that is not empty.
    """
    check_range("teams", teams, 1, TEAMS)
    check_range("tries", tries, 1, 1000)
    empty_folder(to)
    seed = secrets.randbits(48) if seed is None else seed
    rng = np.random.default_rng([0x67616D, seed])
    own = int(rng.integers(2**62))
    signals = bank.arrays(size, own) if source is None else bank.from_published(source, size, own)
    members, digits = signals["members"][0], max(2, len(str(teams)))
    names = tuple(f"team-{number:0{digits}d}" for number in range(1, teams + 1))
    order = np.stack([rng.permutation(size.records) for _ in names])
    halves = _halves(members, rng)
    tokens = tuple(rng.bytes(8).hex() for _ in names)
    answers = Answers(members, halves, order, names, tokens, tries)
    references = slice(2, None)  # neither the target, model 0, nor its counterpart
    for name, token, places in zip(names, tokens, order, strict=True):
        of_target = {key: signals[key][0] if key in ("loss", "margin") else signals[key]
                     for key in SHOWN if key in signals}
        dealt = {key: array if key.startswith("public") else array[places] for key, array in of_target.items()}
        dealt |= {f"reference_{key}": signals[key][references][:, places] for key in ("loss", "margin", "members")}
        dealt["team"] = np.array(f"{name} {token}")
        store.write(to / "teams" / name / DEAL, bank.packed(dealt))
        table = "\n".join(f"| `{key}` | {what} |" for key, what in KNOWN.items() if key in dealt)
        text = README.format(team=name, records=size.records, table=table, tries=tries)
        store.write(to / "teams" / name / "README.md", text.encode())
    store.write(to / "lecturer" / ANSWERS, bank.packed({**vars(answers), "teams": np.array(names), "tokens": np.array(tokens),
                                                        "tries": np.array(tries), "seed": np.array(seed)}))
    return to


def _halves(members: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Half of the members and half of the others."""
    public = np.zeros(members.shape, bool)
    for side in (members, ~members):
        public[rng.permutation(np.flatnonzero(side))[:side.sum() // 2]] = True
    return public


def answers(folder: Path) -> Answers:
    """What `deal` kept for the lecturer.

    Raises:
        MiaError: no competition was dealt there.
    """
    path = folder / "lecturer" / ANSWERS
    try:
        with np.load(path, allow_pickle=False) as stored:
            return Answers(stored["members"], stored["public"], stored["order"], tuple(stored["teams"].tolist()),
                           tuple(stored["tokens"].tolist()), int(stored["tries"]))
    except (OSError, KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise MiaError(f"{path} holds no answers ({error}). Give the folder that `mia course play --to FOLDER` wrote, "
                       "with its folder `lecturer`.") from error


# --------------------------------------------------------------------------------------------------- what comes back


def read(path: Path, kept: Answers) -> tuple[str, np.ndarray]:
    """A submission: its team, and the scores [N] in the order of the answers.

    Raises:
        MiaError: a file that is no submission, said so that a student understands it.
    """
    arrays = _read_arrays(path)
    team = _check_team(path, arrays["team"], kept)
    score, number, where = arrays["score"], len(kept.members), f"{path.name} ({team})"
    if score.dtype.kind not in "biuf":
        raise MiaError(f"{where}: score holds {'text' if score.dtype.kind in 'US' else score.dtype} and no numbers. Write "
                       f"one number for each record.")
    if score.shape != (number,):
        why = (f"one for each of the {number} records of your deal, in its order, is needed" if score.ndim == 1 else
               f"one row of {number} numbers is needed, an array with one axis")
        raise MiaError(f"{where}: score has {score.size} numbers (shape {score.shape}); {why}.")
    score = score.astype(np.float64)
    bad = ~np.isfinite(score)
    if bad.any():
        raise MiaError(f"{where}: {bad.sum()} scores are NaN or infinite, the first in place {int(np.argmax(bad))}. A "
                       "record that your attack says nothing about gets the score in the middle, not NaN.")
    values = np.unique(score)
    if len(values) == 1:
        raise MiaError(f"{where}: all scores are {values[0]:g}. Then nobody is more likely a member than anybody else, "
                       "and there is nothing to rank. Was the right array saved?")
    if len(values) == 2:
        raise MiaError(f"{where}: the scores are labels, {values[0]:g} or {values[1]:g} for everybody. Hand in how "
                       "*sure* you are, a number for each record from before you compared it with a threshold.")
    in_order = np.empty(number)
    in_order[kept.order[kept.teams.index(team)]] = score
    return team, in_order


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    """`team` and `score` of a file."""
    how = "Write it with np.savez(\"TEAM.npz\", team=deal[\"team\"], score=score)."
    if not path.exists():
        raise MiaError(f"{path}: there is no such file. Is the name right?")
    if path.is_dir():
        raise MiaError(f"{path} is a folder. Hand in the file, such as team-01.npz.")
    first = path.read_bytes()[:6]
    if first[:1] == b"\x80" or path.suffix in (".pkl", ".pickle"):
        raise MiaError(f"{path.name} is a pickle, which is never opened, for it could run anything. {how}")
    if not zipfile.is_zipfile(path):
        kind = "a single array, and does not say whose" if first == b"\x93NUMPY" else "no .npz file" if first else "empty"
        raise MiaError(f"{path.name} is {kind}. {how}")
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(part.file_size for part in archive.infolist()) > LARGEST:
                raise MiaError(f"{path.name} unpacks to more than {LARGEST / 1e6:g} MB. Hand in the scores alone. {how}")
        with np.load(path, allow_pickle=False) as stored:
            if missing := {"team", "score"} - set(stored.files):
                raise MiaError(f"{path.name} has no {' and no '.join(sorted(missing))}; it holds "
                               f"{', '.join(stored.files) or 'nothing'}. {how}")
            arrays = {name: stored[name] for name in ("team", "score")}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("score or team is no array")
        return arrays
    except MiaError:
        raise
    except Exception as error:  # whatever NumPy, zlib or the unpacking make of bytes from elsewhere
        if "allow_pickle" in str(error):
            raise MiaError(f"{path.name} holds objects of Python (a pickle), which are never opened, for they could run "
                           f"anything. Is score an array of numbers, np.asarray(score, float)? {how}") from error
        raise MiaError(f"{path.name} is damaged ({type(error).__name__}: {error}). Write it again. {how}") from error


def _check_team(path: Path, array: np.ndarray, kept: Answers) -> str:
    text = str(array.ravel()[0]) if array.size == 1 else ""
    team, _, token = text.partition(" ")
    remedy = "team=deal[\"team\"]."
    if team not in kept.teams:
        raise MiaError(f"{path.name}: team = {str(array)[:40]!r} takes no part. Hand on what your deal says: {remedy}")
    if token != kept.tokens[kept.teams.index(team)]:
        raise MiaError(f"{path.name}: team = {text[:40]!r} is not what the deal of {team} says. Hand on what yours does: "
                       f"{remedy}")
    named = [name for name in kept.teams if name in path.stem]
    if named and team not in named:
        raise MiaError(f"{path.name}: the file is named after {named[0]}, and inside it says {team}. Records lie in "
                       "another order in each team's deal, so scores for one fit no other: was somebody else's deal "
                       "used?")
    return team


# ------------------------------------------------------------------------------------------------------- the ranking


@dataclass(frozen=True)
class Place:
    """A team in the ranking.

    Attributes:
        team: its name.
        tpr, auc: with intervals.
        best, worst: the ranks that no difference speaks against, all teams together.
        tries: files that it has handed in.
        file: that counts.
    """

    team: str
    tpr: metrics.Interval
    auc: metrics.Interval
    best: int
    worst: int
    tries: int
    file: str


def judge(folder: Path, paths: list[Path], final: bool = False) -> tuple[list[Place], list[str]]:
    """Rank what was handed in, and keep a journal of it.

    A team's last file counts. A file that is judged again where it lies is not handed in again; scores that come back in
    another file, or in one that held others since, are, and count then, but are no further try. A file beyond the team's
    tries, or after the final ranking, does not count.

    Args:
        folder: that `deal` wrote. paths: of new submissions; earlier ones are kept. final: judge the records that were not
            in the public ranking.

    Returns:
        places, the highest TPR first; and why files were refused.

    Raises:
        MiaError: no competition there, or nothing that can be judged.
    """
    kept = answers(folder)
    journal, refused = _journal(folder), []
    for path in paths:
        try:
            team, score = read(path, kept)
            digest = hashlib.sha256(score.tobytes()).hexdigest()
            before = [line for line in journal if line["team"] == team]
            if _is_known(before, digest, path):
                continue
            if (folder / "lecturer" / CLOSED).exists():
                raise MiaError(f"{path.name} ({team}): the final ranking has been made; what comes later does not count.")
            different = {line["sha256"] for line in before}
            if digest not in different and len(different) >= kept.tries:
                raise MiaError(f"{path.name} ({team}): {len(different)} files were handed in, and {kept.tries} are allowed. "
                               "This one does not count.")
            store.write(folder / "lecturer" / "scores" / f"{digest}.npz", bank.packed({"score": score}))
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            journal.append({"team": team, "sha256": digest, "file": path.name, "path": str(path.resolve()), "date": now})
        except MiaError as error:
            refused.append(str(error))
    lines = "".join(json.dumps(line) + "\n" for line in journal)
    store.write(folder / "lecturer" / JOURNAL, lines.encode())
    last = {line["team"]: line for line in journal}
    if not last:
        raise MiaError("Nothing can be ranked yet: " + ("no file was given." if not refused else " ".join(refused)))
    scores = {team: _kept_scores(folder, line["sha256"]) for team, line in last.items()}
    if final:
        store.write(folder / "lecturer" / CLOSED, b"")
    tries = {team: len({line["sha256"] for line in journal if line["team"] == team}) for team in last}
    return ranking(scores, kept, final, tries, {team: line["file"] for team, line in last.items()}), refused


def _is_known(before: list[dict], digest: str, path: Path) -> bool:
    """Whether scores count already, or lie where they were judged before, as when a whole folder is judged again.

    Args:
        before: the team's lines of the journal. digest: of the scores. path: of their file.
    """
    here = [line["sha256"] for line in before if line["path"] == str(path.resolve())]
    return bool(before) and digest in (before[-1]["sha256"], *here[-1:])


def _journal(folder: Path) -> list[dict]:
    path = folder / "lecturer" / JOURNAL
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    except ValueError as error:
        raise MiaError(f"{path} is damaged ({error}). Correct the line by hand, or move the file away to begin "
                       f"anew.") from error


def _kept_scores(folder: Path, digest: str) -> np.ndarray:
    path = folder / "lecturer" / "scores" / f"{digest}.npz"
    try:
        with np.load(path, allow_pickle=False) as stored:
            return stored["score"]
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise MiaError(f"{path} cannot be read ({error}), and the journal names it. Take its line out of {JOURNAL} and "
                       "judge the file that was handed in again.") from error


def ranking(scores: dict[str, np.ndarray], kept: Answers, final: bool, tries: dict[str, int] | None = None,
            files: dict[str, str] | None = None) -> list[Place]:
    """Teams by TPR at 5 % FPR, with the ranks that paired differences leave open.

    Two teams are told apart where the interval of their difference on the same records, widened for the number of pairs
    (Bonferroni), does not contain zero.

    Args:
        scores: team -> [N]. kept: answers. final: which half. tries, files: by team, to be shown.
    """
    half = ~kept.public if final else kept.public
    members, metric = kept.members[half], f"tpr_at_fpr={FPR:g}"
    scores = {team: score[half] for team, score in scores.items()}
    rates = {team: metrics.intervals([metric, "auc"], score, members) for team, score in scores.items()}
    names = sorted(scores, key=lambda team: (-rates[team][metric].value, -rates[team]["auc"].value, team))
    pairs, ahead, behind = list(combinations(names, 2)), Counter(), Counter()
    for better, other in pairs:
        gap = metrics.compare(metric, scores[better], scores[other], members, level=1 - 0.05 / len(pairs), draws=DRAWS)
        ahead[better] += gap.sign > 0
        behind[other] += gap.sign > 0
    tries, files = tries or {}, files or {}
    return [Place(team, rates[team][metric], rates[team]["auc"], 1 + behind[team], len(names) - ahead[team],
                  tries.get(team, 1), files.get(team, "")) for team in names]
