"""YAML and JSON, read in one way: a refusal names the file, and a key that is given twice is refused.

So is what YAML alone has: aliases, of which a few lines unfold to more than memory holds, and numbers such as 010 and 1:30.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from mia_lib.errors import MiaError


def load(path: Path | str, kind: type = dict, remedy: str = ""):
    """What a file holds: JSON where its name ends in .json or .ipynb, else YAML, of which JSON is a part.

    Args:
        kind: what it must hold, `dict` or `list`.
        remedy: what to do about a file that is refused, as a sentence.

    Raises:
        MiaError: it cannot be read, or holds something else.
    """
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise MiaError(
            f"{path} cannot be read: {getattr(error, 'strerror', error)}. {remedy}".rstrip()
        ) from error
    return parse(content, path, kind, remedy)


def parse(content: bytes | str, name: Path | str, kind: type = dict, remedy: str = ""):
    """As `load`, of content that is here already, which a refusal calls `name`."""
    is_json = str(name).endswith((".json", ".ipynb"))
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        value = json.loads(text, object_pairs_hook=_once) if is_json else _yaml(text)
    except Exception as error:
        # nested too deeply, or of YAML a tag on what it does not fit, it can be any
        said = " ".join(str(error).split()).rstrip(".")
        raise MiaError(
            f"{name} is not {'JSON' if is_json else 'YAML'} in UTF-8: {said}. {remedy}".rstrip()
        ) from error
    if not isinstance(value, kind):
        what = "nothing" if value is None else f"a {type(value).__name__}, not a {kind.__name__}"
        raise MiaError(f"{name} holds {what}. {remedy}".rstrip())
    return value


def _once(pairs: list[tuple[str, object]]) -> dict:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{max(names, key=names.count)!r} is given twice")
    return value


def _yaml(text: str):
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node, deep=False):
            _once([(key.value, None) for key, _ in node.value if isinstance(key, yaml.ScalarNode)])
            return super().construct_mapping(node, deep)

        def compose_node(self, parent, index):
            if self.check_event(yaml.AliasEvent):
                raise ValueError(
                    f"*{self.peek_event().anchor} is an alias, in the place of what it stands for"
                )
            return super().compose_node(parent, index)

        def construct_number(self, node):
            if not re.fullmatch(r"[-+]?(0|[1-9][\d_]*)", node.value):
                raise ValueError(f"{node.value!r:.80} is no whole number as one counts")
            return int(node.value)

    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_number)
    return yaml.load(text, Loader)
