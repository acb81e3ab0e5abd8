"""One node of a running workflow: the controller's ``NodeStatus``, as far as anything here reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PENDING, RUNNING = "Pending", "Running"
SUCCEEDED, FAILED, ERROR = "Succeeded", "Failed", "Error"
SKIPPED, OMITTED = "Skipped", "Omitted"
FULFILLED = frozenset({SUCCEEDED, FAILED, ERROR, SKIPPED, OMITTED})


@dataclass
class NodeState:
    """Phase, message and values of one node. Times are seconds since 1970.

    ``outputs`` may hold ``parameters`` {name: text}, ``result`` and ``artifacts`` {name: folder or file; or a
    map with what else an artifact is made of, empty for one of a skipped step}.
    """

    id: str
    name: str
    display_name: str
    template_name: str
    type: str
    phase: str
    message: str = ""
    boundary: str = ""
    scope: str = ""
    """Name of the WorkflowTemplate whose templates its references mean; "" for the workflow's own."""
    exit_code: int | None = None
    started: float | None = None
    finished: float | None = None
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    children: list[str] = field(default_factory=list)
    outbound: list[str] = field(default_factory=list)
    pod: str = ""
    attempt: int = 0
    log: str = ""
    hooked: bool = False
    retried: bool = False
    deadline: float | None = None
    """When its pod is ended, seconds since 1970."""

    @property
    def fulfilled(self) -> bool:
        """Nothing will happen to it any more."""
        return self.phase in FULFILLED

    @property
    def completed(self) -> bool:
        """It ran and ended."""
        return self.phase in (SUCCEEDED, FAILED, ERROR)

    @property
    def failed(self) -> bool:
        """It ended Failed or with an Error."""
        return self.phase in (FAILED, ERROR)

    @property
    def output_parameters(self) -> dict[str, str]:
        """Output parameters by name."""
        return dict(self.outputs.get("parameters") or {})

    def record(self) -> dict[str, Any]:
        """The JSON of ``state.json``."""
        outputs = {key: value for key, value in self.outputs.items() if value or key == "result"}
        if self.exit_code is not None:
            outputs["exitCode"] = str(self.exit_code)
        return {
            "id": self.id,
            "name": self.name,
            "displayName": self.display_name,
            "templateName": self.template_name,
            "templateScope": self.scope,
            "type": self.type,
            "phase": self.phase,
            "message": self.message,
            "boundaryID": self.boundary,
            "exitCode": self.exit_code,
            "startedAt": self.started,
            "finishedAt": self.finished,
            "inputs": {"parameters": self.inputs},
            "outputs": outputs,
            "children": self.children,
            "outboundNodes": self.outbound,
            "pod": self.pod,
            "attempt": self.attempt,
            "log": self.log,
            "hooked": self.hooked,
            "retried": self.retried,
            "deadline": self.deadline,
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> NodeState:
        """The node that :meth:`record` wrote."""
        outputs = {key: value for key, value in record["outputs"].items() if key != "exitCode"}
        return cls(
            id=record["id"],
            name=record["name"],
            display_name=record["displayName"],
            template_name=record["templateName"],
            type=record["type"],
            phase=record["phase"],
            message=record["message"],
            boundary=record["boundaryID"],
            scope=record["templateScope"],
            exit_code=record["exitCode"],
            started=record["startedAt"],
            finished=record["finishedAt"],
            inputs=record["inputs"]["parameters"],
            outputs=outputs,
            children=record["children"],
            outbound=record["outboundNodes"],
            pod=record["pod"],
            attempt=record["attempt"],
            log=record["log"],
            hooked=record["hooked"],
            retried=record["retried"],
            deadline=record["deadline"],
        )
