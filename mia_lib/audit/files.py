"""Objects that the command line names: models, records, recipes, scores.

Modules, programs of `torch.export` (see `programs`) and recipes that name a module are code; a program and such a recipe are
read with consent alone. All else is data: a pickle, which runs whatever it says when it is read, is refused, and weights come
as safetensors.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from mia_lib import custom, data, documents, environment
from mia_lib.archives import read_csv, read_npz
from mia_lib.audit.programs import read_program
from mia_lib.checks import check_mask
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, brief, check_choice, first_line, list_few
from mia_lib.training import TrainConfig

if TYPE_CHECKING:
    import pandas as pd

TABLES = (".csv", ".parquet")
SAVED = (
    "Save it by np.savez(path, x=x, y=y); a table with words or missing values as Parquet or CSV, "
    "table.to_parquet(path), with --label and the name of the column to be predicted."
)
PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".joblib", ".bin", ".ckpt", ".sav")
NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+"  # which YAML 1.1 takes for text unless it has both point and sign
SAFE = (
    "a pickle runs what it says when it is read, so none is read here. Where you trust the file, turn it into "
    "safetensors yourself: state = torch.load(path, weights_only=True); "
    "safetensors.torch.save_file(state, 'weights.safetensors'); then `mia audit my_module:factory --state "
    "weights.safetensors`. Of a scikit-learn model write a module that loads it, and name it there: `mia audit "
    "my_module:pipeline`."
)


def model(name: str, state: str | None = None, trust: bool = False):
    """A model by its name on the command line.

    Args:
        name: `my_module:factory` with `state`, a `.pt2` program, or `my_module:predict`. state: safetensors of the factory's
            network. trust: whether a program, which is code, may be read.

    Raises:
        MiaError: pickles, files that are not there, weights that do not fit, a program without trust.
    """
    for argument, file in ((f"MODEL = {name}", name), (f"--state {state}", state or "")):
        if Path(file).suffix.lower() in PICKLES:
            raise MiaError(f"{argument} is a pickle: {SAFE}")
    path = environment.path(name)
    if path.suffix.lower() == ".pt2":
        if state:
            raise MiaError(
                f"--state {state} was given with the program {name}, which has its weights in it: leave it out."
            )
        return read_program(path, trust)
    if path.suffix.lower() in (".safetensors", ".onnx", ".h5", ".keras"):
        weights = f"what builds its network, `mia audit my_module:factory --state {name}`"
        runs = "a function of records that runs the file, as by onnxruntime, `mia audit my_module:predict`"
        raise MiaError(
            f"MODEL = {name} holds no program that can be run here: name "
            f"{weights if path.suffix.lower() == '.safetensors' else runs}."
        )
    if path.suffix.lower() in (".ts", ".torchscript"):
        raise MiaError(
            f"MODEL = {name} is a file of TorchScript: name a module that loads it, `network = torch.jit.load(path)`, and "
            "`mia audit my_module:network`."
        )
    factory = _import(name)
    if state is None and isinstance(factory, type) and issubclass(factory, nn.Module):
        raise MiaError(
            f"MODEL = {name} is a class of networks without weights: give them, --state weights.safetensors."
        )
    if state is None:
        exported = isinstance(factory, torch.fx.GraphModule)  # which has no other mode
        return factory.eval() if isinstance(factory, nn.Module) and not exported else factory
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    network = _build(name, factory)
    try:
        network.load_state_dict(load_file(environment.path(state)))
    except (SafetensorError, OSError, ValueError) as error:
        raise MiaError(
            f"--state {state} is no safetensors file ({error}): save it by "
            "safetensors.torch.save_file(network.state_dict(), path)."
        ) from error
    except RuntimeError as error:
        raise MiaError(
            f"--state {state} does not fit {name}. {' '.join(str(error).split())} Build the network that it was "
            "saved from, or strip a prefix such as 'module.' from its names."
        ) from error
    return network.eval()


def _build(name: str, factory) -> nn.Module:
    """The network that a factory returns, or the network itself."""
    network = factory
    if callable(factory) and not isinstance(factory, nn.Module):
        try:
            inspect.signature(factory).bind()
        except (TypeError, ValueError) as error:
            module, _, attribute = name.partition(":")
            raise MiaError(
                f"MODEL = {name} cannot be called without arguments ({error}): with --state a function is needed "
                f"that builds the network, such as `def build(): return {attribute}(...)` in "
                f"{module.split('.')[-1]}.py, and MODEL {module}:build."
            ) from error
        try:
            network = factory()
        except Exception as error:
            raise MiaError(
                f"MODEL = {name} fails when it is called ({type(error).__name__}: {first_line(error)}): with "
                "--state it must build the network."
            ) from error
    if not isinstance(network, nn.Module):
        raise MiaError(
            f"MODEL = {name} gives a {type(network).__name__}: with --state a function or class is needed that "
            "returns a torch.nn.Module."
        )
    return network


def add_working_folder() -> None:
    """Let modules be imported from the folder where the command runs."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def _import(name: str, option: str = "MODEL"):
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise MiaError(
            f"{option} = {name!r}: write my_module:name, a model with --state weights.safetensors, my_module:predict, "
            f"or a program.pt2 of torch.export."
        )
    add_working_folder()
    try:
        thing = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (module.split(".")[0], module):
            raise MiaError(
                f"{option} = {name}: {module} imports {error.name}, which is not installed here."
            ) from error
        raise MiaError(
            f"{option} = {name}: there is no module {module} in {Path.cwd()} or on PYTHONPATH. Run the command "
            f"beside {module.split('.')[0]}.py."
        ) from error
    except Exception as error:
        raise MiaError(
            f"{option} = {name}: {module} cannot be imported ({type(error).__name__}: {error})."
        ) from error
    for part in attribute.split("."):
        if not hasattr(thing, part):
            check_choice(
                f"{option} = {name}: {part}",
                part,
                [name for name in dir(thing) if not name.startswith("_")],
            )
        thing = getattr(thing, part)
    return thing


def read(
    paths: Mapping[str, str | None], trust: bool = False, refit: str | None = None
) -> tuple[tuple[Dataset, Dataset], dict]:
    """Members and non-members, and the options public, recipe, refit, references_from, groups and ids, from the files that
    name them.

    Args:
        paths: name of an option, without its hyphens -> a path; of label, groups and id a column or an array of the files of
            records. None where it was not given.
        trust: as for `recipe`. refit: a function or an estimator in a module.
    """
    named = {
        name: str(paths[name]) for name in ("members", "non-members", "public") if paths.get(name)
    }
    label, group, own = (paths.get(name) for name in ("label", "groups", "id"))
    more = [name for name in (group, own) if name]
    columns: dict[str, Mapping] = {}
    if any(Path(path).suffix.lower() in TABLES for path in named.values()):
        tables = same_columns({name: _table(path, name, own) for name, path in named.items()})
        sets = {}
        for argument, table in tables.items():
            columns[argument] = _columns(table, f"--{argument} {named[argument]}", more)
            sets[argument] = _framed(
                table.drop(columns=own or []), label, argument, named[argument]
            )
    else:
        if label:
            raise MiaError(
                f"--label {label} is of tables, CSV or Parquet: in .npz files labels are the array y."
            )
        sets = {argument: records(path, argument) for argument, path in named.items()}
        columns = {
            argument: arrays(named[argument], argument, more)
            for argument in ("members", "non-members")
            if more
        }
    sets = same_classes(sets)
    options = {
        "public": sets.get("public"),
        "recipe": recipe(paths["recipe"], trust) if paths.get("recipe") else None,
        "references_from": arrays(paths["references-from"], "references-from", ("members",), None)
        if paths.get("references-from")
        else None,
    }
    for option, name in (("groups", group), ("ids", own)):
        if name:
            options[option] = tuple(columns[side][name] for side in ("members", "non-members"))
    if refit:
        trained = _import(refit, "--refit")
        options["refit" if callable(trained) else "recipe"] = trained
    return (sets["members"], sets["non-members"]), options


def _table(path: str, argument: str, own: str | None) -> pd.DataFrame:
    """A table from a CSV or a Parquet file; its column `own`, names of records, is no number, which would be rounded."""
    import pandas as pd

    file, what = environment.path(path), f"--{argument} {path}"
    if file.suffix.lower() == ".csv":
        return read_csv(file, what, [own] if own else [])
    if file.suffix.lower() != ".parquet":
        raise MiaError(
            f"{what} is no table, where another file of records is one: give all as CSV, all as Parquet, or all as .npz."
        )
    try:
        return pd.read_parquet(file)
    except ImportError as error:
        raise MiaError(
            f"{what}: pandas reads Parquet with pyarrow, which is not installed here: pip install "
            "'mia_lib[parquet]' (in a clone: pip install -c constraints.txt -e '.[parquet]'), or save CSV, "
            "table.to_csv(path, index=False)."
        ) from error
    except Exception as error:  # pyarrow has kinds of its own
        raise MiaError(
            f"{what} cannot be read as Parquet ({first_line(error)}): save it by table.to_parquet(path)."
        ) from error


def _columns(table: pd.DataFrame, what: str, names: Sequence[str]) -> Mapping:
    for name in names:
        check_choice(f"{what}: column", name, map(str, table.columns))
    return table


def _framed(table: pd.DataFrame, label: str | None, argument: str, path: str) -> Dataset:
    if label is None:
        raise MiaError(
            f"--{argument} {path} is a table: say which column is to be predicted, --label NAME. It has "
            f"{list_few(table.columns)}."
        )
    try:
        return data.from_frame(table, label, argument)
    except MiaError as problem:
        raise MiaError(f"--{argument} {path}: {problem}") from problem


def same_columns(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Tables of one problem, by option, with columns of the same order and types: those of all of them together, for one file
    may have no missing value in a column, or not all of its categories."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    first, *others = tables
    for argument in others:
        if unshared := [*tables[argument].columns.symmetric_difference(tables[first].columns)]:
            raise MiaError(
                f"--{argument} and --{first} do not have the same columns: not both have {list_few(unshared)}."
            )
    kinds = {}
    for name in tables[first]:
        parts = [table[name] for table in tables.values()]
        if all(isinstance(part.dtype, pd.CategoricalDtype) for part in parts):
            alike = all(part.dtype == parts[0].dtype for part in parts)
            kinds[name] = parts[0].dtype if alike else union_categoricals(parts).dtype
    whole = pd.concat(
        [table[tables[first].columns].astype(kinds) for table in tables.values()], ignore_index=True
    )
    ends = np.cumsum([len(table) for table in tables.values()])
    return {
        argument: whole.iloc[end - len(tables[argument]) : end].reset_index(drop=True)
        for argument, end in zip(tables, ends, strict=True)
    }


def records(path: str, argument: str) -> Dataset:
    """A data set from an `.npz` file with arrays x and y, and classes, where it names them; see `data.from_arrays`. Tables of
    whole numbers, such as ids of tokens, stay such."""
    content = arrays(path, argument, ("x", "y"), ("classes",))
    x = content["x"]
    try:
        made = data.from_arrays(x, content["y"], argument, content.get("classes"))
    except MiaError as problem:
        raise MiaError(f"--{argument} {path}: {problem}") from problem
    return replace(made, x=x.astype(np.int64)) if x.ndim == 2 and x.dtype.kind in "iu" else made


def score_table(
    path: str, score: str, member: str, more: Mapping[str, str | None] | None = None
) -> tuple[dict[str, np.ndarray], np.ndarray, dict[str, np.ndarray]]:
    """Scores [N] by name, members bool [N] and further columns by the option that takes them, from the columns or arrays of
    these names in a CSV or an `.npz` file with one row a record. Several scores are parted by commas. Members are 1 or True;
    other values, missing ones but of groups, and one column for two of these raise `MiaError`."""
    import pandas as pd

    named = {option: column for option, column in (more or {}).items() if column}
    if Path(path).suffix.lower() == ".npz":
        table = arrays(path, "scores", (), None)
    else:
        table = dict(
            read_csv(environment.path(path), f"--scores {path}", [*named.values()]).items()
        )
    columns = [score] if score in table else score.split(",")
    wanted = [
        *(("score", column) for column in columns),
        ("member", member),
        *(("id" if option == "ids" else option, column) for option, column in named.items()),
    ]
    if len({column for _, column in wanted}) < len(wanted):
        raise MiaError(
            f"{', '.join(f'--{option} {column}' for option, column in wanted)}: one column cannot be two of these. "
            f"{path} has {', '.join(table) or 'none'}."
        )
    for option, column in wanted:
        if column not in table:
            raise MiaError(
                f"--{option} {column}: {path} has no such column. It has {', '.join(table) or 'none'}."
            )
        empty = int(pd.isna(table[column]).sum())
        if empty and option in ("score", "member"):
            raise MiaError(
                f"--{option} {column}: {empty} values are missing in {path}: leave these rows out."
            )
    scores = {column: np.asarray(table[column]) for column in columns}
    is_member = check_mask(f"--member {member}", table[member], "a member")
    if len(columns) == 1:
        scores = {"score": scores[columns[0]]}
    return (
        scores,
        is_member,
        {option: np.asarray(table[column]) for option, column in named.items()},
    )


def arrays(
    path: str, argument: str, needed: Sequence[str], more: Sequence[str] | None = ()
) -> dict[str, np.ndarray]:
    """Arrays by name from the `.npz` file that an option names, see `read_npz`."""
    file, remedy = environment.path(path), SAVED
    if file.suffix.lower() in (*PICKLES, ".npy"):
        kind = "single array" if file.suffix.lower() == ".npy" else "pickle, which is not read"
        raise MiaError(f"--{argument} {path} is a {kind}. {remedy}")
    return read_npz(file, f"--{argument} {path}", needed, more, remedy)


def same_classes(sets: Mapping[str, Dataset]) -> dict[str, Dataset]:
    """Data sets of one problem, by option, with the same classes, where a file lacks some: those of the set that has most, in
    its order. Fewer classes that are numbers from 0 may have been counted anew for a set alone: they raise `MiaError`."""
    classes = max((records.classes for records in sets.values()), key=len)
    if not all(set(records.classes) <= set(classes) for records in sets.values()):
        return dict(sets)  # which the audit refuses
    for argument, records in sets.items():
        if len(records.classes) < len(classes) and records.classes == tuple(
            map(str, range(len(records.classes)))
        ):
            raise MiaError(
                f"--{argument} has {len(records.classes)} classes, numbered 0 to {len(records.classes) - 1}, where "
                f"another file has {len(classes)}: nothing says that the numbers mean the same in both. Save the "
                f"names of all {len(classes)} classes in each file: np.savez(path, x=x, y=y, classes=classes)."
            )
    place = {name: k for k, name in enumerate(classes)}
    return {
        argument: replace(
            records,
            y=np.array([place[name] for name in records.classes])[records.y],
            classes=classes,
        )
        for argument, records in sets.items()
    }


def recipe(path: str, trust: bool = False) -> TrainConfig:
    """A recipe from YAML or JSON, the attributes of `TrainConfig` by name.

    Args:
        trust: whether it may name what makes the network, which is code: any function that Python can import, with arguments.

    Raises:
        MiaError: anything else; a recipe that names code without trust.
    """
    try:
        values = documents.load(
            environment.path(path),
            remedy="Write one `name: value` a line, as architecture: mlp:64.",
        )
    except MiaError as error:
        raise MiaError(f"--recipe {error}") from error
    for name in values:
        check_choice(f"--recipe {path}: name", name, [field.name for field in fields(TrainConfig)])
    if "architecture" not in values:
        raise MiaError(
            f"--recipe {path} names no architecture: write architecture: mlp:64, or that of the model."
        )
    if custom.is_own(values["architecture"]):
        if not trust:
            raise MiaError(
                f"--recipe {path} names code, architecture: {brief(values['architecture'])}, which is imported and "
                "called as it says there: whoever wrote the recipe can have it read, change and send away your files. "
                "Where you trust them say so, --trust."
            )
        add_working_folder()
    return TrainConfig(
        **{
            name: float(value) if isinstance(value, str) and re.fullmatch(NUMBER, value) else value
            for name, value in values.items()
        }
    )
