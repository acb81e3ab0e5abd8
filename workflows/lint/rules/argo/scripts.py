"""Parameters that become code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.argo_templates import ArgoWorkflow, Tag, Template, tags
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.shell import SHELLS

_INTERPRETERS: Final = (*SHELLS, "python", "python3", "perl", "node", "ruby", "pwsh")
_VALUE: Final = re.compile(r"(?:inputs|workflow)\.parameters\.[\w-]+|item(?:\.[\w-]+)?")


@rule("ARGO025", Level.WARNING, on=ArgoWorkflow)
def code(workflow: ArgoWorkflow, bundle: Bundle) -> Iterator[Problem]:
    """A tag is replaced in the text of the script before the interpreter reads it."""
    if not workflow.resolved:
        return
    foreign = _from_events(workflow, bundle)
    risky: list[Tag] = []
    for template in workflow.templates:
        for node in _code(template):
            found = [tag for tag in tags(node) if _VALUE.fullmatch(tag.name) and not _closed(tag, template, workflow)]
            tainted = [tag for tag in found if _key(tag, template) in foreign]
            if tainted:
                yield _problem(tainted[0], " comes from an event and", Level.WARNING)
            else:
                risky += found[:1]
    if risky:  # one habit of the author's: one finding; who submits a workflow runs what code he likes anyway
        others = f", and so in {len(risky) - 1} more of its scripts" if risky[1:] else ""
        yield _problem(risky[0], "", Level.NOTE, others)


def _problem(tag: Tag, source: str, level: Level, others: str = "") -> Problem:
    return Problem(
        tag.node,
        f"{tag.text}{source} is put into the script as text: a value with a quote in it is run as code{others}",
        "pass it as an environment variable or as an argument of its own, and read it there",
        inside=tag.text,
        level=level,
    )


def _code(template: Template) -> Iterator[Node]:
    """The texts that an interpreter reads."""
    if template.node.at("script.source"):
        yield template.node.at("script.source")
    for container in [template.node["container"], *template.node.at("containerSet.containers")]:
        words = [*container["command"], *container["args"]]
        interpreter = False
        for index, word in enumerate(words[:-1]):
            interpreter = interpreter or (index > 0 and words[index - 1].text.rpartition("/")[2] in _INTERPRETERS)
            if interpreter and re.fullmatch(r"-[a-z]*[ce]", word.text):
                yield words[index + 1]
                break


def _closed(tag: Tag, template: Template, workflow: ArgoWorkflow) -> bool:
    """Whether the parameter has one of a list of values, or is a number."""
    name = tag.parts[-1]
    held = template.inputs if tag.parts[0] == "inputs" else workflow.parameters
    given = held.get(name)
    return given is not None and (given["enum"].is_list or (given["value"] or given["default"]).text.isdecimal())


def _key(tag: Tag, template: Template) -> tuple[str, str]:
    return (template.name if tag.parts[0] == "inputs" else "", tag.parts[-1])


def _from_events(workflow: ArgoWorkflow, bundle: Bundle) -> set[tuple[str, str]]:
    """(template or ``""`` for the workflow's own, parameter) whose value an event decides."""
    found = {("", name) for name in bundle.filled_by_events(workflow.document)}
    if not found:
        return found
    start = workflow.spec["entrypoint"].text
    found |= {(start, name) for _, name in found}
    for _ in workflow.templates:  # one more call deep in each round
        before = len(found)
        for template in workflow.templates:
            for call in template.calls:
                for name, node in call.parameters.items():
                    if any(_key(tag, template) in found for tag in tags(node["value"])):
                        found.add((call.target.text, name))
        if len(found) == before:
            break
    return found
