#!/usr/bin/env bash
# pytest with the given arguments; up to three tests that failed run once more, alone.
# Thousands of tests with real processes share two cores: one that was starved must not hide what the rest showed.
set -uo pipefail
pytest=.venv/bin/pytest
options=(--dist loadfile --no-loadscope-reorder "$@")
$pytest "${options[@]}"
code=$?
[ $code -eq 1 ] || exit $code
failed=$(grep -c ': true' .pytest_cache/v/cache/lastfailed)
if [ "$failed" -gt 3 ]; then exit $code; fi
echo "argosy: $failed failed beside others; once more, alone. One that passes now is still a fault: please open an issue with what is above."
exec $pytest "${options[@]}" -n 0 --last-failed --last-failed-no-failures none
