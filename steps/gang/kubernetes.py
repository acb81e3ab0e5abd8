"""The host of a gang on a cluster: JobSets or Jobs that the API server is asked for, and a watch on their pods.

The documents are the manifest's own; what is added is identity: names, labels, the workflow as owner, the channel's
address, and its token by reference.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from argosy.steps.cluster.api import Api, ApiError, ApiSilent
from argosy.steps.cluster.connecting import connect
from argosy.steps.cluster.kinds import JOB, NOT_SEEN_YET, POD, kind_of
from argosy.steps.cluster.watching import Watched
from argosy.steps.contract import env as names
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.objects import GANG_LABEL, METRICS_PORT, TOKEN_KEY, UID_LABEL, WORKFLOW_LABEL
from argosy.steps.gang.channel_objects import CHANNEL_PORT, Owner, channel_secret, channel_service, policies
from argosy.steps.gang.evidence import LastWords, cluster_evidence
from argosy.steps.gang.host import Endpoint, GangRecord, Identity, PodState, Probed, Standing
from argosy.steps.gang.manifest import ATTEMPT_LABEL, GangManifest, with_identity
from argosy.steps.gang.own_pod import is_evicted
from argosy.steps.gang.pod_states import Outcome, is_lost, numbered, outcome_of, pod_state, taken_back
from argosy.steps.gang.probe import probe_job, probe_name
from argosy.steps.gang.reasons import REFUSED, Reasons
from argosy.steps.gang.runtimes import COMPLETION_INDEX, FIRST_INDEX, INDEX_VARIABLE, pod_count

CREATE_SECONDS = 10.0
"""How long a part of a gang is asked for; then it is told what is waited for, and asked for again."""
DELETE_SECONDS = 30.0
"""After the grace: how long a deleted pod may take to go."""
SEEN_SECONDS = 20.0
"""How long a TrainJob may be refused because Trainer does not see its TrainingRuntime yet."""
_POLL_SECONDS = 0.1
_FIELDS = {names.POD_NAME: "metadata.name", names.NODE_NAME: "spec.nodeName"}


class KubernetesHost:
    """See :class:`argosy.steps.gang.host.GangHost`."""

    def __init__(self, api: Api, manifest: GangManifest, owner: Owner, token: str = "") -> None:
        """``token``: the channel's, when a supervisor before us has made it.

        Raises:
            StepError: the API server refuses us, or stays away.
        """
        self._api, self._manifest, self._owner, self._token = api, manifest, owner, token
        self._runtime, self._changed = manifest.runtime, threading.Event()
        self._pods = Watched(api, POD, owner.selector, self._changed.set)
        self._workloads = Watched(api, self._runtime.kind, owner.selector, self._changed.set)
        self._reasons, self._words = Reasons(api, manifest.runtime), LastWords(api)
        self._has_channel = False  # nobody had time to tidy it away since we saw to it
        self._deleted, self._probes = set[str](), set[str]()
        self._workloads.start()  # first: where its kind is not there, nothing is left that watches
        self._pods.start()

    def close(self) -> None:
        """End the watches."""
        self._pods.stop()
        self._workloads.stop()

    # The channel.

    def endpoint(self) -> Endpoint:
        """The Service, the Secret and the policies of the run, made by the first supervisor of the workflow.

        Raises:
            StepError: forbidden; or the Secret is there and we were started before it was (75: the next pod has it).
        """
        if self._token:
            self._renew_channel()
        else:
            self._token = secrets.token_urlsafe(32)
            secret, *others = self._channel()
            if self._create(secret) is None:
                text = f"Secret {self._owner.channel} is there already, and this pod was started without it"
                raise StepError(Cause.UNKNOWN, text, quote=text)
            for document in others:
                self._create(document)
        self._has_channel = True
        url = f"http://{self._owner.channel}:{CHANNEL_PORT}"
        return Endpoint(host="", port=CHANNEL_PORT, url=url, token=self._token, metrics_port=METRICS_PORT)

    def _channel(self) -> list[dict[str, Any]]:
        return [channel_secret(self._owner, self._token), channel_service(self._owner), *policies(self._owner)]

    def _renew_channel(self) -> None:
        """Make again what somebody tidied away.

        Asked by a dry run: a quota counts each object that is to be made, for minutes also one that is there already;
        and a full one refuses that, which is no reason to end a run.
        """
        for document in self._channel():
            try:
                if self._api.create(document, dry_run=True, patience=CREATE_SECONDS) is not None:
                    self._api.create(document, patience=CREATE_SECONDS)
            except ApiSilent:
                raise
            except (ApiError, StepError) as error:
                what = f"{document['kind']} {document['metadata']['name']}"
                print(f"argosy: whether {what} is still there is not known: {error}", file=sys.stderr, flush=True)

    # The gang.

    def create(self, manifest: GangManifest, identity: Identity) -> None:
        """Create the documents; what is there already is kept."""
        labels = {UID_LABEL: self._owner.uid, WORKFLOW_LABEL: self._owner.name}
        documents = with_identity(
            manifest,
            name=identity.name,
            attempt=identity.attempt,
            nnodes=identity.nnodes,
            env={key: value for key, value in identity.env.items() if key != names.CHANNEL_TOKEN},
            excluded=identity.excluded,
            labels=labels,
        )
        self._name_pods(self._runtime.pods_in(documents))
        if self._token and not self._has_channel:
            self._renew_channel()
        self._has_channel = False
        self.put(documents, CREATE_SECONDS)

    def replenish(self, manifest: GangManifest, identity: Identity) -> None:
        """Nothing: the Job makes a failed pod again by itself, within its backoffLimit."""

    def put(self, documents: Iterable[dict[str, Any]], patience: float | None = None) -> None:
        """Create documents that have their identity, in their order, each asked for ``patience`` seconds (or as usual).

        Raises:
            StepError: one is refused.
        """
        for document in documents:
            self._create(self._owner.adopt(document), patience)
        self._workloads.refresh()

    def _name_pods(self, document: dict[str, Any]) -> None:
        """Each container is told its pod and node, and has the token by reference."""
        source = {"name": self._owner.channel, "key": TOKEN_KEY}
        token = {"name": names.CHANNEL_TOKEN, "valueFrom": {"secretKeyRef": source}}
        paths = dict(_FIELDS)
        if self._runtime.index not in (COMPLETION_INDEX, ""):  # else Kubernetes sets the variable, or nobody does
            paths[INDEX_VARIABLE] = f"metadata.labels['{self._runtime.index}']"
        fields = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in paths.items()]
        for number, template in enumerate(self._runtime.templates(document)):
            further = [token]
            if number and self._runtime.from_zero:  # of the parts before, each is one pod
                template["metadata"]["labels"][FIRST_INDEX] = str(number)
                further.append({"name": names.FIRST_INDEX, "value": str(number)})
            for container in template["spec"]["containers"]:
                own = {names.CHANNEL_TOKEN, *paths}
                kept = [item for item in container.get("env", []) if item["name"] not in own]
                container["env"] = [*fields, *kept, *further]

    def _create(self, document: Mapping[str, Any], patience: float | None = None) -> dict[str, Any] | None:
        deadline = time.monotonic() + SEEN_SECONDS
        while True:
            try:
                return self._api.create(document, patience=patience)
            except (ApiError, StepError) as error:
                # A webhook looks into a cache of its own, to which what we made just now has yet to come. It refuses
                # with 403, as who has no right is refused.
                if NOT_SEEN_YET.search(str(error)) and time.monotonic() < deadline:
                    time.sleep(_POLL_SECONDS)
                    continue
                if isinstance(error, StepError):
                    raise
                what = f"{document['kind']} {document['metadata']['name']}"
                raise StepError(Cause.CONFIG_OR_RBAC, f"{what} was refused: {error}", quote=str(error)) from error

    def gangs(self) -> list[GangRecord]:
        """The gangs that are there, asked for now; one that is being deleted counts as there."""
        self._workloads.refresh()
        seen = ((each["metadata"], gone > 0) for each, gone in self._workloads.seen())
        found = [
            GangRecord(name=each["name"], attempt=int(each["labels"][ATTEMPT_LABEL]), deleted=gone)
            for each, gone in seen
            if ATTEMPT_LABEL in each["labels"]  # a Job may be a probe
        ]
        return sorted(found, key=lambda gang: gang.attempt)

    def pods(self, name: str) -> list[PodState]:
        """From the watch; a pod that somebody else deleted is one that ended, also when its controller made another
        of the same name, or one more: that one knows nothing of the gang's restart and goes with the gang.
        What is suspended while it has pods has lost its nodes to its queue.
        """
        if name in self._deleted:
            return []
        found: dict[str, PodState] = {}
        for each, gone in self._of(name):
            state = self._words.of(pod_state(each, gone, self._runtime.index), each)
            found.setdefault(state.name, state)
        if any(self._runtime.suspended(each) for each, _ in self._workloads.seen() if each["metadata"]["name"] == name):
            found = {pod: taken_back(state) for pod, state in found.items()}
        if self._runtime.index:
            return sorted(found.values(), key=lambda state: state.index)
        made = (pod_count(each) for each, _ in self._workloads.seen() if each["metadata"]["name"] == name)
        return numbered([*found.values()][: next(made, self._manifest.nnodes)])

    def _of(self, name: str) -> list[tuple[dict[str, Any], float]]:
        """As they were made: one that its controller adds later comes last."""
        found = [seen for seen in self._pods.seen() if seen[0]["metadata"]["labels"].get(GANG_LABEL) == name]
        return sorted(found, key=lambda seen: str(seen[0]["metadata"].get("creationTimestamp", "")))

    def _left(self, name: str) -> dict[str, dict[str, Any]]:
        return {each["metadata"]["name"]: each for each, gone in self._of(name) if not gone}

    def documents_of(self, name: str) -> list[dict[str, Any]]:
        """The gang's pods as the API server describes them; of those that are gone, what was seen last."""
        return [each for each, _ in self._of(name)]

    def standing(self, name: str) -> Standing:
        """The watch says how far the gang is; what it waits for is asked for now and then."""
        workload = self._workloads.objects().get(name)
        if workload is None or "deletionTimestamp" in workload["metadata"]:
            return Standing(phase="lost", why=f"{self._runtime.kind.kind} {name} was deleted by somebody")
        pods = list(self._left(name).values())
        bound = sum(bool(each["spec"].get("nodeName")) for each in pods)
        if bound >= pod_count(workload) - self._manifest.spares:  # ranks wait for no spare
            return Standing(phase="placed")
        why = self._reasons.why(workload, pods)
        suspended = self._runtime.suspended(workload)
        if not bound and not suspended and REFUSED.search(why):
            return Standing(phase="refused", why=why)
        if suspended or (not bound and self._manifest.placement != "kueue"):
            return Standing(phase="queued", why=why)
        return Standing(phase="placing", why=why)

    def outcome(self, name: str) -> Outcome | None:
        """How the workload ended, in the words of its controller; None while it has not."""
        found = (each for each, _ in self._workloads.seen() if each["metadata"]["name"] == name)
        return outcome_of(next(found, {}))

    def evidence(self, name: str) -> dict[str, Any]:
        """Conditions of its pods, events, the state of their nodes."""
        return cluster_evidence(self._api, name, self.documents_of(name))

    def delete(self, name: str, grace_seconds: float) -> tuple[str, ...]:
        """Delete it with all that belongs to it, and wait for the pods on nodes that answer."""
        for document in reversed(self._manifest.documents):
            self._api.delete(kind_of(document), name)
        deadline = time.monotonic() + grace_seconds + DELETE_SECONDS
        while time.monotonic() < deadline:
            if all(is_lost(each) for each in self._left(name).values()) and name not in self._workloads.objects():
                break
            self._changed.wait(_POLL_SECONDS)
            self._changed.clear()
        past = self._deleted | {probe_name(each) for each in self._deleted}
        for watched in (self._pods, self._workloads):
            watched.forget(past)  # not yet this one: it may be asked for evidence of its pods
        self._deleted.add(name)
        if left := self._left(name):
            where = ", ".join(f"{pod} on {each['spec'].get('nodeName') or 'no node'}" for pod, each in left.items())
            print(f"argosy: not waited for, fenced by their generation: {where}", file=sys.stderr)
        return tuple(sorted(left))

    def room(self, excluded: tuple[str, ...]) -> int | None:
        """Nobody can know: what is free on a cluster is its scheduler's affair."""
        return None

    def probe(self, manifest: GangManifest, identity: Identity, nodes: int) -> Probed:
        """A Job's pods show what the scheduler thinks; refused, by a quota for example, it has found nothing."""
        name = probe_name(identity.name)
        if name not in self._probes:
            try:
                self._create(self._owner.adopt(probe_job(manifest, identity, self._owner.uid, nodes)))
            except StepError as error:
                print(f"argosy: no further nodes: {error}", file=sys.stderr, flush=True)
                return Probed(bound=0, running=0, over=True)
            self._probes.add(name)
        pods = [pod_state(each, gone) for each, gone in self._of(name) if not gone]
        bound = [each for each in pods if each.node and not each.deleted]
        running = sum(each.phase == "Running" for each in bound)
        return Probed(bound=len(bound), running=running, over=any(each.has_ended for each in pods))

    def end_probe(self, name: str) -> None:
        """Delete the Job and its pods; they have a second to end."""
        self._api.delete(JOB, probe_name(name))
        self._probes.discard(probe_name(name))

    def evicted(self) -> bool:
        """What the API server says of the pod."""
        return is_evicted(self._api, self._owner.name)


def kubernetes_host(manifest: GangManifest, workflow: str, workflow_uid: str) -> KubernetesHost:
    """The host in the cluster that this pod runs in, for a workflow.

    Raises:
        StepError: the API server refuses us, or stays away.
    """
    owner = Owner(name=workflow, uid=workflow_uid)
    return KubernetesHost(connect(), manifest, owner, os.environ.get(names.CHANNEL_TOKEN, ""))
