"""A notebook's parameters: read from its source, changed by a preset or by hand, checked before anything runs.

The cell tagged `parameters` in `notebooks/NAME.py` is the page's interface. Each line declares one parameter::

    references: int = 16  # reference models a target is attacked with [2..256]

The comment says what it means; square brackets at its end say what is allowed, for lists of each item, in clauses parted by
semicolons, or nothing for any value of the type. Each clause becomes a field's constraint of pydantic::

    [low..high]        either end may be missing
    [a | b | c]        one of these; one of them may be a kind of name
    [data set]         a kind of name: data set, architecture, architecture by name, or augmentation; all but the first with
                       what follows their colon
    [even]             a whole number that two divides
    [as many as NAME]  a list as long as that of another parameter
    [N items], [not empty], [distinct], [ascending]
    [verdicts from N]  any number, but with fewer repetitions no claim is judged

A data set is a name of `mia data ls`, or records of the reader's own, FILE.npz; an architecture one of this library, or a
network of the reader's own, MODULE:NAME. So a notebook takes them where its brackets have one of these two kinds. Where it
needs parts of a network, an architecture is taken by name alone.

A preset is `mia_book/chapters/NAME/presets/PRESET.yaml`, read over the defaults; `published` is the defaults, the run that
the book shows. Where there is no `quick.yaml`, `quick` is the defaults, too. A preset names no network of anybody's own, which
is code: presets are handed on, and one is given by hand.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from mia_book import folders
from mia_lib import custom, documents, environment
from mia_lib.errors import MiaError, check_choice, validated

PUBLISHED, QUICK = "published", "quick"
PRESETS = {  # what each is for; a notebook may have others
    PUBLISHED: "the book's own run",
    QUICK: "what a laptop measures live in minutes",
    "smoke": "a test, seconds to a minute",
}
SCALARS = {"int": int, "float": float, "str": str, "bool": bool}
FORMS = (
    "Allowed are low..high of a number, even and verdicts from N of a whole one, words as a | b, and of a list also not "
    "empty, distinct, ascending, N items and as many as NAME, another parameter; between two of them a semicolon."
)


@dataclass(frozen=True)
class Parameter:
    """One line of the parameters cell."""

    name: str
    type: str  # "int", "float", "str", "bool", or "list[...]" of one of them
    default: object  # of the source, or the preset
    allowed: str = ""  # what the brackets say
    meaning: str = ""  # the rest of the comment

    @property
    def is_list(self) -> bool:
        """True if the parameter takes several values."""
        return self.type.startswith("list")

    @property
    def item_type(self) -> str:
        """Type of the parameter, or of each of its items."""
        return self.type.removeprefix("list[").rstrip("]")

    @property
    def clauses(self) -> list[str]:
        """Clauses of what the brackets hold, which semicolons part."""
        return [clause.strip() for clause in self.allowed.split(";") if clause.strip()]

    @property
    def judged_from(self) -> int:
        """Repetitions from which on claims are judged; 0 where the brackets say nothing of it."""
        found = re.search(r"verdicts from (\d+)", self.allowed)
        return int(found[1]) if found else 0

    @property
    def takes_own(self) -> bool:
        """True if the parameter may name records or a network of the reader's own."""
        return any(choice in OWN for clause in self.clauses for choice in _choices(clause))


def find_root(root: Path | str | None = None) -> Path:
    """The folder of the book: `root` when given, else the nearest one around the working directory, else the checkout that
    `mia_lib` was installed from."""
    here = Path.cwd()
    tried = (
        [Path(root)]
        if root is not None
        else [here, *here.parents, Path(__file__).resolve().parents[2]]
    )
    for folder in tried:
        if (folder / "notebooks").is_dir() and (
            root is not None or (folder / "_toc.yml").is_file()
        ):
            return folder.resolve()
    raise MiaError(
        f"No book here: {tried[0]} has no notebooks folder with a _toc.yml beside it. "
        "Run `mia` inside a clone of the repository."
    )


def notebooks(root: Path | None = None) -> list[str]:
    """Names of the notebooks, one a `notebooks/NAME.py`."""
    return sorted(path.stem for path in (find_root(root) / "notebooks").glob("*.py"))


def presets(name: str, root: Path | None = None) -> list[str]:
    """Names of the presets of notebook `name`, `published` and `quick` first."""
    files = folders.of(find_root(root)).glob(f"{name}/presets/*.yaml")
    return [PUBLISHED, QUICK, *sorted({path.stem for path in files} - {QUICK})]


def read(source: Path):
    """The notebook in a py:percent file, with a kernel name and nothing else in its metadata. Each cell has an id that depends
    on its source alone, so that converting twice gives the same file."""
    import jupytext

    notebook = jupytext.read(source)
    notebook.metadata.clear()
    notebook.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    times: Counter[str] = Counter()
    for cell in notebook.cells:
        text = f"{cell.cell_type}\n{cell.source}"
        times[text] += 1
        cell["id"] = hashlib.sha256(f"{times[text]}\n{text}".encode()).hexdigest()[:12]
    return notebook


def code_cells(text: str, tag: str = "") -> list[str]:
    """The code cells of a py:percent file, or those with a tag, without Jupytext, which takes seconds to import."""
    _, *parts = re.split(r"^# %%(.*)\n", text, flags=re.MULTILINE)
    cells = [
        source.rstrip()
        for header, source in zip(parts[::2], parts[1::2], strict=True)
        if not re.search(r"\[(markdown|md|raw)\]", header)
        and (not tag or re.search(rf"""tags=\[[^]]*["']{tag}["']""", header))
    ]
    return [re.sub(r"^# ([%!])", r"\1", source, flags=re.MULTILINE) for source in cells]


# ------------------------------------------------------------------------------------------------------------- declarations


def parameters(name: str, preset: str | None = None, root: Path | None = None) -> list[Parameter]:
    """The parameters of a notebook in the order of its source, with the values of a preset as their defaults.

    Raises:
        MiaError: unknown notebook or preset, a parameters cell or a preset that cannot be read or is not allowed.
    """
    root = find_root(root)
    check_choice("notebook", name, notebooks(root))
    text = (root / "notebooks" / f"{name}.py").read_text(encoding="utf-8")
    declarations = [
        p
        for source in code_cells(text, "parameters")
        for p in declared(source, f"notebooks/{name}.py")
    ]
    check_choice(f"preset of {name}", preset or PUBLISHED, presets(name, root))
    file = folders.of(root) / name / "presets" / f"{preset}.yaml"
    if preset in (None, PUBLISHED) or preset == QUICK and not file.is_file():
        return declarations
    given = documents.load(
        file, remedy="Write one `name: value` a line; the published parameters need no file."
    )
    listed = {name: _items(value) for name, value in given.items()}
    if code := own(given)["networks"] + own(listed)["networks"]:
        raise MiaError(
            f"preset {preset}: {code[0]!r:.80} is code, which would be imported and called as it says there, whoever "
            "wrote the preset. Give it by hand, as -p architecture my_net:Net."
        )
    values = _checked(declarations, given, f"preset {preset}: ")
    return [replace(p, default=values[p.name]) for p in declarations]


def declared(source: str, where: str) -> list[Parameter]:
    """The parameters that a cell declares, one a line."""
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        raise MiaError(f"{where}: the parameters cell is not Python: {error}.") from error
    lines, declarations = source.encode().splitlines(), []
    for node in body:
        if not (
            isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value
        ):
            raise MiaError(
                f"{where}: {ast.unparse(node)!r} in the parameters cell is no parameter. Write "
                "`name: type = value  # meaning [allowed]`."
            )
        try:
            default = ast.literal_eval(node.value)
        except ValueError as error:
            raise MiaError(
                f"{where}: the default of {node.target.id} must be a plain value."
            ) from error
        comment = lines[node.end_lineno - 1][node.end_col_offset :].decode().lstrip(" #")
        meaning, _, allowed = (
            comment.rstrip("]").partition(" [") if comment.endswith("]") else (comment, "", "")
        )
        declaration = Parameter(
            node.target.id, ast.unparse(node.annotation), default, allowed, meaning
        )
        if declaration.item_type not in SCALARS:
            raise MiaError(
                f"{where}: {declaration.name} has type {declaration.type!r}. Allowed: {', '.join(SCALARS)}, "
                "list[...] of them."
            )
        declarations.append(declaration)
    defaults = {one.name: one.default for one in declarations}
    for one in declarations:
        try:
            _annotation(one, defaults)
        except (ValueError, LookupError) as error:
            raise MiaError(
                f"{where}: brackets of {one.name}, [{one.allowed}], cannot be read: {error}. {FORMS}"
            ) from error
    return declarations


# ------------------------------------------------------------------------------------------------------------------- values


def validate(name: str, given: dict, preset: str | None = None, root: Path | None = None) -> dict:
    """All parameters of a run, checked: the defaults, over them the preset, over that what was given.

    Text (from the command line) is read by the parameter's type; a file of the reader's own gets its whole path.

    Raises:
        MiaError: unknown notebook, preset or parameter, wrong type, or not allowed.
    """
    return _checked(parameters(name, preset, root), given)


def _checked(declarations: Sequence[Parameter], given: Mapping, where: str = "") -> dict:
    """The defaults and over them what was given; `where` begins a refusal."""
    from pydantic import Field, create_model

    known = {p.name: p for p in declarations}
    elsewhere = {
        name: _items(value) if name in known and known[name].is_list else value
        for name, value in given.items()
        if not (name in known and known[name].takes_own)
    }
    misplaced = [text for kind in own(elsewhere).values() for text in kind]
    whose = f" {misplaced[0]} is of your own: {where_own(declarations)}" if misplaced else ""
    try:
        for name in given:
            check_choice(f"{where}parameter", name, known)
        values = {p.name: p.default for p in declarations} | dict(given)
        model = create_model(
            "Parameters",
            __config__={"protected_namespaces": ()},
            **{
                p.name: (_annotation(p, values), Field(description=_meaning(p)))
                for p in declarations
            },
        )
        return validated(model, values, where).__dict__
    except MiaError as error:
        raise MiaError(f"{error}{whose}") from error


def where_own(declarations: Sequence[Parameter]) -> str:
    """Sentence that says which of a notebook's parameters take records or networks of the reader's
    own."""
    takes = [p.name for p in declarations if p.takes_own]
    if takes:
        return f"this notebook takes records (FILE.npz) or networks (MODULE:NAME) of your own by {', '.join(takes)}."
    return "this notebook takes none, for it attacks models that are published."


def say_unjudged(declarations: Sequence[Parameter], values: Mapping) -> str:
    """Sentence that says of which parameters so few repetitions are asked for that no claim is judged; "" where of none."""
    few = [
        f"{p.name} = {values[p.name]} (they need {p.judged_from})"
        for p in declarations
        if p.judged_from and values[p.name] < p.judged_from
    ]
    return (
        f"verdicts of claims about this many will read 'not run': {', '.join(few)}" if few else ""
    )


def _meaning(parameter: Parameter) -> str:
    """Sentence that says what a parameter means and what is allowed."""
    text = f"It means: {parameter.meaning}" + f" [{parameter.allowed}]" * bool(parameter.allowed)
    if parameter.is_list:
        text += ". Items are parted by commas; by semicolons, 'a,b;c' or 'a,b;', where one has a comma itself"
    return f"{text}."


def _annotation(parameter: Parameter, values: Mapping):
    """The type of a parameter with what its brackets say, for pydantic; `values` tell how long other lists are."""
    from pydantic import AfterValidator, BeforeValidator, Field

    kind = parameter.item_type
    item = [Field(allow_inf_nan=False)] if kind == "float" else []
    item += [BeforeValidator(_no_truth)] if kind in ("int", "float") else []
    whole = [BeforeValidator(_items)] if parameter.is_list else []
    for clause in parameter.clauses:
        if ".." in clause and kind in ("int", "float"):
            low, high = (SCALARS[kind](end) if end.strip() else None for end in clause.split(".."))
            item.append(Field(ge=low, le=high))
        elif clause == "even" and kind == "int":
            item.append(Field(multiple_of=2))
        elif clause == f"verdicts from {parameter.judged_from}" and kind == "int":
            continue  # it says what a run tells, and refuses nothing
        elif clause in ("distinct", "ascending"):
            whole.append(AfterValidator(partial(_in_order, clause)))
        elif clause == "not empty":
            whole.append(Field(min_length=1))
        elif size := re.fullmatch(r"(\d+) items|as many as (\w+)", clause):
            other = [None] * int(size[1]) if size[1] else _items(values[size[2]])
            if isinstance(other, list):  # what is none is refused for itself
                whole.append(Field(min_length=len(other), max_length=len(other)))
        elif kind == "str" and ".." not in clause:
            whole += [AfterValidator(_titled_apart)] * (
                "data set" in _choices(clause) and parameter.is_list
            )
            item.append(AfterValidator(partial(_one_of, _choices(clause), parameter)))
        else:
            raise ValueError(f"{clause!r} says nothing of {kind}")
    if whole and not parameter.is_list:
        raise ValueError("it is no list")
    each = Annotated[SCALARS[kind], *item] if item else SCALARS[kind]
    return Annotated[list[each], *whole] if parameter.is_list else each


def _no_truth(value):
    if isinstance(value, bool):
        raise ValueError("a number is needed, neither true nor false")
    return value


def _in_order(clause: str, items: list) -> list:
    if len(set(items)) < len(items) or clause == "ascending" and items != sorted(items):
        raise ValueError(f"its items must be {clause}")
    return items


def _titled_apart(names: list) -> list:
    from mia_lib.data import sets

    titles: dict[str, str] = {}
    for name in names:
        other = titles.setdefault(sets.title(name), name)
        if other != name:
            raise ValueError(
                f"tables call both {other} and {name} {sets.title(name)!r}, and their results would be counted "
                "together. Leave one out, or rename a file"
            )
    return names


def _items(value):
    """Items of `a,b`, `a,b;c`, `a,b;` (where an item has commas itself) or `[a, b]`; what is no
    text as it is."""
    if not isinstance(value, str):
        return value
    text = value.strip().strip("[]")
    return [part.strip(" \"'") for part in text.split(";" if ";" in text else ",") if part.strip()]


def as_typed(value):
    """A number as it is; anything else as one would type it after `-p`."""
    if isinstance(value, list):
        items = list(map(str, value))
        if any("," in item for item in items):
            # without one it would be taken apart at its commas
            return ";".join(items) + ";" * (len(items) == 1)
        return ",".join(items)
    if type(value) in (int, float):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return value


def _choices(clause: str) -> list[str]:
    return [part.strip() for part in clause.split("|")]


def _one_of(choices: Sequence[str], parameter: Parameter, value: str) -> str:
    """One of some words, or a name of a kind among them."""
    kind = next((choice for choice in choices if choice in KINDS), None)
    if value in choices or kind is None:
        return check_choice(parameter.name, value, choices)
    return KINDS[kind](value)


# ------------------------------------------------------------------------------------------------------------- kinds of names


def _data_set(name: str) -> str:
    from mia_lib import data

    if not name.endswith(".npz"):
        return check_choice("data set", name, data.names())
    data.from_npz(name)  # says now what is wrong with it
    return str(environment.path(name).resolve())


@contextmanager
def import_path(folders: list[Path]) -> Iterator[None]:
    """Within the block, modules of the user's own are found where notebooks find them."""
    before = list(sys.path)
    sys.path[:0] = map(str, folders)
    try:
        yield
    finally:
        sys.path[:] = before


def _checked_by(parse, text: str) -> str:
    parse(text)
    return text


def _architecture(text: str) -> str:
    if not custom.is_own(text):
        return _checked_by(custom.parse, text)
    with import_path([Path.cwd()]):
        text = custom.to_text(custom.from_text(text))
    if markup := re.search(r"[][<>|`$*\\{}&~^#!]", text):
        raise MiaError(
            f"architecture = {text!r}: {markup[0]} is markup in the tables and sentences that name it. Write "
            "a function in its module that has this argument inside, and name that."
        )
    return text


KINDS = {  # -> the name, checked
    "data set": _data_set,
    "architecture": _architecture,
    "architecture by name": partial(_checked_by, custom.parse),
    "augmentation": partial(_checked_by, custom.parse_augmentation),
}
OWN = ("data set", "architecture")  # those that can be of the reader's own


def texts(values: Mapping) -> list[str]:
    """Every text among the values of parameters, items of lists included."""
    items = (
        item
        for value in values.values()
        for item in (value if isinstance(value, list) else [value])
    )
    return [item for item in items if isinstance(item, str)]


def own(values: Mapping) -> dict[str, list[str]]:
    """Values of a run that are the reader's own: "records", paths of files, and "networks",
    MODULE:NAME."""
    return {
        "records": [text for text in texts(values) if text.endswith(".npz")],
        "networks": list(filter(custom.is_own, texts(values))),
    }
