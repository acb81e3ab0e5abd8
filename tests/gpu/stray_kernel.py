"""A kernel that writes where nothing is. Triton reads a kernel's source from its file, so it stands in one."""

# No annotations: Triton would take them for types of its own.
import triton
import triton.language as tl


@triton.jit
def _stray(pointer, far):
    tl.store(pointer + far, 1.0)


def write_far_away(tensor):
    """One store a tebibyte behind the tensor."""
    _stray[(1,)](tensor, 1 << 38)
