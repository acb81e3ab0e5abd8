"""``argosy.TrainingRun``: the description with verbs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic.fields import FieldInfo

from argosy.workflows.handle.words import in_python
from argosy.workflows.spec.run import TrainingRun as Description
from argosy.workflows.spec.table import Table

if TYPE_CHECKING:
    from argosy.workflows.cli.source import Kind, Source
    from argosy.workflows.handle.handle import Handle


class TrainingRun(Description):
    """A training run: what is trained, on what, by how many nodes, judged how, and promoted where.

    Fields are those of ``run.toml`` (``argosy explain-config`` explains each), tables are given as dicts::

        run = TrainingRun(name="gpt", script="train.py", checkpoint={"mode": "opaque", "path": "out"})
        handle = run.run(ranks=(2, 1))
        print(handle.wait(), handle.metric)

    Raises:
        InputError: at construction, naming field, value, rule and remedy.
    """

    def compile(self, folder: str | Path = ".", *, template: bool = False) -> bytes:
        """The Argo Workflow (or WorkflowTemplate) as YAML; the same input gives the same bytes, nothing is contacted.

        Args:
            folder: what ``code`` is relative to, as the place of a run.toml.
            template: a WorkflowTemplate, for events and templateRef.

        Raises:
            InputError: the code folder, or a script or module in it, is wrong.
        """
        return self._source(folder, "WorkflowTemplate" if template else "Workflow").yaml

    @in_python()
    def run(
        self,
        folder: str | Path = ".",
        *,
        ranks: tuple[int, int] | None = None,
        parameters: Mapping[str, str] | None = None,
        inject: str | Sequence[str] = (),
        new: bool = False,
        state_dir: str | Path = ".argosy",
    ) -> Handle:
        """Run it on this machine, as ``argosy run`` does; returns at once.

        The run is a process of its own: it goes on when this one ends, and ``handle.stop()`` ends it. An interrupted
        run of the same description, code and parameters goes on where it stopped.

        Args:
            folder: what ``code`` is relative to.
            ranks: (nodes, ranks on each) instead of what the description says; drops the request for GPUs.
            parameters: workflow parameters, as ``{"run-id": "a", "args": '["--steps", "10"]'}``.
            inject: a real fault, as ``"kill:rank=1@step=40"``, or several.
            new: start anew even if an interrupted run could go on.
            state_dir: folder with the runs and volumes of this machine.

        Raises:
            InputError: the code, a parameter or a fault is wrong, or this machine lacks GPUs.
        """
        from argosy.steps.contract.errors import InputError
        from argosy.workflows.cli.source import with_ranks
        from argosy.workflows.handle.local import start

        if ranks is not None and not (isinstance(ranks, tuple) and [type(each) for each in ranks] == [int, int]):
            raise InputError(f"ranks = {ranks!r}: not a number of nodes and of ranks on each; write ranks=(2, 1)")
        described = self if ranks is None else type(self)(**with_ranks(self, *ranks).model_dump(exclude_unset=True))
        faults = (inject,) if isinstance(inject, str) else tuple(inject)
        return start(described._source(folder), dict(parameters or {}), faults, new, Path(state_dir).absolute())

    @in_python()
    def submit(
        self,
        folder: str | Path = ".",
        *,
        namespace: str = "",
        context: str = "",
        kubeconfig: str = "",
        parameters: Mapping[str, str] | None = None,
    ) -> Handle:
        """Submit it to a cluster, as ``argosy submit --detach`` does: the code into the store, then the Workflow.

        Args:
            folder: what ``code`` is relative to.
            namespace: of the cluster; empty: the context's. context, kubeconfig: as kubectl takes them.
            parameters: workflow parameters.

        Raises:
            InputError: the code or a parameter is wrong, or there is no such context. ApiError: the cluster refused.
        """
        from argosy.workflows.cli.submit import Submission, start
        from argosy.workflows.cluster.place import ClusterPlace
        from argosy.workflows.handle.handle import Handle

        source = self._source(folder)
        given = [f"{key}={value}" for key, value in (parameters or {}).items()]
        return Handle(
            start(Submission(source, source.document, ()), ClusterPlace(kubeconfig, context, namespace), given)
        )

    def _source(self, folder: str | Path, kind: Kind = "Workflow") -> Source:
        from argosy.workflows.cli.source import compiled

        # No file: errors name it by what it is.
        return compiled(self, Path(folder) / f"TrainingRun({self.name})", kind)


def _signature() -> inspect.Signature:
    """As a person writes the fields: pydantic's own shows each field's checks, thousands of characters of them."""
    fields = Description.model_fields.items()
    return inspect.Signature([
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.is_required() else {} if _is_table(field) else field.default,
        )
        for name, field in fields
    ])  # fmt: skip


def _is_table(field: FieldInfo) -> bool:
    return field.default_factory is not None or isinstance(field.default, Table)


TrainingRun.__signature__ = _signature()
