"""Suites whose counts are too large for CI: ``make prove SUITE=…``. Resumable; seeds printed; tables in docs/."""
