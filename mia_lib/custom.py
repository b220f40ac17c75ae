"""Architectures and augmentations as text: the library's by name, and networks of the user's own.

PyTorch is not needed here, so that a name can be refused at once. "tanh_cnn:16,32,64" is one of the library's.
"my_models:Net(hidden=32)" names a module, what in it makes the network, and its arguments. Processes that train models import
the module and find the same; the store keeps models under this text and the hash of the module's code (`sources`).
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import inspect
import math
import re
import sys
import sysconfig
import types
from collections.abc import Iterator, Sequence
from pathlib import Path

from mia_lib.errors import MiaError, brief, check_choice, check_range

INSTALLED = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
FORM = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)(\(.*\))?", re.DOTALL)
WIDTHS = {  # name of an architecture of the library -> its default widths; as many must be given, any number for an MLP
    "logistic_regression": (),
    "sigmoid_regression": (),
    "mlp": (64,),
    "tanh_cnn": (32, 64, 128),
    "watson_cnn": (32, 64, 64, 128),
    "leino_cnn": (20, 50, 500),
    "strided_cnn": (16, 32, 64),
    "batchnorm_cnn": (24, 48, 96),
    "resnet9": (32, 64, 256, 256),
    "resnet10": (),
    "resnet18": (),
    "resnet50": (),
    "gpt": (128, 4, 4),
}
AUGMENTATIONS = ("none", "flip", "crop", "flip_crop", "flip_resized_crop")
FILLED_IN = ("shape", "classes")  # arguments that are filled in where a signature has them
MODULE = (
    "put it at the top of a module beside the notebook or script, such as my_models.py, and import it from there, "
    "for the processes that train models import it, too"
)


def is_own(architecture: str) -> bool:
    """True if an architecture is one of the user's own."""
    text = str(architecture)
    return text.partition(":")[0] not in WIDTHS and FORM.fullmatch(text) is not None


def parse(architecture: str) -> tuple[str, list[int]]:
    """Name and widths of an architecture of this library; another one, or widths that it does not have, are refused."""
    name, colon, text = str(architecture).partition(":")
    check_choice("architecture", name, WIDTHS)
    default = WIDTHS[name]
    if not colon:
        return name, list(default)
    form = f"{name}:" + (
        ",".join(map(str, default)) if default != (64,) else "64,32 (any number of widths)"
    )
    if not default:
        raise MiaError(f"architecture = {architecture!r}: {name} has no widths. Write {name!r}.")
    parts = text.split(",")
    if not all(
        part.isascii() and part.isdigit() and len(part) < 20 and int(part) > 0 for part in parts
    ):
        raise MiaError(
            f"architecture = {brief(architecture)}: widths are whole numbers above 0, as in {form}, that fit into "
            "memory."
        )
    if name != "mlp" and len(parts) != len(default):
        raise MiaError(
            f"architecture = {architecture!r} gives {len(parts)} widths, not "
            f"{len(default)} as in {form}."
        )
    return name, [int(part) for part in parts]


def parse_augmentation(text: str) -> tuple[str, float]:
    """Name and strength of an augmentation, as for `TrainConfig`; others are refused."""
    name, _, strength = str(text).partition(":")
    check_choice("augmentation", name, AUGMENTATIONS)
    try:
        value = float(strength) if strength else {"flip_resized_crop": 0.08}.get(name, 4.0)
    except ValueError:
        raise MiaError(
            f"augmentation = {text!r}: what follows the colon must be a number, as in 'flip_crop:4'."
        ) from None
    check_range(
        f"augmentation = {text!r}: strength",
        value,
        *((0.01, 1.0) if "resized" in name else (0, 64)),
    )
    if "resized" not in name and value != int(value):
        raise MiaError(
            f"augmentation = {text!r}: what follows the colon are whole pixels, as in 'flip_crop:4'."
        )
    return name, value


def to_text(architecture) -> str:
    """A class, a function or a `functools.partial` of one, as text.

    Raises:
        MiaError: what a process that trains models could not import, or whose arguments are no plain values; a network in the
            place of its class; arguments that are missing or not known.
    """
    function = architecture.func if isinstance(architecture, functools.partial) else architecture
    if not isinstance(function, type | types.FunctionType):
        what = type(function)
        remedy = (
            "Give its class, and its arguments by functools.partial: every model begins with weights of its own"
            if hasattr(function, "state_dict")
            else "Give a class of networks, or a function that makes one"
        )
        raise MiaError(
            f"architecture is an object of {what.__module__}.{what.__qualname__}: a name, a class or a function is "
            f"needed. {remedy}."
        )
    module, name = function.__module__, function.__qualname__
    if "<lambda>" in name:
        raise MiaError(
            f"architecture is a lambda: give it a name, def net(): ..., and {MODULE}. For arguments there is "
            "functools.partial."
        )
    if "<locals>" in name:
        raise MiaError(f"architecture = {name} is made within a function: {MODULE}.")
    if module in ("__main__", "__mp_main__") or not getattr(
        sys.modules.get(module), "__file__", None
    ):
        raise MiaError(
            f"architecture = {name} is of the script or notebook that runs, in {module}: {MODULE}."
        )
    if isinstance(function, type) and not hasattr(function, "load_state_dict"):
        raise MiaError(
            f"architecture = {module}.{name} is no class of networks: give a subclass of torch.nn.Module, or a "
            "function that makes one."
        )
    if _load(module, name) is not function:
        raise MiaError(
            f"architecture = {name} is not what {module} has by this name now, which was loaded or changed since: "
            f"import it again, or restart (in JupyterLab: Kernel, Restart)."
        )
    factory = functools.partial(architecture)
    _check_arguments(f"{module}:{name}", factory)
    files = sources(f"{module}:{name}")
    from mia_lib import store  # imports NumPy

    store.check_unedited(store.code_of((), *files))
    for path in files:
        _check_loaded(path)
    inside = [
        *map(_plain, factory.args),
        *(f"{key}={_plain(value)}" for key, value in sorted(factory.keywords.items())),
    ]
    return f"{module}:{name}" + (f"({', '.join(inside)})" if inside else "")


def _check_loaded(path: Path) -> None:
    """Refuse a module whose functions and classes are no longer those of its file, which was edited after the import."""

    def parts(code) -> Iterator[tuple[str, tuple]]:
        inner = [part for part in code.co_consts if isinstance(part, types.CodeType)]
        yield (
            code.co_qualname,
            (code.co_code, code.co_names, [part for part in code.co_consts if part not in inner]),
        )
        for part in inner:
            yield from parts(part)

    modules = [
        module
        for module in list(sys.modules.values())
        if getattr(module, "__file__", None) == str(path)
        and type(getattr(module, "__loader__", None)) is importlib.machinery.SourceFileLoader
    ]  # others may add to it
    now: dict[str, list[tuple]] = {}  # two generators of one function have one name
    for name, part in parts(compile(path.read_bytes(), str(path), "exec")) if modules else ():
        now.setdefault(name, []).append(part)
    for module in modules:
        mine = [
            thing
            for thing in vars(module).values()
            if getattr(thing, "__module__", None) == module.__name__
        ]
        functions = [
            function
            for thing in mine
            for function in (vars(thing).values() if isinstance(thing, type) else [thing])
        ]
        for function in functions:
            code = getattr(function, "__code__", None)
            if (
                code is not None
                and code.co_filename == str(path)
                and any(part not in now.get(name, ()) for name, part in parts(code))
            ):
                raise MiaError(
                    f"{path} was edited after this process had begun, so what runs is not what the file says. "
                    "Restart it (in JupyterLab: Kernel, Restart) and run again; what was finished is kept."
                )


def from_text(text: str) -> functools.partial:
    """The class or function that an architecture's text names, as a partial with its arguments; its
    module is imported. No such module, name or arguments are an error."""
    match = FORM.fullmatch(text)
    try:
        call = ast.parse(f"f{match[3] or '()'}", mode="eval").body
        arguments = tuple(ast.literal_eval(value) for value in call.args)
        keywords = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError, TypeError, AttributeError) as error:
        raise MiaError(
            f"architecture = {text!r} cannot be read: MODULE:NAME is needed, with plain arguments, as in "
            "'my_models:Net(hidden=32)'."
        ) from error
    return functools.partial(_load(match[1], match[2]), *arguments, **keywords)


def _load(module: str, name: str):
    if module not in sys.modules:
        importlib.invalidate_caches()  # the file may be younger than this process
    try:
        thing = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module and not module.startswith(f"{error.name}."):
            raise MiaError(
                f"architecture: {module} cannot be imported, for {error.name} is not there."
            ) from error
        raise MiaError(
            f"architecture: there is no module {module} here. Put its folder on PYTHONPATH, where other processes "
            "and machines look for modules, too."
        ) from error
    for part in name.split("."):
        thing = getattr(thing, part, None)
    if not callable(thing):
        raise MiaError(
            f"architecture: {module} has no {name} (any more) that makes a network. Import it again, or restart."
        )
    return thing


def _plain(value) -> str:
    """A plain value as it is written; others are refused."""
    if type(value) is tuple:
        return f"({', '.join(map(_plain, value))}{',' if len(value) == 1 else ''})"
    if type(value) not in (int, float, str, bool, type(None)) or (
        type(value) is float and not math.isfinite(value)
    ):
        raise MiaError(
            f"architecture has the argument {value!r} of type {type(value).__module__}.{type(value).__name__}: "
            "numbers, texts, True, False, None and tuples of them can be kept with a model. Give what it is made "
            "from, as int(n), or write a function of your module that takes plain arguments."
        )
    return repr(value)


def _check_arguments(name: str, factory: functools.partial) -> None:
    signature = inspect.signature(factory.func)
    try:
        bound = signature.bind_partial(*factory.args, **factory.keywords).arguments
    except TypeError as error:
        raise MiaError(f"architecture = {name}: {error}. It takes {signature}.") from error
    lacking = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty
        and parameter.name not in (*bound, *FILLED_IN)
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if lacking:
        raise MiaError(
            f"architecture = {name} needs {', '.join(lacking)}: bind them, functools.partial("
            f"{factory.func.__name__}, {', '.join(f'{name}=...' for name in lacking)}). Only shape and "
            "classes are filled in."
        )


def arguments_of(factory: functools.partial, shape: tuple, classes: int) -> dict:
    """Keywords for a call of `factory`: its own, and `shape` and `classes` where it takes them."""
    parameters = inspect.signature(factory.func).parameters
    bound = (
        inspect.signature(factory.func).bind_partial(*factory.args, **factory.keywords).arguments
    )
    known = {"shape": shape, "classes": classes}
    free = {
        name
        for name in FILLED_IN
        if name in parameters
        and name not in bound
        and parameters[name].kind
        in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    }
    return {**factory.keywords, **{name: known[name] for name in free}}


def imported(tree: ast.AST, package: str | None = None) -> list[str]:
    """Modules that code may import; relative ones in its `package`."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return names


def _forget_folders() -> None:
    """Have Python look anew for modules. While another thread does the same, an entry may be gone before it is taken out."""
    try:
        importlib.invalidate_caches()
    except KeyError:
        importlib.invalidate_caches()


def sources(text: str) -> list[Path]:
    """Files with the code behind a text that names a module of the user's own: it, and those that it imports, but no installed
    packages; by the names of modules, from files as they are now. [] of any other text. Nothing is imported."""
    if not (match := FORM.fullmatch(text)):
        return []
    waiting, files = [match[1]], {}
    _forget_folders()
    while waiting:
        name = waiting.pop()
        if name not in files and (path := _file(name)) is not None:
            files[name] = path
            try:
                inside = name if path.name == "__init__.py" else name.rpartition(".")[0]
                waiting += imported(ast.parse(path.read_bytes()), inside or None)
            except (SyntaxError, ImportError, ValueError):
                pass  # whoever imports it says so
    return [files[name] for name in sorted(files)]


def _file(module: str) -> Path | None:
    """The file of a module that is neither Python's, nor installed, nor this library's."""
    parts, places, spec = module.split("."), None, None
    if parts[0] in sys.stdlib_module_names or parts[0] == __package__ or not all(parts):
        return None
    for count in range(1, len(parts) + 1):
        spec = _spec(".".join(parts[:count]), places)
        if spec is None or (spec.submodule_search_locations is None and count < len(parts)):
            return None
        if (spec.origin or "").startswith(INSTALLED):
            return None
        places = spec.submodule_search_locations
    return Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None


def _spec(module: str, places: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
    """Spec of a module as Python would find it, by its path or by what editable installations have
    added; None if it would not."""
    specs = (
        finder.find_spec(module, places, None)
        for finder in sys.meta_path
        if hasattr(finder, "find_spec")
    )
    return next((spec for spec in specs if spec is not None), None)


@functools.lru_cache
def package(text: str) -> str:
    """The installed package, with its version, that an architecture is from; "" where its source is followed. That neither can
    be known is an error."""
    module = FORM.fullmatch(text)[1]
    if _file(module) is not None:
        return ""
    top = module.partition(".")[0]
    try:
        name, version = top, importlib.metadata.version(top)
    except importlib.metadata.PackageNotFoundError:
        # of another name; slow to find
        name = next(iter(importlib.metadata.packages_distributions().get(top, [])), "")
        version = (
            importlib.metadata.version(name)
            if name
            else getattr(sys.modules[top], "__version__", None)
        )
    if not version:
        raise MiaError(
            f"architecture = {text!r}: {module} is installed, but not as a package with a version, and its source "
            f"is not followed: {MODULE}."
        )
    return f"{name or top} {str(version).partition('+')[0]}"
