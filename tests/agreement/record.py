"""``python -m tests.agreement.record [NAME...]``: ask the real Argo and write down what it answers.

Asks the cluster of ``ARGOSY_CLUSTER`` (``make cluster``). Without names every case is asked; an answer that is there
is replaced. Also says which answers changed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from argosy.workflows.cluster.installation import manifests
from tests.agreement import answer
from tests.agreement.corpus import Case, every
from tests.cluster.cluster import Cluster

ANSWERS = Path(__file__).with_name("answers.json")
ARGO = "v4.0.7"
NAMESPACE = "argo"
"""Answers name it, in messages about locks."""
_REPOSITORY = "artifact-repositories"
_CACHE_SECONDS = 2.0
"""By then the controller, which reads ConfigMaps from a cache that follows the API server, has seen a new one."""
_PHASES = ("Succeeded", "Failed", "Error")


def load() -> dict[str, answer.Answer]:
    """The recorded answers by case."""
    if not ANSWERS.exists():
        return {}
    return dict(json.loads(ANSWERS.read_text(encoding="utf-8"))["answers"])


def save(answers: dict[str, answer.Answer]) -> None:
    """One line per case, so that a diff shows whose answer changed."""
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(answers[name], ensure_ascii=False, separators=(',', ':'), sort_keys=True)}"
        for name in sorted(answers)
    )
    ANSWERS.write_text(f'{{"argo": "{ARGO}", "answers": {{\n{lines}\n}}}}\n', encoding="utf-8")


class Questions:
    """Workflows in one namespace of a real cluster, which has a store for artifacts."""

    def __init__(self, cluster: Cluster) -> None:
        kubectl, config = str(cluster.bin / "kubectl"), f"--kubeconfig={cluster.kubeconfig}"
        self._base = [kubectl, config, "-n", NAMESPACE]
        # The executor's own containers ask for more than Pod Security restricted allows, and no case says otherwise.
        label = {"pod-security.kubernetes.io/enforce": "privileged"}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": label}}
        cluster.api.apply([namespace, *manifests(NAMESPACE, "default")], NAMESPACE)
        cluster.create_s3_secret(NAMESPACE, _REPOSITORY)
        with suppress(cluster.s3_client().exceptions.BucketAlreadyOwnedByYou):
            cluster.create_bucket(_REPOSITORY)
        keys = {"accessKeySecret": "AWS_ACCESS_KEY_ID", "secretKeySecret": "AWS_SECRET_ACCESS_KEY"}
        store = {"bucket": _REPOSITORY, "endpoint": cluster.s3_endpoint.partition("://")[2], "insecure": True} | {
            field: {"name": _REPOSITORY, "key": key} for field, key in keys.items()
        }
        mark = {"workflows.argoproj.io/default-artifact-repository": "own"}
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _REPOSITORY, "annotations": mark}}
        cluster.api.apply([{**settings, "data": {"own": json.dumps({"s3": store})}}], NAMESPACE)

    def create(self, case: Case) -> str:
        """Submit the case; "" or why the API server refuses it."""
        for items in (list(case.others), [case.workflow]):
            manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
            done = self._run(["create", "--validate=false", "-f", "-"], manifest) if items else None
            if done is not None and done.returncode:
                return done.stderr.strip()
            if any(each["kind"] == "ConfigMap" for each in items):
                time.sleep(_CACHE_SECONDS)
        return ""

    def workflows(self) -> dict[str, dict[str, Any]]:
        """Every Workflow by name."""
        done = self._run(["get", "workflows", "-o", "json"])
        done.check_returncode()
        return {each["metadata"]["name"]: each for each in json.loads(done.stdout)["items"]}

    def delete(self, case: Case) -> None:
        """Remove the case and everything it made."""
        names = [f"{each['kind']}/{each['metadata']['name']}" for each in (case.workflow, *case.others)]
        self._run(["delete", "--ignore-not-found", "--wait=false", *names])

    def _run(self, words: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self._base, *words], input=text, capture_output=True, text=True, check=False)


class Asked:
    """A workflow that was submitted, and since when nothing has happened to it."""

    def __init__(self, case: Case) -> None:
        self.case, self._seen, self._since = case, "", time.monotonic()

    def idle_seconds(self, status: dict[str, Any]) -> float:
        """How long its status has been as it is, with nothing under way that could change it."""
        nodes = [(node["name"], node["type"], node["phase"]) for node in (status.get("nodes") or {}).values()]
        under_way = any(kind in ("Pod", "Suspend") and phase in ("Pending", "Running") for _, kind, phase in nodes)
        seen = json.dumps(sorted(nodes))
        if seen != self._seen or under_way or not nodes:
            self._seen, self._since = seen, time.monotonic()
        return time.monotonic() - self._since


def ask(cluster: Questions, cases: list[Case], *, at_once: int, patience: float) -> Iterator[tuple[str, answer.Answer]]:
    """The real answers. A workflow in which nothing was under way for ``patience`` seconds is ``stuck``."""
    waiting, running = list(cases), dict[str, Asked]()
    while waiting or running:
        while waiting and len(running) < at_once:
            case = waiting.pop(0)
            refusal = cluster.create(case)
            if refusal:
                cluster.delete(case)
                yield case.name, {"phase": "refused", "message": refusal, "nodes": {}}
            else:
                running[case.name] = Asked(case)
        found = cluster.workflows()
        for name, asked in list(running.items()):
            status = found.get(name, {}).get("status", {})
            ended = status.get("phase") in _PHASES
            if ended or asked.idle_seconds(status) > patience:
                cluster.delete(asked.case)
                del running[name]
                heard = answer.of_argo(found[name])
                yield name, heard if ended else {**heard, "phase": "stuck"}
        if running:
            time.sleep(1)


def main() -> None:
    """Record the named cases, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--at-once", type=int, default=8, help="workflows that run at the same time")
    parser.add_argument("--patience", type=float, default=40, help="idle seconds after which one is stuck")
    options = parser.parse_args()
    cases, before = every(), load()
    chosen = [cases[name] for name in options.names or cases]
    new: dict[str, answer.Answer] = {}
    for name, heard in ask(Questions(Cluster()), chosen, at_once=options.at_once, patience=options.patience):
        new[name] = heard
        save({key: found for key, found in {**before, **new}.items() if key in cases})
        print(f"{len(new)}/{len(chosen)} {name}: {heard['phase']}", file=sys.stderr, flush=True)
    changed = [name for name in new if name in before and before[name] != new[name]]
    print(f"{len(new)} recorded, {len(changed)} changed: {', '.join(changed) or 'none'}")


if __name__ == "__main__":
    main()
