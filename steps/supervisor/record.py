"""What the supervisor tells the world: event log, verdicts and evidence, progress, outputs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from argosy.steps.contract.channel import Ending, Report
from argosy.steps.contract.errors import StepError
from argosy.steps.outputs import replace_text, write_output, write_termination
from argosy.steps.runlog import KINDS, RunLog
from argosy.steps.store.base import UNSERVED, ObjectStore
from argosy.steps.store.leaving import LeavableStore
from argosy.steps.supervisor.budget import Decision, Failure
from argosy.steps.supervisor.bundles import Bundles
from argosy.steps.verdict import Verdict, termination_line


class Record:
    """Writes for one run; ``log`` is the supervisor's own writer of the event log."""

    def __init__(
        self, store: ObjectStore, prefix: str, log: RunLog, world_size: int, end_step: int, brief: LeavableStore
    ) -> None:
        """``brief``: the same store, which gives up sooner, for what pods send again."""
        self.log = log
        self._store, self._brief = store, brief
        self._attempts = f"{prefix}/attempts"
        self._world = world_size
        self._end_step = end_step
        self._last: tuple[int, float] = (0, 0.0)
        self._verdict: tuple[str, dict[str, Any]] | None = None
        self._kept_of, self._kept = "", dict[str, tuple[Any, ...]]()
        """A gang, and of each of its pods: what it told last that is durable."""

    @property
    def store_answers(self) -> bool:
        """Whether what was asked of the store last, by whichever thread, was answered in time."""
        return self._brief.answers

    def ask_store(self) -> bool:
        """The same, asked now."""
        try:
            self._brief.head(f"{self._attempts}/none")
        except StepError as error:
            return error.cause not in UNSERVED
        return True

    # Evidence.

    def keep(self, gang: str, report: Report) -> None:
        """Make a report with endings or an error durable, before its pod is told that it arrived."""
        key = f"{self._evidence(gang)}/{report.restart:04d}-{report.pod}.json"
        ended = (report.phase == "finished", report.uncommitted, report.end)
        told = (key, report.endings, report.error, ended)
        if self._kept.get(report.pod) == told:
            return  # it is sent until the pod has orders
        if gang != self._kept_of:  # with its ranks' last lines a pod may take 500 kB, and each gang has others
            self._kept, self._kept_of = {}, gang
        self._brief.put(key, json.dumps({**asdict(report), "steps": [], "events": []}, indent=1).encode())
        self._kept[report.pod] = told

    def kept(self, gang: str, restart: int) -> list[Report]:
        """The reports of a restart that :meth:`keep` stored."""
        keys = [info.key for info in self._store.list(self._evidence(gang))]
        return [
            Report.from_json(self._store.get(key)) for key in keys if key.split("/")[-1].startswith(f"{restart:04d}-")
        ]

    def _evidence(self, gang: str) -> str:
        return f"{self._attempts}/{gang}/evidence"

    def verdict(self, gang: str, failure: Failure, verdict: Verdict, decision: Decision) -> None:
        """``verdict.json`` of the attempt (its newest restart), and one file per restart."""
        record = {
            **verdict.record(),
            "exit_code": failure.exit_code,
            "attempt": failure.attempt,
            "restart": failure.restart,
            "last_step": failure.step,
            "commit_step": failure.commit_step,
            "decision": asdict(decision),
        }
        self._verdict = (gang, record)
        self._write_verdict()

    def _write_verdict(self) -> None:
        assert self._verdict is not None
        gang, record = self._verdict
        data = json.dumps(record, indent=1, ensure_ascii=False).encode() + b"\n"
        self._store.put(f"{self._attempts}/{gang}/restart-{record['restart']:04d}.json", data)
        self._store.put(f"{self._attempts}/{gang}/verdict.json", data)

    def bundled(self, bundles: Bundles) -> None:
        """What the nodes kept of the start that the newest verdict is about: into that verdict, and into the log.

        Again when more may have come: nodes store it while the next start begins.
        """
        if self._verdict is None:
            return
        gang, record = self._verdict
        files = bundles.found(gang, record["restart"])
        if not files or files == record.get("bundle"):
            return
        record["bundle"] = list(files)
        self._write_verdict()
        where = {"attempt": record["attempt"], "restart": record["restart"]}
        nbytes = sum(int(each["bytes"]) for each in files)
        prefix = str(files[0]["key"]).rpartition("/")[0]
        self.log.append("bundle", **where, prefix=prefix, files=len(files), bytes=nbytes)

    # Progress.

    def report(self, report: Report, attempt: int) -> None:
        """Log the steps (of rank 0) and events that a pod sent."""
        for step in report.steps:
            if int(step.get("rank", 0)) == 0:
                self._step(step, attempt, report.restart)
        for event in report.events:
            fields = {key: value for key, value in event.items() if key in KINDS.get(str(event.get("kind")), ())}
            if fields and event["kind"] != "injected":  # said by the supervisor, once
                self.log.append(str(event["kind"]), **fields)

    def _step(self, record: dict[str, Any], attempt: int, restart: int) -> None:
        step, when = int(record["step"]), float(record.get("time", 0.0))
        loss = record.get("loss")
        end = int(record.get("end_step") or self._end_step)
        fields = {"loss": loss if loss is None or math.isfinite(loss) else str(loss), "end_step": end or None}
        before, tokens = self._last, record.get("tokens")
        if tokens is not None and step > before[0] > 0 and when > before[1]:
            fields["tokens_per_second"] = round(float(tokens) * self._world / (when - before[1]), 1)
        self._last = (step, when)
        given = {key: value for key, value in fields.items() if value is not None}
        self.log.append("step", attempt=attempt, restart=restart, rank=0, step=step, **given)
        path = os.environ.get("ARGO_PROGRESS_FILE")
        if path and end:
            write_progress(path, min(step, end), end)

    def ended(self, failure: Failure, verdict: Verdict, decision: Decision, endings: Sequence[Ending]) -> None:
        """Log a restart that failed, rank by rank, and what it costs."""
        where = {"attempt": failure.attempt, "restart": failure.restart}
        for ending in endings:
            self.log.append(
                "rank_ended",
                **where,
                rank=ending.rank,
                node=ending.node,
                pod=ending.pod,
                signal=ending.signal,
                exit_code=ending.exit_code,
            )
        self.log.append(
            "restart_ended",
            **where,
            cause=str(verdict.cause),
            signal=verdict.signal,
            exit_code=verdict.code,
            rank=verdict.rank,
            node=verdict.node,
            quote=verdict.quote,
            last_step=failure.step,
        )
        self.log.append(
            "budget",
            cause=str(verdict.cause),
            spent=decision.spent,
            limit=decision.limit,
            refunded=decision.refunded,
        )
        self.log.flush()

    # The end.

    def outputs(self, uri: str, digest: str, verdict: dict[str, Any]) -> None:
        """Write the step's output parameters."""
        write_output("checkpoint-uri", uri)
        write_output("checkpoint-digest", digest)
        write_output("verdict", json.dumps(verdict, separators=(",", ":")))

    def gave_up(self, verdict: Verdict) -> None:
        """Write outputs and the termination message of a run that failed."""
        line = termination_line(verdict)
        self.outputs("", "", json.loads(line))
        write_termination(line)


def write_progress(path: str, step: int, total: int) -> None:
    """``step/total`` for Argo's progress, replaced as a whole."""
    replace_text(path, f"{step}/{total}")
