"""The entry point: one script or one module; arguments and uris that hold no credential."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.secrets import holds_secret


def check_entry(script: str, module: str) -> None:
    """Accept exactly one.

    Raises:
        Refusal: both or none.
    """
    if script and module:
        raise Refusal(f"cannot be given beside script = {script!r}", "remove one of them", field="module", value=module)
    if not script and not module:
        raise Refusal("is required", 'write script = "train.py", or module = "pkg.train"', field="script")


def check_args(args: Iterable[str]) -> None:
    """Accept arguments that hold no credential.

    Raises:
        Refusal: one has the shape of a credential; it is not quoted.
    """
    for place, text in enumerate(args):
        if holds_secret(text):
            raise Refusal(
                "looks like a credential (not shown), and everybody with access to the cluster could read it",
                "put it into a Kubernetes Secret, name that in secrets, and read it from the environment",
                field=f"args.{place}",
                value="***",
            )


def check_uri_credentials(field: str, uri: str) -> None:
    """Accept a uri without user and password.

    Raises:
        Refusal: it holds some, or has the shape of a credential; it is not quoted.
    """
    if "@" in urlsplit(uri).netloc or holds_secret(uri):
        raise Refusal(
            "holds a credential (not shown), and everybody with access to the cluster could read it",
            "name the store alone; the pods get credentials from their ServiceAccount or from secrets",
            field=field,
            value="***",
        )
