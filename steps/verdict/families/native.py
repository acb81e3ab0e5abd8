"""Native code that broke its process."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.pattern import Pattern

PATTERNS = (
    Pattern(
        Cause.NATIVE_CRASH,
        r"Fatal Python error: (Segmentation fault|Floating.point exception|Illegal instruction)"
        r"|Caught signal 11|signal code: Address not mapped"
        r"|Signal: (Segmentation fault|Aborted|Floating.point exception|Illegal instruction)",
        "Fatal Python error: Segmentation fault",
        Weight.GENERIC,
    ),
    Pattern(
        Cause.SHM_EXHAUSTED,
        r"(Fatal Python error|Signal): Bus error|\bBus error( \(core dumped\)|$)",
        "Fatal Python error: Bus error",
        Weight.GENERIC,
    ),
    Pattern(
        Cause.NATIVE_CRASH,
        r"Process received signal \*\*\*",
        "[node00:13555] *** Process received signal ***",
        Weight.MESSENGER,
    ),
    Pattern(  # what glog and Ray put below a check that failed, whichever it was
        Cause.NATIVE_CRASH,
        r"\*\*\* (Check failure stack trace|StackTrace Information)",
        "(raylet) *** StackTrace Information ***",
        Weight.MESSENGER,
    ),
    Pattern(
        Cause.NATIVE_CRASH,
        r":\d+: .*\bAssertion [`'].*' failed",
        "python: malloc.c:3722: _int_malloc: Assertion `(unsigned long) (size) >= (unsigned long) (nb)' failed.",
        Weight.GENERIC,
    ),
    Pattern(
        Cause.NATIVE_CRASH,
        r"free\(\): invalid|munmap_chunk\(\)|double free (or corruption|detected)|corrupted (size|double-linked)"
        r"|stack smashing|malloc\(\): ",
        "free(): invalid pointer",
        Weight.GENERIC,
    ),
    Pattern(
        Cause.NATIVE_CRASH,
        r"^\W*terminate called without an active exception",
        "terminate called without an active exception",
        Weight.MESSENGER,
    ),
    Pattern(
        Cause.NATIVE_CRASH,
        r"segfault at [0-9a-f]+ ip",
        "python[812]: segfault at 0 ip 00007f2 sp 00007ff error 4 in libnccl.so.2.27.5[7f2+200000]",
        Weight.MACHINE,
    ),
)
