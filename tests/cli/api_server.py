"""A Kubernetes API of one Workflow and one pod, whose log connection breaks off whenever the test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: one
clusters: [{{name: one, cluster: {{server: "{url}"}}}}]
contexts: [{{name: one, context: {{cluster: one, user: me, namespace: research}}}}]
users: [{{name: me, user: {{token: t}}}}]
"""


@dataclass
class FakeApi:
    """``workflow`` and ``pods`` are what it says; each connection to a log ends after ``at_once`` lines."""

    workflow: dict[str, Any]
    pods: list[dict[str, Any]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    at_once: int = 3
    queries: list[dict[str, list[str]]] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    """By which selector pods were listed."""
    away: int = 0
    """So many of the next requests are answered with 503, as in an upgrade of a control plane."""
    refused: dict[str, str] = field(default_factory=dict)
    """Paths that are answered with 403, and what it says."""

    def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
        name = self.workflow["metadata"]["name"]
        if path.endswith("/log"):
            self.queries.append(query)
            return "".join(f"{line}\n" for line in self._left(query)).encode()
        if path.endswith("/pods"):
            self.lists.append(query["labelSelector"][0])
            without = self.lists[-1].partition(",!")[2]
            pods = [each for each in self.pods if not without or without not in each["metadata"].get("labels", {})]
            return json.dumps({"items": pods}).encode()
        if "/pods/" in path:
            return json.dumps(next(each for each in self.pods if path.endswith(each["metadata"]["name"]))).encode()
        if path.endswith(f"/workflows/{name}"):
            return json.dumps(self.workflow).encode()
        if path.endswith(("/namespaces/research", "/namespaces/there")):
            return b"{}"
        return json.dumps({"items": [self.workflow]}).encode() if path.endswith("/workflows") else None

    def write(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """(status, body) of what is created or applied; nothing is kept."""
        return 201, document

    def _left(self, query: dict[str, list[str]]) -> list[str]:
        """As the kubelet does it: from a whole second on, so that lines come again."""
        since = query.get("sinceTime", [""])[0][:19]
        left = [line for line in self.log if line[:19] >= since]
        if "timestamps" not in query:
            return [line.partition(" ")[2] for line in left]
        if len(left) > self.at_once:
            return left[: self.at_once]
        self._end()
        return left

    def _end(self) -> None:
        self.workflow["status"]["phase"] = "Failed"
        for pod in self.pods:
            pod["status"]["containerStatuses"][0]["state"] = {"terminated": {}}


@contextmanager
def serving(api: FakeApi, folder: Path) -> Iterator[Path]:
    """A kubeconfig for it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if api.away:
                api.away -= 1
                return self.say(503, b"{}")
            if parts.path in api.refused:
                said = {"reason": "Forbidden", "message": api.refused[parts.path]}
                return self.say(403, json.dumps(said).encode())
            body = api.answer(parts.path, parse_qs(parts.query))
            text = json.dumps({"reason": "NotFound", "message": "not found"}).encode() if body is None else body
            return self.say(404 if body is None else 200, text)

        def write(self) -> None:
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = api.write(self.command, urlsplit(self.path).path, document)
            self.say(status, json.dumps(body).encode())

        do_POST = do_PATCH = do_DELETE = write

        def say(self, status: int, text: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    path = folder / "kubeconfig"
    path.write_text(KUBECONFIG.format(url=f"http://127.0.0.1:{server.server_address[1]}"))
    try:
        yield path
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
