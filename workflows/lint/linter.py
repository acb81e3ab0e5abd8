"""Run the rules over files."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from argosy.steps.nccl.facts import Span
from argosy.workflows.lint.finding import Finding, Level, Problem
from argosy.workflows.lint.rule import RULES, Rule
from argosy.workflows.lint.rules import load
from argosy.workflows.lint.suppression import judge, suppressions
from argosy.workflows.manifests.argo_templates import ArgoWorkflow
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container, Pod
from argosy.workflows.manifests.ranks import may_train
from argosy.workflows.manifests.reading import SourceFile
from argosy.workflows.manifests.workload import Workload

Wanted = Callable[[str], bool]
_MOST: Final = 50
"""Findings of one rule in one object, pod or container: whoever mends so many lints again."""
_SMALL: Final = frozenset(("API004", "API008", "API010", "MEM007", "MEM012"))
"""What they judge has no words in capitals: such a word is a script's to replace."""
_OF_FIELDS: Final = ("API002", "API003", "API004", "API005", "API006")
_OF_TRAININGS: Final = (
    *("ARGO016", "ARGV04", "BATCH", "GANG", "MEM00", "MEM015", "REND053", "RESTART", "SEC013", "STORE015", "STORE016"),
)
"""What harms a training is a note for a pod that nothing calls one."""


# What an author left out says a comment, too (a line of three dots ends a document); ytt's comments write values.
_SKETCH: Final = re.compile(
    r"^[ \t]*(?:- )?#[ \t]*(?:\.\.\.|…|\(?(?:omitted|snip)\b)|(?:^|[ \t])#@(?:[ \t]|\w+/)", re.MULTILINE
)


# What a tool's own tests read is wrong on purpose.
_FIXTURE: Final = re.compile(
    r"(?:^|/|__)(?:testdata|expected[-_]?failures?|lint[-_]?fail|(?:test[-_])?fixtures?|__snapshots__|golden|"
    r"test(?:/|__)resources)(?:/|__)"
)
_PROPOSAL: Final = re.compile(r"(?:^|/|__)(?:keps|proposals)(?:/|__)")
"""Where an API is sketched, and no run."""


def _left_out(root: Node) -> bool:
    return any(node.text in ("...", "....", "…") for node in root.walk())


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
    found: dict[str, set[Finding]] = defaultdict(set)
    for finding in [*given, *_unreadable(files), *_of_rules(bundle, files)]:
        found[finding.file].add(finding)
    return [finding for file in files for finding in _kept(file, found[file.name], wanted)]


def _kept(file: SourceFile, found: Iterable[Finding], wanted: Wanted) -> list[Finding]:
    comments = suppressions(file)
    # sum, not any: every comment is asked, so that all that serve are used
    kept = [finding for finding in found if not sum(each.hides(finding) for each in comments)]
    kept.extend(judge(comments, file.name))
    return sorted((finding for finding in kept if wanted(finding.rule)), key=lambda finding: finding.order)


def _unreadable(files: Iterable[SourceFile]) -> Iterator[Finding]:
    for file in files:
        for each in file.unreadable:
            place = (file.name, each.line, each.column, each.column + 1)
            known = Level.WARNING if each.harmless else RULES[each.rule].level
            level = Level.NOTE if each.lossless or _FIXTURE.search(file.name) else known
            yield Finding(each.rule, level, *place, each.message, each.remedy)


def _of_rules(bundle: Bundle, files: Iterable[SourceFile]) -> Iterator[Finding]:
    lines = {file.name: file.text.split("\n") for file in files}
    templates = {file.name for file in files for each in file.unreadable if each.harmless and each.rule == "YAML001"}
    templates |= {file.name for file in files if _SKETCH.search(file.text) or any(map(_left_out, file.roots))}
    idle = {id(each.document) for each in bundle.workloads if not may_train(each, bundle)}
    causes: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    never: set[int] = set()
    for kind, things in _things(bundle).items():
        checks = [(rule, rule.checks[kind]) for rule in RULES.values() if kind in rule.checks]
        for thing in things:
            document = _document(thing)
            for rule, check in checks:
                for problem in islice(check(thing, bundle), _MOST):
                    finding = _finding(rule, problem, lines)
                    part = finding.file in templates or (document is not None and bundle.is_patch(document))
                    most = min(_most(problem.node, finding.rule), _lower(finding.level, part))
                    aside = id(problem.node.yaml) in bundle.written_over or _FIXTURE.search(finding.file) is not None
                    most = Level.NOTE if aside else most
                    unused = id(document) in idle or _PROPOSAL.search(finding.file) is not None
                    if most is Level.WARNING and unused and finding.rule.startswith(_OF_TRAININGS):
                        most = Level.NOTE
                    finding = replace(finding, level=most)
                    if problem.drafted:
                        never.add(id(document))
                    causes[_cause(finding, problem.cause, document, bundle)].append(finding)
    # A version that never was is a draft of another, and two fields that no release has are a fork's: what today's
    # fields want of them is worth no warning.
    unknown = Counter(cause[2] for cause in causes if cause[:2] == ("API002", Level.NOTE))
    for cause, found in causes.items():
        joined = _joined(found)
        draft = cause[2] in never or (unknown[cause[2]] > 1 and joined.rule in _OF_FIELDS)
        yield replace(joined, level=Level.NOTE) if draft and joined.level is Level.WARNING else joined


def _lower(level: Level, part: bool) -> Level:
    """What is said of a thing that is no whole manifest: a level less."""
    return Level(max(Level.NOTE, level - part))


def _most(node: Node, rule: str) -> Level:
    """The worst that may be said of a value: not much of one that another program fills in."""
    if node.is_mapping and node.open:  # {{ x }} without quotes: YAML001 says so
        return Level.NOTE
    return Level.NOTE if node.placed or (rule in _SMALL and node.in_capitals) else Level.ERROR


def _cause(finding: Finding, told: str, document: Document | None, bundle: Bundle) -> tuple[object, ...]:
    """What two findings share that one mend ends: rule, object and words, the names of replica types left out."""
    if finding.rule == "API001":  # of several objects at once
        return finding.rule, finding.level, finding.file, told
    workload = bundle.workload(document) if document is not None else None
    message = told or finding.message
    for role in workload.roles if workload is not None and workload.family != "argo" else ():
        message = message.removeprefix(f"{role.name}: ").replace(f".{role.name}.", ".") if role.name else message
    return finding.rule, finding.level, id(document), finding.file, message


def _joined(found: list[Finding]) -> Finding:
    """The first of a cause's findings, with the edits of all and the lines of the others."""
    first, *rest = sorted(set(found), key=lambda each: each.order)
    lines = sorted({each.line for each in rest} - {first.line})
    if not lines:
        return first
    more = f" (also on line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines[:8]))})"
    return replace(
        first, message=first.message + more, edits=tuple(edit for each in [first, *rest] for edit in each.edits)
    )


def _document(thing: object) -> Document | None:
    match thing:
        case Document():
            return thing
        case Workload() | Pod() | ArgoWorkflow():
            return thing.document
        case Container():
            return thing.pod.document
        case _:
            return None


def _things(bundle: Bundle) -> dict[type, Sequence[Any]]:
    pods = [pod for _, pod in bundle.pods]
    return {
        Bundle: [bundle],
        Document: bundle.documents,
        Workload: bundle.workloads,
        ArgoWorkflow: [found for each in bundle.documents if (found := bundle.argo(each)) is not None],
        Pod: pods,
        Container: [container for pod in pods for container in pod.all_containers],
    }


def _finding(rule: Rule, problem: Problem, lines: dict[str, list[str]]) -> Finding:
    name = problem.rule or rule.name
    level: Level = problem.level or RULES[name].level
    node = problem.node
    line, column, end = node.mark if node.exists and not _below_its_key(node) else node.key_mark
    if problem.inside:
        line, column, end = _inside(problem, lines[node.origin.file]) or (line, column, end)
    return Finding(
        *(name, level, node.origin.file, line, column, end, problem.message, problem.remedy, tuple(problem.edits))
    )


def _inside(problem: Problem, lines: list[str]) -> tuple[int, int, int] | None:
    """Place of a piece of a text of several lines."""
    node = problem.node
    for number in range(node.line, min(node.last_line, len(lines)) + 1):
        column = lines[number - 1].find(problem.inside, node.mark[1] - 1 if number == node.line else 0)
        if column >= 0:
            return number, column + 1, column + 1 + len(problem.inside)
    return None


def _below_its_key(node: Node) -> bool:
    """Whether it is a block of several lines under its key: who looks for the fault looks at the key."""
    return node.key_yaml is not None and not node.is_scalar and node.key_mark[0] < node.mark[0]
