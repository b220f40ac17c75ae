"""A notebook's parameters: read from its source, changed by a preset or by hand, checked before anything runs.

The cell tagged `parameters` in `notebooks/NAME.py` is the page's interface. Each line declares one parameter::

    references: int = 16  # reference models a target is attacked with [2..256]

The comment says what it means; square brackets at its end say what is allowed, for lists of each item, in clauses parted by
semicolons, or nothing for any value of the type::

    [low..high]        either end may be missing, or be another parameter, also less a number: [2..models - 2]
    [a | b | c]        one of these; one of them may be a kind of name
    [data set]         a kind of name: data set, architecture or augmentation, the last two with what follows their colon
    [even]             a whole number that two divides
    [as many as NAME]  a list as long as that of another parameter
    [N items], [not empty], [distinct], [ascending], [adding up to 1]

A preset is `notebooks/presets/NAME.PRESET.yaml`, read over the defaults; `published` is the defaults, the run that the book
shows. Where there is no `NAME.quick.yaml`, `quick` is the defaults, too.
"""

from __future__ import annotations

import ast
import hashlib
import io
import re
import tokenize
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated

from mia_lib.errors import MiaError, check_choice, check_range

PUBLISHED, QUICK = "published", "quick"
PRESETS = {  # what each is for; a notebook may have others
    PUBLISHED: "the book's own run", QUICK: "what a laptop measures live in minutes", "smoke": "a test, seconds to a minute",
}
SCALARS = {"int": int, "float": float, "str": str, "bool": bool}
WORDS = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false"}
KINDS = {  # of names -> what refuses one that is none
    "data set": lambda name: check_choice("data set", name, import_module("mia_lib.data").names()),
    "architecture": lambda name: import_module("mia_lib.models").parse(name),
    "augmentation": lambda name: import_module("mia_lib.training.recipe").parse_augmentation(name),
}
RULES = {  # of lists
    "not empty": bool, "even": lambda items: not any(item % 2 for item in items),
    "distinct": lambda items: len(set(items)) == len(items), "ascending": lambda items: items == sorted(set(items)),
    "adding up to 1": lambda items: abs(sum(items) - 1) < 1e-9,
}
SIZE = re.compile(r"(\d+) items|as many as (\w+)")
BOUND = re.compile(r"([a-z]\w*)(?:\s*-\s*(\d+))?")  # another parameter, also less a number


@dataclass(frozen=True)
class Parameter:
    """One line of the parameters cell.

    Attributes:
        name: as in the notebook and in `mia run NAME -p name value`.
        type: "int", "float", "str", "bool", "list[...]" or "tuple[...]" of one of them.
        default: the value in the source, or the preset's.
        allowed: what the brackets say, "" when any value of the type is allowed.
        meaning: the rest of the comment.
    """

    name: str
    type: str
    default: object
    allowed: str = ""
    meaning: str = ""


def find_root(root: Path | str | None = None) -> Path:
    """The folder of the book: `root` when given, else the nearest one around the working directory, else the
    checkout that `mia_lib` was installed from.

    Raises:
        MiaError: none of them has a `notebooks` folder.
    """
    here = Path.cwd()
    tried = [Path(root)] if root is not None else [here, *here.parents, Path(__file__).resolve().parents[2]]
    for folder in tried:
        if (folder / "notebooks").is_dir() and (root is not None or (folder / "_toc.yml").is_file()):
            return folder.resolve()
    raise MiaError(f"No book here: {tried[0]} has no notebooks folder with a _toc.yml beside it. "
                   "Run `mia` inside a clone of the repository.")


def notebooks(root: Path | None = None) -> list[str]:
    """Names of the notebooks, one a `notebooks/NAME.py`."""
    return sorted(path.stem for path in (find_root(root) / "notebooks").glob("*.py"))


def presets(name: str, root: Path | None = None) -> list[str]:
    """Names of the presets of notebook `name`, `published` and `quick` first."""
    files = (find_root(root) / "notebooks" / "presets").glob(f"{name}.*.yaml")
    return [PUBLISHED, QUICK, *sorted({path.stem.removeprefix(f"{name}.") for path in files} - {QUICK})]


def read(source: Path):
    """The notebook in a py:percent file, with a kernel name and nothing else in its metadata. Each cell has an id that depends
    on its source alone, so that converting twice gives the same file."""
    import jupytext

    notebook = jupytext.read(source)
    notebook.metadata.clear()
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    times: Counter[str] = Counter()
    for cell in notebook.cells:
        text = f"{cell.cell_type}\n{cell.source}"
        times[text] += 1
        cell["id"] = hashlib.sha256(f"{times[text]}\n{text}".encode()).hexdigest()[:12]
    return notebook


def parameters(name: str, preset: str | None = None, root: Path | None = None) -> list[Parameter]:
    """The parameters of a notebook, in the order of its source.

    Args:
        name: of the notebook.
        preset: whose values stand as defaults; None or "published" for those in the source.
        root: folder of the book.

    Raises:
        MiaError: unknown notebook or preset, a parameters cell or a preset that cannot be read or is not allowed.
    """
    root = find_root(root)
    check_choice("notebook", name, notebooks(root))
    text = (root / "notebooks" / f"{name}.py").read_text(encoding="utf-8")
    declarations = [p for source in code_cells(text, "parameters") for p in declared(source, f"notebooks/{name}.py")]
    check_choice(f"preset of {name}", preset or PUBLISHED, presets(name, root))
    file = root / "notebooks" / "presets" / f"{name}.{preset}.yaml"
    if preset in (None, PUBLISHED) or preset == QUICK and not file.is_file():
        return declarations
    values = _check(declarations, _load(file), f"preset {preset}: ")
    return [replace(p, default=values.get(p.name, p.default)) for p in declarations]


def validate(name: str, given: dict, preset: str | None = None, root: Path | None = None) -> dict:
    """All parameters of a run: the defaults, over them the preset, over that what was given.

    Args:
        name: of the notebook.
        given: parameter -> value; text (from the command line) is read according to the parameter's type.
        preset: name of the preset, None for "published".
        root: folder of the book.

    Returns:
        Parameter -> value, complete and checked.

    Raises:
        MiaError: unknown notebook, preset or parameter, wrong type, or not allowed.
    """
    declarations = parameters(name, preset, root)
    values = _check(declarations, {**{p.name: p.default for p in declarations}, **given})
    for parameter in declarations:
        _check_together(parameter, values)
    return values


def code_cells(text: str, tag: str = "") -> list[str]:
    """The code cells of a py:percent file, without Jupytext: importing it takes longer than all else here.

    Args:
        text: of the file.
        tag: only cells that have it.
    """
    _, *parts = re.split(r"^# %%(.*)\n", text, flags=re.MULTILINE)
    cells = [source.rstrip() for header, source in zip(parts[::2], parts[1::2], strict=True)
             if not re.search(r"\[(markdown|md|raw)\]", header)
             and (not tag or re.search(rf"""tags=\[[^]]*["']{tag}["']""", header))]
    return [re.sub(r"^# ([%!])", r"\1", source, flags=re.MULTILINE) for source in cells]


def declared(source: str, where: str) -> list[Parameter]:
    """The parameters that a cell declares."""
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        raise MiaError(f"{where}: the parameters cell is not Python: {error}.") from error
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {t.start[0]: t.string.lstrip("#").strip() for t in tokens if t.type == tokenize.COMMENT}
    declarations = []
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value):
            raise MiaError(f"{where}: {ast.unparse(node)!r} in the parameters cell is no parameter. Write "
                           "`name: type = value  # meaning [allowed]`.")
        try:
            default = ast.literal_eval(node.value)
        except ValueError as error:
            raise MiaError(f"{where}: the default of {node.target.id} must be a plain value.") from error
        kind = _kind(ast.unparse(node.annotation), default, f"{where}: {node.target.id}")
        lines = range(node.lineno, node.end_lineno + 1)
        meaning = " ".join(comments[i] for i in lines if i in comments) or comments.get(node.lineno - 1, "")
        allowed = ""
        match = re.fullmatch(r"(.*?)\s*\[([^\[\]]*)\]", meaning, re.DOTALL)
        # Brackets that allow nothing in these words are part of the sentence, such as a unit.
        if match and all(".." in c or "|" in c or c in KINDS or c in RULES or SIZE.fullmatch(c) for c in _clauses(match[2])):
            meaning, allowed = match[1], match[2].strip()
        declarations.append(Parameter(node.target.id, kind, default, allowed, meaning))
    return declarations


def _kind(annotation: str, default, where: str) -> str:
    match = re.fullmatch(r"(list|tuple)(?:\[(\w+)(?:, \.\.\.)?\])?", annotation)
    item = annotation
    if match:
        item = match[2] or (type(default[0]).__name__ if default else "str")
        annotation = f"{match[1]}[{item}]"
    if item not in SCALARS:
        raise MiaError(f"{where} has type {annotation!r}. Allowed: {', '.join(SCALARS)}, list and tuple of them.")
    return annotation


def _load(path: Path) -> dict:
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise MiaError(f"{path} is not YAML: {' '.join(str(error).split())}. Write one `name: value` a line.") from error
    if not isinstance(values, dict):
        raise MiaError(f"{path} holds a {type(values).__name__}. Write one `name: value` a line.")
    return values


def validated(model: type, values, where: str):
    """Values as a pydantic model has them.

    Raises:
        MiaError: what it refuses first, after `where` and its place: "entry 2: minutes.cpu: Input should be greater than 0".
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"{part}: " for part in [".".join(map(str, first["loc"]))] if part)
        raise MiaError(f"{where}: {place}{first.get('ctx', {}).get('error', first['msg'])}") from error


def _check(declared: list[Parameter], values: dict, where: str = "") -> dict:
    """Values by type and by what brackets say of each alone; `where` begins a refusal."""
    from pydantic import ConfigDict, ValidationError, create_model

    known = {p.name: p for p in declared}
    for name in values:
        check_choice(f"{where}parameter", name, known)
    model = create_model("Parameters", __config__=ConfigDict(protected_namespaces=()),
                         **{name: (_annotation(known[name]), ...) for name in values})
    try:
        return model.model_validate(values).__dict__
    except ValidationError as error:
        first = error.errors()[0]
        parameter, text = known[first["loc"][0]], str(first.get("ctx", {}).get("error", ""))
        kind = parameter.type.rstrip("]").rpartition("[")[2]
        if not text and first["type"] in ("list_type", "tuple_type"):
            text = (f"{parameter.name} = {first['input']!r} is not a list. Give {WORDS[kind]} each, with commas between, "
                    "a,b,c; or semicolons, where an item has a comma itself.")
        elif not text:
            allowed = f" Allowed: {parameter.allowed}." if parameter.allowed else ""
            text = (f"{parameter.name} = {first['input']!r} has the wrong type: give {WORDS[kind]}, such as "
                    f"{parameter.default!r}.{allowed}")
        typed = values[parameter.name]
        if parameter.type.endswith("[str]") and isinstance(typed, str) and "," in typed and not set(typed) & set(";[("):
            text += (f" An item that has a comma itself ends with a semicolon: {typed!r} as one item is '{typed};'.")
        raise MiaError(where + text) from error


def _annotation(parameter: Parameter):
    """The type of a parameter with what its brackets say of each item, for pydantic."""
    from pydantic import AfterValidator, BeforeValidator, Field

    collection, _, kind = parameter.type.rstrip("]").rpartition("[")
    exact = [] if kind in ("str", "bool") else [BeforeValidator(_no_truth)]
    exact += [Field(allow_inf_nan=False)] if kind == "float" else []
    item = Annotated[SCALARS[kind], *exact, AfterValidator(partial(_allowed, parameter, kind))]
    if not collection:
        return item
    return Annotated[tuple[item, ...] if collection == "tuple" else list[item], BeforeValidator(_items)]


def _no_truth(value):
    if isinstance(value, bool):
        raise ValueError
    return value


def plain(value):
    """A number as it is; anything else as one would type it after `-p`."""
    if isinstance(value, list | tuple):
        items = list(map(str, value))
        if any("," in item for item in items):
            return ";".join(items) + ";" * (len(items) == 1)  # without one it would be taken apart at its commas
        return ",".join(items)
    return value if type(value) in (int, float) else str(value).lower() if isinstance(value, bool) else value


def _items(value) -> list:
    """What `a,b`, `a,b;c` or `a,b;` (where an item has commas itself) or a Python list holds; what is no text as it is."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith(("[", "(")):
        try:
            return list(ast.literal_eval(text))
        except (ValueError, SyntaxError, TypeError):
            text = text.strip("[]()")
    return [part.strip() for part in text.split(";" if ";" in text else ",") if part.strip()]


def _allowed(parameter: Parameter, kind: str, value):
    """Refuse an item that the brackets do not allow, whatever the others are."""
    name = parameter.name
    for clause in _clauses(parameter.allowed.removeprefix("list of")):
        if "|" in clause or clause in KINDS:
            parts = [part.strip().strip("\"'") for part in clause.split("|")]
            _choose(parameter, value, [part if kind == "str" else SCALARS[kind](part) for part in parts])
        elif ".." in clause:
            bounds = [None if BOUND.fullmatch(b.strip()) or not b.strip() else SCALARS[kind](b) for b in clause.split("..")]
            check_range(name, value, *bounds)
        elif clause == "even" and value % 2:
            raise MiaError(f"{name} = {value!r} is odd: an even number is needed, such as {value + 1}.")
    return value


def _clauses(allowed: str) -> list[str]:
    return [clause.strip() for clause in allowed.split(";") if clause.strip()]


def _choose(parameter: Parameter, value, parts: list) -> None:
    """Refuse what is neither one of `parts` nor a name of a kind among them."""
    name = parameter.name
    kinds = [part for part in parts if part in KINDS]
    if not kinds:
        check_choice(name, value, parts)
        return
    default = parameter.default if isinstance(parameter.default, list | tuple) else [parameter.default]
    if value in parts or value in default:  # defaults need no check, and the modules that know the names are slow to load
        return
    for kind in kinds:
        try:
            KINDS[kind](value)
        except MiaError as error:
            others = ", ".join(repr(part) for part in parts if part not in KINDS)
            where = "" if str(error).startswith(f"{name} = ") else f"{name}: "
            raise MiaError(f"{where}{error}" + (f" Or {others}." if others else "")) from error


def _check_together(parameter: Parameter, values: dict) -> None:
    """Refuse a value that does not fit those of other parameters, or a list that is not what its brackets say."""
    name, value = parameter.name, values[parameter.name]
    items = list(value) if isinstance(value, list | tuple) else [value]
    for clause in _clauses(parameter.allowed.removeprefix("list of")):
        low, _, high = clause.partition("..")
        for end, sign, side in ((low, 1, "at least"), (high, -1, "at most")):
            bound = BOUND.fullmatch(end.strip()) if ".." in clause else None
            limit = values[bound[1]] - int(bound[2] or 0) if bound else None
            if bound and any(sign * item < sign * limit for item in items):
                raise MiaError(f"{name} = {value!r} is out of range: allowed is {side} {limit}, that is {end.strip()}. "
                               f"Change one or the other.")
        size = SIZE.fullmatch(clause)
        if (len(items) != (int(size[1]) if size[1] else len(values[size[2]])) if size else clause in RULES
                and not RULES[clause](items)):
            other = f" {size[2]} has {len(values[size[2]])}, {name} {len(items)}." if size and size[2] else ""
            raise MiaError(f"{name} = {value!r} is not allowed: it must be {clause}.{other} It means: {parameter.meaning}.")
