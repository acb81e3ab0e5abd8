"""Who is told of the end."""

from __future__ import annotations

from pydantic import Field

from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import KubeName


class Notify(Table):
    """``[notify]``"""

    webhook_secret: KubeName = Field(
        default="",
        description="Secret whose key url holds the webhook that gets the summary as JSON. Empty: nobody is told.",
    )
