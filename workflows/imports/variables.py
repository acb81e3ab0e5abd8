"""The container's environment into ``[env]`` and ``secrets``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from argosy.steps.nccl.checks import check_environment
from argosy.steps.nccl.facts import Facts
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.draft import Draft
from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.environment import Variable
from argosy.workflows.spec.environment import check_environment as check_names
from argosy.workflows.spec.refusal import Refusal

_REFERENCE = re.compile(r"\$\(([A-Za-z_]\w*)\)")
_LAUNCHER = re.compile(
    r"(LOCAL_|GROUP_|ROLE_)?(RANK|WORLD_SIZE)|LOCAL_WORLD_SIZE|ROLE_NAME|MASTER_(ADDR|PORT)|TORCHELASTIC_.*|PET_.*"
    r"|JOB_COMPLETION_INDEX|NODE_RANK|NNODES|NPROC_PER_NODE"
)


def take_variables(
    container: Container, assigned: Mapping[str, str], place: Node, bundle: Bundle, draft: Draft, account: Account
) -> None:
    """Write ``[env]`` and ``secrets``.

    Args:
        assigned: what the command's text sets besides; ``place`` is that text.
    """
    variables = dict(bundle.environment(container))
    env = {}
    for name, variable in variables.items():
        value = _value(variable, variables)
        if value is not None and _accepted(name, value, variable.node, account):
            env[name] = value
        elif value is None:
            _reference(name, variable, draft, account)
    for name, text in assigned.items():
        if _accepted(name, text, place, account):
            env[name] = text
            account.changed(place, f"{name} is set for every rank", f"env.{name}")
    _secret_sources(container, bundle, draft, account)
    for name in _harmful(env, variables, place, account):
        del env[name]
    for name in env:
        if name in variables and name not in assigned:
            account.kept(variables[name].node, f"env.{name}")
    if env:
        draft.put("env", env)


def _value(variable: Variable, variables: Mapping[str, Variable]) -> str | None:
    if variable.value is not None:
        return variable.value
    text = variable.node["value"].text if variable.how == "env" else ""
    known = {name: each.value for name, each in variables.items()}
    if not text or any(known.get(name) is None for name in _REFERENCE.findall(text)):
        return None
    filled = _REFERENCE.sub(lambda found: known[found[1]] or "", text)
    return None if re.search(r"\$\(|\{\{", filled) else filled


def _accepted(name: str, value: str, node: Node, account: Account) -> bool:
    if _LAUNCHER.fullmatch(name):
        account.changed(node, f"{name} is set for each rank by argosy's launcher")
        return False
    try:
        check_names({name: value})
    except Refusal as refusal:
        account.by_hand(node, f"{name}: {refusal}")
        return False
    return True


def _reference(name: str, variable: Variable, draft: Draft, account: Account) -> None:
    source = variable.node["valueFrom"]
    secret = source.at("secretKeyRef.name").text
    if secret:
        _add_secret(secret, draft)
        key = source.at("secretKeyRef.key").text
        note = f"all keys of Secret {secret!r} become variables"
        renamed = "" if key == name else f"; its key is {key!r}, so name the key {name} in it"
        (account.by_hand if renamed else account.changed)(variable.node, f"{note}{renamed}")
    elif _LAUNCHER.fullmatch(name):
        account.changed(variable.node, f"{name} is set for each rank by argosy's launcher")
    elif source["fieldRef"] or source["resourceFieldRef"]:
        account.lost(variable.node, f"{name} is a field of the pod: read it in the script")
    elif source["configMapKeyRef"]:
        account.by_hand(
            variable.node, f"{name} comes from a ConfigMap that is not among the files: write it into [env]"
        )
    else:
        account.by_hand(variable.node, f"the value of {name} is filled in later: write it into [env]")


def _secret_sources(container: Container, bundle: Bundle, draft: Draft, account: Account) -> None:
    for source in container.node["envFrom"]:
        secret, config = source.at("secretRef.name"), source.at("configMapRef.name")
        if secret:
            _add_secret(secret.text, draft)
            if source["prefix"]:
                account.by_hand(source, f"the prefix {source['prefix'].text!r} has no place: name the Secret's keys so")
            account.kept(source, "secrets")
        elif config and bundle.config_map(config.text, container.pod.document) is not None:
            account.changed(source, "the ConfigMap's values are written into [env]", "env")
        elif config:
            account.by_hand(source, f"ConfigMap {config.text!r} is not among the files: write its values into [env]")


def _add_secret(name: str, draft: Draft) -> None:
    held = draft.get("secrets", [])
    draft.put("secrets", held if name in held else [*held, name])


def _harmful(env: Mapping[str, str], variables: Mapping[str, Variable], place: Node, account: Account) -> list[str]:
    """Variables that compile would refuse: they do nothing, or nothing works with them."""
    dropped = []
    for finding in check_environment(dict(env), Facts()):
        name = finding.variables[0]
        if finding.level == "error" and name in env and name not in dropped:
            dropped.append(name)
            node = variables[name].node if name in variables else place
            account.changed(node, f"{name} is left out: {finding.message} ({finding.rule})")
    return dropped
