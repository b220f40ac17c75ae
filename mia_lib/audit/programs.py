"""Programs of `torch.export`. They are code, like a module, so one is read with consent alone, and then as it is written.

PyTorch unpickles some entries of such a file, evaluates texts in others and loads libraries from it. So it is given a copy, of
entries that `torch.export.save` writes, with texts of the forms that it writes.
"""

from __future__ import annotations

import io
import json
import re
import warnings
import zipfile
from pathlib import Path

import torch

from mia_lib.errors import MiaError, first_line

CODE = (
    "is a program of torch.export, which is code: whoever made it can have it read, change and send away your files. "
    "Where you trust them say so, --trust (in Python trust=True). Else ask for the weights, which are data, "
    "safetensors.torch.save_file(network.state_dict(), 'weights.safetensors'), and for source that you can read, of a "
    "function that builds the network: `mia audit my_module:build --state weights.safetensors`."
)
ENTRIES = (
    r"archive_format|archive_version|byteorder|\.data/(version|serialization_id)|models/model\.json|"
    r"data/sample_inputs/model\.pt|data/weights/(model_weights_config\.json|weight_\d+)|"
    r"data/constants/(model_constants_config\.json|tensor_\d+)"
)
NAME = r"[\w.+-]*"
WORDS = r"[\w.,+> -]*"  # an option of an operator, such as "tanh" or "bij,bjk->bik"
OPERATOR = (
    r"torch\.ops\.aten\.(?!save\.|from_file\.)(_?[a-z]\w*|__i?(and|or|xor|lshift|rshift)__)\.[A-Za-z]\w*|"
    r"torch\.ops\.higher_order\.wrap_with_(set_grad_enabled|autocast)|torch\.sym_(not|int|float|ite|max|min|sqrt)|"
    r"_operator\.(eq|ne|[lg][et]|neg|pos|mul|add|sub|(floor|true)div|mod|pow|and_|or_|[lr]shift|getitem)|math\.trunc"
)
SIZE = (  # in SymPy's words; of powers small ones
    r"(?!.*Pow.*(Pow|\d{4}))(Symbol\('\w+'|Float\('[-+.\w]+'|[A-Z]\w*\(|[a-z]+=(True|False)|precision=|"
    r"true|false|[-\d(), ])*"
)
GUARD = (  # without a power, which could be too large to compute
    r"(?!.*\*\*)(L\['\w+'\](\[\d+\])*(\.size\(\)\[\d+\])?|(max|min)\(|and |or |not |\.\d|[-+*/%()<>=!,\d ])*"
)
TREE = r"cpu|cuda|mps|builtins\.(tuple|list|dict)|collections\.OrderedDict"
FORMS = {
    "target": OPERATOR,
    "as_operator": OPERATOR,
    "expr_str": SIZE,
    "guards_code": GUARD,
    "as_string": WORDS,
    "as_strings": WORDS,
    "type": TREE,
    "context": r'null|[\w\[\]", .-]*',
    "path_name": r"(weight|tensor)_\d+",
    "names in range_constraints": r"[\w.,*/()+ -]*",
}


def read_program(path: Path, trust: bool = False) -> torch.export.ExportedProgram:
    """A program of `torch.export` from its file.

    Args:
        trust: whether it may be read, for it is code. What no export has is refused all the same.

    Raises:
        MiaError: no such file, no trust, no such program, or one that is damaged or of another version of PyTorch.
    """
    if not path.is_file():
        raise MiaError(f"MODEL = {path}: there is no such file.")
    if not trust:
        raise MiaError(f"MODEL = {path} {CODE}")
    try:
        # torch.export.load logs what it could not read, and tries more
        from torch.export.pt2_archive._package import load_pt2

        program = load_pt2(_checked_copy(path)).exported_programs["model"]
        program.module()  # so that what is damaged is said here
        return program
    except Exception as error:
        raise MiaError(
            f"MODEL = {path} is no program as torch.export.save(program, path) writes it with PyTorch "
            f"{torch.__version__} ({first_line(error)}). Export it again, with plain tensors for parameters and "
            "example inputs, or save its weights alone, for --state."
        ) from error


def _checked_copy(path: Path) -> io.BytesIO:
    """A file as PyTorch may read it; what no export has raises ValueError."""
    copy, whole = io.BytesIO(), {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            name = entry.partition("/")[2]
            if not re.fullmatch(ENTRIES, name):
                raise ValueError(f"it holds {entry!r:.80}")
            whole[name] = archive.read(entry)
    with zipfile.ZipFile(copy, "w") as archive:
        for name, content in whole.items():
            if not content:  # which PyTorch takes for zeros
                raise ValueError(f"{name} is empty")
            if name.endswith(".pt"):
                with warnings.catch_warnings(action="ignore"):  # of other protocols of pickles
                    torch.load(io.BytesIO(content), weights_only=True)
            elif name.endswith(".json"):
                plain = json.loads(content)
                _check(plain)
                content = json.dumps(plain).encode()
            archive.writestr(f"program/{name}", content)
    copy.seek(0)
    return copy


def _check(part, key: str = "") -> None:
    """Take free text out of a part of a program, and see that the rest has the forms that an export has."""
    if isinstance(part, dict):
        if isinstance(part.get("target"), str):
            part["metadata"] = {}  # where a node stood in the source
        if part.get("use_pickle", False) is not False:
            raise ValueError(f"use_pickle is {part['use_pickle']!r:.80}")
        for name, value in part.items():
            _check(name, f"names in {key}")
            _check(value, name)
    elif isinstance(part, list):
        for value in part:
            _check(value, key)
    elif isinstance(part, str) and key in ("in_spec", "out_spec") and part:
        _check(json.loads(part))
    elif isinstance(part, str) and not re.fullmatch(FORMS.get(key, NAME), part):
        raise ValueError(f"{key or 'name'} is {part!r:.80}")
