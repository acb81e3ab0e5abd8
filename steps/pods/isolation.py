"""A mount namespace for containers that are not ours: the pod's folder is ``/``, the machine's is seen read-only.

Standard library only; runs in the child between fork and exec. Whatever the container writes outside a
volume lands in the pod's folder, where the engine reads its outputs.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_RDONLY = 1
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

PRIVATE = ("tmp", "argosy", "workspace", "mnt", "data", "out", "outputs", "output", "lost+found")
"""Top-level names that a pod has for itself, whatever the machine keeps there."""
SHARED = ("proc", "sys", "run")
"""Top-level names that are seen as they are."""
DEVICES = (
    "null",
    "zero",
    "full",
    "random",
    "urandom",
    "tty",
    "ptmx",
    "pts",
    "shm",
    "mqueue",
    "nvidia",
    "dri",
    "infiniband",
)
"""Names in /dev, or beginnings of names, that a pod sees; its /dev is a folder of its own, for the termination log."""


def _check(result: int, action: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{action}: {os.strerror(number)}")


class _Kernel:
    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def unshare(self) -> None:
        """A mount namespace; through a user namespace when we are not root."""
        uid, gid = os.getuid(), os.getgid()
        if uid == 0:
            _check(self._libc.unshare(CLONE_NEWNS), "unshare mount namespace")
        else:
            _check(self._libc.unshare(CLONE_NEWUSER | CLONE_NEWNS), "unshare user and mount namespace")
            for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
                with open(f"/proc/self/{name}", "w", encoding="ascii") as target:
                    target.write(text)
        self.mount("none", "/", MS_REC | MS_PRIVATE)

    def mount(self, source: str, target: str, flags: int) -> None:
        _check(self._libc.mount(source.encode(), target.encode(), None, flags, None), f"mount {target}")

    def bind(self, source: str, target: str, *, read_only: bool = False) -> None:
        self.mount(source, target, MS_BIND | MS_REC)
        if read_only:
            # Inside a user namespace the kernel may refuse to change flags of a mount it locked: seen, not needed.
            self._libc.mount(None, target.encode(), None, MS_REMOUNT | MS_BIND | MS_RDONLY, None)


def enter(root: str, mounts: dict[str, str], visible: list[str], read_only: Sequence[str] = ()) -> None:
    """Make ``root`` the process's ``/``.

    ``mounts`` maps mount paths to folders (or files); ``visible`` are folders of the machine that stay where they are
    even below a private name (the interpreter's, say); ``read_only`` are mount paths that cannot be written to.

    Raises:
        OSError: the machine does not allow it.
    """
    kernel = _Kernel()
    kernel.unshare()
    kernel.bind(root, root)
    for name in os.listdir("/"):
        _show(kernel, name, root)
    for path in visible:
        if path.split("/")[1] in PRIVATE and os.path.isdir(path):
            os.makedirs(root + path, exist_ok=True)
            kernel.bind(path, root + path, read_only=True)
    for path in sorted(mounts, key=len):
        _make_point(mounts[path], root + path)
        kernel.bind(mounts[path], root + path, read_only=path in read_only)
    os.chroot(root)
    os.chdir("/")


def _show(kernel: _Kernel, name: str, root: str) -> None:
    source, target = f"/{name}", f"{root}/{name}"
    if name == "dev":
        os.makedirs(target, exist_ok=True)
        for device in os.listdir(source):
            if device.startswith(DEVICES) or os.path.islink(f"{source}/{device}"):
                _show_device(kernel, f"{source}/{device}", f"{target}/{device}")
    elif name in PRIVATE:
        if os.path.isdir(source):
            os.makedirs(target, mode=0o777, exist_ok=True)
    elif os.path.islink(source):
        if not os.path.lexists(target):
            os.symlink(os.readlink(source), target)
    elif os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
        kernel.bind(source, target, read_only=name not in SHARED)


def _show_device(kernel: _Kernel, source: str, target: str) -> None:
    if os.path.islink(source):
        if not os.path.lexists(target):
            os.symlink(os.readlink(source), target)
    else:
        _make_point(source, target)
        kernel.bind(source, target)


def _make_point(source: str, target: str) -> None:
    """The place to mount on; raises OSError when it would lie in the machine's own (read-only) folders."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "ab"):
            pass


def is_possible() -> bool:
    """Whether this machine lets us make a mount namespace (tried in a child process)."""
    child = os.fork()
    if child == 0:
        try:
            _Kernel().unshare()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
