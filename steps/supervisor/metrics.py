"""The figures of the moment for Prometheus: ``GET /metrics`` of the supervisor's pod, fed by the event log.

Counters begin anew with each supervisor, which ``rate`` and ``increase`` know
(https://prometheus.io/docs/concepts/metric_types/#counter).
"""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, generate_latest

from argosy.steps.guarded import GuardedHandler, GuardedServer, Serving
from argosy.steps.record.reading import text
from argosy.steps.runlog import Event

METRICS_PATH = "/metrics"

_GAUGES = {
    "step": {
        "step": ("argosy_step", "Newest step of rank 0."),
        "end_step": ("argosy_end_step", "Step at which training ends, where it is known."),
        "loss": ("argosy_loss", "Loss of the newest step that told one."),
        "tokens_per_second": ("argosy_tokens_per_second", "Speed of the whole gang, where the script reports tokens."),
    },
    "gang_created": {
        "nnodes": ("argosy_nodes", "Nodes of the newest gang."),
        "nproc_per_node": ("argosy_ranks_per_node", "Ranks on each of them."),
    },
    "restart_began": {"restored_step": ("argosy_restored_step", "Step of the checkpoint that the attempt began from.")},
    "checkpoint_committed": {
        "step": ("argosy_checkpoint_step", "Step of the newest committed checkpoint."),
        "bytes": ("argosy_checkpoint_bytes", "Its size."),
        "seconds": ("argosy_checkpoint_seconds", "How long it took to write and commit."),
    },
}
"""Kind of event -> its field -> the gauge that shows it."""
_COUNTERS = {
    "restart_began": ("argosy_attempts", "Starts of the gang's agents.", ()),
    "restart_ended": ("argosy_failures", "Attempts that ended badly.", ("cause",)),
    "checkpoint_committed": ("argosy_checkpoints", "Committed checkpoints.", ()),
    "stalled": ("argosy_stalls", "Pauses between steps that the run's own do not explain.", ()),
    "slow_rank": ("argosy_slow_ranks", "Ranks that the others waited for in step after step.", ("rank", "node")),
    "gang_grows": ("argosy_growths", "Gangs that were made anew for nodes that were back.", ()),
    "node_excluded": ("argosy_nodes_excluded", "Nodes that get no more pods of this run.", ()),
}
"""Kind of event -> the counter of such events, and the fields that it is divided by."""


class Metrics:
    """Absorbs events from any thread; every series bears ``run``, the run's name."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._registry = CollectorRegistry()
        self._gauges = {
            (kind, field): Gauge(name, told, ["run"], registry=self._registry)
            for kind, fields in _GAUGES.items()
            for field, (name, told) in fields.items()
        }
        self._counters = {
            kind: Counter(name, told, ["run", *by], registry=self._registry)
            for kind, (name, told, by) in _COUNTERS.items()
        }
        self._committed = Gauge(
            "argosy_checkpoint_timestamp_seconds", "When it was committed.", ["run"], registry=self._registry
        )

    def absorb(self, event: Event) -> None:
        """Take note of an event; a kind without figures is none of ours."""
        for field in _GAUGES.get(event.kind, ()):
            value = event.fields.get(field)
            if isinstance(value, int | float):  # a loss that is no number is told as it is
                self._gauges[event.kind, field].labels(self._run).set(value)
        if event.kind in self._counters:
            by = (text(event.fields, field) for field in _COUNTERS[event.kind][2])
            self._counters[event.kind].labels(self._run, *by).inc()
        if event.kind == "checkpoint_committed":
            self._committed.labels(self._run).set(event.time)

    def text(self) -> bytes:
        """The exposition, in Prometheus' text format."""
        return generate_latest(self._registry)


class _Handler(GuardedHandler):
    server: _Server

    def do_GET(self) -> None:
        if self.path.split("?")[0] != METRICS_PATH:
            return self.answer(404, f"no such path; {METRICS_PATH}\n".encode(), "text/plain")
        self.answer(200, self.server.metrics.text(), CONTENT_TYPE_LATEST)


class _Server(GuardedServer):
    def __init__(self, address: tuple[str, int], metrics: Metrics) -> None:
        self.metrics = metrics
        super().__init__(address, _Handler)


class MetricsServer(Serving):
    """Serves the metrics."""

    def __init__(self, host: str, port: int, metrics: Metrics) -> None:
        """Bind at once; port 0: any. Raises: OSError: the port is taken."""
        server = _Server((host, port), metrics)
        self.port = int(server.server_address[1])
        super().__init__(server, "metrics")
