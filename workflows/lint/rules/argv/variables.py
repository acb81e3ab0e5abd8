"""``$(VAR)`` and ``$VAR``: what the kubelet expands, what a shell expands, and what nobody does.

The kubelet replaces ``$(VAR)`` in ``command``, ``args`` and in later ``env`` items, from the container's own
variables, and leaves what it does not know as it stands. ``$VAR`` is for a shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from typing import Final

from argosy.workflows.lint.finding import Level, Problem, SetValue
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.rules.argv.words import is_shell, literal_words
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.injected import injected
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container

_REFERENCE: Final = re.compile(r"(?<!\$)\$\(([A-Za-z_][\w.-]*)\)")
_UPPER: Final = re.compile(r"(?<![\$\\])\$\(([A-Z_][A-Z0-9_]*)\)")
_OF_EVERY_IMAGE: Final = frozenset(("HOME", "HOSTNAME", "PATH", "PWD", "USER", "SHELL", "TMPDIR", "PYTHONPATH"))
_DOLLAR: Final = re.compile(r"(?<![\$\\])\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
# What an operator or a plugin sets where it sets it, and nobody else.
_OF_RANKS: Final = re.compile(r"MASTER_(ADDR|PORT)|(NODE_)?RANK|WORLD_SIZE|V[CK]_\w+")
_PATHS: Final = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "LD_PRELOAD", "LIBRARY_PATH", "CPATH")


def _names(container: Container) -> set[str]:
    return {item["name"].text for item in container.node["env"]}


def _unknown_sources(container: Container, bundle: Bundle) -> bool:
    """Whether variables may come from what was not given."""
    document = container.pod.document
    for source in container.node["envFrom"]:
        name = source.at("configMapRef.name").text
        if not name or bundle.config_map(name, document) is None:
            return True
    return False


def _known(name: str, container: Container, bundle: Bundle) -> bool:
    return name in bundle.environment(container) or injected(name, container) or _unknown_sources(container, bundle)


@rule("ARGV020", Level.NOTE, on=Container)
def unknown_reference(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """``$(VAR)`` of a variable that the container does not have."""
    script = container.script
    for node in container.argv:
        is_script = script is not None and node is script
        for name in sorted(set((_UPPER if is_script else _REFERENCE).findall(node.text))):
            if _known(name, container, bundle) or not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
                continue
            then = "the shell then runs a command of that name" if is_script else "the program gets it as it stands"
            yield Problem(
                node,
                f"the container has no variable {name}: unless a webhook or Kustomize knows it, the kubelet leaves "
                f"$({name}) alone, and {then}",
                f"set {name} in env (what the image or the shell sets does not count), or write "
                + (f"${name} for the shell" if is_script else "the value"),
                level=Level.WARNING if _OF_RANKS.fullmatch(name) and not container.pod.document.host else None,
                inside=f"$({name})" if is_script else "",
            )


@rule("ARGV021", Level.WARNING, on=Container)
def without_a_shell(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """``$VAR`` in a command that no shell reads."""
    words = literal_words(container)
    if not container.argv or is_shell(container.argv[0].text) or container.argv[0].text.endswith("envsubst"):
        return
    for node in words:
        found = [one or other for one, other in _DOLLAR.findall(node.text)]
        template = container.pod.document.file in bundle.filled_in
        if not found or (template and not set(found) & _names(container)):
            continue
        known = all(name in _names(container) or _injected_surely(name, container) for name in found)
        mended = _DOLLAR.sub(lambda match: f"$({match[1] or match[2]})", node.text)
        yield Problem(
            node,
            f"no shell reads this command, so ${found[0]} stays the text ${found[0]}",
            f"write $({found[0]}), which the kubelet expands from env" if known else "run it with [sh, -c, SCRIPT]",
            edits=[SetValue(node, mended)] if known else (),
            level=Level.NOTE if template or not _expected(found, container) else None,
        )


def _expected(names: Sequence[str], container: Container) -> bool:
    """Whether the pod or its image has one of them; what nobody has is envsubst's to fill in, as far as one can see."""
    held = _names(container) | _OF_EVERY_IMAGE
    return any(name in held or injected(name, container) for name in names)


def _injected_surely(name: str, container: Container) -> bool:
    return injected(name, container) and bool(name == "JOB_COMPLETION_INDEX" or _OF_RANKS.fullmatch(name))


@rule("ARGV022", Level.WARNING, on=Container)
def dollar_in_env(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """``$VAR`` in the value of an ``env`` item."""
    template = container.pod.document.file in bundle.filled_in
    texts = [(each, found) for each in container.node["env"] if (found := _unexpanded(each["value"], template))]
    if not texts:
        return
    names = [item["name"].text or "the variable" for item, _ in texts]
    (first, found), more = texts[0], f" ({', '.join(names[1:6])} too)" * (len(names) > 1)
    lost = any(name in _PATHS and name in found for name, (_, found) in zip(names, texts, strict=True))
    yield Problem(
        first["value"],
        f"nothing expands ${found[0]} in the value of an env item: {names[0]} holds it as text{more}"
        + ", and what the image has there is lost" * lost,
        f"write $({found[0]}) with {found[0]} in an earlier item, or set {names[0]} in the command's shell",
        edits=[edit for item, found in texts if (edit := _by_the_kubelet(item, found))],
        # What is nothing but a name that nobody here has, envsubst fills in.
        level=None if not template and any(map(_of_this_pod, texts)) else Level.NOTE,
    )


def _of_this_pod(text: tuple[Node, list[str]]) -> bool:
    """Whether the value joins what the image has, or what an earlier item says."""
    item, found = text
    joined = item["name"].text in found and not _DOLLAR.fullmatch(item["value"].text)
    return joined or bool(set(found) & (_earlier(item["value"]) | {*_PATHS, *_OF_EVERY_IMAGE}))


def _unexpanded(value: Node, template: bool) -> list[str]:
    found = [one or other for one, other in _DOLLAR.findall(value.text)] if value.is_scalar else []
    # Several lines are a script, which whoever reads the variable hands to a shell.
    others = "{{" in value.text or "\n" in value.text.strip() or (template and not set(found) & _earlier(value))
    return [] if others else found


def _earlier(value: Node) -> set[str]:
    """The names of the items before the one that has this value."""
    item = value.parent
    items = item.parent.items if item is not None and item.parent is not None else []
    return {each["name"].text for each in items if each.mark < value.mark and each is not item}


def _by_the_kubelet(item: Node, found: list[str]) -> SetValue | None:
    mended = _DOLLAR.sub(lambda match: f"$({match[1] or match[2]})", item["value"].text)
    return SetValue(item["value"], mended) if set(found) <= _earlier(item["value"]) else None


@rule("ARGV023", Level.ERROR, on=Container)
def reference_in_env(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """``$(VAR)`` in an ``env`` value sees ``envFrom`` and the items before it, and nothing else."""
    if container.pod.document.kind in ("TrainJob", "TrainingRuntime", "ClusterTrainingRuntime"):
        return
    earlier = {name for name, each in bundle.environment(container).items() if each.how == "envFrom"}
    open_sources = _unknown_sources(container, bundle)
    items = [(item["name"].text, item["value"]) for item in container.node["env"]]
    names = {name for name, _ in items}
    for name, value in items:
        for wanted in sorted(set(_REFERENCE.findall(value.text))) if value.is_scalar else ():
            own = wanted == name and wanted not in earlier
            known = wanted in earlier or (open_sources and not own)
            problem = None if known else _itself(wanted, value) if own else _reference(container, wanted, names, value)
            if problem is not None:
                yield problem
        earlier.add(name)


def _itself(name: str, value: Node) -> Problem:
    return Problem(
        value,
        f"{name} is set to itself: the kubelet sees no {name} before this item and leaves the text $({name})",
        "take the item away" if name in ("JOB_COMPLETION_INDEX", "HOSTNAME") else "write the value",
        level=None if name == "JOB_COMPLETION_INDEX" else Level.WARNING,
    )


def _reference(container: Container, wanted: str, names: Set[str], value: Node) -> Problem | None:
    what = f"$({wanted}) stays as it stands"
    if wanted in names:
        return Problem(value, f"{wanted} is set in a later env item: {what}", f"move {wanted} before this item")
    if injected(wanted, container):
        late = wanted == "JOB_COMPLETION_INDEX"
        if not late:
            return None
        field = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
        return Problem(
            value,
            f"the Job controller adds {wanted} behind the written env items: {what}",
            f"set {wanted} yourself before it with valueFrom.fieldRef.fieldPath {field}, or use it in the command",
        )
    return Problem(
        value,
        f"the container has no variable {wanted}: {what}",
        f"set {wanted} in an earlier env item (what the image sets does not count)",
        level=Level.WARNING,  # Kustomize's vars may fill it in, or the program
    )
