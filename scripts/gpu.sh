#!/usr/bin/env bash
# make gpu: with the machine's own Python where that has a torch that sees a GPU (nothing is installed or downloaded
# then), else with .venv. Wheels that scripts/gpu_wheels.py left in .gpu are unpacked beside it.
set -euo pipefail
cd "$(dirname "$0")/.."
sees_gpu='import sys, torch; sys.exit(not torch.cuda.is_available())'
python="${PYTHON:-python3}"
if ! "$python" -c "$sees_gpu" 2>/dev/null && [ -x .venv/bin/python ]; then
  python=.venv/bin/python
fi
if ! "$python" -c 'import torch' 2>/dev/null; then
  echo "no GPU here (no torch in $python): nothing was run and nothing is claimed"
  exit 0
fi
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
if [ "$python" != .venv/bin/python ] && compgen -G '.gpu/wheels/*.whl' >/dev/null; then
  site="$(mktemp -d)"
  trap 'rm -rf "$site"' EXIT
  install=("$python" -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target "$site")
  # A wheel that does not fit costs the part that needs it, not the others.
  "${install[@]}" .gpu/wheels/*.whl || for wheel in .gpu/wheels/*.whl; do
    "${install[@]}" --upgrade "$wheel" || echo "not installed: $wheel"
  done
  # Behind the machine's own packages: only what is missing there is taken from here.
  export PYTHONPATH="$PYTHONPATH:$site"
fi
"$python" -m tests.gpu "$@"
