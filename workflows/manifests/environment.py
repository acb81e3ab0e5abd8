"""The environment of a container's processes, with the place where each variable is set."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from argosy.workflows.manifests.documents import Documents
from argosy.workflows.manifests.made import made_text
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.process import Process, processes

_EXPANDED: Final = re.compile(r"\$\(|\$\{|\{\{|^\$")


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that a process gets.

    Args:
        value: None when it is not known here: a reference, an expansion, a parameter of Argo's.
        node: what to point at: the ``env`` item, the ConfigMap's value, the script.
        how: ``env``, ``envFrom``, ``export``, ``prefix`` or ``-x``.
        text: within a script, the piece of it that sets the variable; else ``""``.
    """

    name: str
    value: str | None
    node: Node
    how: str
    text: str = ""

    @property
    def place(self) -> Node:
        """The value where it is written, else the item."""
        return self.node["value"] if self.how == "env" and self.node["value"].exists else self.node


def container_environment(container: Container, documents: Documents) -> dict[str, Variable]:
    """``envFrom`` (ConfigMaps among the files are followed), then ``env``, which wins."""
    found: dict[str, Variable] = {}
    for source in container.node["envFrom"]:
        prefix = source["prefix"].text
        config = documents.config_map(source.at("configMapRef.name").text, container.pod.document)
        for name, value in (config["data"].entries if config is not None else {}).items():
            found[prefix + name] = Variable(prefix + name, _known(value.text), value, "envFrom")
    for item in container.node["env"]:
        name = item["name"].text
        if name:
            found.pop(name, None)
            found[name] = Variable(name, _env_value(item, container, documents), item, "env")
    return found


def _env_value(item: Node, container: Container, documents: Documents) -> str | None:
    reference = item.at("valueFrom.configMapKeyRef")
    if reference:
        config = documents.config_map(reference["name"].text, container.pod.document)
        value = config["data"][reference["key"].text] if config is not None else None
        return _known(value.text) if value else None
    if item["valueFrom"]:
        return None
    return _known(item["value"].text)


def _known(value: str) -> str | None:
    return None if _EXPANDED.search(value) else value


def container_processes(container: Container, documents: Documents) -> list[Process]:
    """The commands that a container starts; scripts from ConfigMaps that are mounted are followed."""
    source = container.node["source"]
    if source.is_string and container.node["command"]:  # Argo's script template
        return processes([*container.node["command"], made_text(source, "-c"), source])
    return processes(container.argv, mounted_scripts(container, documents))


def mounted_scripts(container: Container, documents: Documents) -> dict[str, Node]:
    """Texts of ConfigMaps by the path at which the container has them."""
    found: dict[str, Node] = {}
    for path, mount in container.mounts.items():
        volume = container.pod.volumes.get(mount["name"].text)
        if volume is None:
            continue
        config = documents.config_map(volume.at("configMap.name").text, container.pod.document)
        if config is None:
            continue
        keys = {each["key"].text: each["path"].text for each in volume.at("configMap.items")}
        sub_path = mount["subPath"].text
        for key, value in config["data"].entries.items():
            file = keys.get(key, "" if keys else key)
            if sub_path and file == sub_path:
                found[path] = value
            elif file and not sub_path:
                found[f"{path}/{file}"] = value
    return found


def process_environment(process: Process, base: dict[str, Variable]) -> dict[str, Variable]:
    """What one command gets: the container's variables, and those that the script or ``mpirun -x`` sets for it."""
    found = dict(base)
    for each in process.assignments:
        if each.how == "-x" and each.value is None and each.name in found:
            continue
        found[each.name] = Variable(each.name, each.value, each.node, each.how, each.text)
    return found
