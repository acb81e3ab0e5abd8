"""Claims, ConfigMaps and Secrets that a pod names, and the keys in them."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import also, rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container, Pod

Reference = tuple[str, Node, list[Node], Node]
"""(kind, name, keys, where ``optional`` would stand)"""
_VOLUMES: Final = (("ConfigMap", "configMap", "name"), ("Secret", "secret", "secretName"))
_ENV: Final = (("ConfigMap", "configMapKeyRef", "configMapRef"), ("Secret", "secretKeyRef", "secretRef"))


def _of_volumes(pod: Pod) -> Iterator[Reference]:
    for volume in pod.volumes.values():
        yield "PersistentVolumeClaim", volume.at("persistentVolumeClaim.claimName"), [], volume
        for kind, source, name in _VOLUMES:
            node = volume[source]
            yield kind, node[name], [each["key"] for each in node["items"]], node


def _of_environment(container: Container) -> Iterator[Reference]:
    for kind, key, whole in _ENV:
        for item in container.node["env"]:
            node = item["valueFrom"][key]
            yield kind, node["name"], [node["key"]], node
        for item in container.node["envFrom"]:
            yield kind, item[whole]["name"], [], item[whole]


def _references(pod: Pod) -> Iterator[Reference]:
    found = [*_of_volumes(pod), *(each for container in pod.all_containers for each in _of_environment(container))]
    for kind, name, keys, node in found:
        if name.text and not name.open and node["optional"].flag is not True:
            yield kind, name, keys, node


@rule("STORE017", Level.WARNING, on=Pod)
def missing_key(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """A key that the named object does not have keeps the container from starting."""
    for kind, name, keys, _ in _references(pod):
        found = bundle.find(kind, name.text, pod.document)
        if found is None or found.root["data"].open:
            continue
        held = {key for part in ("data", "binaryData", "stringData") for key in found.root[part].entries}
        for key in keys:
            if key.text and not key.open and key.text not in held:
                yield Problem(
                    key,
                    f"the {kind} {name.text!r} has no key {key.text!r} (it has: {', '.join(sorted(held)) or 'none'}): "
                    "the container cannot start",
                    "name a key that is there, or add it",
                    level=None if held else Level.NOTE,  # controllers fill tokens and bundles into empty ones
                )


@also("STORE017", on=Container)
def missing_script(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A script that is started from a mounted ConfigMap which has no such key."""
    for process in bundle.processes(container):
        for word in process.words[:2]:
            path, _, name = word.rpartition("/")
            mount = container.mounts.get(path)
            volume = container.pod.volumes.get(mount["name"].text) if mount is not None and name else None
            source = volume["configMap"] if volume is not None else None
            found = bundle.find("ConfigMap", source["name"].text, container.pod.document) if source else None
            if mount is None or source is None or found is None or mount["subPath"] or mount["subPathExpr"]:
                continue
            keys = {key for part in ("data", "binaryData") for key in found.root[part].entries}
            held = {item["path"].text for item in source["items"]} or keys
            if name not in held and not any(sign in name for sign in "$*{"):
                yield Problem(
                    process.node,
                    f"the ConfigMap {found.name!r} at {path} has no {name} (but {', '.join(sorted(held)) or 'none'})",
                    "name a key that is there, or add it",
                    inside=word if process.in_shell else "",
                )


@rule("STORE018", Level.NOTE, on=Bundle)
def not_given(every: Bundle, bundle: Bundle) -> Iterator[Problem]:
    """A name that no object among the files has: made elsewhere, or misspelt."""
    seen: set[tuple[int, str, str]] = set()
    for _, pod in every.pods:
        made = {each.at("metadata.name").text for each in pod.document.spec["volumeClaimTemplates"]}
        for kind, name, _keys, _node in _references(pod):
            known = (id(pod.document), kind, name.text)
            if known in seen or name.text in made or bundle.find(kind, name.text, pod.document) is not None:
                continue
            seen.add(known)
            yield from _unknown(kind, name, pod.document, bundle)


def _unknown(kind: str, name: Node, document: Document, bundle: Bundle) -> Iterator[Problem]:
    others = sorted({each.name for each in bundle.near(kind, document) if each.name})
    if kind == "Secret" and not others:
        return
    beside = f" ({kind}s that are: {', '.join(others[:5])})" if others else ""
    yield Problem(
        name,
        f"{kind} {name.text!r} is not among the files given{beside}: without it the pod waits and does not start",
        "make it before the run, or correct the name",
        level=Level.WARNING if get_close_matches(name.text, others, 1, 0.75) and kind != "Secret" else Level.NOTE,
    )
