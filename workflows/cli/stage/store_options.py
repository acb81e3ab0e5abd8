"""How to reach the object store, as options of a verb; each stands for a variable of the environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from argosy.steps.contract.errors import InputError

Verb = TypeVar("Verb", bound=Callable[..., Any])

OPTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("endpoint-url", "AWS_ENDPOINT_URL_S3", {"metavar": "URL", "help": "Another S3 than AWS: http(s)://host[:port]."}),
    ("region", "AWS_REGION", {"metavar": "NAME", "help": "Region of the bucket."}),
    ("profile", "AWS_PROFILE", {"metavar": "NAME", "help": "Profile of ~/.aws/config, before environment keys."}),
    ("anonymous", "AWS_SKIP_SIGNATURE", {"is_flag": True, "help": "Sign nothing: a public bucket."}),
    ("requester-pays", "AWS_REQUEST_PAYER", {"is_flag": True, "help": "Accept that the requests are charged to you."}),
    ("ca-bundle", "AWS_CA_BUNDLE", {"metavar": "FILE", "help": "PEM file of the authorities to trust."}),
)
"""Option, the variable it sets, and what click is told of it."""
_WHEN_SET = {"AWS_SKIP_SIGNATURE": "true", "AWS_REQUEST_PAYER": "requester"}


def store_options(verb: Verb) -> Verb:
    """``--endpoint-url`` and the others; the verb is not given them: they are in the environment when it begins."""
    for name, variable, settings in reversed(OPTIONS):
        verb = click.option(f"--{name}", expose_value=False, callback=_into_environment(variable), **settings)(verb)
    return verb


def _into_environment(variable: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def put(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value:
            option = f"--{str(param.name).replace('_', '-')}"
            os.environ[variable] = _WHEN_SET.get(variable) or _CHECKS.get(variable, _any)(option, value)

    return put


def _any(option: str, value: str) -> str:
    if not value.isprintable():
        raise InputError(f"{option} {value!r}: has control characters; remove them")
    return value


def _endpoint(option: str, value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"{option} {value!r}: is no address of a server; write https://host or http://host:port")
    if parts.query or parts.fragment or parts.username:
        raise InputError(f"{option} {parts.hostname!r}: takes no '?', '#' or user name; write https://host[:port]")
    return value


def _bundle(option: str, value: str) -> str:
    path = Path(value)
    if not path.is_file() or b"BEGIN CERTIFICATE" not in path.read_bytes():
        raise InputError(f"{option} {value!r}: is no PEM file with certificates; name one")
    return str(path.absolute())


def _profile(option: str, value: str) -> str:
    # Who names a profile means it: keys in the environment go before AWS_PROFILE, but not before aws --profile.
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        os.environ.pop(name, None)
    return _any(option, value)


_CHECKS = {"AWS_ENDPOINT_URL_S3": _endpoint, "AWS_CA_BUNDLE": _bundle, "AWS_PROFILE": _profile}
