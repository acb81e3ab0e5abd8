"""The container's environment into ``[env]`` and ``secrets``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from argosy.steps.contract.placeholders import as_it_is
from argosy.steps.nccl.checks import check_environment
from argosy.steps.nccl.facts import Facts
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.draft import Draft
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.environment import Variable
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.word import Word
from argosy.workflows.spec.environment import check_environment as check_names
from argosy.workflows.spec.refusal import Refusal

_RANKS: Final = "set for each rank by argosy's launcher"
Assigned = Mapping[str, tuple[str | None, Word]]
_REFERENCE: Final = re.compile(r"\$\(([A-Za-z_]\w*)\)")
_LAUNCHER: Final = re.compile(
    r"(LOCAL_|GROUP_|ROLE_)?(RANK|WORLD_SIZE)|LOCAL_WORLD_SIZE|ROLE_NAME|MASTER_(ADDR|PORT)|TORCHELASTIC_.*|PET_.*"
    r"|JOB_COMPLETION_INDEX|NODE_RANK|NNODES|NPROC_PER_NODE|(OMPI|PMIX?|HYDRA)_.*"
)


def take_variables(container: Container, assigned: Assigned, bundle: Bundle, draft: Draft, account: Account) -> None:
    """Write ``[env]`` and ``secrets``.

    Args:
        assigned: what the command's text sets besides.
    """
    variables = dict(bundle.environment(container))
    for item in container.node["env"]:
        if not item["name"].text:
            account.by_hand(item, "a variable needs a name")
        elif variables[item["name"].text].node.yaml is not item.yaml:
            account.changed(item, f"{item['name'].text} is set again below")
    for name, variable in variables.items():
        value = _value(variable, variables)
        if value is None:
            _reference(name, variable, draft, account)
        elif name in assigned:
            account.changed(variable.node, f"the command sets {name} itself")
        elif _accepted(name, value, variable.node, account):
            draft.put_item("env", name, as_it_is(value), variable.place)
    for name, (text, word) in assigned.items():
        if _LAUNCHER.fullmatch(name):
            account.changed(word, _RANKS)
        elif text is None:
            account.by_hand(word, f"what {name} is set to is not in the files: write it into [env]", f"env.{name}")
        elif _accepted(name, text, word, account):
            draft.put_item("env", name, as_it_is(text), word.node)
            account.kept(word, f"env.{name}")
    _secret_sources(container, bundle, draft, account)
    _take_out_harmful(draft, variables, assigned, account)
    for name, variable in variables.items():
        if name in draft.get("env", {}) and name not in assigned:
            _keep(variable, account)


def _keep(variable: Variable, account: Account) -> None:
    """It is in ``[env]``; what else the item holds is not."""
    node, into = variable.node, f"env.{variable.name}"
    if re.fullmatch(r"<[^<>]+>", variable.value or ""):
        account.by_hand(node, "it is to be filled in", into)
    elif not node.is_mapping:
        account.kept(node, into)
    else:
        reference = node.at("valueFrom.configMapKeyRef")
        account.kept(node["name"], into)
        account.kept(node["value"], into)
        if reference:
            account.changed(node["valueFrom"], "the ConfigMap's value is written into [env]", into)


def _value(variable: Variable, variables: Mapping[str, Variable]) -> str | None:
    if variable.value is not None:
        return variable.value
    text = variable.node["value"].text if variable.how == "env" else ""
    known = {name: each.value for name, each in variables.items()}
    if not text or any(known.get(name) is None for name in _REFERENCE.findall(text)):
        return None
    filled = _REFERENCE.sub(lambda found: known[found[1]] or "", text)
    return None if re.search(r"\$\(|\{\{", filled) else filled


def _accepted(name: str, value: str, what: Node | Word, account: Account) -> bool:
    if _LAUNCHER.fullmatch(name):
        account.changed(what, _RANKS)
        return False
    try:
        check_names({name: value})
    except Refusal as refusal:
        account.by_hand(what, f"{name}: {refusal}")
        return False
    return True


def _reference(name: str, variable: Variable, draft: Draft, account: Account) -> None:
    source = variable.node["valueFrom"]
    secret = source.at("secretKeyRef.name").text
    node = variable.node
    if _LAUNCHER.fullmatch(name):
        account.changed(node, _RANKS)
    elif secret:
        _add_secret(secret, node, draft)
        key = source.at("secretKeyRef.key").text
        note = f"all keys of Secret {secret!r} become variables"
        if key == name:
            account.changed(node, note, "secrets")
        else:
            account.by_hand(node, f"{note}: its key {key!r} must be named {name} in the Secret", "secrets")
    elif source["fieldRef"] or source["resourceFieldRef"]:
        account.lost(node, f"{name} is a field of the pod: read it in the script")
    elif source["configMapKeyRef"]:
        config = source.at("configMapKeyRef.name").text
        why = f"{name} comes from ConfigMap {config!r}, which is not among the files: write it into [env]"
        account.by_hand(node, why, f"env.{name}")
    else:
        account.by_hand(node, f"the value of {name} is filled in later: write it into [env]", f"env.{name}")


def _secret_sources(container: Container, bundle: Bundle, draft: Draft, account: Account) -> None:
    for source in container.node["envFrom"]:
        secret, config = source.at("secretRef.name"), source.at("configMapRef.name")
        if secret.is_scalar:
            _add_secret(secret.text, source, draft)
            for key in ("name", "optional"):
                account.kept(source["secretRef"][key], "secrets")
            account.by_hand(source["prefix"], "a prefix has no place: name the Secret's keys so")
        elif config and bundle.config_map(config.text, container.pod.document) is not None:
            account.changed(source, "the ConfigMap's values are written into [env]", "env")
        elif config:
            account.by_hand(source, f"ConfigMap {config.text!r} is not among the files: write its values into [env]")


def _add_secret(name: str, node: Node, draft: Draft) -> None:
    if name not in draft.get("secrets", []):
        draft.append("secrets", name, node)


def _take_out_harmful(draft: Draft, variables: Mapping[str, Variable], assigned: Assigned, account: Account) -> None:
    """Variables that compile would refuse: they do nothing, or nothing works with them."""
    env = dict(draft.get("env", {}))
    for finding in check_environment(env, Facts()):
        name = finding.variables[0]
        if finding.level == "error" and name in draft.get("env", {}):
            draft.take_out(["env", name])
            what = assigned[name][1] if name in assigned else variables[name].node
            account.changed(what, f"{name} is left out: {finding.message} ({finding.rule})")
