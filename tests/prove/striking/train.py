"""The training of the suite ``matrix``: three ranks that meet in every step over TCP, and strike themselves as planned.

No torch: none of these faults is about it, and a start takes a second. Run as ``train.py PLAN.json``; the plan has one
fault for each generation: {"kind", "phase", "rank"}.
"""

import ctypes
import json
import mmap
import os
import resource
import signal
import socket
import struct
import sys
import time
from pathlib import Path

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PLAN = json.loads(Path(sys.argv[1]).read_text())
GENERATION = int(os.environ["ARGOSY_GENERATION"])
FAULT = PLAN[GENERATION - 1] if len(PLAN) >= GENERATION else None
END, EVERY = 14, 4


def at(phase: str) -> None:
    if FAULT is not None and (FAULT["phase"], FAULT["rank"]) == (phase, RANK):
        STRIKES[FAULT["kind"]]()


def _bus_error() -> None:
    # A page of a file that has no such page any more: what a full /dev/shm does to a tensor.
    with open("gone", "w+b") as file:
        file.truncate(mmap.PAGESIZE)
        page = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        file.truncate(0)
        page[0] = 1


def _memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20), -1))
    bytearray(64 << 20)


def _disk() -> None:
    with open("/dev/full", "wb", buffering=0) as file:
        file.write(b"a checkpoint")


def _port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        socket.create_server(taken.getsockname())


def _raise() -> None:
    raise ValueError("the labels of this batch are of another kind")


def _import() -> None:
    import a_module_that_nobody_installed  # noqa: F401


STRIKES = {
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": lambda: ctypes.string_at(0),
    "aborted": os.abort,
    "divided by zero": lambda: os.kill(os.getpid(), signal.SIGFPE),
    "left": lambda: os._exit(37),
    "left, transient": lambda: sys.exit(75),
    "stopped": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "holds the GIL": lambda: ctypes.PyDLL(None).sleep(1 << 30),
    "port taken": _port,
    "disk full": _disk,
    "memory": _memory,
    "raised": _raise,
    "not installed": _import,
    "bus error": _bus_error,
}


class Peers:
    """A star: rank 0 adds up and tells the sum."""

    def __init__(self) -> None:
        where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        if RANK == 0:
            server = socket.create_server(where)
            self.sockets = [server.accept()[0] for _ in range(WORLD - 1)]
            return
        while True:
            try:
                self.sockets = [socket.create_connection(where)]
                return
            except ConnectionRefusedError:
                time.sleep(0.02)

    def all_reduce(self, value: float) -> float:
        if RANK == 0:
            total = value + sum(self._take(each) for each in self.sockets)
            for each in self.sockets:
                each.sendall(struct.pack("d", total))
            return total
        self.sockets[0].sendall(struct.pack("d", value))
        return self._take(self.sockets[0])

    @staticmethod
    def _take(one: socket.socket) -> float:
        data = b""
        while len(data) < 8:
            if not (more := one.recv(8 - len(data))):
                raise ConnectionResetError(104, "Connection reset by peer")
            data += more
        return struct.unpack("d", data)[0]


def save(out: Path, step: int) -> None:
    if RANK == 0:
        (out / "new").write_text("half")
    at("save")
    if RANK == 0:
        (out / "new").write_text("all of it")
        (out / "new").rename(out / f"{step}.step")


def main() -> None:
    out = Path("out")
    out.mkdir(exist_ok=True)
    at("before the ranks meet")
    peers = Peers()
    peers.all_reduce(1.0)
    at("restore")
    first = max((int(path.stem) for path in out.glob("*.step")), default=0)
    first = int(peers.all_reduce(float(first))) if WORLD else first  # only rank 0 has the files
    for step in range(first + 1, first + END + 1):
        time.sleep(0.03)
        if step == first + 1:
            at("first step")
        if step == first + EVERY + 2:
            at("step")
        peers.all_reduce(1.0 / step)
        if step == first + EVERY + 3:
            at("after a collective")
        print(f"step {step} loss {1.0 / step:.4f}", flush=True)
        if step % EVERY == 0:
            save(out, step)
    at("end")


at("start")
main()
