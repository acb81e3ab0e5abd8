"""mpirun's remote shell: ``python -m argosy.steps.launch.mpi_shell HOST COMMAND...``, started by mpirun on node 0.

It hands the command to launch on that node (:mod:`argosy.steps.launch.mpi_daemon`) and ends as the daemon does. No
shell reads the command. Standard library only.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import sys
import time

HOSTS = "ARGOSY_MPI_HOSTS"
"""ADDRESS:PORT of the daemon's starter on each node, a JSON list; only mpirun and this program have it."""
KEY = "ARGOSY_MPI_KEY"
_NAME = "argosy-node-rank-"
_PAUSE_SECONDS = 0.1
_TELL_SECONDS = 30.0


def host_name(node_rank: int) -> str:
    """What mpirun calls a node; it resolves nowhere."""
    return f"{_NAME}{node_rank}"


def signature(key: str, nonce: bytes, message: bytes) -> str:
    """Proof that a message comes from who has the key."""
    return hmac.new(key.encode(), nonce + message, hashlib.sha256).hexdigest()


def _connect(name: str, host: str) -> socket.socket:
    """A node may still restore its checkpoint: it is waited for as long as mpirun waits."""
    address, _, port = host.rpartition(":")
    told = time.monotonic()
    while True:
        try:
            return socket.create_connection((address.strip("[]"), int(port)), timeout=10.0)
        except OSError as error:
            if time.monotonic() - told > _TELL_SECONDS:
                told = time.monotonic()
                print(f"argosy: waiting for {name} at {host}: {error}", file=sys.stderr, flush=True)
            time.sleep(_PAUSE_SECONDS)


def main() -> int:
    """Start the daemon and wait for its end; its exit code."""
    name, *command = sys.argv[1:]
    host = json.loads(os.environ[HOSTS])[int(name.removeprefix(_NAME))]
    with _connect(name, host) as connection:
        connection.settimeout(None)
        reader = connection.makefile("rb")
        nonce = reader.readline().rstrip()
        message = json.dumps(command).encode()
        connection.sendall(message + b"\n" + signature(os.environ[KEY], nonce, message).encode() + b"\n")
        answer = reader.readline().rstrip()
    if not answer:
        print(f"argosy: {name} at {host} hung up", file=sys.stderr, flush=True)
    return int(answer or b"1")


if __name__ == "__main__":
    sys.exit(main())
