"""What Argo takes and this engine cannot run as Argo does: rules between fields, judged before anything starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from argosy.workflows.engine.dag import condition_of
from argosy.workflows.engine.document import Document, calls_of
from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import duration_seconds
from argosy.workflows.engine.labels import wrong_labels
from argosy.workflows.engine.locks import lock_problems
from argosy.workflows.engine.pod_patch import patch_problems
from argosy.workflows.engine.pod_rules import pod_problems
from argosy.workflows.engine.validation.kinds import kind_of
from argosy.workflows.engine.validation.tags import texts_of
from argosy.workflows.template_defaults import with_defaults

_EXPRESSION_TAG = re.compile(r"\{\{=(.*?)\}\}", re.DOTALL)


def problems_of(document: Document) -> Iterator[str]:
    """Everything in a workflow that Argo takes and this engine cannot run, by path."""
    spec = document.spec
    yield from _number(spec, "activeDeadlineSeconds", "spec", float)
    yield from _number(spec, "parallelism", "spec", int)
    yield from patch_problems(spec, "spec")
    yield from lock_problems(spec.get("synchronization"), document.configs, "spec")
    yield from wrong_labels((spec.get("podMetadata") or {}).get("labels"), "spec.podMetadata.labels")
    yield from _hooks(document, spec, "", "spec")
    for scope, templates in document.scopes.items():
        if scope:
            yield from _kept_inline(scope, templates)
        for name, template in templates.items():
            path = f"{scope.split('/')[-1] + '.' if scope else ''}templates.{name}"
            yield from _template(document, template, scope, path)
            yield from _expressions(with_defaults(spec, template), path)


def _template(document: Document, template: Mapping[str, Any], scope: str, path: str) -> Iterator[str]:
    kind = kind_of(template)
    yield from _retry(with_defaults(document.spec, template).get("retryStrategy"), f"{path}.retryStrategy")
    yield from lock_problems(with_defaults(document.spec, template).get("synchronization"), document.configs, path)
    yield from _number(template, "activeDeadlineSeconds", path, float)
    yield from _duration(template.get("timeout"), f"{path}.timeout")
    for index, parameter in enumerate((template.get("inputs") or {}).get("parameters") or []):
        if parameter.get("valueFrom") and not parameter["valueFrom"].get("configMapKeyRef"):
            yield f"{path}.inputs.parameters[{index}].valueFrom: not built into the local engine; give a value"
    if kind == "suspend":
        duration = template["suspend"].get("duration")
        if duration is None:
            yield f"{path}.suspend: without duration it waits for a person to resume it; give a duration"
        yield from _duration(duration, f"{path}.suspend.duration")
    elif kind == "steps":
        yield from _chosen_outputs(template, path)
        for number, group in enumerate(template["steps"]):
            for index, step in enumerate(group or []):
                yield from _call(document, step, scope, f"{path}.steps[{number}][{index}]")
    elif kind == "dag":
        yield from _chosen_outputs(template, path)
        yield from _dag(document, template["dag"], scope, path)
    elif kind:
        yield from wrong_labels((template.get("metadata") or {}).get("labels"), f"{path}.metadata.labels")
        yield from pod_problems(document, with_defaults(document.spec, template), kind, path)
        yield from patch_problems(template, path)
    else:
        yield f"{path}.steps: is empty; the local engine runs no template without a step"


def _chosen_outputs(template: Mapping[str, Any], path: str) -> Iterator[str]:
    for artifact in (template.get("outputs") or {}).get("artifacts") or []:
        if artifact.get("fromExpression"):
            where = f"{path}.outputs.artifacts.{artifact['name']}.fromExpression"
            yield from _expression(str(artifact["fromExpression"]), where)


def _kept_inline(scope: str, templates: Mapping[str, Any]) -> Iterator[str]:
    """Argo keeps what a WorkflowTemplate has inline by the name of the step, as its validator has filled it."""
    kept: dict[str, Any] = {}
    todo = [call for template in templates.values() for call in calls_of(template)]
    for call in todo:
        inline = call.get("inline")
        if not inline:
            continue
        todo += calls_of(inline)
        where = f"{scope.split('/')[-1]}: the step {call['name']!r}"
        if any(texts_of(inline)):
            yield f"{where}: inline: has tags, for which Argo takes its validator's stand-ins here; make it a template"
        elif kept.setdefault(str(call["name"]), inline) != inline:
            yield f"{where}: inline: another step of this name has another one, and Argo takes one for both; rename it"


def _retry(strategy: Any, path: str) -> Iterator[str]:
    if not strategy:
        return
    yield from _number(strategy, "limit", path, int)
    backoff = strategy.get("backoff")
    if backoff:
        if not backoff.get("duration"):
            yield f"{path}.backoff.duration: missing; say how long to wait"
        for name in ("duration", "cap", "maxDuration"):
            yield from _duration(backoff.get(name), f"{path}.backoff.{name}")
        yield from _number(backoff, "factor", f"{path}.backoff", int)
    expression = str(strategy.get("expression") or "")
    if expression and "{{" not in expression:
        yield from _expression(expression, f"{path}.expression")


def _expression(text: str, path: str) -> Iterator[str]:
    from argosy.workflows.engine.expression.evaluate import check

    try:
        check(text)
    except ExpressionError as error:
        yield f"{path}: {text!r}: {error}"


def _expressions(template: Mapping[str, Any], path: str) -> Iterator[str]:
    texts = [*texts_of({key: value for key, value in template.items() if key not in ("metrics", "podSpecPatch")})]
    if any(_EXPRESSION_TAG.search(text) for text in texts):
        for text in texts:
            if text.rfind("{{") > text.rfind("}}"):
                yield f"{path}: {text!r}: in Argo a '{{{{' that nothing closes may swallow the expressions after it"
    for text in texts:
        for expression in _EXPRESSION_TAG.findall(text):
            yield from _expression(expression, path)


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


def _hooks(document: Document, holder: Mapping[str, Any], scope: str, path: str) -> Iterator[str]:
    hook = (holder.get("hooks") or {}).get("exit")
    if hook:
        yield from _reference(document, hook, scope, f"{path}.hooks.exit")
        if hook.get("expression"):
            yield from _expression(str(hook["expression"]), f"{path}.hooks.exit.expression")
    if holder.get("onExit"):
        yield from _reference(document, {"template": holder["onExit"]}, scope, f"{path}.onExit")


def _reference(document: Document, holder: Mapping[str, Any], scope: str, path: str) -> Iterator[str]:
    """Argo looks for some templates only when it needs them: hooks', and those whose names have tags."""
    try:
        document.template(holder, scope)
    except LookupError as error:
        if "{{" in str(error):
            yield f"{path}: a tag in a template's name is not built into the local engine"
        else:
            yield f"{path}: {error}; give a template that is there, or its file with --templates"


def _call(document: Document, step: Mapping[str, Any], scope: str, path: str) -> Iterator[str]:
    if step.get("inline"):
        yield from _template(document, step["inline"], scope, f"{path}.inline")
    else:
        yield from _reference(document, step, scope, path)
    for artifact in (step.get("arguments") or {}).get("artifacts") or []:
        if artifact.get("fromExpression"):
            yield f"{path}.arguments.artifacts.{artifact['name']}.fromExpression: not built into the local engine"
    sequence = step.get("withSequence")
    if sequence is not None and ("count" in sequence) == ("end" in sequence):
        yield f"{path}.withSequence: needs count or end, one of the two"
    yield from _hooks(document, step, scope, path)


def _dag(document: Document, dag: Mapping[str, Any], scope: str, path: str) -> Iterator[str]:
    tasks = {str(task["name"]): task for task in dag["tasks"]}
    for name, task in tasks.items():
        where = f"{path}.dag.tasks.{name}"
        yield from _call(document, task, scope, where)
        try:
            condition_of(task, tasks)
        except ExpressionError as error:
            yield f"{where}.depends: {task.get('depends')!r}: {error}"
        if ".Daemoned" in str(task.get("depends")):
            yield f"{where}.depends: Daemoned: daemons are not supported by the local engine"
