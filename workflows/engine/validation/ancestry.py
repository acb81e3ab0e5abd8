"""Which tasks a task of a DAG waits for, from ``depends`` or ``dependencies``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.validation.refusal import Refused

_TERM = re.compile(r"([a-zA-Z0-9][-a-zA-Z0-9]*?\.[A-Z][a-zA-Z]+)|([a-zA-Z0-9][-a-zA-Z0-9]*)")
RESULTS = ("Succeeded", "Failed", "Errored", "Skipped", "Omitted", "Daemoned", "AnySucceeded", "AllFailed")
_OF_LOOPS = ("AnySucceeded", "AllFailed")

Tasks = Mapping[str, Mapping[str, Any]]


def needs_of(task: Mapping[str, Any]) -> dict[str, bool]:
    """The tasks that ``task`` names, each with whether it asks for the result of a loop."""
    if not task.get("depends"):
        found = [each for name in task.get("dependencies") or [] for each in _TERM.findall(f"{name}.Succeeded")]
    else:
        found = _TERM.findall(str(task["depends"]))
    needs: dict[str, bool] = {}
    for with_result, bare in found:
        name, _, result = (with_result or bare).partition(".")
        needs[name] = result in _OF_LOOPS or (bool(with_result) and needs.get(name, False))
    return needs


def check_results(task: Mapping[str, Any], where: str) -> None:
    """``depends`` asks for results that there are.

    Raises:
        Refused: it does not.
    """
    for with_result, _ in _TERM.findall(str(task.get("depends") or "")):
        name, _, result = with_result.partition(".")
        if result and result not in RESULTS:
            raise Refused(f"{where}.depends: task result {result!r} of {name!r} is none of {', '.join(RESULTS)}")


def check_order(tasks: Tasks, path: str) -> None:
    """Every dependency is a task, and no task waits for itself.

    Raises:
        Refused: one is not, or some do.
    """
    needs = {name: set(needs_of(task)) for name, task in tasks.items()}
    for name, wanted in needs.items():
        for each in sorted(wanted - set(tasks)):
            raise Refused(f"{path}.dag.tasks.{name}: depends: no task is called {each!r}")
    ended: set[str] = set()
    while ready := [name for name in needs if name not in ended and needs[name] <= ended]:
        ended.update(ready)
    if len(ended) < len(needs):
        waiting = ", ".join(sorted(set(needs) - ended))
        raise Refused(f"{path}.dag: graph with cycle: tasks {waiting} depend on each other in a circle")


def ancestors_of(name: str, tasks: Tasks) -> set[str]:
    """Every task that ends before ``name`` begins."""
    found: set[str] = set()
    waiting = list(needs_of(tasks[name]))
    while waiting:
        each = waiting.pop()
        if each not in found and each in tasks:
            found.add(each)
            waiting += needs_of(tasks[each])
    return found - {name}
