"""What you may do, and what the run's account may do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.steps.cluster.api import Api
from argosy.steps.cluster.kinds import SERVICE_ACCOUNT
from argosy.workflows.cluster.doctor.check import Check, asked
from argosy.workflows.cluster.doctor.needs import Needs
from argosy.workflows.cluster.installation import RULES

YOURS = {
    ("argoproj.io", "workflows", "create"): "submit",
    ("argoproj.io", "workflows", "get"): "submit and status",
    ("argoproj.io", "workflows", "list"): "top and ls",
    ("argoproj.io", "workflows", "patch"): "stop",
    ("argoproj.io", "workflows", "delete"): "rm",
    ("argoproj.io", "workflowtemplates", "create"): "submit --template",
    ("argoproj.io", "workflowtemplates", "patch"): "submit --template",
    ("", "pods", "list"): "logs",
    ("", "pods/log", "get"): "logs",
}
"""(group, resource, verb), and what needs it."""
_AUTHORIZATION = "authorization.k8s.io/v1"
_Rule = tuple[str, Sequence[str], Sequence[str]]
"""Group, resources, verbs."""


def yours(api: Api) -> Iterator[Check]:
    """Whether you may submit and look; who may not stop a run or remove it has one all the same."""

    def look() -> Iterator[Check]:
        denied = [each for each in YOURS if not _allowed(api, "SelfSubjectAccessReview", each, {})]
        if not denied:
            yield Check("ok", "your rights", "submit, status, logs, top, stop, rm")
        for group, resource in dict.fromkeys(each[:2] for each in denied):
            named = f"{resource}.{group}" if group else resource
            these = [each for each in denied if each[:2] == (group, resource)]
            verbs, needy = [each[2] for each in these], dict.fromkeys(YOURS[each] for each in these)
            role = f"argosy-{'-'.join(verbs)}-{resource.replace('/', '-')}"
            yield Check(
                "missing" if any("submit" in each.split() for each in needy if "--" not in each) else "unknown",
                "your rights",
                f"you may not {', '.join(verbs)} {named}, for {', '.join(needy)}",
                f"kubectl create role {role} -n {api.namespace} --verb={','.join(verbs)} --resource={named} && kubectl "
                f"create rolebinding {role} -n {api.namespace} --role={role} --user=YOU",
            )

    yield from asked("your rights", f"kubectl auth can-i --list -n {api.namespace}", look)


def accounts(api: Api, needs: Needs) -> Iterator[Check]:
    """Whether the run's service accounts are there and may do what its pods do."""
    rules = [(group, resources, verbs) for group, resources, verbs, _ in RULES]
    for name in needs.accounts:
        option = "" if name == "argosy" else f" --service-account {name}"
        install = f"argosy install -n {api.namespace}{option} --apply"
        yield from _account(api, name, rules, install, "all that the pods of a run do")


def trigger(api: Api, documents: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    """Whether those who start the run are there, and may."""
    install = f"argosy install -n {api.namespace} --trigger RUN.toml --apply"
    for document in documents:
        if document["kind"] == "Role":
            rules = [(each["apiGroups"][0], each["resources"], each["verbs"]) for each in document["rules"]]
            yield from _account(api, document["metadata"]["name"], rules, install, "all that starts this run")


def _account(api: Api, name: str, rules: Sequence[_Rule], install: str, may: str) -> Iterator[Check]:
    what = f"service account {name}"

    def there() -> Iterator[Check]:
        if api.get(SERVICE_ACCOUNT, name) is None:
            yield Check("missing", what, f"not in namespace {api.namespace}", install)
        else:
            yield Check("ok", what, "there")

    def rights() -> Iterator[Check]:
        denied = _denied(api, f"system:serviceaccount:{api.namespace}:{name}", rules)
        if denied:
            yield Check("missing", f"{what}, rights", f"may not {', '.join(denied)}", install)
        else:
            yield Check("ok", f"{what}, rights", may)

    found = list(asked(what, f"kubectl get serviceaccount {name} -n {api.namespace}", there))
    yield from found
    if found[0].state == "ok":
        ask = f"kubectl auth can-i --list -n {api.namespace} --as system:serviceaccount:{api.namespace}:{name}"
        yield from asked(f"{what}, rights", ask, rights)


def _denied(api: Api, user: str, rules: Sequence[_Rule]) -> list[str]:
    served = {group["name"] for group in api.read("/apis")["groups"]} | {""}
    return [
        f"{verb} {resource}"
        for group, resources, verbs in rules
        if group in served
        for resource in resources
        for verb in verbs
        if not _allowed(api, "SubjectAccessReview", (group, resource, verb), {"user": user})
    ]


def _allowed(api: Api, kind: str, what: tuple[str, str, str], subject: dict[str, Any]) -> bool:
    group, resource, verb = what
    resource, _, part = resource.partition("/")
    attributes = {"namespace": api.namespace, "group": group, "resource": resource, "subresource": part, "verb": verb}
    spec = {"resourceAttributes": {key: value for key, value in attributes.items() if value or key == "group"}}
    found = api.create({"apiVersion": _AUTHORIZATION, "kind": kind, "spec": {**spec, **subject}})
    return bool(found and (found.get("status") or {}).get("allowed"))
