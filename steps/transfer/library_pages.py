"""The same listing by botocore: its requests, its redirects, its XML."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError
from argosy.steps.store.s3_settings import S3Settings
from argosy.steps.transfer.jobs import Again
from argosy.steps.transfer.listing_xml import NoListing, Page, Turns, objects_of
from argosy.steps.transfer.refusals import Refusal, lost
from argosy.steps.transfer.trust import trusted_file

_PAUSE_SECONDS = 0.5
_WRONG = 2


class LibraryListing:
    """ListObjectsV2 of everything below a prefix, from any page on."""

    def __init__(self, uri: str, prefix: str, settings: S3Settings, retry_seconds: float) -> None:
        """``retry_seconds``: how long one page is asked for."""
        self._uri = uri
        self.retry_seconds = retry_seconds
        self._client = _client(settings)
        self._asked: dict[str, Any] = {"Bucket": settings.bucket, "Prefix": prefix, "EncodingType": "url"}
        self._asked |= {"RequestPayer": "requester"} if settings.requester_pays else {}
        self._prefix = prefix

    def pages(self, token: str = "") -> Iterator[Page]:
        """The pages from ``token`` on.

        Raises:
            NoListing: what came, twice, is none.
            StoreError: what the store reported.
        """
        turns = Turns(token)
        while True:
            page = self._page(token)
            yield page
            token = page.token
            if not token:
                return
            if turns.again(token):
                raise StoreError(Cause.DATA_CORRUPT, f"cannot list {self._uri}: the store names the same page again")

    def _page(self, token: str) -> Page:
        given_up, wrong = time.monotonic() + self.retry_seconds, 0
        while True:
            try:
                return self._ask(token)
            except NoListing:
                wrong += 1
                if wrong >= _WRONG:
                    raise
            except Again as again:
                if time.monotonic() > given_up:
                    raise again.why from again
            time.sleep(random.uniform(0.0, min(_PAUSE_SECONDS, self.retry_seconds)))

    def _ask(self, token: str) -> Page:
        from botocore.exceptions import ClientError, ConnectionError, HTTPClientError
        from botocore.parsers import ResponseParserError

        try:
            told = self._client.list_objects_v2(**self._asked, **({"ContinuationToken": token} if token else {}))
        except ClientError as error:
            raise _refused(dict(error.response), self._uri) from error
        except (ResponseParserError, ValueError) as error:
            raise NoListing(str(error).splitlines()[0]) from error
        except (ConnectionError, HTTPClientError) as error:
            raise _again(lost(self._uri, error, action="list")) from error
        more, following = told.get("IsTruncated"), str(told.get("NextContinuationToken", "")).strip()
        if more is None or (more and not following):
            raise NoListing("it does not say whether it is the last page, or which one is next")
        rows = [(one.get("Key", ""), str(one.get("Size", "")), one.get("ETag", "")) for one in told.get("Contents", [])]
        objects = objects_of(rows, self._prefix, encoded=told.get("EncodingType") == "url")
        return Page(objects, following if more else "")


def _client(settings: S3Settings) -> Any:
    import botocore.session
    from botocore import UNSIGNED
    from botocore.config import Config

    config = Config(
        s3={"addressing_style": "virtual" if settings.virtual else "path"},
        retries={"total_max_attempts": 1},
        connect_timeout=10,
        **({"signature_version": UNSIGNED} if settings.anonymous else {}),
    )
    session = botocore.session.get_session()
    session.register_component("data_loader", _models(session.get_config_variable("data_path")))
    return session.create_client(
        "s3",
        region_name=settings.region,
        endpoint_url=settings.endpoint or None,
        verify=(trusted_file(settings.ca_bundle) or None) if settings.base.startswith("https:") else None,
        config=config,
    )


@cache
def _models(data_path: str | None) -> Any:
    """Descriptions of AWS's services: each session would read the 0.2 s of them anew."""
    import botocore.loaders

    return botocore.loaders.create_loader(data_path)


def _refused(told: dict[str, Any], uri: str) -> StoreError | Again:
    said, about = told.get("Error", {}), told.get("ResponseMetadata", {})
    refusal = Refusal.of(about.get("HTTPStatusCode", 0), said.get("Code", ""), said.get("Message", ""))
    if refusal.redirected:
        text = f"cannot list {uri}: the bucket is elsewhere ({refusal.said}); set AWS_REGION"
        return StoreError(Cause.S3_ACCESS, text, quote=refusal.said)
    return refusal.error(uri, action="list")


def _again(why: StoreError) -> StoreError | Again:
    # A certificate that is not trusted will not be trusted later.
    return why if why.cause == Cause.S3_ACCESS else Again(why)
