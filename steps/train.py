"""The train step: supervise the gang until the run is done. ``python -m argosy.steps.train``."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import AbstractContextManager, nullcontext

from argosy.steps.claims import heartbeat
from argosy.steps.cluster.connecting import in_pod
from argosy.steps.contract import env as names
from argosy.steps.contract.arguments import TrainArgs
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.injection import from_environment
from argosy.steps.gang.host import Endpoint, GangHost
from argosy.steps.gang.kubernetes import kubernetes_host
from argosy.steps.gang.manifest import GangManifest, read_manifest
from argosy.steps.gang.processes import process_host
from argosy.steps.outputs import step_main
from argosy.steps.paths import resolve
from argosy.steps.runlog import RunLog
from argosy.steps.store import open_store
from argosy.steps.store.allowed import allowed_until_now
from argosy.steps.store.base import UNSERVED
from argosy.steps.store.leaving import UNWRITTEN, LeavableStore
from argosy.steps.store.opening import PERSON_SECONDS
from argosy.steps.supervisor.awake import SHARE, AwakeClock
from argosy.steps.supervisor.bundles import Bundles
from argosy.steps.supervisor.channel import Channel
from argosy.steps.supervisor.commits import RunCommits
from argosy.steps.supervisor.context import Context
from argosy.steps.supervisor.faults import Faults
from argosy.steps.supervisor.ledger import Ledger
from argosy.steps.supervisor.loop import Supervisor
from argosy.steps.supervisor.metrics import Metrics, MetricsServer
from argosy.steps.supervisor.pace import Pace
from argosy.steps.supervisor.record import Record
from argosy.steps.supervisor.server import ChannelServer
from argosy.steps.supervisor.settings import Settings, read_settings
from argosy.steps.supervisor.store_check import check_store


def train(args: TrainArgs) -> int:
    """Supervise; the step's exit code (see ``argosy.steps.contract.exit_codes``).

    Raises:
        InputError: an argument, the manifest or an injection is wrong; nothing was started.
        StepError: the store or the host failed for good, the store does not keep what checkpoints rest on, or
            another supervisor owns the run.
    """
    settings = read_settings(args)
    manifest = read_manifest(resolve(args.gang))
    if not 1 <= args.min_nnodes <= manifest.nnodes:
        raise InputError(f"min-nnodes = {args.min_nnodes}: the gang has {manifest.nnodes} nodes; write 1..that")
    host = _host(manifest, args)
    grace = float(args.grace_seconds)
    faults = Faults(from_environment(), manifest.nnodes, manifest.nproc_per_node, host, grace, manifest.spares)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        return _supervised(args, settings, manifest, host, faults, stop)
    except StepError as error:
        if not stop.is_set() or error.cause not in UNSERVED:
            raise
        print(f"argosy: stopped: {UNWRITTEN}", file=sys.stderr, flush=True)
        return int(ExitCode.PREEMPTED)


def _supervised(
    args: TrainArgs, settings: Settings, manifest: GangManifest, host: GangHost, faults: Faults, stop: threading.Event
) -> int:
    store = LeavableStore(open_store(args.store_uri), stop)
    endpoint = host.endpoint()
    check_store(store, args.prefix)
    metrics = Metrics(args.name)
    # What is said again by itself: while the store is away neither SIGTERM nor a pod's report waits for it long.
    brief = LeavableStore(open_store(args.store_uri, retry_seconds=PERSON_SECONDS), stop)
    with allowed_until_now(), heartbeat(brief, args), RunLog(brief, args.prefix, "supervisor", metrics.absorb) as log:
        record = Record(store, args.prefix, log, manifest.nnodes * manifest.nproc_per_node, args.end_step, brief)
        channel = Channel(record.keep, manifest.nproc_per_node)
        with ChannelServer(endpoint, channel), _served(metrics, endpoint):
            ledger = Ledger(store, args.prefix, args.workflow_uid, args.workflow)
            commits = RunCommits(store, args.prefix, args.resume_from, args.end_step)
            commits.since(next((entry["generation"] for entry in ledger.of("restart")), None))
            context = Context(
                settings=settings,
                manifest=manifest,
                host=host,
                channel=channel,
                ledger=ledger,
                commits=commits,
                record=record,
                bundles=Bundles(store, args.prefix, host),
                faults=faults,
                pace=Pace(args.stall_seconds),
                clock=AwakeClock(SHARE * settings.timeouts.heartbeat),
                identity_env=_identity(settings, endpoint),
                stop=stop,
            )
            return Supervisor(context).run()


def _host(manifest: GangManifest, args: TrainArgs) -> GangHost:
    kind = os.environ.get(names.GANG_HOST, "")
    if kind == "processes":
        return process_host(manifest)
    if kind or not in_pod():
        raise InputError(f"{names.GANG_HOST} = {kind!r}: neither a local engine nor a pod of a cluster runs this step")
    return kubernetes_host(manifest, args.workflow, args.workflow_uid)


def _served(metrics: Metrics, endpoint: Endpoint) -> AbstractContextManager[object]:
    if not endpoint.metrics_port:
        return nullcontext()
    try:
        return MetricsServer(endpoint.host, endpoint.metrics_port, metrics)
    except OSError as error:  # nobody's figures are worth a training
        print(f"argosy: no metrics: port {endpoint.metrics_port}: {error.strerror}", file=sys.stderr, flush=True)
        return nullcontext()


def _identity(settings: Settings, endpoint: Endpoint) -> dict[str, str]:
    return {
        names.CHANNEL_URL: endpoint.url,
        names.CHANNEL_TOKEN: endpoint.token,
        names.RUN_ID: settings.args.effective_run_id,
        names.RUN_NAME: settings.args.name,
    }


if __name__ == "__main__":
    sys.exit(step_main(TrainArgs, train))
