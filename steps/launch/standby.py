"""A process that has imported torchrun, and forks it: ``python -m argosy.steps.launch.standby [MODULE...]``.

Importing torch takes seconds. Here it happens once in a pod, while that waits for its peers, its data and its orders;
each restart gets a torchrun that has never run anything and, with ``gang.preload``, ranks that find MODULEs imported.
Before a fork nothing but imports has happened: no other thread of Python runs, and CUDA is not initialized.

It listens at the unix socket that is its stdin. Who connects sends one line, an order, with file handles; it is told
``{"pid"}`` and at the end ``{"code"}``. When it hangs up, its fork is killed if need be, and reaped: until then the pid
is no other process's. Standard library only, beside what it is to import.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import traceback
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from typing import Any, Final

from argosy.steps.child_python import die_with_parent

_AGENT: Final = (
    "torch.distributed.run",
    "torch.distributed.elastic.rendezvous.static_tcp_rendezvous",
    "encodings.idna",
)
"""With what torchrun imports when it begins, and the name of a host needs."""
_READ: Final = 1 << 16
_HANDLES: Final = 8
_HIGH: Final = 200
"""No order places a handle so high."""


@dataclass
class _Client:
    """Who ordered a fork."""

    socket: socket.socket
    line: bytes = b""
    handles: list[int] = field(default_factory=list)
    pid: int = 0
    ended: bool = False


class _Server:
    def __init__(self) -> None:
        self._listener = socket.socket(fileno=0)
        self._woken, wakes = os.pipe()
        for end in (self._woken, wakes):
            os.set_blocking(end, False)
        self._wakes = wakes
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        self._prepare = die_with_parent()
        self._clients: dict[int, _Client] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._woken, selectors.EVENT_READ, None)

    def serve(self) -> _Client:
        """For ever, but in each fork: who ordered it."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fd == self._woken:
                    self._see_ends()
                elif self._hear(key.data):
                    return key.data  # type: ignore[no-any-return]

    def _accept(self) -> None:
        client = _Client(self._listener.accept()[0])
        self._clients[client.socket.fileno()] = client
        self._selector.register(client.socket, selectors.EVENT_READ, client)

    def _hear(self, client: _Client) -> bool:
        """Whether this is the fork that it ordered."""
        try:
            data, handles, _, _ = socket.recv_fds(client.socket, _READ, _HANDLES)
        except ConnectionResetError:
            data, handles = b"", []
        client.handles += handles
        client.line += data
        if not data:
            self._let_go(client)
        elif client.line.endswith(b"\n"):
            client.pid = os.fork()
            if client.pid == 0:
                self._leave()
                return True
            _close(client)
            _tell(client, pid=client.pid)
        return False

    def _leave(self) -> None:
        """In a fork: what is the server's is closed."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        self._listener.detach()
        for client in self._clients.values():
            client.socket.close()
        for handle in (self._woken, self._wakes):
            os.close(handle)
        self._prepare()

    def _see_ends(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, _READ)
        for client in self._clients.values():
            if client.pid and not client.ended:
                ended = os.waitid(os.P_PID, client.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
                if ended is not None:
                    client.ended = True
                    exited = ended.si_code == os.CLD_EXITED
                    _tell(client, code=ended.si_status if exited else -ended.si_status)

    def _let_go(self, client: _Client) -> None:
        self._selector.unregister(client.socket)
        del self._clients[client.socket.fileno()]
        client.socket.close()
        _close(client)
        if client.pid:
            if not client.ended:
                os.kill(client.pid, signal.SIGKILL)
            os.waitpid(client.pid, 0)


def _close(client: _Client) -> None:
    while client.handles:
        os.close(client.handles.pop())


def _tell(client: _Client, **fields: int) -> None:
    with contextlib.suppress(OSError):
        client.socket.sendall(json.dumps(fields).encode() + b"\n")


def _become(client: _Client) -> Callable[[], None]:
    """In a fork: the surroundings that were ordered; what is to be run in them."""
    order = json.loads(client.line)
    high = [fcntl.fcntl(handle, fcntl.F_DUPFD, _HIGH) for handle in client.handles]
    _close(client)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for handle, number in zip(high, order["handles"], strict=True):
        os.dup2(handle, number)
        os.close(handle)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    if order["run"] == "torchrun":
        os.setsid()
        return lambda: _be_torchrun(order["argv"])
    os.setpgid(0, 0)
    return lambda: _be_python(order["argv"])


def _be_torchrun(argv: list[str]) -> None:
    from torch.distributed import run

    if "--node-rank=0" not in argv:
        _leave_without_waiting()
    code = 1
    try:
        run.main(argv)
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(bool(ending.code))
    except BaseException:
        traceback.print_exc()
    finally:
        # Tearing torch down takes longer than it is worth: nothing of ours is left to be written.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _leave_without_waiting() -> None:
    """torchrun's exit barrier keeps the node of the store until all ranks have ended; nobody needs the other nodes.

    They would wait beside it, often find the store gone, and print a traceback and C++ frames where all went well.
    """
    from torch.distributed.elastic.utils import store as elastic

    if checked_in := getattr(elastic, "_barrier_nonblocking", None):
        elastic.barrier = lambda store, world_size, key_prefix, **_: checked_in(store, world_size, key_prefix)


def _be_python(argv: list[str]) -> None:
    """``python ARGV``, a script or -m and a module; its end is the process's own."""
    if "numpy.random" in sys.modules:  # a seed of its own, as each process draws when it imports it
        sys.modules["numpy.random"].seed()
    if "multiprocessing.process" in sys.modules:  # below it, processes that are spawned look for the script
        sys.modules["multiprocessing.process"].ORIGINAL_DIR = os.getcwd()  # type: ignore[attr-defined]
    sys.excepthook = _without_our_frames(sys.excepthook)
    if argv[0] == "-m":
        sys.argv = argv[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        sys.path.insert(0, os.path.dirname(os.path.realpath(argv[0])))
        path = os.path.abspath(argv[0])
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        loader = main.__loader__ = _Script("__main__", path)
        main.__file__ = path
        loader.exec_module(main)


class _Script(SourceFileLoader):
    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(f"{path} is a script, whose bytecode Python does not keep")


def _without_our_frames(shown: Callable[..., Any]) -> Callable[..., None]:
    ours = (__file__, "<frozen importlib._bootstrap_external>", "<frozen importlib._bootstrap>", "<frozen runpy>")

    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        while trace is not None and trace.tb_frame.f_code.co_filename in ours:
            trace = trace.tb_next
        shown(kind, error.with_traceback(trace), trace)

    return hook


def main() -> None:
    """Import, then serve; in a fork run what was ordered."""
    gc.disable()  # a fifth of the import would be looking for garbage among what stays
    for module in _AGENT:
        importlib.import_module(module)
    for module in sys.argv[1:]:
        try:
            importlib.import_module(module)
        except ImportError as error:
            error.msg = f"{error.msg} (gang.preload names {module})"
            raise
    if "torch" in sys.argv[1:]:
        # What makes an optimizer imports it, a second that each rank would take: torch/_compile.py.
        with contextlib.suppress(ImportError):
            importlib.import_module("torch._dynamo")
    gc.freeze()
    gc.enable()
    _become(_Server().serve())()


if __name__ == "__main__":
    main()
