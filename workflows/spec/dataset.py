"""The training data: what it is, how nodes share it, how it gets to them."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from argosy.workflows.spec.dataset_cache import DatasetCache
from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import Digest, ListingName, StoreUri


class Dataset(Table):
    """``[dataset]``: frozen by the snapshot step at the start of each run."""

    uri: StoreUri = Field(
        description="Prefix that holds the dataset's objects; the default of the workflow parameter dataset-uri.",
        min_length=1,
    )
    manifest: ListingName = Field(
        default="",
        description="Listing to read instead of the store's own: an object's uri, or its key below the dataset's uri; "
        "JSON lines or CSV of key, size, etag, version, checksum, or an S3 Inventory's manifest.json. Empty: none.",
    )
    layout: Literal["replicated", "sharded"] = Field(
        default="replicated", description="replicated: every node gets all objects; sharded: each node gets its part."
    )
    version: Digest = Field(
        default="",
        description="Manifest digest (64 hex digits) that the data must have; another one ends the run. Empty: any.",
    )
    staging: Literal["node", "shared", "stream"] = Field(
        default="node",
        description="node: each pod fetches its objects to its own disk; shared: one copy on the claim, filled before "
        "the gang exists; stream: the script reads ahead from the store (argosy.StreamingDataset).",
    )
    verify: Literal["blocks", "etag"] = Field(
        default="blocks",
        description="stream: blocks: the stage step reads every object once per version of the dataset, and keeps a "
        "checksum of each block, by which every range is verified; etag: nothing is read before, a range is only known "
        "to be of the frozen version, and the script passes verify='etag', too.",
    )
    cache: DatasetCache | None = Field(
        default=None,
        description="Volume that keeps staged data for later pods and runs. Absent: node uses the pod's own disk, "
        "shared the claim of [storage].",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.verify != "blocks" and self.staging != "stream":
            raise Refusal(
                f"has no meaning when staging is {self.staging}: whole objects are verified as they arrive",
                "leave it out",
                field="verify",
                value=self.verify,
            )
        if self.cache is None:
            return self
        if self.staging == "stream":
            remedy = 'remove [dataset.cache], or write staging = "node"'
            raise Refusal('nothing is staged (staging = "stream")', remedy, field="cache")
        if self.staging == "shared" and not self.cache.claim:
            remedy = 'write claim = "..." in [dataset.cache], or staging = "node"'
            raise Refusal('every pod must see it (staging = "shared")', remedy, field="cache")
        return self
