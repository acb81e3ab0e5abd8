"""A run of a cluster, found through the API by the name of its Workflow."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.steps.cluster.containers import lost_node
from argosy.steps.cluster.kinds import WORKFLOW
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.objects import GANG_LABEL
from argosy.steps.record.building import STORE_URI, build_record, prefix_of
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.naming import node_name
from argosy.steps.record.unwritten import with_unwritten
from argosy.steps.runlog import read_events
from argosy.steps.store.base import ObjectStore
from argosy.workflows.cluster.kept_lines import kept_lines, last_of_each
from argosy.workflows.cluster.place import ClusterPlace, check_namespace
from argosy.workflows.cluster.pod_logs import followed, last_lines, pods_of, pods_of_steps, with_supervisors, written
from argosy.workflows.cluster.state import is_ours, state_of, told_by_nodes
from argosy.workflows.cluster.store import open_run_store

if TYPE_CHECKING:
    from argosy.steps.cluster.api import Api


@dataclass(frozen=True)
class ClusterRun:
    """One Workflow of one namespace."""

    api: Api
    place: ClusterPlace
    name: str

    @property
    def where(self) -> str:
        """Where it was found, for messages."""
        return f"namespace {self.api.namespace}"

    @property
    def report(self) -> Path:
        """Where a report goes that nobody named a file for."""
        return Path(f"{self.name}.html")

    def command(self, verb: str, *arguments: object) -> str:
        """``argosy VERB ...`` as it finds this run again."""
        return shlex.join(["argosy", verb, *map(str, arguments), *self.place.flags(self.api.namespace)])

    def state(self) -> dict[str, Any]:
        """What the API knows now, in the local engine's form.

        Raises:
            InputError: the Workflow is gone.
        """
        return state_of(self._workflow())

    def store(self, *, quiet: bool = False) -> ObjectStore | None:
        """The run's store; None for a workflow that is none of ours.

        Raises:
            StepError, InputError: it cannot be read from this machine.
        """
        workflow = self._workflow()
        uri = state_of(workflow)["annotations"].get(STORE_URI)
        return open_run_store(str(uri), workflow, self.api.namespace, quiet=quiet) if uri else None

    def disks(self) -> tuple[Path, ...]:
        """None of this machine."""
        return ()

    def record(self) -> RunRecord:
        """What is known now, from the API and the event log.

        Raises:
            StepError, InputError: the event log cannot be read from this machine.
        """
        (state, pods), store = self.seen(), self.store()
        prefix = prefix_of(state)
        events = read_events(store, prefix) if store is not None and prefix else []
        return self._quoted(build_record(events, state, time.time()), state, pods)

    def outline(self) -> RunRecord:
        """What the API alone knows."""
        state, pods = self.seen()
        return replace(self._quoted(build_record(told_by_nodes(state), state, time.time()), state, pods), outline=True)

    def written(self, wanted: Callable[[str], bool], pod: str, tail: int | None) -> Iterator[tuple[str, str]]:
        """(pod, line) of pods whose name contains ``pod``, of each the last ``tail`` wanted lines.

        Where the gang's are gone, which go before those of the steps, what the run's store keeps of its ranks.
        """
        pods = pods_of(self.api, self.name)
        if not any(GANG_LABEL in each["metadata"].get("labels", {}) for each in pods):
            # Without keys of the store the pods that are there still have something to say.
            with suppress(StepError, InputError) if pods else nullcontext():
                yield from last_of_each(self._kept(), wanted, pod, tail)
        for each in pods:
            name = each["metadata"]["name"]
            yield from last_of_each(((name, line) for line in written(self.api, each)), wanted, pod, tail)

    def _kept(self) -> Iterator[tuple[str, str]]:
        store = self.store()
        return iter(()) if store is None else kept_lines(store, prefix_of(self.state()))

    def followed(self, wanted: Callable[[str], bool], pod: str, tail: int | None) -> Iterator[tuple[str, str]]:
        """Wanted lines as they come, until the Workflow has ended."""
        lines = followed(self.api, self.name, lambda name: pod in name, tail, self.has_ended)
        return ((name, line) for name, line in lines if wanted(line))

    def is_gone(self) -> bool:
        """Whether the Workflow was deleted."""
        return self.api.get(WORKFLOW, self.name) is None

    def has_ended(self) -> bool:
        """Whether the Workflow will change no more; one that is gone will not."""
        found = self.api.get(WORKFLOW, self.name)
        return found is None or state_of(found)["phase"] in ("Succeeded", "Failed", "Error")

    def _workflow(self) -> dict[str, Any]:
        found = self.api.get(WORKFLOW, self.name)
        if found is None:
            check_namespace(self.api)
            stores = set[str]()
            with suppress(StepError):  # who may read one Workflow may not be let list all
                there = self.api.metadata(WORKFLOW)["items"] or []
                facts = [each["metadata"].get("annotations") or {} for each in there]
                stores = {str(each[STORE_URI]) for each in facts if STORE_URI in each}
            only = [shlex.quote(each) for each in stores] if len(stores) == 1 else ["and storage.uri of its run.toml"]
            raise InputError(
                f"RUN_ID {self.name!r}: no such workflow in namespace {self.api.namespace}; they are listed by: "
                f"{self.command('top')}; one that was deleted, a week after its end for example, is found in its "
                f"store: argosy ls {only[0]}"
            )
        return found

    def standing(self) -> dict[str, Any]:
        """The state, with what the supervisor that runs wrote last."""
        return self.seen()[0]

    def seen(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The state, and the pods of its steps where they may tell more: while it runs, or when one has failed.

        Of a supervisor that runs, the state has what it wrote last.
        """
        from argosy.steps.cluster.api import ApiError

        state, pods = self.state(), list[dict[str, Any]]()
        running = state["phase"] == "Running" and not state["message"]
        if running or any(node["phase"] in ("Failed", "Error") for node in state["nodes"]):
            with suppress(StepError, ApiError):
                pods = pods_of_steps(self.api, self.name)
        state = _heard(state, pods) if running else state
        return (state if state["message"] else with_supervisors(self.api, state, pods)), pods

    def _quoted(self, record: RunRecord, state: dict[str, Any], pods: list[dict[str, Any]]) -> RunRecord:
        """With the line of its log that each failed step's end rests on, while its pod is there."""
        said = last_lines(self.api, pods)
        quotes = {node_name(node): said.get(node["id"], "") for node in state["nodes"] if node["type"] == "Pod"}
        nodes = tuple(replace(node, quote=quotes.get(node.name, "")) for node in record.nodes)
        return with_unwritten(replace(record, nodes=nodes), state)


def _heard(state: dict[str, Any], pods: list[dict[str, Any]]) -> dict[str, Any]:
    """With the word that the node of a step does not answer: Argo waits for its pod, and says nothing."""
    for pod in pods:
        if lost_node(pod.get("status", {})) is not None:
            node = pod["spec"].get("nodeName", "")
            text = f"{node}, the node of pod {pod['metadata']['name']}, does not answer, and Argo waits for it"
            return {**state, "message": f"{text}; where it does not come back: kubectl delete node {node}"}
    return state


def find_cluster_run(place: ClusterPlace, name: str | None) -> ClusterRun:
    """The run of this Workflow; without a name, the newest of ours in the namespace.

    Raises:
        InputError: there is none, no such namespace, or no cluster that could be asked.
    """
    if name == "":  # of a variable that is not set
        raise InputError("RUN_ID '': names no run; write a workflow's name, as argosy ls shows it")
    api = place.reach()
    if name is not None:
        run = ClusterRun(api, place, name)
        run.state()
        return run
    runs = _newest_first(api, place)
    if not runs:
        again = shlex.join(["argosy", "submit", "run.toml", *place.flags(api.namespace)])
        raise InputError(f"--namespace {api.namespace}: no run there; submit one with: {again}")
    return runs[0]


def every_cluster_run(place: ClusterPlace) -> list[ClusterRun]:
    """The namespace's Workflows that are ours, newest first."""
    return _newest_first(place.reach(), place)


def _newest_first(api: Api, place: ClusterPlace) -> list[ClusterRun]:
    found = api.metadata(WORKFLOW)["items"] or []  # null for none
    if not found:
        check_namespace(api)
    ours = [each["metadata"] for each in found if is_ours(each["metadata"])]
    ours.sort(key=lambda each: str(each["creationTimestamp"]), reverse=True)
    return [ClusterRun(api, place, each["name"]) for each in ours]
