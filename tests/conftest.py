"""A shell that starts the tests in the background has them ignore SIGINT, and every process below them inherits it."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
