"""YAML 1.2 as promptfoo reads it: plain scalars of the core schema, and the last of equal keys."""

import re
from typing import Any

import yaml

_ENDS = "\0 \t\r\n\x85\u2028\u2029,[]{}"
"""What no plain scalar goes on with behind its first ``-`` or ``:``."""
_QUESTION = "\ue03f"
"""What stands for a question mark within a plain scalar, where PyYAML ends one: a character of no script."""
_WITHIN = re.compile(r"(?<=[^\s{\[,])\?|\?(?=\S)")


class _Loader(yaml.SafeLoader):
    """A safe loader whose plain scalars are those of YAML 1.2."""

    def check_plain(self) -> bool:
        if self.flow_level and self.peek() in "-:":
            return not self._ends()
        return bool(super().check_plain())

    def check_value(self) -> bool:
        follows = not self.flow_level or self.flow_level in self.possible_simple_keys or self._ends()
        return follows and bool(super().check_value())

    def _ends(self) -> bool:
        return self.peek(1) in _ENDS

    def scan_to_next_token(self) -> None:
        super().scan_to_next_token()
        while self.flow_level and self.peek() == "\t":
            self.forward()
            super().scan_to_next_token()

    def construct_scalar(self, node: Any) -> Any:
        value = super().construct_scalar(node)
        return value.replace(_QUESTION, "?") if isinstance(value, str) else value


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^(?:[-+]?0b[01_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?0o[0-7_]+|[-+]?[0-9][0-9_]*)$", "-+0123456789"),
    (
        "float",
        (
            r"^(?:[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|[-+]?\.[0-9_]+(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
        "-+0123456789.",
    ),
    ("merge", r"^(?:<<)$", "<"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), [*_first])


def _integer(loader: _Loader, node: Any) -> int | float:
    written = loader.construct_scalar(node).replace("_", "").lower()
    sign = -1 if written.startswith("-") else 1
    digits = written.lstrip("+-")
    base = {"0b": 2, "0o": 8, "0x": 16}.get(digits[:2], 10)
    digits = digits[2:] if base != 10 else digits  # noqa: PLR2004
    return sign * int(digits, base) if digits and len(digits) < 4_000 else float("inf")  # noqa: PLR2004


def _mapping(loader: _Loader, node: Any) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    mapping = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if isinstance(key, dict | list):
            raise yaml.constructor.ConstructorError(None, None, "a key that is no scalar", key_node.start_mark)
        mapping[key if isinstance(key, str) else _name(key)] = loader.construct_object(value_node, deep=True)
    return mapping


def _name(key: Any) -> str:
    """Return a key as JavaScript names it."""
    if isinstance(key, bool) or key is None:
        return {None: "null", True: "true", False: "false"}[key]
    return str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)


_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def load(text: str) -> Any:
    """Return the value of a document; None if it cannot be read."""
    try:
        return yaml.load(_WITHIN.sub(_QUESTION, text), _Loader)  # noqa: S506  (it is a safe one)
    except (yaml.YAMLError, ValueError, TypeError, OverflowError):
        return None
