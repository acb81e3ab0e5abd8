"""Whatever a parameter holds, it stays the value of one flag: rendered, substituted as Argo, expanded as a kubelet.

Argo puts values into the template's JSON as text and reads the JSON again; then the kubelet replaces ``$(NAME)``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.steps.contract.errors import InputError
from argosy.steps.pods.expansion import expanded
from argosy.workflows.cli.source import from_yaml
from argosy.workflows.cli.starting import read_parameters
from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.substitute import Substitution
from tests.compile.unfactored import unfactored

GOLDEN = Path(__file__).resolve().parents[1] / "goldens/two-nodes-cpu.yaml"
SECRETS = {"ARGOSY_WEBHOOK_URL": "canary-7f3a", "AWS_SECRET_ACCESS_KEY": "canary-91bc", "X": "canary-0"}
PAYLOADS = [
    "",
    " ",
    "a b",
    "-",
    "--",
    "--store-uri=file:///evil",
    "-x",
    "--force=true --run-id=z",
    "'",
    '"',
    '\\"',
    "\\",
    "\\\\",
    "\n",
    "a\nb: c",
    "\r\n",
    "\t",
    '"}]}',
    '","--evil=1',
    '"],"command":["sh"],"args":["',
    "'; rm -rf / #",
    "$(X)",
    "$$(X)",
    "$$$(X)",
    "$$",
    "$",
    "a$",
    "$(",
    "$()",
    "$(AWS_SECRET_ACCESS_KEY)",
    "x$(ARGOSY_WEBHOOK_URL)y",
    "$((1+1))",
    "${X}",
    "$X",
    "`id`",
    "$(id)",
    "|id",
    "&& id",
    "; id",
    "> /etc/passwd",
    "<script>alert(1)</script>",
    "</style>",
    "%s%n",
    "%(x)s",
    "{0}",
    "{",
    "}",
    "{ {",
    "{%",
    "#{x}",
    "*",
    "~",
    "!!python/object/apply:os.system ['id']",
    "!!binary x",
    "&a",
    "*a",
    "- a",
    "a: b",
    "? a",
    "---",
    "...",
    "null",
    "true",
    "1e3",
    "0x1f",
    "../../etc/passwd",
    "/etc/passwd",
    "file:///etc/passwd",
    "c__builtin__\neval\n(S'1'\ntR.",
    "'''+__import__('os').system('id')+r'''",
    "__proto__",
    "é",
    "日本",
    "\u202e",
    "\u2028",
    "😀",
    "a" * 4000,
    '["--x"]',
    '[{"a": {"b": 1}}]'.replace("}}", "} }"),
    "\\u0022",
    "\\x41",
    "/*",
    "//",
    "# c",
    ">-",
    "|",
]
REWRITTEN = [
    "{{workflow.uid}}",
    "{{=1+1}}",
    "{{",
    "}}",
    "{{=sprig.env('X')}}",
    "{{inputs.parameters.run-id}}",
    "\x1b[2J",
    "\0",
]


def containers() -> list[dict[str, Any]]:
    templates = unfactored(yaml.safe_load(GOLDEN.read_text()))["spec"]["templates"]
    return [each for each in templates if "container" in each]


def as_argo(template: dict[str, Any], values: dict[str, str]) -> dict[str, Any]:
    """Text into JSON text, escaped, and read again."""
    names = {f"inputs.parameters.{name}": value for name, value in values.items()}
    names |= {"workflow.name": "w", "workflow.uid": "u", "workflow.status": "Succeeded"}
    return dict(Substitution(names).tree(template))


@pytest.mark.parametrize("template", containers(), ids=lambda each: each["name"])
def test_a_payload_is_the_value_of_its_flag_and_nothing_else(template: dict[str, Any]) -> None:
    inputs = [each["name"] for each in template["inputs"]["parameters"]]
    quiet = dict.fromkeys(inputs, "quiet")
    before = as_argo(template, quiet)
    leaves = places(before)
    assert len(PAYLOADS) >= 50
    for name in inputs:
        for payload in PAYLOADS:
            try:
                after = as_argo(template, {**quiet, name: payload})
            except ExpressionError:  # Argo ends such a workflow: no JSON can hold it
                assert any(ord(character) < 32 for character in payload), payload
                continue
            now = places(after)
            assert set(leaves) == set(now), "the shape changed"
            assert {place[:2] for place in leaves if leaves[place] != now[place]} <= {("container", "args")}
            argv = [expanded(word, SECRETS) for word in after["container"]["args"]]
            assert argv == [
                f"--{name}={payload}" if word.startswith(f"--{name}={{{{") else expanded(same, SECRETS)
                for word, same in zip(template["container"]["args"], before["container"]["args"], strict=True)
            ]
            assert "canary" not in json.dumps(argv)


def places(node: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    if isinstance(node, dict | list):
        pairs = node.items() if isinstance(node, dict) else enumerate(node)
        return {place: leaf for key, item in pairs for place, leaf in places(item, (*path, key)).items()}
    return {path: node}


@pytest.mark.parametrize("key", ["run-id", "dataset-uri", "args", "resume-from", "force", "event"])
def test_what_argo_would_rewrite_is_refused_at_the_door(key: str) -> None:
    source = from_yaml(GOLDEN)
    for payload in REWRITTEN:
        value = f'["{payload}"]' if key == "args" else payload
        with pytest.raises(InputError, match=key):
            read_parameters(source, [f"{key}={value}"], {})
    with pytest.raises(InputError, match="args"):
        read_parameters(source, [r'args=["\u0000"]'], {})
