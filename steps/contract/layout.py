"""Where things lie below the store: one place, so that a rule about keys is found here.

STORE/NAME/datasets/DIGEST.json             immutable dataset manifests
STORE/NAME/datasets/shards/SHA256.jsonl.gz  rows of the large ones, by content
STORE/NAME/datasets/units/DIGEST.json.gz    what their nodes' shares are balanced by
STORE/NAME/datasets/DIGEST.blocks           checksums of its blocks, for ranges (steps/stream/blocks.py)
STORE/NAME/datasets/DIGEST.samples-HASH     where its samples lie, for mode stream
STORE/NAME/code/SHA256.tar.gz               code archives, by content
STORE/NAME/claims/KEY/SEQ.json              admission
STORE/NAME/pointers/POINTER/SEQ.json        promotion: an append-only history, the last entry rules
STORE/NAME/trigger/log/SEQ.json             what events and looks at the data decided for good, one after the other
STORE/NAME/trigger/data/KEY.json            by content: the number of its decision in that log
STORE/NAME/trigger/done/SEQ.json            decisions that were carried out
STORE/NAME/trigger/told/SUBJECT/TIME-ID.json  every decision, by what it is about
STORE/NAME/trigger/listings/DIGEST.json.gz  what a decision saw
STORE/NAME/trigger/baseline.json            what was there before the trigger
STORE/NAME/trigger/again/FINGERPRINT.json   what of it was announced and has to wait
STORE/NAME/trigger/pending.json             since when nothing has changed
STORE/NAME/runs/RUN/log/SEQ.json            commit log
STORE/NAME/runs/RUN/data/STEP-UUID/...      shards
STORE/NAME/runs/RUN/manifests/...           manifest trees
STORE/NAME/runs/RUN/quarantine/DIGEST.json  checkpoints set aside
STORE/NAME/runs/RUN/pins/DIGEST/...         checkpoints kept by a person
STORE/NAME/runs/RUN/probe.json              what the probe of the store found
STORE/NAME/runs/RUN/events/WRITER/SEQ.jsonl event log
STORE/NAME/runs/RUN/ledger/SEQ.json         attempts and budgets
STORE/NAME/runs/RUN/attempts/GANG/...       verdicts and evidence
STORE/NAME/runs/RUN/attempts/GANG/bundle/RESTART/POD.tar.gz  what each node kept of a start that failed
STORE/NAME/runs/RUN/plan/...                which node fetches what
STORE/NAME/runs/RUN/alive/UID.json          signs of life of a workflow's claim
STORE/NAME/runs/RUN/admission/UID.json      which claim a workflow holds
STORE/NAME/runs/RUN/evaluation/DIGEST.json  evaluations by manifest digest
STORE/NAME/runs/RUN/gate/DIGEST.json        what the gate decided, by manifest digest
STORE/NAME/runs/RUN/summary.json            the end, for people and webhooks
"""

from __future__ import annotations

import re

SEQ_DIGITS = 10
RUN_ID_RULE = "use at most 63 letters, digits, '-', '_' and '.', beginning with one of the first two"
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def seq_name(seq: int) -> str:
    """``0000000042.json``: sorts as it counts."""
    return f"{seq:0{SEQ_DIGITS}d}.json"


def seq_of(key: str) -> int:
    """The number in a key made by :func:`seq_name`."""
    return int(key.rsplit("/", 1)[-1].split(".", 1)[0])


def is_run_id(text: str) -> bool:
    """Whether the text may name a run: one part of a key, so that no run reaches into another's."""
    return _RUN_ID.fullmatch(text) is not None


def run_prefix(name: str, run_id: str) -> str:
    """Key prefix of one run, without a trailing slash."""
    return f"{name}/runs/{run_id}"


def bundle_prefix(run: str, gang: str, restart: int) -> str:
    """Prefix of what was kept of a start that failed; ``run`` is the run's prefix."""
    return f"{run}/attempts/{gang}/bundle/{restart:04d}"


def bundle_key(run: str, gang: str, restart: int, pod: str) -> str:
    """Key of what one pod kept of it."""
    return f"{bundle_prefix(run, gang, restart)}/{pod}.tar.gz"


def dataset_key(name: str, digest: str) -> str:
    """Key of an immutable dataset manifest; ``digest`` is 64 hex digits."""
    return f"{name}/datasets/{digest}.json"


def dataset_shard_key(name: str, digest: str) -> str:
    """Key of some rows of a dataset manifest; ``digest`` is the SHA-256 of their text."""
    return f"{name}/datasets/shards/{digest}.jsonl.gz"


def dataset_units_key(name: str, digest: str) -> str:
    """Key of the units of a dataset; ``digest`` is that of its manifest."""
    return f"{name}/datasets/units/{digest}.json.gz"


def derived_key(name: str, digest: str, what: str) -> str:
    """Key of something that was computed from a dataset: ``blocks``, or ``samples-HASH``."""
    return f"{name}/datasets/{digest}.{what}"


CODE_ARCHIVE = "the code archive"
"""How what is said of one begins."""


def code_key(name: str, digest: str) -> str:
    """Key of a code archive; ``digest`` is the SHA-256 of the archive's bytes."""
    return f"{name}/code/{digest}.tar.gz"


def claim_prefix(name: str, key: str) -> str:
    """Prefix of the claims of one admission key."""
    return f"{name}/claims/{key}"


def pointer_prefix(name: str, pointer: str) -> str:
    """Prefix of a promotion pointer's history."""
    return f"{name}/pointers/{pointer}"


def trigger_prefix(name: str) -> str:
    """Prefix of what a run's trigger decided."""
    return f"{name}/trigger"
