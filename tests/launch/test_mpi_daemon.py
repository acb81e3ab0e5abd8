"""What starts mpirun's daemon on a node, without mpirun."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

from argosy.steps.launch.mpi_daemon import Daemon
from argosy.steps.launch.mpi_shell import signature


def test_whoever_else_comes_to_the_port_keeps_no_daemon_from_mpirun(tmp_path: Path) -> None:
    program = tmp_path / "orted"
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(0o755)
    daemon = Daemon(("127.0.0.1", 0), "key", os.environ)
    try:
        for said in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\n\xff\xfe\n"):
            with socket.create_connection(("127.0.0.1", daemon.port)) as stranger:
                stranger.sendall(said)
        with socket.create_connection(("127.0.0.1", daemon.port)) as asks:
            asks.settimeout(20)
            reader = asks.makefile("rb")
            nonce, message = reader.readline().rstrip(), json.dumps([str(program)]).encode()
            asks.sendall(message + b"\n" + signature("key", nonce, message).encode() + b"\n")
            assert reader.readline() == b"7\n"
    finally:
        daemon.close()
