"""Run the rules over files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from argosy.steps.nccl.facts import Span
from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Finding, Level, Problem
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.reading import SourceFile
from argosy.workflows.lint.rule import RULES, Rule
from argosy.workflows.lint.rules import load
from argosy.workflows.lint.suppression import Suppression, judge, suppressions
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.pod import Pod
from argosy.workflows.lint.view.workload import Workload

Wanted = Callable[[str], bool]


def lint(
    files: Sequence[SourceFile], wanted: Wanted = lambda _: True, given: Iterable[Finding] = (), nccl: str = ""
) -> list[Finding]:
    """All findings of the files, in the order of the files and lines.

    Args:
        files: what was read; names in one may refer to objects in another.
        wanted: whether a rule (by name) is asked for.
        given: findings of parts that read files of another form (a run.toml); comments excuse them as well.
        nccl: version of NCCL in the images; empty: what their tags say.
    """
    load()
    bundle = Bundle(files, Span.exactly(nccl))
    texts = {file.name: file for file in files}
    found: dict[str, set[Finding]] = defaultdict(set)
    for finding in [*given, *_unreadable(files), *_of_rules(bundle, texts)]:
        found[finding.file].add(finding)
    return [finding for file in files for finding in _kept(file, found[file.name], wanted)]


def _kept(file: SourceFile, found: Iterable[Finding], wanted: Wanted) -> list[Finding]:
    comments = suppressions(file)
    kept = [finding for finding in found if not _hidden(finding, comments)]
    kept.extend(judge(comments, file.name))
    return sorted((finding for finding in kept if wanted(finding.rule)), key=lambda finding: finding.order)


def _hidden(finding: Finding, comments: Iterable[Suppression]) -> bool:
    return sum(each.hides(finding) for each in comments) > 0  # every comment is asked, so that all that serve are used


def _unreadable(files: Iterable[SourceFile]) -> Iterator[Finding]:
    for file in files:
        for each in file.unreadable:
            place = (file.name, each.line, each.column, each.column + 1)
            yield Finding(each.rule, each.level or RULES[each.rule].level, *place, each.message, each.remedy)


def _of_rules(bundle: Bundle, texts: dict[str, SourceFile]) -> Iterator[Finding]:
    for kind, things in _things(bundle).items():
        rules = [rule for rule in RULES.values() if rule.on is kind]
        for thing in things:
            for rule in rules:
                for problem in rule.check(thing, bundle):
                    yield _finding(rule, problem, texts)


def _things(bundle: Bundle) -> dict[type, Sequence[Any]]:
    pods = [pod for _, pod in bundle.pods]
    return {
        Bundle: [bundle],
        Document: bundle.documents,
        Workload: bundle.workloads,
        Pod: pods,
        Container: [container for pod in pods for container in pod.all_containers],
    }


def _finding(rule: Rule, problem: Problem, texts: dict[str, SourceFile]) -> Finding:
    name = problem.rule or rule.name
    level: Level = problem.level or RULES[name].level
    node = problem.node
    line, column, end = node.mark if node.exists and not _below_its_key(node) else node.key_mark
    if problem.inside:
        line, column, end = _inside(problem, texts[node.origin.file].text) or (line, column, end)
    return Finding(
        *(name, level, node.origin.file, line, column, end, problem.message, problem.remedy, tuple(problem.edits))
    )


def _inside(problem: Problem, text: str) -> tuple[int, int, int] | None:
    """Place of a piece of a text of several lines."""
    node = problem.node
    lines = text.split("\n")
    for number in range(node.line, min(node.last_line, len(lines)) + 1):
        column = lines[number - 1].find(problem.inside, node.mark[1] - 1 if number == node.line else 0)
        if column >= 0:
            return number, column + 1, column + 1 + len(problem.inside)
    return None


def _below_its_key(node: Node) -> bool:
    """Whether it is a block of several lines under its key: who looks for the fault looks at the key."""
    return node.key_yaml is not None and not node.is_scalar and node.key_mark[0] < node.mark[0]
