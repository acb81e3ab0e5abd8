"""YAML as Kubernetes reads it: no dates, no base-60 numbers, no key twice."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import yaml

from argosy.steps.contract.errors import InputError

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BOOLEAN = re.compile(r"^(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$")
_INTEGER = re.compile(r"^(?:[-+]?0b[01_]+|[-+]?0o?[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$")
_FLOAT = re.compile(
    r"^(?:[-+]?(?:[0-9][0-9_]*)?\.[0-9_]+(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*\.(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_PAIR = re.compile(r"\\\\|\\u(d[89ab]..)\\u(d[c-f]..)", re.IGNORECASE)
"""A character beyond 16 bits as JSON has it, which YAML's parser does not know; or an escaped backslash, to be left."""


class _Loader(_Base):  # type: ignore[misc]
    yaml_implicit_resolvers: ClassVar[Any] = {}


def _prepare() -> None:
    kept = {"tag:yaml.org,2002:null", "tag:yaml.org,2002:merge"}
    for first, entries in _Base.yaml_implicit_resolvers.items():
        _Loader.yaml_implicit_resolvers[first] = [entry for entry in entries if entry[0] in kept]
    _Loader.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOLEAN, list("yYnNtTfFoO"))
    _Loader.add_implicit_resolver("tag:yaml.org,2002:int", _INTEGER, list("-+0123456789"))
    _Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
    _Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
    _Loader.add_constructor("tag:yaml.org,2002:bool", _boolean)
    _Loader.add_constructor("tag:yaml.org,2002:int", _integer)


def _boolean(loader: Any, node: Any) -> bool:
    return str(loader.construct_scalar(node)).lower() in ("y", "yes", "true", "on")


def _integer(loader: Any, node: Any) -> int:
    text = str(loader.construct_scalar(node)).replace("_", "").replace("0o", "0")
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567":
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def _mapping(loader: Any, node: Any) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    found: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            key = str(key).lower() if isinstance(key, bool) else str(key)
        if key in found:
            mark = key_node.start_mark
            raise InputError(f"line {mark.line + 1}: key {key!r} stands twice in one map: remove one of the two")
        found[key] = loader.construct_object(value_node, deep=True)
    return found


_prepare()


def _paired(found: re.Match[str]) -> str:
    return bytes.fromhex(found[1] + found[2]).decode("utf-16-be") if found[1] else found[0]


def read_documents(data: bytes, where: str) -> list[dict[str, Any]]:
    """Every YAML document in ``data`` that is not empty.

    Raises:
        InputError: not UTF-8, not YAML, or a document is not a map; names ``where`` and the line.
    """
    try:
        text = data.decode()
        text = _PAIR.sub(_paired, text) if text.lstrip().startswith("{") else text
        documents = list(yaml.load_all(text, Loader=_Loader))
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8 text ({error.reason} at byte {error.start})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InputError(f"{where}:{line} not valid YAML: {problem}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: {error}") from None
    kept = [document for document in documents if document is not None]
    for document in kept:
        if not isinstance(document, dict):
            raise InputError(f"{where}: a document is a {type(document).__name__}; a Workflow is a map with apiVersion")
    return kept
