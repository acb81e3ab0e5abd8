"""What the supervisor reads out of its arguments, checked."""

from __future__ import annotations

import json
from dataclasses import dataclass

from argosy.steps.contract.arguments import TrainArgs
from argosy.steps.contract.errors import InputError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.gang.spot import Spot, read_spot
from argosy.steps.supervisor.budget import Limits
from argosy.steps.supervisor.watch import Timeouts

NAME_CHARACTERS = 44
"""Of a gang's name. JobSet makes pods called ``<gang>-node-0-<index>-<5 characters>`` and refuses a JobSet whose
longest such name has more than 63; ``index`` has up to 4 digits."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The arguments with their JSON read; ``script_args`` go to the training script, ``code_map`` maps its codes."""

    args: TrainArgs
    script_args: list[str]
    code_map: dict[int, int]
    spot: Spot | None = None

    @property
    def timeouts(self) -> Timeouts:
        """Seconds of silence and standstill."""
        args = self.args
        return Timeouts(
            heartbeat=args.heartbeat_timeout_seconds,
            hang=args.hang_timeout_seconds,
            act_on_stall=args.act_on_stall,
        )

    @property
    def limits(self) -> Limits:
        """Budgets of the run."""
        return Limits(
            max_same_failure=self.args.max_same_failure,
            max_restarts=self.args.max_restarts,
            max_preemptions=self.args.max_preemptions,
            backoff_seconds=self.args.backoff_seconds,
            backoff_cap_seconds=self.args.backoff_cap_seconds,
        )

    def gang_name(self, attempt: int) -> str:
        """``<workflow>-<uid8>-a<attempt>``: a DNS label that begins with a letter, never used twice."""
        own = f"-{self.args.workflow_uid[:8]}-a{attempt}".lower()
        workflow = self.args.workflow.lower().replace(".", "-")
        if not workflow[:1].isalpha():
            workflow = f"g-{workflow}"
        return workflow[: NAME_CHARACTERS - len(own)].rstrip("-") + own


def read_settings(args: TrainArgs) -> Settings:
    """Read and check.

    Raises:
        InputError: ``args`` is no JSON list of strings, ``exit_code_map`` no map into 70..78, or ``resume_from``
            neither latest, none nor a digest.
    """
    digest = len(args.resume_from) == 64 and set(args.resume_from) <= set("0123456789abcdef")
    if args.resume_from not in ("latest", "none") and not digest:
        raise InputError(f"resume-from = {args.resume_from!r}: write latest, none, or a digest of 64 hex digits")
    return Settings(
        args=args,
        script_args=_script_args(args.args),
        code_map=_code_map(args.exit_code_map),
        spot=read_spot(args.spot),
    )


def _script_args(raw: str) -> list[str]:
    try:
        listed = json.loads(raw)
    except ValueError:
        listed = None
    if not isinstance(listed, list) or not all(isinstance(item, str) and "\0" not in item for item in listed):
        raise InputError(f'args = {raw!r}: a JSON list of strings is wanted, for example ["--steps", "200"]')
    return listed


def _code_map(raw: str) -> dict[int, int]:
    rule = f'{raw!r}: a JSON object {{"code of the script": code}} is wanted, 1..255 to 70..78, such as {{"3": 75}}'
    try:
        mapped = {int(key): int(value) for key, value in json.loads(raw).items()}
    except (ValueError, TypeError, AttributeError):
        raise InputError(f"exit-code-map = {rule}") from None
    classes = set(ExitCode) - {ExitCode.OK, ExitCode.USAGE}
    if not all(1 <= key <= 255 and value in classes for key, value in mapped.items()):
        raise InputError(f"exit-code-map = {rule}")
    return mapped
