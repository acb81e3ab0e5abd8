"""The daemon of mpirun on this node (``orted``, ``prted``), which launch starts when mpirun asks for it."""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import shlex
import socket
import string
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from argosy.steps.child_python import die_with_parent
from argosy.steps.launch.mpi_shell import signature

DAEMONS = ("orted", "prted")
_ASK_SECONDS = 10.0
_LINE_BYTES = 1 << 16


class Daemon:
    """Listens from the start on; the first asker with the key gets the daemon, and its end as an answer."""

    def __init__(self, address: tuple[str, int], key: str, environ: Mapping[str, str]) -> None:
        """Port 0: any.

        Raises:
            OSError: nobody can listen there.
        """
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._server = socket.create_server(address, family=family)
        self.port = int(self._server.getsockname()[1])
        self._key = key
        self._environ = environ
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._refuses = False
        self._thread = threading.Thread(target=self._serve, name="mpi-daemon", daemon=True)
        self._thread.start()

    def poll(self) -> int | None:
        """Its return code, or None while it runs or may still be asked for."""
        if self._process is None:
            return 1 if self._refuses else None
        return self._process.poll()

    def refuse(self) -> None:
        """Start none any more."""
        with self._lock:
            self._refuses = True

    def terminate(self) -> None:
        """SIGTERM: it takes its ranks along."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def close(self) -> None:
        """Stop listening; wait for the daemon, which has been killed."""
        self.refuse()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        if self._process is not None:
            self._process.wait()
        self._thread.join(1.0)

    def _serve(self) -> None:
        while self._process is None and not self._refuses:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError, ValueError):
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(_ASK_SECONDS)
        nonce = secrets.token_hex(16).encode()
        connection.sendall(nonce + b"\n")
        reader = connection.makefile("rb")
        message, signed = (reader.readline(_LINE_BYTES).rstrip(b"\n") for _ in range(2))
        if not hmac.compare_digest(signature(self._key, nonce, message).encode(), signed):
            return
        connection.settimeout(None)
        connection.sendall(f"{self._run(json.loads(message))}\n".encode())

    def _run(self, words: Sequence[str]) -> int:
        command, environ = daemon_command(words, self._environ)
        with self._lock:
            if self._refuses:
                return 1
            try:
                self._process = subprocess.Popen(
                    command,
                    env=environ,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                    preexec_fn=die_with_parent(),
                )
            except OSError as error:
                print(f"argosy: launcher_usage: cannot start {command[0]}: {error.strerror}", flush=True)
                return 127
        return self._process.wait()


def daemon_command(words: Sequence[str], environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The daemon's argv and environment, out of what mpirun would have a remote shell run.

    That is ``NAME=VALUE ; export NAME ; … /path/orted --daemonize -mca NAME "VALUE" …``: assignments may use variables,
    the rest is words. It stays in the foreground, as our child.

    Raises:
        ValueError: it is no such command.
    """
    reader = shlex.shlex(" ".join(words), posix=True, punctuation_chars=";")
    reader.whitespace_split = True
    found = list(reader)
    start = next((place for place, word in enumerate(found) if PurePath(word).name in DAEMONS), None)
    if start is None:
        raise ValueError(f"mpirun asked for {' '.join(words)!r}, which is none of {', '.join(DAEMONS)}")
    known = dict(environ)
    for word in found[:start]:
        name, equals, value = word.partition("=")
        if equals:
            value = value.replace(":-}", "}")  # ${NAME:-}: nothing where there is none
            known[name] = string.Template(value).safe_substitute({name: "", **known})
    return [word for word in found[start:] if word != "--daemonize"], known
