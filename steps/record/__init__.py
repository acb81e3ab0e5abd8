"""What a run did, as one value: built from its event log and the engine's state, read by every verb and the report."""

from argosy.steps.record.building import build_record
from argosy.steps.record.facts import RunRecord

__all__ = ["RunRecord", "build_record"]
