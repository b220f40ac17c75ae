"""What the command line names, as objects: models, records, recipes, scores. Nothing is ever unpickled.

A pickle runs whatever it says when it is read, so weights come as safetensors, and of a `torch.export` program, which can hold
pickles, each is first read by PyTorch's reader that takes plain tensors alone.
"""

from __future__ import annotations

import importlib
import inspect
import io
import json
import re
import sys
import zipfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

from mia_lib import data
from mia_lib.checks import check_mask
from mia_lib.data import Dataset
from mia_lib.errors import MiaError, check_choice
from mia_lib.training import TrainConfig

PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".joblib", ".bin", ".ckpt", ".sav")
SAFE = ("a pickle runs what it says when it is read, so none is read here. Where you trust the file, turn it into "
        "safetensors yourself: state = torch.load(path, weights_only=True); "
        "safetensors.torch.save_file(state, 'weights.safetensors'); then `mia audit my_module:factory --state "
        "weights.safetensors`. Of a scikit-learn model name a function: `mia audit my_module:predict`.")


def model(name: str, state: str | None = None):
    """A model by its name on the command line.

    Args:
        name: `my_module:factory` with `state`, a `.pt2` program, or `my_module:predict`. state: safetensors of the factory's
            network.

    Raises:
        MiaError: pickles, files that are not there, weights that do not fit.
    """
    path = Path(name).expanduser()
    if path.suffix.lower() in PICKLES:
        raise MiaError(f"MODEL = {name} is a pickle: {SAFE}")
    if path.suffix.lower() == ".pt2":
        if state:
            raise MiaError(f"--state {state} was given with the program {name}, which has its weights in it: leave it out.")
        return program(path)
    if path.suffix.lower() in (".safetensors", ".onnx", ".h5", ".keras"):
        remedy = (f"`mia audit my_module:factory --state {name}`, where factory() builds the network" if
                  path.suffix == ".safetensors" else "`mia audit my_module:predict`, a function that runs it")
        raise MiaError(f"MODEL = {name} holds no program that can be run: name {remedy}.")
    network = _import(name)
    if state is None:
        if isinstance(network, type) and issubclass(network, nn.Module):
            raise MiaError(f"MODEL = {name} is a class of networks without weights: give them, --state "
                           f"weights.safetensors.")
        return network.eval() if isinstance(network, nn.Module) else network
    if Path(state).suffix.lower() in PICKLES:
        raise MiaError(f"--state {state} is a pickle: {SAFE}")
    if callable(network) and not isinstance(network, nn.Module):
        _check_factory(network, name)
        network = network()
    if not isinstance(network, nn.Module):
        raise MiaError(f"MODEL = {name} gives a {type(network).__name__}: with --state a function or class is needed that "
                       "returns a torch.nn.Module.")
    _load(network, Path(state).expanduser(), name)
    return network.eval()


def _check_factory(factory, name: str) -> None:
    module, _, attribute = name.partition(":")
    try:
        inspect.signature(factory).bind()
    except TypeError as error:
        raise MiaError(f"MODEL = {name} cannot be called without arguments ({error}): with --state a function is needed that "
                       f"builds the network, such as `def build(): return {attribute}(...)` in {module.split('.')[-1]}.py, "
                       f"and MODEL {module}:build.") from error
    except ValueError:  # nothing is known of its arguments
        pass


def add_working_folder() -> None:
    """Modules in the folder where the command runs can be imported."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def _import(name: str):
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise MiaError(f"MODEL = {name!r}: write my_module:factory with --state weights.safetensors, my_module:predict, "
                       f"or a program.pt2 of torch.export.")
    add_working_folder()
    try:
        thing = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0] and error.name != module:
            raise MiaError(f"MODEL = {name}: {module} imports {error.name}, which is not installed here.") from error
        raise MiaError(f"MODEL = {name}: there is no module {module} in {Path.cwd()} or on PYTHONPATH. Run the command "
                       f"beside {module.split('.')[0]}.py.") from error
    for part in attribute.split("."):
        if not hasattr(thing, part):
            known = [public for public in vars(thing) if not public.startswith("_")] if hasattr(thing, "__dict__") else []
            check_choice(f"MODEL = {name}: {part}", part, known or ["nothing"])
        thing = getattr(thing, part)
    return thing


def _load(network: nn.Module, path: Path, name: str) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        state = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise MiaError(f"--state {path} is no safetensors file ({error}): save it by "
                       "safetensors.torch.save_file(network.state_dict(), path).") from error
    ours = network.state_dict()
    lacking, more = sorted(set(ours) - set(state)), sorted(set(state) - set(ours))
    wrong = [f"{key} {tuple(state[key].shape)} for {tuple(ours[key].shape)}" for key in ours
             if key in state and state[key].shape != ours[key].shape]
    if lacking or more or wrong:
        misfits = "; ".join(filter(None, [lacking and f"lacks {', '.join(lacking[:3])}",
                                          more and f"has {', '.join(more[:3])} more",
                                          wrong and f"has {', '.join(wrong[:3])}"]))
        raise MiaError(f"--state {path} does not fit {name}: it {misfits}. Build the network that it was saved from, or "
                       f"strip a prefix such as 'module.' from its names.")
    network.load_state_dict(state)


def program(path: Path):
    """A program of `torch.export`.

    Raises:
        MiaError: no such file, none of `torch.export`'s, or one with pickles that hold more than tensors.
    """
    if not path.is_file():
        raise MiaError(f"MODEL = {path}: there is no such file.")
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.namelist():
                _check_entry(entry, archive.read(entry), path)
    except zipfile.BadZipFile as error:
        raise MiaError(f"MODEL = {path} is no program of torch.export: save it by torch.export.save(program, "
                       "path).") from error
    try:
        return torch.export.load(path)
    except Exception as error:
        raise MiaError(f"MODEL = {path} cannot be read as a program of torch.export ({error}). Save it by the version of "
                       f"PyTorch here, {torch.__version__}.") from error


def _check_entry(entry: str, content: bytes, path: Path) -> None:
    """Refuse pickles that hold more than tensors; weights as plain bytes are none."""
    danger, name = "", entry.rpartition("/")[2]
    if entry.endswith(".json"):
        danger = "weights kept as pickles" if _pickled(json.loads(content)) else ""
    elif "custom_obj" in entry or "opaque" in entry:
        danger = "objects of its own"
    elif content[:2] in (b"PK", b"\x80\x02", b"\x80\x04", b"\x80\x05") and not re.fullmatch(r"(weight|tensor)_\d+", name):
        try:
            torch.load(io.BytesIO(content), weights_only=True)
        except Exception:
            danger = "a pickle that is more than tensors"
    if danger:
        raise MiaError(f"MODEL = {path} holds {danger} ({entry}), which would run code when read. Export the network again "
                       f"with plain tensors for parameters and example inputs.")


def _pickled(config) -> bool:
    """Whether a description says anywhere that something is to be unpickled."""
    if isinstance(config, dict):
        return config.get("use_pickle") is True or any(map(_pickled, config.values()))
    return isinstance(config, list) and any(map(_pickled, config))


def records(path: str, argument: str) -> Dataset:
    """A data set from an `.npz` file with arrays x and y, and classes, where it names them; see `data.from_npz`.

    Raises:
        MiaError: another kind of file, arrays that are no records.
    """
    if Path(path).suffix.lower() == ".csv":
        raise MiaError(f"--{argument} {path} is a CSV, whose texts would become columns by what this file alone holds. "
                       f"Make one table of all records, as by data.from_csv, and save its parts by np.savez(path, x=x, "
                       f"y=y).")
    arrays = _arrays(path, argument)
    if lacking := [name for name in ("x", "y") if name not in arrays]:
        raise MiaError(f"--{argument} {path} has no array {' and '.join(lacking)} (it has "
                       f"{', '.join(arrays) or 'none'}): save it by np.savez(path, x=x, y=y).")
    try:
        return data.from_arrays(arrays["x"], arrays["y"], argument, arrays.get("classes"))
    except MiaError as problem:
        raise MiaError(f"--{argument} {path}: {problem}") from problem


def groups(name: str, paths: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """The group of each record, an array of the same name in both files."""
    files = [_arrays(path, argument) for path, argument in zip(paths, ("members", "non-members"), strict=True)]
    for path, arrays in zip(paths, files, strict=True):
        if name not in arrays:
            raise MiaError(f"--groups {name}: {path} has no such array. It has {', '.join(arrays)}.")
    return files[0][name], files[1][name]


def score_table(path: str, score: str, member: str, groups: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Scores [N], members bool [N] and groups [N], or None, from a CSV or an `.npz` file with one row a record.

    Args:
        score, member, groups: names of columns or arrays. Members are 1 or True.

    Raises:
        MiaError: a file that cannot be read, columns that are not there, missing values, members that are neither.
    """
    if Path(path).suffix.lower() == ".npz":
        table = _arrays(path, "scores")
    else:
        try:
            table = dict(pd.read_csv(Path(path).expanduser()).items())
        except (ValueError, OSError) as error:
            raise MiaError(f"--scores {path} cannot be read as a CSV ({_first(error)}): write one row a record, with the "
                           "names of the columns in the first.") from error
    for option, column in (("score", score), ("member", member), ("groups", groups)):
        if column is not None and column not in table:
            raise MiaError(f"--{option} {column}: {path} has no such column. It has {', '.join(table) or 'none'}.")
        if column is not None and (empty := int(pd.isna(table[column]).sum())):
            raise MiaError(f"--{option} {column}: {empty} values are missing in {path}: leave these rows out.")
    values, inside = np.asarray(table[score]), check_mask(f"--member {member}", table[member], "a member")
    return values, inside, None if groups is None else np.asarray(table[groups])


def _arrays(path: str, argument: str) -> dict[str, np.ndarray]:
    file = Path(path).expanduser()
    if file.suffix.lower() in PICKLES:
        raise MiaError(f"--{argument} {path} is a pickle, which is not read: save the records by np.savez(path, x=x, y=y).")
    if file.suffix.lower() == ".npy":
        raise MiaError(f"--{argument} {path} is a single array: an .npz file is needed, np.savez(path, x=x, y=y).")
    try:
        with np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, OSError, TypeError, AttributeError, zipfile.BadZipFile, EOFError) as error:
        raise MiaError(f"--{argument} {path} cannot be read as an .npz file of plain arrays ({_first(error)}): save it by "
                       "np.savez(path, x=x, y=y), without objects.") from error


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def same_classes(sets: dict[str, Dataset | None]) -> dict[str, Dataset | None]:
    """Data sets of one problem with the same classes, where a file lacks some: those of the set that has most, in its order.

    Args:
        sets: name of an option, without its hyphens -> what it gave.

    Raises:
        MiaError: a set has fewer, and they are numbers from 0, which may have been counted anew for it alone.
    """
    there = {argument: records for argument, records in sets.items() if records is not None}
    classes = max((records.classes for records in there.values()), key=len)
    if not all(set(records.classes) <= set(classes) for records in there.values()):
        return sets  # which the audit refuses
    for argument, records in there.items():
        if len(records.classes) < len(classes) and records.classes == tuple(map(str, range(len(records.classes)))):
            raise MiaError(f"--{argument} has {len(records.classes)} classes, numbered 0 to {len(records.classes) - 1}, where "
                           f"another file has {len(classes)}: nothing says that the numbers mean the same in both. Save the "
                           f"names of all {len(classes)} classes in each file: np.savez(path, x=x, y=y, classes=classes).")
    place = {name: k for k, name in enumerate(classes)}
    for argument, records in there.items():
        y = np.array([place[name] for name in records.classes])[records.y]
        sets = sets | {argument: replace(records, y=y, classes=classes)}
    return sets


def recipe(path: str) -> TrainConfig:
    """A recipe from YAML or JSON: the attributes of `TrainConfig` by name.

    Raises:
        MiaError: not a list of names and values, an unknown name.
    """
    file = Path(path).expanduser()
    add_working_folder()  # where an architecture of the user's own may be
    try:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".json":
            values = json.loads(text)
        else:
            import yaml

            values = yaml.safe_load(text)
    except Exception as error:
        raise MiaError(f"--recipe {path} cannot be read ({_first(error)}): write one `name: value` a "
                       "line.") from error
    if not isinstance(values, dict):
        raise MiaError(f"--recipe {path} holds a {type(values).__name__}: one `name: value` a line is needed, such as "
                       "architecture: mlp:64.")
    for name in values:
        check_choice(f"--recipe {path}: name", name, [field.name for field in fields(TrainConfig)])
    if "architecture" not in values:
        raise MiaError(f"--recipe {path} names no architecture: write architecture: mlp:64, or that of the model.")
    return TrainConfig(**values)
