"""Rules between fields: references, names, expressions, numbers, paths. Checked before anything starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from argosy.workflows.engine.dag import condition_of
from argosy.workflows.engine.defaults import with_defaults
from argosy.workflows.engine.depends import tasks_of
from argosy.workflows.engine.document import Document
from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import duration_seconds
from argosy.workflows.engine.pod_patch import patch_problems
from argosy.workflows.engine.pod_rules import pod_problems
from argosy.workflows.engine.retry import POLICIES

_KINDS = ("container", "script", "dag", "steps", "suspend")
_TAG = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_EXPRESSION_TAG = re.compile(r"\{\{=(.*?)\}\}", re.DOTALL)
_NAME = re.compile(r"[a-zA-Z0-9][-a-zA-Z0-9]{0,127}")
_TASK_NAME = re.compile(r"[a-zA-Z0-9][-_a-zA-Z0-9]*")


def problems_of(document: Document) -> Iterator[str]:
    """Everything that is wrong with a document whose fields are known, by path."""
    spec = document.spec
    entrypoint = spec.get("entrypoint")
    if not entrypoint:
        yield "spec.entrypoint: missing; name the template to start with"
    elif entrypoint not in document.scopes[""]:
        there = ", ".join(document.scopes[""]) or "none"
        yield f"spec.entrypoint: no template is called {entrypoint!r}; there are {there}"
    for holder, path in _exit_holders(spec):
        yield from _reference(document, holder, "", path)
    yield from _number(spec, "activeDeadlineSeconds", "spec", float)
    yield from _number(spec, "parallelism", "spec", int)
    yield from patch_problems(spec, "spec")
    given = {str(each.get("name")) for each in (spec.get("arguments") or {}).get("parameters") or []}
    for scope, templates in document.scopes.items():
        for name, template in templates.items():
            path = f"{scope.split('/')[-1] + '.' if scope else ''}templates.{name}"
            yield from _template(document, template, scope, path)
            yield from _tags(with_defaults(spec, template), path, given if scope == "" else None)


def _exit_holders(spec: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    if spec.get("onExit"):
        yield {"template": spec["onExit"]}, "spec.onExit"
    if (spec.get("hooks") or {}).get("exit"):
        yield spec["hooks"]["exit"], "spec.hooks.exit"


def _template(document: Document, template: Mapping[str, Any], scope: str, path: str) -> Iterator[str]:
    kinds = [kind for kind in _KINDS if kind in template]
    if len(kinds) != 1:
        yield f"{path}: needs exactly one of {', '.join(_KINDS)}; it has {', '.join(kinds) or 'none'}"
        return
    if not _NAME.fullmatch(str(template["name"])):
        yield f"{path}.name: {template['name']!r} may have letters, digits and '-' only"
    merged = with_defaults(document.spec, template)
    yield from _names(template, path)
    yield from _retry(merged.get("retryStrategy"), f"{path}.retryStrategy")
    yield from _number(template, "activeDeadlineSeconds", path, float)
    yield from _number(template, "parallelism", path, int)
    yield from _duration(template.get("timeout"), f"{path}.timeout")
    if kinds[0] in ("dag", "steps"):
        if template.get("timeout"):
            yield f"{path}.timeout: Argo allows none on {kinds[0]} templates; put it on the steps"
        rules = _dag if kinds[0] == "dag" else _steps
        yield from rules(document, template, scope, path)
    elif kinds[0] == "suspend":
        duration = (template["suspend"] or {}).get("duration")
        if duration is None:
            yield f"{path}.suspend: without duration it waits for a person to resume it; give a duration"
        yield from _duration(duration, f"{path}.suspend.duration")
    else:
        yield from pod_problems(document, template, kinds[0], path)
        yield from patch_problems(template, path)


def _names(template: Mapping[str, Any], path: str) -> Iterator[str]:
    for side in ("inputs", "outputs"):
        for kind in ("parameters", "artifacts"):
            seen: set[str] = set()
            for index, each in enumerate((template.get(side) or {}).get(kind) or []):
                name = each.get("name")
                where = f"{path}.{side}.{kind}[{index}]"
                if not name:
                    yield f"{where}.name: missing"
                elif name in seen:
                    yield f"{where}.name: {name!r} stands twice"
                seen.add(str(name))
                if side == "inputs" and each.get("valueFrom"):
                    yield f"{where}.valueFrom: not supported on inputs by the local engine; give a value"


def _retry(strategy: Any, path: str) -> Iterator[str]:
    if not strategy:
        return
    if strategy.get("retryPolicy") and strategy["retryPolicy"] not in POLICIES:
        yield f"{path}.retryPolicy: {strategy['retryPolicy']!r} is none of {', '.join(POLICIES)}"
    yield from _number(strategy, "limit", path, int)
    backoff = strategy.get("backoff")
    if backoff:
        if not backoff.get("duration"):
            yield f"{path}.backoff.duration: missing; say how long to wait"
        for name in ("duration", "cap", "maxDuration"):
            yield from _duration(backoff.get(name), f"{path}.backoff.{name}")
        yield from _number(backoff, "factor", f"{path}.backoff", int)
    if strategy.get("expression"):
        yield from _expression(str(strategy["expression"]), f"{path}.expression")


def _expression(text: str, path: str) -> Iterator[str]:
    from argosy.workflows.engine.expression.evaluate import check

    try:
        check(text)
    except ExpressionError as error:
        yield f"{path}: {text!r}: {error}"


def _number(holder: Mapping[str, Any], key: str, path: str, kind: Callable[[str], object]) -> Iterator[str]:
    value = holder.get(key)
    if value is None or "{{" in str(value):
        return
    try:
        kind(str(value))
    except ValueError:
        yield f"{path}.{key}: {value!r} is not a number"


def _duration(value: Any, path: str) -> Iterator[str]:
    if value is None or "{{" in str(value):
        return
    try:
        duration_seconds(str(value))
    except ValueError as error:
        yield f"{path}: {error}"


def _reference(document: Document, holder: Mapping[str, Any], scope: str, path: str) -> Iterator[str]:
    if "{{" in str(holder.get("template") or ""):
        yield f"{path}.template: a tag in a template's name is not supported by the local engine"
        return
    if not holder.get("template") and not holder.get("templateRef"):
        yield f"{path}: names no template"
        return
    try:
        _, template = document.template(holder, scope)
    except LookupError:
        reference = holder.get("templateRef")
        if reference:
            yield (
                f"{path}.templateRef: WorkflowTemplate {reference.get('name')!r} with template "
                f"{reference.get('template')!r} was not given; add its file with --template"
            )
        else:
            yield f"{path}.template: no template is called {holder.get('template')!r}"
        return
    given = {each.get("name") for each in (holder.get("arguments") or {}).get("parameters") or []}
    if path in ("spec.onExit", "spec.hooks.exit") and not holder.get("arguments"):
        given = {each.get("name") for each in (document.spec.get("arguments") or {}).get("parameters") or []}
    for parameter in (template.get("inputs") or {}).get("parameters") or []:
        name = parameter.get("name")
        if name not in given and parameter.get("value") is None and parameter.get("default") is None:
            yield f"{path}.arguments: parameter {name!r} of template {template.get('name')!r} has no value"


def _step(document: Document, step: Mapping[str, Any], scope: str, path: str) -> Iterator[str]:
    yield from _reference(document, step, scope, path)
    loops = [key for key in ("withItems", "withParam", "withSequence") if step.get(key) is not None]
    if len(loops) > 1:
        yield f"{path}: only one of {', '.join(loops)}"
    sequence = step.get("withSequence")
    if sequence is not None and ("count" in sequence) == ("end" in sequence):
        yield f"{path}.withSequence: needs count or end, one of the two"
    hook = (step.get("hooks") or {}).get("exit")
    if hook:
        yield from _reference(document, hook, scope, f"{path}.hooks.exit")
        if hook.get("expression"):
            yield from _expression(str(hook["expression"]), f"{path}.hooks.exit.expression")
    if step.get("onExit"):
        yield from _reference(document, {"template": step["onExit"]}, scope, f"{path}.onExit")


def _steps(document: Document, template: Mapping[str, Any], scope: str, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for number, group in enumerate(template["steps"]):
        for index, step in enumerate(group):
            where = f"{path}.steps[{number}][{index}]"
            name = str(step.get("name") or "")
            if not _TASK_NAME.fullmatch(name):
                yield f"{where}.name: {name!r} may have letters, digits, '-' and '_' only"
            if name in seen:
                yield f"{where}.name: {name!r} stands twice; names are unique"
            seen.add(name)
            yield from _step(document, step, scope, where)


def _dag(document: Document, template: Mapping[str, Any], scope: str, path: str) -> Iterator[str]:
    tasks: dict[str, Mapping[str, Any]] = {}
    for index, task in enumerate(template["dag"].get("tasks") or []):
        where, name = f"{path}.dag.tasks[{index}]", str(task.get("name") or "")
        if not _TASK_NAME.fullmatch(name):
            yield f"{where}.name: {name!r} may have letters, digits, '-' and '_' only"
        if name in tasks:
            yield f"{where}.name: {name!r} stands twice; names are unique"
        tasks[name] = task
        if task.get("depends") and task.get("dependencies"):
            yield f"{where}: depends and dependencies: only one of the two"
        if task.get("depends") and task.get("continueOn"):
            yield f"{where}: continueOn and depends: only one of the two; write depends: X.Failed"
        yield from _step(document, task, scope, where)
    if not tasks:
        yield f"{path}.dag.tasks: is empty"
    for name in str(template["dag"].get("target") or "").split():
        if name not in tasks:
            yield f"{path}.dag.target: no task is called {name!r}"
    yield from _conditions(tasks, path)


def _conditions(tasks: Mapping[str, Mapping[str, Any]], path: str) -> Iterator[str]:
    needs: dict[str, list[str]] = {}
    for name, task in tasks.items():
        where = f"{path}.dag.tasks.{name}.depends"
        try:
            condition = condition_of(task, tasks)
        except ExpressionError as error:
            yield f"{where}: {task.get('depends')!r}: {error}"
            return
        needs[name] = [] if condition is None else tasks_of(condition)
        for each in needs[name]:
            if each not in tasks:
                yield f"{where}: no task is called {each!r}"
                return
        if ".Daemoned" in str(task.get("depends")):
            yield f"{where}: Daemoned: daemons are not supported by the local engine"
    ended: set[str] = set()
    while ready := [name for name in needs if name not in ended and ended.issuperset(needs[name])]:
        ended.update(ready)
    if len(ended) < len(needs):
        yield f"{path}.dag: tasks {', '.join(sorted(set(needs) - ended))} depend on each other in a circle"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _tags(template: Mapping[str, Any], path: str, workflow_parameters: set[str] | None) -> Iterator[str]:
    """Tags that nothing can ever answer: the controller refuses such a workflow too."""
    inputs = {str(each.get("name")) for each in (template.get("inputs") or {}).get("parameters") or []}
    own = {str(task.get("name")) for task in (template.get("dag") or {}).get("tasks") or []}
    own |= {str(step.get("name")) for group in template.get("steps") or [] for step in group}
    for text in _texts({key: value for key, value in template.items() if key not in ("metrics", "podSpecPatch")}):
        if "{{" not in text:
            continue
        for expression in _EXPRESSION_TAG.findall(text):
            yield from _expression(expression, path)
        for tag in _TAG.findall(text):
            head, _, rest = tag.strip().partition(".")
            kind, _, name = rest.partition(".")
            if head == "inputs" and kind == "parameters" and name and name not in inputs:
                yield f"{path}: {{{{{tag}}}}}: the template has no input parameter {name!r}"
            elif head == "workflow" and kind == "parameters" and workflow_parameters is not None:
                if name and name != "json" and name not in workflow_parameters:
                    yield f"{path}: {{{{{tag}}}}}: the workflow has no parameter {name!r}"
            elif head in ("tasks", "steps") and kind != "name" and kind not in own:
                yield f"{path}: {{{{{tag}}}}}: no step or task of this template is called {kind!r}"
            elif head in ("retries", "lastRetry") and not _retries(template):
                yield f"{path}: {{{{{tag}}}}}: has a value only in a template with retryStrategy"


def _retries(template: Mapping[str, Any]) -> bool:
    return bool(template.get("retryStrategy"))
