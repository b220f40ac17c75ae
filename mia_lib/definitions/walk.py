"""Objects: the definitions behind functions, classes, networks and what they hold."""

from __future__ import annotations

import datetime
import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePath

from mia_lib.definitions.running import RUNNING
from mia_lib.definitions.sources import PACKAGE, digest_of


class Walk:
    """Goes through objects and gathers the definitions behind them."""

    def __init__(self):
        self.roots, self.words, self.own, self._seen = set(), set(), {}, {}

    def see(self, thing) -> None:
        """Take in an object."""
        if isinstance(thing, str):
            if len(thing) < 64:
                self.words.add(thing)
            return
        if id(thing) in self._seen or thing is None or isinstance(thing, (bool, int, float, complex, bytes, *_arrays())):
            return
        self._seen[id(thing)] = thing  # held, so that no other object gets its id
        if isinstance(thing, functools.partial):
            self._each([thing.func, *thing.args, *thing.keywords.values()])
            self._given(inspect.unwrap(getattr(thing.func, "__func__", thing.func)), [*thing.args, thing.keywords])
        elif isinstance(thing, types.MethodType):
            self._each([thing.__func__, thing.__self__])
            self._given(thing.__func__, [thing.__self__] * (not isinstance(thing.__self__, type)))
        elif isinstance(thing, types.FunctionType):
            self._function(thing)
        elif isinstance(thing, type):
            self._class(thing)
        elif isinstance(thing, Mapping):
            self._each([*thing.keys(), *thing.values()])
        elif isinstance(thing, list | tuple | set | frozenset):
            self._each(thing)
        elif isinstance(thing, types.ModuleType):
            if RUNNING.path(thing.__name__):
                self.roots.add(f"{thing.__name__}:*")
        elif hasattr(thing, "__wrapped__"):  # such as functools.cache makes
            self.see(thing.__wrapped__)
        elif isinstance(getattr(thing, "_modules", None), dict):  # a network of PyTorch's
            self._each([type(thing), *thing._modules.values()])
        elif hasattr(type(thing), "__definitions__"):  # says itself what of it bears
            self._each([type(thing), *thing.__definitions__()])
        else:
            self.see(type(thing))
            if is_dataclass(thing):
                self._each(getattr(thing, one.name, None) for one in fields(thing))
            elif followed(type(thing).__module__):
                self._each(vars(thing).values() if hasattr(thing, "__dict__") else ())

    def _each(self, things: Iterable) -> None:
        for thing in things:
            self.see(thing)

    def _function(self, function: types.FunctionType) -> None:
        if hasattr(function, "__wrapped__"):  # a decorator's
            self.see(function.__wrapped__)
            inner = inspect.unwrap(function)
            if not isinstance(inner, types.FunctionType) or self._root(inner):
                return  # the text of what it wraps names the decorator
        self._each([*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()])
        self._each(cell.cell_contents for cell in function.__closure__ or () if _filled(cell))
        if not self._root(function):
            self._from_bytes(function)

    def _class(self, one: type) -> None:
        for base in one.__bases__:
            if base is not object:
                self.see(base)
        if followed(one.__module__) and not self._root(one):
            self.see(type(one))
            for name, value in vars(one).items():
                behind = [value, *(getattr(value, part, None) for part in ("__func__", "fget", "fset", "func", "__wrapped__"))]
                self._each(part for part in behind if isinstance(part, types.FunctionType | type))
                if not name.startswith("__"):
                    self._plain(f"{one.__module__}:{one.__qualname__}.{name}", value)

    def _root(self, thing) -> bool:
        """Note where a function or class is defined, if a file that is followed says."""
        module, top = thing.__module__ or "", thing.__qualname__.split(".")[0]
        if not followed(module):
            return True
        path = RUNNING.path(module)
        if path is None or top not in RUNNING.text(module).nodes:
            return False
        if isinstance(thing, types.FunctionType) and Path(thing.__code__.co_filename).resolve() != path.resolve():
            return False  # made by other means, such as exec
        self.roots.add(f"{module}:{top}")
        return True

    def _from_bytes(self, function: types.FunctionType) -> None:
        """A function that no file defines, such as one of a notebook's cell: by what it runs, and the names it uses."""
        waiting, total, names = [function.__code__], hashlib.sha256(), set()
        while waiting:
            code = waiting.pop()
            constants = [one for one in code.co_consts if not isinstance(one, types.CodeType)]
            if constants and constants[0] == function.__doc__:
                constants = constants[1:]
            constants = [sorted(map(repr, one)) if isinstance(one, frozenset) else one for one in constants]
            total.update(code.co_code + repr((constants, code.co_names, code.co_varnames)).encode())
            names |= set(code.co_names)
            self._each(one for one in constants if isinstance(one, str))
            waiting += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        held = [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
        total.update(repr([value_of(one) for one in (function.__defaults__, function.__kwdefaults__, *held)]).encode())
        name, digest = f"{function.__module__}:{function.__qualname__}", total.hexdigest()[:16]
        self.own[name] = digest_of(self.own[name] + digest) if name in self.own else digest  # several may be called <lambda>
        for name in sorted(names & function.__globals__.keys()):
            value = function.__globals__[name]
            if isinstance(value, types.ModuleType):
                if RUNNING.path(value.__name__):
                    inside = [RUNNING.resolve(value.__name__, one) for one in names]
                    self.roots |= set(filter(None, inside)) or {f"{value.__name__}:*"}
            else:
                self.see(value)
                self._plain(f"{function.__module__}:{name}", value)

    def _given(self, function, arguments: list) -> None:
        """What is bound to a function or class of the user's own: no spec of ours says it."""
        module = getattr(function, "__module__", None) or ""
        if arguments and module.partition(".")[0] != PACKAGE and followed(module):
            said, name = digest_of(value_of(arguments)), f"{module}:{getattr(function, '__qualname__', '')}(...)"
            self.own[name] = digest_of(self.own[name] + said) if name in self.own else said

    def _plain(self, name: str, value) -> None:
        """A constant of the user's own, by its value."""
        if not isinstance(value, type | types.FunctionType | types.ModuleType):  # which `see` follows
            self.own[name] = digest_of(value_of(value))


PLAIN = (bool | int | float | complex | str | bytes | range | slice | PurePath | Fraction | Decimal | datetime.date
         | datetime.timedelta)


def value_of(value, around: tuple[int, ...] = ()) -> str:
    """What a value is, the same in every process: numbers, texts, arrays, containers of such, and objects by their fields. Of
    anything else it is the type, and of the library's objects what they say themselves."""
    if value is None or isinstance(value, PLAIN):
        return f"{type(value).__name__} {value!r}"
    if id(value) in around:
        return "..."
    around, kind = (*around, id(value)), type(value)
    if isinstance(value, _arrays()):
        if value.dtype == object:
            return f"array{value.shape}{value_of(value.tolist(), around)}"
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, Mapping):
        inside = [value_of(list(pair), around) for pair in value.items()]
    elif isinstance(value, list | tuple | set | frozenset):
        inside = [value_of(one, around) for one in value]
    elif is_dataclass(value) and not isinstance(value, type) and kind.__dataclass_params__.eq:
        inside = [f"{one.name}={value_of(getattr(value, one.name, None), around)}" for one in fields(value)]
    elif isinstance(getattr(value, "fingerprint", None), str):  # a data set
        inside = [value.fingerprint]
    elif kind is types.SimpleNamespace or (hasattr(value, "__dict__") and followed(kind.__module__)
                                           and kind.__module__.partition(".")[0] != PACKAGE):
        inside = [f"{name}={value_of(one, around)}" for name, one in vars(value).items()]
    else:
        inside = [getattr(value, "__qualname__", "")]
    return f"{kind.__qualname__}({', '.join(sorted(inside) if isinstance(value, set | frozenset) else inside)})"


def _arrays() -> tuple[type, ...]:
    """NumPy's arrays and numbers, which is not imported for this."""
    numpy = sys.modules.get("numpy")
    return (numpy.ndarray, numpy.generic) if numpy else ()


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def followed(module: str | None) -> bool:
    """Whether definitions of a module count at all: not those of Python and of installed packages."""
    if not module or module == "__main__":
        return bool(module)
    if module.split(".")[0] in sys.stdlib_module_names:
        return False
    return RUNNING.path(module) is not None or getattr(sys.modules.get(module), "__file__", None) is None
