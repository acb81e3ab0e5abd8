"""A dataset of ten million keys: listed over HTTP, frozen, planned, shared and read, each by a process of 300 MiB.

The bucket exists only as a rule: a server makes up each page of its listing, and answers HEAD for each key. What runs
is the real steps ``snapshot`` and ``stage`` and what a node does before its first byte. Measured: the peak of resident
memory of each process (``ru_maxrss`` from ``wait4``), seconds, and that every key is there once.

Three buckets: keys that come in order; keys with capital letters, which must be compared folded; and pages in another
order, as an S3 directory bucket lists. ``$ARGOSY_PROOF_KEYS``: another number of keys, for a trial.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.prove.record import Record

KEYS = int(os.environ.get("ARGOSY_PROOF_KEYS", 10_000_000))
PAGE = 1000
NODES = 64
MIB = 300
BALANCE = 1.05
KINDS = ("ordered", "capital", "unordered")
PHASES = ("snapshot", "stage", "share", "all")
COUNT = len(KINDS) * len(PHASES)
NOTE = (
    "Each row is one process, its peak read from `wait4`: the steps `snapshot` and `stage` (mode node), and of a node "
    "its share of 64 and the whole dataset. `read`: objects that it was given. `rows`: the manifest's shards, hashed; "
    "`unordered` is `ordered` listed in another order. Seconds are those of a busy machine and include the server."
)
RUN = ["--name=proof", "--workflow=wf", "--workflow-uid=u", "--run-id=r"]
NODE = """
import sys
from argosy.steps.data.plan import node_share
from argosy.steps.data.stored_manifest import load_manifest, load_units
from argosy.steps.store import open_store
store, layout = open_store(sys.argv[1]), sys.argv[3]
manifest = load_manifest(store, "proof", sys.argv[2])
units = load_units(store, "proof", manifest) if layout == "sharded" else None
assert layout != "sharded" or len(manifest.shards) < 2 or units is not None
share = node_share(manifest, layout, 5, 64, units)
count = total = 0
for one in share:
    count, total = count + 1, total + one.size
assert (count, total) == (share.count, share.total_bytes), (count, total, share.count, share.total_bytes)
print(count)
"""


class Bucket(BaseHTTPRequestHandler):
    """``/KIND/…``: KEYS objects; object ``i`` has a size and an ETag that follow from ``i``."""

    protocol_version = "HTTP/1.1"
    lists = 0

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        kind = url.path.strip("/")
        page = int(parse_qs(url.query).get("continuation-token", ["0"])[0])
        pages = -(-KEYS // PAGE)
        Bucket.lists += 1
        place = (page * 7919 + 13) % pages if kind == "unordered" else page
        rows = "".join(_row(kind, i) for i in range(place * PAGE, min((place + 1) * PAGE, KEYS)))
        more = page + 1 < pages
        token = f"<NextContinuationToken>{page + 1}</NextContinuationToken>" if more else ""
        self._answer(
            f"<ListBucketResult><Name>{kind}</Name><KeyCount>{PAGE}</KeyCount><MaxKeys>{PAGE}</MaxKeys>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{rows}</ListBucketResult>"
        )

    def do_HEAD(self) -> None:
        kind, _, key = unquote(urlsplit(self.path).path).strip("/").partition("/")
        number = int(key.rpartition("_")[2].partition(".")[0])
        size, etag = (_size(number), _etag(number)) if _key(kind, number) == key else (0, "none")
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.send_header("ETag", f'"{etag}"')
        self.send_header("Last-Modified", "Sat, 21 Nov 2026 00:00:00 GMT")
        self.end_headers()

    def _answer(self, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _key(kind: str, i: int) -> str:
    return (
        f"train/N{i // 1300:06d}/IMG_{i:09d}.JPEG" if kind == "capital" else f"train/n{i // 1300:06d}/img_{i:09d}.jpg"
    )


def _size(i: int) -> int:
    return 20_000 + i * 2654435761 % 200_000


def _etag(i: int) -> str:
    return f"{i * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128):032x}"


def _row(kind: str, i: int) -> str:
    return (
        f"<Contents><Key>{_key(kind, i)}</Key><LastModified>2026-11-21T00:00:00.000Z</LastModified>"
        f"<ETag>&quot;{_etag(i)}&quot;</ETag><Size>{_size(i)}</Size><StorageClass>STANDARD</StorageClass></Contents>"
    )


def _measured(command: list[str], state: Path, port: int) -> tuple[int, int, float, str]:
    """Exit code, peak in MiB, seconds, and what was said."""
    given = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_REGION": "us-east-1", "ARGOSY_MOUNTS": json.dumps({"/argosy": str(state / "pod")}), "TMPDIR": str(state),
    }  # fmt: skip
    began = time.monotonic()
    with (state / "said").open("w+") as said:
        child = subprocess.Popen(command, env={**os.environ, **given}, stdout=said, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    return child.returncode, usage.ru_maxrss >> 10, time.monotonic() - began, text


def _command(kind: str, phase: str, state: Path) -> list[str]:
    store = f"--store-uri=file://{state}/store"
    digest = _digest(state)
    if phase == "snapshot":
        return [sys.executable, "-m", "argosy.steps.snapshot", store, *RUN, f"--dataset-uri=s3://{kind}"]
    if phase == "stage":
        more = [f"--dataset-digest={digest}", "--mode=node", "--layout=sharded", f"--nnodes={NODES}"]
        return [sys.executable, "-m", "argosy.steps.stage", store, *RUN, *more]
    layout = "sharded" if phase == "share" else "replicated"
    return [sys.executable, "-c", NODE, f"file://{state}/store", digest, layout]


def _digest(state: Path) -> str:
    return next(iter(path.stem for path in (state / "store/proof/datasets").glob("*.json")), "")


def _balance(state: Path) -> float:
    (plan,) = (state / "store/proof/runs/r/plan").glob("*.json")
    loads = [node["bytes"] for node in json.loads(plan.read_bytes())["nodes"]]
    return float(max(loads) / (sum(loads) / len(loads)))


def _shards(state: Path) -> str:
    names = "".join(sorted(path.name for path in (state / "store/proof/datasets/shards").glob("*.gz")))
    return hashlib.sha256(names.encode()).hexdigest()[:12]


def _case(kind: str, phase: str, state: Path, port: int, earlier: list[dict[str, Any]]) -> dict[str, Any]:
    state.mkdir(parents=True, exist_ok=True)
    Bucket.lists = 0
    code, peak, seconds, said = _measured(_command(kind, phase, state), state, port)
    case: dict[str, Any] = {
        "bucket": kind, "phase": phase, "keys": KEYS, "seconds": round(seconds, 1), "keys/s": round(KEYS / seconds),
        "peak MiB": peak, "LISTs": Bucket.lists, "read": "", "max/mean": "", "rows": _shards(state),
    }  # fmt: skip
    held = code == 0 and peak <= MIB and Bucket.lists == (-(-KEYS // PAGE) if phase == "snapshot" else 0)
    if phase == "snapshot":
        # Another order of the listing, the same rows: whoever reads a manifest cannot tell how it came about.
        rows = [other["rows"] for other in earlier if (other["bucket"], other["keys"]) == ("ordered", KEYS)]
        held &= f"{KEYS} objects" in said and (kind != "unordered" or rows[:1] == [case["rows"]])
    elif phase == "stage":
        case["max/mean"] = round(_balance(state), 4)
        held &= case["max/mean"] <= BALANCE
    elif code == 0:
        case["read"] = int(said)
        held &= phase == "share" or case["read"] == KEYS
    if not held:
        print(said[-2000:], flush=True)
    return {**case, "held": held}


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Run phase after phase until ``count`` are recorded or ``minutes`` are over; 0 when all that were run held."""
    record = Record("ten-million-keys", seed)
    state = record.folder / "ten-million-keys"
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def judged(what: tuple[str, str]) -> dict[str, Any]:
        if what[1] == PHASES[0]:
            shutil.rmtree(state, ignore_errors=True)
        return _case(*what, state, server.server_port, record.cases())

    record.go_on(list(itertools.product(KINDS, PHASES))[len(record.cases()) : count], judged, minutes)
    server.shutdown()
    columns = ["bucket", "phase", "keys", "seconds", "keys/s", "peak MiB", "LISTs", "read", "max/mean", "rows", "held"]
    title = f"Proof: ten million keys are frozen, planned and read in at most {MIB} MiB"
    return record.told(title, columns, note=NOTE)
