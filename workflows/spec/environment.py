"""Rules for the environment of a run's pods."""

from __future__ import annotations

import re
from typing import Any

from argosy.steps.contract.env import SETTABLE
from argosy.workflows.spec.refusal import Refusal, quoted
from argosy.workflows.spec.secrets import looks_secret
from argosy.workflows.spec.texts import check_literal

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LAUNCHER = re.compile(
    r"(LOCAL_|GROUP_|ROLE_)?(RANK|WORLD_SIZE)|LOCAL_WORLD_SIZE|ROLE_NAME|MASTER_(ADDR|PORT)|TORCHELASTIC_.*|PET_.*"
    r"|JOB_COMPLETION_INDEX|TF_CONFIG"
)
_OURS = re.compile(r"ARGOSY_.*|ARGO_.*")


def check_environment(variables: Any) -> Any:
    """The table, if each name is free and each value arrives as written.

    Raises:
        Refusal: naming the variable; the value is shown only when it cannot be a secret.
    """
    if not isinstance(variables, dict):
        return variables
    for name, value in variables.items():
        _check_name(str(name))
        if str(name) in SETTABLE and value not in SETTABLE[str(name)]:
            raise Refusal(f"must be {', '.join(SETTABLE[str(name)])}", "choose one", field=str(name), value=value)
        if not isinstance(value, str):
            raise Refusal("must be text in quotes", f"write {name} = {quoted(value)}", field=str(name), value=value)
        if looks_secret(name, value):
            raise Refusal(
                "looks like a credential (not shown), and everybody with access to the cluster could read it",
                'put it into a Kubernetes Secret and write secrets = ["its name"]',
                field=name,
                value="***",
            )
        try:
            check_literal(value)
        except Refusal as refusal:
            raise Refusal(str(refusal), "", field=name, value=value) from None
    return variables


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise Refusal("is no name of a variable", "use letters, digits and '_'", field=name)
    if _OURS.fullmatch(name) and name not in SETTABLE:
        raise Refusal("is set by argosy or Argo", "choose another name", field=name)
    if _LAUNCHER.fullmatch(name):
        raise Refusal("is set by the launcher for each rank", "remove it", field=name)
