"""The API server: verbs over plain dictionaries, with the official client's configuration, credentials and pool."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from argosy.steps.cluster.kinds import Kind, kind_of
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
PATIENCE_SECONDS = 120.0
"""How long a call is repeated while the API server is away; an upgrade of a control plane takes about a minute."""
TELLING_SECONDS = 2.0
"""From then on whoever waits is told what for; most absences are over before."""
_RETRIED = (429, 500, 502, 503, 504)
UNHOOKED = "failed calling webhook"
"""How the API server says that one which has to be asked is down; it has answered itself."""
_WEBHOOK, _SERVER = ("a webhook of the cluster", Cause.CONFIG_OR_RBAC), ("the Kubernetes API", Cause.UNKNOWN)
_NAME = re.compile(r"(?<=/namespaces/)([^/]+/[^/]+)/.*")
NO_NAMESPACE = re.compile(r'namespaces "[^"]*" not found')
NOT_ALLOWED = re.compile(r'cannot \S+ resource "([^"]*)"')
"""How an authorizer refuses. Admission has the same 403 for what it does not want: a quota, a policy, Pod Security."""


_QUOTA = re.compile(r"exceeded quota: .*, requested: (\S+), used: \S+, limited: (\S+)")


class ApiError(Exception):
    """The API server's refusal: ``status`` is HTTP's, ``reason`` Kubernetes' word, the text its message."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class ApiAway(Exception):
    """No answer, or one that says: later."""


class ApiSilent(StepError):
    """No answer for as long as one was waited for."""


class ApiRevoked(StepError):
    """Refused for as long as it was asked for, and was allowed before."""


class Api:
    """One namespace of one cluster; may be used from several threads."""

    def __init__(self, client: Any, namespace: str, patience: float = PATIENCE_SECONDS) -> None:
        """``client``: an ApiClient of the official library."""
        self._client = client
        self.namespace = namespace
        self.patience = patience
        self._told = set[str]()
        """Why it does not answer, as it was told since it last did: who follows a run asks twice a second."""
        self._allowed = set[str]()
        """What was answered: paths without names, of a person's with their methods."""

    @property
    def server(self) -> str:
        """Where the API is."""
        return str(self._client.configuration.host)

    # Verbs. Each is repeated while the server is away, for at most ``patience`` seconds (our own unless given).

    def get(self, kind: Kind, name: str, *, patience: float | None = None) -> dict[str, Any] | None:
        """The object, or None."""
        try:
            return self._patiently("GET", kind.path(self.namespace, name), patience=patience)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(
        self, kind: Kind, *, selector: str = "", fields: str = "", patience: float | None = None
    ) -> dict[str, Any]:
        """The list object: ``items``, ``metadata.resourceVersion``; ``selector`` of labels, ``fields`` of fields."""
        query = {key: text for key, text in (("labelSelector", selector), ("fieldSelector", fields)) if text}
        return self._patiently("GET", kind.path(self.namespace), query=query, patience=patience)

    def read(self, path: str) -> dict[str, Any]:
        """The JSON at any path."""
        return self._patiently("GET", path)

    def metadata(self, kind: Kind, name: str = "") -> dict[str, Any]:
        """The object, or the list of all; of each only its ``metadata``."""
        form = "PartialObjectMetadata" if name else "PartialObjectMetadataList"
        accept = f"application/json;as={form};g=meta.k8s.io;v=v1"
        return self._patiently("GET", kind.path(self.namespace, name), accept=accept)

    def create(
        self, document: Mapping[str, Any], *, dry_run: bool = False, patience: float | None = None
    ) -> dict[str, Any] | None:
        """Create it, every field known to the server; None when an object of that name is there already."""
        query = {"fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        path = kind_of(document).path(self.namespace)
        try:
            return self._patiently("POST", path, query=query, body=document, patience=patience)
        except ApiError as error:
            if error.status == 409 and error.reason == "AlreadyExists":
                return None
            raise

    def apply(self, document: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """Server-side apply as field manager ``argosy``: create or update, idempotent."""
        query = {"fieldManager": "argosy", "force": "true", "fieldValidation": "Strict"}
        path = kind_of(document).path(self.namespace, str(document["metadata"]["name"]))
        content = "application/apply-patch+yaml"
        return self._patiently("PATCH", path, query=query | ({"dryRun": "All"} if dry_run else {}), body=document,
                               content=content)  # fmt: skip

    def merge(self, kind: Kind, name: str, patch: Mapping[str, Any]) -> None:
        """Change some fields of an object; one that is gone is no error."""
        try:
            self._patiently(
                "PATCH", kind.path(self.namespace, name), body=patch, content="application/merge-patch+json"
            )
        except ApiError as error:
            if error.status != 404:
                raise

    def delete(self, kind: Kind, name: str, *, patience: float | None = None) -> None:
        """Delete it; a missing one is no error."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        try:
            self._patiently("DELETE", kind.path(self.namespace, name), body=body, patience=patience)
        except ApiError as error:
            if error.status != 404:
                raise

    def text(self, path: str, query: Mapping[str, str] | None = None, *, seconds: float = READ_SECONDS) -> str:
        """A GET whose answer is no JSON (logs, /version, /readyz); ``seconds`` of silence: :class:`ApiAway`."""
        response = self._once("GET", path, query or {}, None, "", seconds)
        return bytes(response.read()).decode("utf-8", "replace")

    def lines(self, path: str, query: Mapping[str, str], *, seconds: float = READ_SECONDS) -> Iterator[bytes]:
        """A GET that goes on: each line as it comes (watches, followed logs); ends when the server hangs up.

        ``seconds`` of silence end it with :class:`ApiAway`.
        """
        response = self._once("GET", path, query, None, "", seconds)
        rest = b""
        try:
            while piece := response.read1(1 << 16):
                *whole, rest = (rest + piece).split(b"\n")
                yield from whole
            if rest:
                yield rest
        except Exception as error:
            raise _away(error) from error
        finally:
            response.close()
            response.release_conn()

    def _patiently(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content: str = "application/json",
        patience: float | None = None,
        accept: str = "application/json",
    ) -> dict[str, Any]:
        patience = self.patience if patience is None else patience
        began, pause, told = time.monotonic(), 0.25, set[str]()
        # A person may see what he may not change; the account of a run has all rights to a kind, or has lost them.
        right = _NAME.sub(r"\1", path) if self.patience >= PATIENCE_SECONDS else f"{method} {path}"
        end: StepError
        passes = right in self._allowed
        while True:
            try:
                response = self._once(method, path, query or {}, body, content, READ_SECONDS, accept)
                record: dict[str, Any] = json.loads(response.read())
                self._told.clear()
                self._allowed.add(right)
                return record
            except (ApiAway, ValueError) as error:
                end, passes = _silence(error, f"{method} {path}", patience), True
            except ApiError as error:
                # A server that has just started knows no role yet, and refuses everybody for a moment.
                if not passes or not (error.status == 401 or NOT_ALLOWED.search(str(error))):
                    raise _refused(error) from error
                end = ApiRevoked(Cause.CONFIG_OR_RBAC, str(error), quote=str(error))
            waited = time.monotonic() - began
            if waited + pause > patience:
                raise end
            if waited + pause > TELLING_SECONDS and end.quote not in self._told | told:
                self._told.add(end.quote)
                told.add(end.quote)  # another thread's answered call forgets
                who = _WEBHOOK[0] if UNHOOKED in end.quote else _SERVER[0]
                how = "refuses what it allowed" if isinstance(end, ApiRevoked) else "does not answer"
                text = f"{who} {how}; asked again for {patience - waited:.0f} s: {method} {path}: {end.quote}"
                print(f"argosy: {text}", file=sys.stderr, flush=True)
            time.sleep(pause)
            pause = min(pause * 2, 5.0)

    def _once(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Any,
        content: str,
        seconds: float,
        accept: str = "application/json",
    ) -> Any:
        from urllib3 import Timeout

        headers = {"Accept": accept, "User-Agent": "argosy"}
        if body is not None:
            headers["Content-Type"] = content
        pairs = list(query.items())
        try:
            self._client.update_params_for_auth(headers, pairs, ["BearerToken"], path, method, body)
            url = self._client.configuration.host + path + (f"?{urlencode(pairs)}" if pairs else "")
            data = None if body is None else json.dumps(body).encode()
            # The client's pool has its certificates and proxies; its own retries would hide what we count.
            timeout = Timeout(connect=CONNECT_SECONDS, read=seconds)
            response = self._client.rest_client.pool_manager.request(
                method, url, body=data, headers=headers, timeout=timeout, preload_content=False, retries=False
            )
        except Exception as error:
            raise _away(error) from error
        if response.status >= 400:
            raise _refusal(response, path)
        return response


def _silence(error: Exception, what: str, patience: float) -> ApiSilent:
    """What is raised when nothing else came for so long."""
    who, cause = _WEBHOOK if UNHOOKED in str(error) else _SERVER
    return ApiSilent(
        cause, f"{who} did not answer for {patience:g} s: {what}: {error}", quote=str(error), code=ExitCode.TRANSIENT
    )


def _refused(error: ApiError) -> Exception:
    """As a step ends with it, where it is a matter of rights, of admission or of a quota."""
    if error.status not in (401, 403) or error.reason not in ("Unauthorized", "Forbidden"):
        return error
    if _used_up(str(error)):
        return StepError(Cause.UNSCHEDULABLE, f"{error}", quote=str(error), code=ExitCode.TRANSIENT)
    return StepError(Cause.CONFIG_OR_RBAC, f"{error}", quote=str(error))


def _away(error: Exception) -> Exception:
    from urllib3.exceptions import HTTPError

    if isinstance(error, (HTTPError, OSError)):
        return ApiAway(" ".join(str(error).split())[:300] or type(error).__name__)
    return error


def _refusal(response: Any, path: str) -> Exception:
    data = bytes(response.read() or b"")
    try:
        status = json.loads(data)
        reason, message = str(status.get("reason", "")), str(status.get("message", ""))
    except (ValueError, AttributeError):
        reason, message = "", data[:300].decode("utf-8", "replace")
        if response.status == 404:
            message = f"{path} is not served: no such kind of object is installed; `argosy doctor` says what is missing"
    # Two writers met, mostly at a quota's count of what is used: nothing was done, and the next try sees the other's.
    if response.status in _RETRIED or (response.status, reason) == (409, "Conflict"):
        return ApiAway(f"{response.status} {message or reason}")
    return ApiError(response.status, reason, message or f"HTTP {response.status}")


def _used_up(message: str) -> bool:
    """Whether a quota of the namespace refuses what it has room for once others are done."""
    found = _QUOTA.search(message)
    if found is None:
        return False
    wanted, limits = (dict(re.findall(r"([^,=]+)=([^,=]+)", part)) for part in found.groups())
    counts = ((text, limits.get(name, "")) for name, text in wanted.items())
    return not any(text.isdecimal() and most.isdecimal() and int(text) > int(most) for text, most in counts)
