"""The pods that a controller made, as facts that can be compared, and what is argosy's own on purpose."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.steps.cluster.containers import main_of

OURS: Mapping[str, str] = {
    r"(command|args|workingDir|env/PYTHONUNBUFFERED)": "argosy's launch is the command of every pod",
    r"port/.*": "ranks meet over argosy's channel",
    r"label/argosy\.dev/.*": "argosy finds its gang by its own labels",
    r"(security|podSecurity|automountServiceAccountToken)": "pods are Pod Security restricted",
    r"serviceAccount": "who names no account gets the one that `argosy install` makes",
    r"mount/(/argosy/.*|/mnt/argosy|/dev/shm)": "the run's store, launch's own folders, /dev/shm in memory",
    r"toleration/.*(unreachable|not-ready).*": "a lost node is left after 30 seconds",
    r"limits/(cpu|memory)": "CPU is requested and not limited; memory always is",
    r"requests/(cpu|memory)": "what was only limited is requested, and memory as it is limited",
    r"(terminationGracePeriodSeconds|restartPolicy)": "the supervisor owns restarts, and gives time to commit",
    r"container": "the container is named as gang.runtime wants it",
    r"init/.*": "no role waits for another one: there is one role, or none starts before all are there",
    r"role": "a Master, Chief or task of its own is node 0 of one role",
}
"""What differs on purpose: fact -> why."""
RANKS = r"env/(MASTER_(ADDR|PORT)|RANK|WORLD_SIZE|PET_\w+|VC_\w+|VK_TASK_INDEX)"
"""Who a rank is, in the words of an operator or its plugins: launch sets it for each rank."""
SSH = r"(mount/(/.*/\.ssh|/etc/mpi.*)|env/(OMPI_\w+|K_MPI_JOB_ROLE|NVIDIA_\w+)|init/.*)"
"""Of the MPI Operator: mpirun finds the nodes by argosy's channel, and nobody logs in."""


def facts(pod: Mapping[str, Any], name: str) -> dict[str, str]:
    """Of one pod of the workload ``name``: fact -> value, without what no two pods share."""
    found = dict(_facts(pod))
    own = {name: "NAME", pod["metadata"]["namespace"]: "NAMESPACE"}
    words = re.compile(rf"\b({'|'.join(map(re.escape, own))})\b")
    return {key: words.sub(lambda word: own[word[0]], value) for key, value in found.items()}


def _facts(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    spec, main = pod["spec"], main_of(pod["spec"]["containers"])
    yield "container", main["name"]
    for key in ("image", "imagePullPolicy", "command", "args", "workingDir"):
        yield key, json.dumps(main.get(key))
    yield "security", json.dumps(main.get("securityContext", {}))
    yield "podSecurity", json.dumps(spec.get("securityContext", {}))
    for variable in main.get("env", []):
        yield f"env/{variable['name']}", json.dumps(variable.get("value", variable.get("valueFrom", "")))
    yield "envFrom", json.dumps(main.get("envFrom", []))
    for side in ("limits", "requests"):
        for resource, amount in main.get("resources", {}).get(side, {}).items():
            yield f"{side}/{resource}", str(amount)
    volumes = {each["name"]: {key: value for key, value in each.items() if key != "name"} for each in spec["volumes"]}
    for mount in main.get("volumeMounts", []):
        if "serviceaccount" not in mount["mountPath"]:
            rest = {key: mount.get(key) for key in ("subPath", "readOnly")}
            yield f"mount/{mount['mountPath'].rstrip('/')}", json.dumps([volumes[mount["name"]], rest], sort_keys=True)
    for port in main.get("ports", []):
        yield f"port/{port['containerPort']}", ""
    for each in spec.get("initContainers", []):
        yield f"init/{each['name']}", each["image"]
    for each in spec.get("tolerations", []):
        yield f"toleration/{json.dumps({'operator': 'Equal', **each}, sort_keys=True)}", ""
    for key in ("nodeSelector", "affinity", "imagePullSecrets", "hostNetwork", "schedulerName", "priorityClassName",
                "runtimeClassName", "terminationGracePeriodSeconds", "restartPolicy", "schedulingGroup",
                "automountServiceAccountToken"):  # fmt: skip
        yield key, json.dumps(spec.get(key), sort_keys=True)
    yield "serviceAccount", spec.get("serviceAccountName", "")
    for key, value in pod["metadata"].get("labels", {}).items():
        if not re.search(
            r"uid|hash|(job|batch)-?(name|key)|replica-(type|index)|job-role|task-(spec|index)|index|^topology", key
        ):
            yield f"label/{key}", value
    for key, value in pod["metadata"].get("annotations", {}).items():
        if not re.search(r"jobset\.sigs|batch\.kubernetes|volcano\.sh/(task|job|template|version)|group-name", key):
            yield f"annotation/{key}", value


def differences(theirs: Mapping[str, str], ours: Mapping[str, str], allowed: Sequence[str]) -> list[str]:
    """Facts that are not the same in both, but for those that match one of ``allowed`` whole."""
    return [
        f"{key}: {theirs.get(key)} became {ours.get(key)}"
        for key in sorted({*theirs, *ours})
        if theirs.get(key) != ours.get(key) and not any(re.fullmatch(each, key) for each in allowed)
    ]
