"""What a workflow came to, in one form for both engines."""

from __future__ import annotations

import re
from typing import Any

from argosy.workflows.engine.state import WorkflowState
from argosy.workflows.engine.validation.refusal import STAND_IN

Answer = dict[str, Any]
"""``phase`` (or ``refused`` or ``stuck``), ``message`` and ``nodes``: name -> what is known of the node."""


def of_argo(workflow: dict[str, Any]) -> Answer:
    """The answer in the status of a Workflow of the cluster."""
    status, name = workflow["status"], workflow["metadata"]["name"]
    nodes = status.get("nodes") or {}
    names = {key: _short(node["name"], name) for key, node in nodes.items()}
    found = {}
    for key, node in nodes.items():
        outputs = node.get("outputs") or {}
        found[names[key]] = _node(
            type=node["type"], phase=node["phase"], message=node.get("message"),
            exit=outputs.get("exitCode"), result=outputs.get("result"),
            inputs=_parameters(node.get("inputs")), outputs=_parameters(outputs),
            children=sorted(names[child] for child in node.get("children") or [] if child in names),
        )  # fmt: skip
    return {"phase": status.get("phase", ""), "message": status.get("message", ""), "nodes": found}


def of_engine(state: WorkflowState) -> Answer:
    """The answer of the local engine."""
    names = {key: _short(node.name, state.name) for key, node in state.nodes.items()}
    found = {}
    for key, node in state.nodes.items():
        found[names[key]] = _node(
            type=node.type, phase=node.phase, message=node.message,
            exit=None if node.exit_code is None else str(node.exit_code), result=node.outputs.get("result"),
            inputs=node.inputs, outputs=node.output_parameters,
            children=sorted(names[child] for child in node.children if child in names),
        )  # fmt: skip
    return {"phase": state.phase, "message": state.message, "nodes": found}


def is_invalid(argo: Answer) -> bool:
    """Whether Argo would not even start it."""
    return argo["phase"] == "refused" or (argo["phase"] in ("Failed", "Error") and not argo["nodes"])


def differences(argo: Answer, engine: Answer) -> list[str]:
    """Where the two answers differ, by node; nothing if they agree."""
    if argo["phase"] == "stuck":
        told = engine["phase"] == "Error" and "Argo would keep this workflow Running for ever" in engine["message"]
        return [] if told else [f"phase: Argo stays Running for ever, engine {engine['phase']!r}"]
    argo, engine = ({**each, "message": _summed(each, each["message"])} for each in (argo, engine))
    found = [
        f"{key}: Argo {argo[key]!r}, engine {engine[key]!r}" for key in ("phase", "message") if argo[key] != engine[key]
    ]
    theirs, ours = _plain_nodes(argo), _plain_nodes(engine)
    found += [f"{name or '(root)'}: only Argo has it: {theirs[name]}" for name in theirs if name not in ours]
    found += [f"{name or '(root)'}: only the engine has it: {ours[name]}" for name in ours if name not in theirs]
    for name in theirs.keys() & ours.keys():
        for key in sorted(theirs[name].keys() | ours[name].keys()):
            one, other = theirs[name].get(key), ours[name].get(key)
            if one != other:
                found.append(f"{name or '(root)'}: {key}: Argo {one!r}, engine {other!r}")
    return found


def _plain_nodes(found: Answer) -> dict[str, dict[str, Any]]:
    plain = {}
    for name, node in found["nodes"].items():
        plain[name] = {**node, "message": _summed(found, node["message"])} if "message" in node else dict(node)
        for key in {"inputs", "outputs"} & node.keys():
            plain[name][key] = {each: _ADDRESS.sub("ADDRESS", value) for each, value in node[key].items()}
        if plain[name].get("message") == "deadline":
            # Whether the container's exit code was seen is part of the same race.
            plain[name].pop("exit", None)
    return plain


def _summed(found: Answer, message: str) -> str:
    """The class of a message; the same race decides whether those above a deadline name it or their child."""
    if _CHILD.fullmatch(message) and any(
        _plain(each.get("message", "")) == "deadline" for each in found["nodes"].values()
    ):
        return "deadline"
    return _plain(message)


def _short(name: str, workflow: str) -> str:
    return name.removeprefix(workflow)


def _parameters(holder: dict[str, Any] | None) -> dict[str, str]:
    listed = (holder or {}).get("parameters") or []
    return {each["name"]: STAND_IN.sub("…", each["value"]) for each in listed if each.get("value") is not None}


def _node(**known: Any) -> dict[str, Any]:
    return {key: value for key, value in known.items() if value not in (None, "", {}, [])}


_CHILD = re.compile(r"child '.*' failed")
_ADDRESS = re.compile(r"198\.1[89](\.\d+){2}")
"""Of a pod of the test cluster."""
_CLASSES = (
    # Three clocks race for a deadline in the real controller: which of them writes the message is chance.
    (re.compile(r"Pod was active on the node longer than the specified deadline|Step exceeded its deadline|timeout"),
     "deadline"),
    # What the archive calls its folder: here the artifact's name, there the last part of its path.
    (re.compile(r"(.*illegal symlink target: )[^/]*(/.*?)(; )?"), r"\1…\2"),
    # What follows is the text of a Go library about where in an expression it stumbled.
    (re.compile(r"(.*?(?:Invalid 'when' expression '.*?': |wait: Error \(exit code 64\)"
                r"|unable to resolve outputs from scope: (?!Unable to resolve)"
                r"|failed to evaluate expression|could not be parsed as a JSON list"
                r"|invalid character .*|unable to evaluate expression)).*", re.DOTALL), r"\1"),
    # Where in an expression a Go library stumbled, with a picture of it.
    (re.compile(r"(.*?) \(\d+:\d+\)\n \| .*", re.DOTALL), r"\1"),
)  # fmt: skip


def _plain(message: str) -> str:
    """The class of a message: the message itself, but for what is chance or another library's wording."""
    message = STAND_IN.sub("…", message)
    for pattern, name in _CLASSES:
        match = pattern.fullmatch(message)
        if match:
            return match.expand(name)
    return message
