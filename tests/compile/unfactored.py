"""A compiled Workflow with everything that stands in it once put back into each template, as Argo does it."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import yaml

from argosy.workflows.template_defaults import with_defaults

loaded = partial(yaml.load, Loader=yaml.CSafeLoader)
"""A YAML document, ten times as fast as by ``yaml.safe_load``."""
loaded_all = partial(yaml.load_all, Loader=yaml.CSafeLoader)


def unfactored(document: dict[str, Any]) -> dict[str, Any]:
    """``document`` without ``templateDefaults`` and without what its spec gives every pod; templates have it all."""
    spec = dict(document["spec"])
    shared = {name: spec.pop(name) for name in ("securityContext", "volumes", "podSpecPatch") if name in spec}
    templates = [_pod(with_defaults(spec, each), shared, spec) for each in spec["templates"]]
    spec.pop("templateDefaults", None)
    return {**document, "spec": {**spec, "templates": templates}}


def _pod(template: dict[str, Any], shared: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    if "container" not in template:
        return template
    mounted = {mount["name"] for mount in template["container"].get("volumeMounts", [])}
    volumes = [each for each in shared.get("volumes", []) if each["name"] in mounted]
    patch = {**_patch(shared), **_patch(template)}
    account = {"serviceAccountName": spec["serviceAccountName"]} if "serviceAccountName" in spec else {}
    return {
        **account,
        **{name: value for name, value in shared.items() if name == "securityContext"},
        **template,
        "volumes": [*volumes, *template.get("volumes", [])],
        **({"podSpecPatch": json.dumps(patch)} if patch else {}),
    }


def _patch(holder: dict[str, Any]) -> dict[str, Any]:
    return dict(loaded(holder.get("podSpecPatch", "{}")))


def in_one_order(document: dict[str, Any]) -> dict[str, Any]:
    """The same with the lists of which Kubernetes does not care about the order sorted, and patches as maps."""
    for template in document["spec"]["templates"]:
        for holder, name in ((template, "volumes"), (template.get("container", {}), "volumeMounts"),
                             (template.get("container", {}), "env")):  # fmt: skip
            if name in holder:
                holder[name] = sorted(holder[name], key=json.dumps)
        if "podSpecPatch" in template:
            template["podSpecPatch"] = _patch(template)
    return document
