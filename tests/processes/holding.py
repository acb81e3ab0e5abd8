"""An S3 that stops a chosen request until told to go on: whoever sent it is exactly there meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from tests.s3 import S3Server
from tests.s3.wire import Request, Sending, Served

Who = tuple[str, int]
"""(gang, rank): every rank has an access key of its own, and its writer inherits it."""


@dataclass
class Hold:
    """Holds what ``wants``; the first such request only, or each (``always``)."""

    wants: Callable[[Who, Request], bool]
    after: bool = False
    """Carried out already, only the answer is held."""
    always: bool = False
    held: list[tuple[Who, str]] = field(default_factory=list)
    """Who is held, and at which path."""
    verdict: Future[str] = field(default_factory=Future)
    """``go`` on, or ``drop``: the connection is reset (nothing done, unless ``after``)."""

    def takes(self, who: Who, request: Request) -> bool:
        """Whether this request is to be held; ``wants`` sees every request and may count."""
        return self.wants(who, request) and (self.always or not self.held)

    def end(self, verdict: str) -> None:
        """Say what becomes of what is held; the first word counts."""
        if not self.verdict.done():
            self.verdict.set_result(verdict)


class HoldingServer(S3Server):
    """Requests that no hold wants are served at once."""

    def __init__(self, buckets: Sequence[str]) -> None:
        self.holds: dict[str, list[Hold]] = {bucket: [] for bucket in buckets}
        """By bucket."""
        super().__init__(buckets)

    def _serve(self, request: Request) -> Served | Awaitable[Served]:
        who = who_asks(request)
        hold = next((hold for hold in list(self.holds[request.path.split("/")[1]]) if hold.takes(who, request)), None)
        if hold is None:
            return super()._serve(request)
        served = super()._serve(request) if hold.after else None
        hold.held.append((who, request.path))
        return self._held(hold, request, served)

    async def _held(self, hold: Hold, request: Request, served: Served | Awaitable[Served] | None) -> Served:
        if await asyncio.wrap_future(hold.verdict) == "drop":
            return None, Sending()
        served = served or super()._serve(request)
        return served if isinstance(served, tuple) else await served


def who_asks(request: Request) -> Who:
    """By the access key of its signature; the harness itself has none of ours."""
    _, _, rest = request.headers.get("authorization", "").partition("Credential=")
    gang, _, rank = rest.partition("/")[0].partition("-")
    return (gang, int(rank)) if rank.isdigit() else ("", -1)
