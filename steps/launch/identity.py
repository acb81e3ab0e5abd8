"""Who this pod is, as its environment says."""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
from dataclasses import dataclass
from typing import Self

from argosy.steps.contract import env as names
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.errors import InputError

_INDEX = "JOB_COMPLETION_INDEX"
"""Set by Kubernetes for indexed Jobs, which JobSet's jobs are."""


@dataclass(frozen=True)
class Identity:
    """Names of the pod and its node, its index in the gang, and how the supervisor is reached."""

    pod: str
    node: str
    index: int
    channel_url: str
    channel_token: str
    gang: str = ""

    @classmethod
    def from_environment(cls) -> Self:
        """Read it.

        Raises:
            InputError: not started by a supervisor, or an index that is no number.
        """
        url = os.environ.get(names.CHANNEL_URL, "")
        if not url:
            raise InputError(f"{names.CHANNEL_URL} is not set: launch runs in the pods that the train step creates")
        index = 0
        for name in (_INDEX, names.FIRST_INDEX):
            raw = os.environ.get(name) or "0"
            if not raw.isdigit():
                raise InputError(f"{name} = {raw!r}: a number from 0 is expected")
            index += int(raw)
        pod = os.environ.get(names.POD_NAME) or socket.gethostname()
        node = os.environ.get(names.NODE_NAME) or pod
        token, gang = os.environ.get(names.CHANNEL_TOKEN, ""), os.environ.get(names.GANG_NAME, "")
        return cls(pod, node, index, url, token, gang)


def restart_key(assignment: Assignment) -> str:
    """A secret of this restart's nodes: what a launcher hands to the programs it starts is not the channel's token."""
    token = os.environ.get(names.CHANNEL_TOKEN, "").encode()
    what = f"{assignment.workflow}/{assignment.run_id}/{assignment.attempt}/{assignment.restart}"
    return hmac.new(token, what.encode(), hashlib.sha256).hexdigest()
