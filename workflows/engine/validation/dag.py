"""Templates of tasks: each sees what its ancestors did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from argosy.workflows.engine.validation.ancestry import Tasks, ancestors_of, check_order, check_results, needs_of
from argosy.workflows.engine.validation.arguments import check_arguments, items_of
from argosy.workflows.engine.validation.calls import inline_inputs, publish
from argosy.workflows.engine.validation.loops import is_aggregate, is_loop, item_names
from argosy.workflows.engine.validation.names import check_names
from argosy.workflows.engine.validation.refusal import Refused
from argosy.workflows.engine.validation.variables import check_variables, is_parameter

if TYPE_CHECKING:
    from argosy.workflows.engine.validation.arguments import Tree
    from argosy.workflows.engine.validation.validator import Validator

Called = dict[str, "Tree | None"]


def check_dag(validator: Validator, template: Mapping[str, Any], scope: str, path: str, names: dict[str, str]) -> None:
    """Judge the tasks of a template; ``names`` grows by what they make known to the template's outputs.

    Raises:
        Refused: a rule between the tasks is broken.
    """
    dag = template["dag"]
    listed = [task or {} for task in dag.get("tasks") or []]
    if not listed:
        raise Refused(f"{path}.dag.tasks: is empty; a DAG must have at least one task")
    check_names(listed, f"{path}.dag.tasks")
    tasks: Tasks = {str(task["name"]): task for task in listed}
    check_order(tasks, path)
    uses_depends = any(task.get("depends") for task in listed)
    called: Called = {}
    for name, task in tasks.items():
        with validator.refusals.gathered():
            _check_relations(task, tasks, f"{path}.dag.tasks.{name}", uses_depends)
        called[name] = None
        with validator.refusals.gathered():
            called[name] = validator.holder(task, scope, None, f"{path}.dag.tasks.{name}")
        publish(validator, called[name], f"tasks.{name}", names, loop=is_aggregate(task))
    _check_target(validator, dag, tasks, f"{path}.dag.target", names)
    for name, task in tasks.items():
        with validator.refusals.gathered():
            _check_task(validator, task, scope, f"{path}.dag.tasks.{name}", names, tasks, called)


def _check_relations(task: Mapping[str, Any], tasks: Tasks, where: str, uses_depends: bool) -> None:
    dependencies = task.get("dependencies")
    if (uses_depends or dependencies) and str(task["name"])[0].isdigit():
        raise Refused(f"{where}: name cannot begin with a digit when using either 'depends' or 'dependencies'")
    if uses_depends and dependencies:
        raise Refused(f"{where}: cannot use both 'depends' and 'dependencies' in the same DAG template; choose one")
    if uses_depends and task.get("continueOn") is not None:
        raise Refused(f"{where}: cannot use 'continueOn' when using 'depends'; write depends: X.Failed or X.Errored")
    check_results(task, where)
    for name, of_loop in needs_of(task).items():
        if of_loop and not is_loop(tasks[name]):
            raise Refused(f"{where}.depends: {name!r} is asked for .AnySucceeded or .AllFailed but has no items")


def _check_target(
    validator: Validator, dag: Mapping[str, Any], tasks: Tasks, where: str, names: Mapping[str, str]
) -> None:
    target = str(dag.get("target") or "")
    check_variables(target, where, names, validator.global_names)
    for name in target.split(" ") if target else []:
        if not is_parameter(name) and name not in tasks:
            raise Refused(f"{where}: no task is called {name!r}")


def _check_task(
    validator: Validator, task: Mapping[str, Any], scope: str, where: str, names: dict[str, str], tasks: Tasks,
    called: Called,
) -> None:  # fmt: skip
    name = str(task["name"])
    prefix = f"tasks.{name}"
    if task.get("hooks") is not None:
        names[f"{prefix}.status"] = ""
    publish(validator, called[name], prefix, names)
    ancestors = ancestors_of(name, tasks)
    own = dict(names)
    for each in ancestors:
        publish(validator, called[each], f"tasks.{each}", own, loop=is_aggregate(tasks[each]), ended=True)
    own |= dict.fromkeys((*inline_inputs(task), *item_names(task, where)), "")
    check_variables(task, where, own, validator.global_names)
    arguments = task.get("arguments") or {}
    check_arguments(arguments, f"{where}.arguments")
    _check_order_of_arguments(arguments, ancestors, where)
    validator.holder(task, scope, arguments, where)


def _check_order_of_arguments(arguments: Mapping[str, Any], ancestors: set[str], where: str) -> None:
    for key, field in (("parameters", "value"), ("artifacts", "from")):
        for each in items_of(arguments, key):
            text = str(each.get(field) or "")
            source = text.split(".")[1] if text.startswith("{{tasks.") else ""
            if source and source not in ancestors:
                raise Refused(
                    f"{where}.arguments.{key}.{each['name']}: missing dependency {source!r}; add it to depends"
                )
