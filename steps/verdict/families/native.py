"""Native code that broke its process."""

from argosy.steps.contract.causes import Cause
from argosy.steps.verdict.pattern import Pattern, Weight

PATTERNS = (
    Pattern(
        Cause.NATIVE_CRASH,
        r"Fatal Python error: (Segmentation fault|Floating.point exception|Illegal instruction)",
        "Fatal Python error: Segmentation fault",
        Weight.GENERIC,
    ),
    Pattern(
        Cause.SHM_EXHAUSTED,
        r"Fatal Python error: Bus error",
        "Fatal Python error: Bus error",
        Weight.GENERIC,
    ),
    Pattern(
        Cause.NATIVE_CRASH,
        r"free\(\): invalid|double free or corruption|corrupted (size|double-linked)|stack smashing|malloc\(\): ",
        "free(): invalid pointer",
        Weight.GENERIC,
    ),
    Pattern(
        Cause.NATIVE_CRASH,
        r"segfault at [0-9a-f]+ ip",
        "python[812]: segfault at 0 ip 00007f2 sp 00007ff error 4 in libnccl.so.2.27.5[7f2+200000]",
        Weight.MACHINE,
    ),
)
