"""What a pod asks of its node."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import Bytes, Cores, Quantity, WholeNumber, quantity

_EXTENDED = re.compile(r"hugepages-\d+[KMG]i|[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def _check_extended(name: str) -> str:
    if not _EXTENDED.fullmatch(name):
        raise Refusal("must be an extended resource's name", 'write domain/name, for example "nvidia.com/gpu"')
    return name


class Resources(Table):
    """``[gang.resources]`` and ``[evaluation.resources]``: per pod."""

    cpu: Cores = Field(default="1", description="CPU request of a pod, cores.")
    memory: Bytes = Field(
        default="2Gi", description="Memory request and limit of a pod, bytes; /dev/shm counts towards it."
    )
    gpu: Annotated[WholeNumber, Field(ge=0, le=1024)] = Field(default=0, description="GPUs of a pod, count; 0: none.")
    gpu_resource: Annotated[str, AfterValidator(_check_extended)] = Field(
        default="nvidia.com/gpu", description="Name under which the cluster offers the GPUs; used when gpu is above 0."
    )

    extended: dict[Annotated[str, AfterValidator(_check_extended)], Quantity] = Field(
        default={}, description='Further resources of a pod, as request and limit: "rdma/ib" = 8.'
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.gpu and self.gpu_resource in self.extended:
            remedy = "say it once, with gpu"
            raise Refusal("is the GPUs' name", remedy, field="extended", value=self.gpu_resource)
        for name, amount in self.extended.items():
            if "/" in name and not quantity(amount).is_integer():
                rule, remedy = "is counted in whole ones", 'write for example "1"'
                raise Refusal(rule, remedy, field=f"extended.{name}", value=amount)
        return self

    def requests(self) -> dict[str, str]:
        """Kubernetes ``requests``."""
        return {"cpu": self.cpu, "memory": self.memory, **self._gpus()}

    def limits(self) -> dict[str, str]:
        """Kubernetes ``limits``; none on CPU, because throttled loaders starve GPUs."""
        return {"memory": self.memory, **self._gpus()}

    def _gpus(self) -> dict[str, str]:
        return {**({self.gpu_resource: str(self.gpu)} if self.gpu else {}), **self.extended}
