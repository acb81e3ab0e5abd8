"""torch.distributed.checkpoint into and out of argosy's checkpoints.

    dcp.save(state, storage_writer=ArgosyWriter(checkpointer, step=100))
    dcp.load(state, storage_reader=ArgosyReader(checkpointer))

The stored form is ``argosy.state/1``, the same that Checkpointer writes: each reads what the other saved. There is no
``.metadata`` and nothing is pickled: DCP's metadata is made from ``state.json``; values that are no tensors are JSON.
"""

from argosy.steps.checkpointer.dcp.reader import ArgosyReader
from argosy.steps.checkpointer.dcp.writer import ArgosyWriter

__all__ = ["ArgosyReader", "ArgosyWriter"]
