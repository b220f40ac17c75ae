"""Reading what is published: by name and parameters, without PyTorch and without the code that measured it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mia_lib import documents, progress
from mia_lib.errors import MiaError, brief, check_choice, check_whole
from mia_lib.published.pieces import Bank, Piece, folder, numbers, pieces, stack

if TYPE_CHECKING:
    import pandas as pd

DEFINITIONS = "definitions.json"  # written with the pieces: name -> editions and defaults
KINDS = {"edition": int, "training_edition": int, "defaults": dict}  # of a definition
NAME = re.compile(r"[\w-]+/[\w.-]+")  # of a measurement


class Group(NamedTuple):
    """The published pieces of one measurement at one set of parameters, which are complete."""

    name: str
    parameters: dict
    pieces: list[Piece]


def definitions() -> dict[str, dict]:
    """The measurements that `folder()` holds: name -> {"edition", "training_edition", "defaults"}.

    A piece of another edition means something else and is not served; a parameter that a manifest does not have is at its
    default.

    Raises:
        MiaError: the file is damaged.
    """
    path, remedy = folder() / DEFINITIONS, "Run `mia sync` in a clone."
    known = documents.load(path, remedy=remedy) if path.is_file() else {}
    for name, definition in known.items():
        if (
            not isinstance(definition, dict)
            or not NAME.fullmatch(name)
            or {key: type(value) for key, value in definition.items()} != KINDS
        ):
            raise MiaError(
                f"{path} is damaged: it defines {name!r:.80} as {brief(definition)}. {remedy}"
            )
    return known


def groups() -> list[Group]:
    """All that is published and served."""
    known = definitions()
    current = {
        name: [
            piece
            for piece in pieces(name, folder())
            if all(
                piece.manifest[key] == definition[key] for key in ("edition", "training_edition")
            )
        ]
        for name, definition in known.items()
    }
    found: dict[tuple[str, str], Group] = {}
    sound: set[Path] = set()
    for name, definition in known.items():
        for piece in current[name]:
            if _stands(piece, current, frozenset(), sound):
                parameters = definition["defaults"] | piece.manifest["parameters"]
                group = Group(name, parameters, [])
                found.setdefault((name, _text(parameters)), group).pieces.append(piece)
    return list(found.values())


def _stands(
    piece: Piece, current: Mapping[str, Sequence[Piece]], made: frozenset[str], sound: set[Path]
) -> bool:
    """True if each piece that this one was made from is published and stands, too; `made` are hashes of what is made from
    this one. Those that stand are noted as `sound`, and asked once, however many are made from them."""
    if piece.path in sound:
        return True
    made |= {piece.manifest["sha256"]}
    for parent in piece.manifest.get("parents", ()):
        if parent["sha256"] in made:
            progress.warn(
                f"{piece.manifest['file']} is damaged (it was made from itself); it is not used.",
                stacklevel=4,
            )
            return False
        same = [
            one
            for one in current.get(parent["name"], ())
            if one.manifest["sha256"] == parent["sha256"]
        ]
        if not any(_stands(one, current, made, sound) for one in same):
            return False
    sound.add(piece.path)
    return True


def _text(plain) -> str:
    return json.dumps(plain, sort_keys=True)


def ls() -> pd.DataFrame:
    """All published measurements: a DataFrame with a row a measurement and set of parameters.

    Columns: name; models, how many; dataset, "" where it has none; parameters; arrays, their names; device; minutes that it
    took; date; megabytes.
    """
    import pandas as pd

    return pd.DataFrame(
        [
            (
                name,
                len(numbers(blocks)),
                parameters.get("dataset", ""),
                parameters,
                ", ".join(blocks[0].manifest["arrays"]),
                " and ".join(sorted({piece.manifest["device"] for piece in blocks})),
                round(sum(piece.manifest["seconds"] for piece in blocks) / 60, 1),
                max(piece.manifest["date"] for piece in blocks),
                round(sum(piece.manifest["bytes"] for piece in blocks) / 1e6, 1),
            )
            for name, parameters, blocks in groups()
        ],
        columns="name models dataset parameters arrays device minutes date megabytes".split(),
    )


def load(name: str, models: int | None = None, arrays: Sequence[str] = (), **parameters) -> Bank:
    """Arrays of a published measurement; nothing is measured, and PyTorch is not needed.

    >>> load("bank/cifar10-small", models=4).margin.shape
    (4, 60000)

    Args:
        name: of the measurement, see `ls`.
        models: the first so many; all that are published when None.
        arrays: names of those wanted; all when empty.
        parameters: enough to tell which set is meant, where several are published: that of which these are all that is not
            usual, if there is one.

    Raises:
        MiaError: nothing such is published, or fewer models; several sets of parameters answer; a damaged file.
    """
    there = groups()
    if not there:
        raise MiaError(
            f"name = {name!r}: nothing is published in {folder()}. A clone of the book's repository has it in "
            "data/published; MIA_PUBLISHED names another folder."
        )
    check_choice("name", name, sorted({group.name for group in there}))
    named = [group for group in there if group.name == name]
    for parameter in parameters:
        check_choice(f"parameter of {name}", parameter, sorted({*named[0].parameters}))
    usual = definitions()[name]["defaults"] | parameters
    meant = [group for group in named if group.parameters == usual] or [
        group for group in named if parameters.items() <= group.parameters.items()
    ]
    if len(meant) != 1:
        raise MiaError(
            f"{name} is published with {len(named)} sets of parameters, of which {len(meant)} have {parameters}: "
            f"name one of {[group.parameters for group in named]}."
        )
    [(_, values, blocks)] = meant
    published = numbers(blocks)
    models = len(published) if models is None else check_whole("models", models, 1)
    if (lacking := next((m for m in range(models) if m not in published), None)) is not None:
        command = ["mia", "publish", name, "--models", str(models)]
        for parameter, value in values.items():
            if definitions()[name]["defaults"].get(parameter, ...) != value:
                text = value if isinstance(value, str) else json.dumps(value)
                command += ["-p", parameter, text]
        raise MiaError(
            f"models = {models}: {len(published)} models of {name} are published, and model {lacking} is not. "
            f"`{shlex.join(command)}` measures it."
        )
    if isinstance(arrays, str) or not isinstance(arrays, Sequence):
        raise MiaError(
            f"arrays = {brief(arrays)}: a list of names is needed, such as ['margin']; () gives all."
        )
    for array in arrays:
        check_choice("arrays", array, blocks[0].manifest["arrays"])
    used, rows = [piece for piece in blocks if piece.index.start < models], {}
    try:
        for piece in used:  # where two have a model, the first counts
            rows = {**piece.rows(arrays), **rows}
    except OSError as error:
        raise MiaError(
            f"{error}. Bring it back (in a clone: `git checkout -- data/published`)."
        ) from error
    return Bank(name, values, stack(rows, range(models)), [piece.manifest for piece in used])
