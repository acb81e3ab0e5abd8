"""By what S3 is read: our own wire, or the library awscrt where the wire does not know the way."""

from __future__ import annotations

import os
import sys
from functools import cache

from argosy.steps.contract import env
from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError

AUTO, WIRE, LIBRARY = env.SETTABLE[env.S3_TRANSPORT]
"""The wire until it meets what it does not know; the wire, come what may; the library from the start."""


class BeyondWire(Exception):
    """What is asked for is nothing that the wire can do."""


def transport() -> str:
    """What the environment chooses.

    Raises:
        StoreError: ``s3_access``: none of the three.
    """
    chosen = os.environ.get(env.S3_TRANSPORT) or AUTO
    if chosen not in env.SETTABLE[env.S3_TRANSPORT]:
        raise StoreError(Cause.S3_ACCESS, f"{env.S3_TRANSPORT} = {chosen!r}: write {AUTO}, {WIRE} or {LIBRARY}")
    return chosen


@cache
def say_taken(uri: str, why: str) -> None:
    """Tell people that the library took over; once for each reason."""
    told = f"{uri}: {why}: the library awscrt reads on in place of argosy's own client (docs/s3-transport.md)"
    print(f"argosy: {told}", file=sys.stderr, flush=True)
