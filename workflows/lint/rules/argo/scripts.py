"""Parameters that become code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.argo_templates import ArgoWorkflow, Tag, Template, tags
from argosy.workflows.lint.view.process import SHELLS

_INTERPRETERS: Final = (*SHELLS, "python", "python3", "perl", "node", "ruby", "pwsh")
_VALUE: Final = re.compile(r"(?:inputs|workflow)\.parameters\.[\w-]+|item(?:\.[\w-]+)?")


@rule("ARGO025", Level.WARNING, on=Document)
def code(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A tag is replaced in the text of the script before the interpreter reads it."""
    workflow = bundle.argo(document)
    if workflow is None or not workflow.resolved:
        return
    foreign = _from_events(workflow, bundle)
    for template in workflow.templates:
        for node in _code(template):
            risky = [tag for tag in tags(node) if _VALUE.fullmatch(tag.name) and not _closed(tag, template, workflow)]
            if risky:
                yield _problem(risky, template, foreign)


def _problem(risky: list[Tag], template: Template, foreign: set[tuple[str, str]]) -> Problem:
    tainted = [tag for tag in risky if _key(tag, template) in foreign]
    tag = next(iter([*tainted, *risky]))
    from_event = " comes from an event and" if tainted else ""
    return Problem(
        tag.node,
        f"{tag.text}{from_event} is put into the script as text: a value with a quote in it is run as code",
        "pass it as an environment variable or as an argument of its own, and read it there",
        inside=tag.text,
        level=Level.ERROR if tainted else Level.WARNING,
    )


def _code(template: Template) -> Iterator[Node]:
    """The texts that an interpreter reads."""
    if template.node.at("script.source"):
        yield template.node.at("script.source")
    for container in [template.node["container"], *template.node.at("containerSet.containers")]:
        words = [*container["command"], *container["args"]]
        for index, word in enumerate(words[:-1]):
            interpreter = any(each.text.rpartition("/")[2] in _INTERPRETERS for each in words[:index])
            if interpreter and re.fullmatch(r"-[a-z]*[ce]", word.text):
                yield words[index + 1]
                break


def _closed(tag: Tag, template: Template, workflow: ArgoWorkflow) -> bool:
    """Whether the parameter can only have one of a list of values."""
    name = tag.parts[-1]
    held = template.inputs if tag.parts[0] == "inputs" else workflow.parameters
    return name in held and held[name]["enum"].is_list


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
