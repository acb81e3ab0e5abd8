#!/usr/bin/env bash
# make gpu: with the machine's own Python where that has a torch that sees a GPU (nothing is downloaded, and nothing is
# installed into it), else with .venv. Pods see no PYTHONPATH, so that argosy, the machine's packages and the wheels
# that scripts/gpu_wheels.py left in .gpu meet in an environment of their own.
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
export PYTHONUNBUFFERED=1
if [ "$python" != .venv/bin/python ]; then
  made="$(mktemp -d)"
  trap 'rm -rf "$made"' EXIT
  wheels="$made/wheels"
  mkdir "$wheels"
  if compgen -G '.gpu/wheels/*.whl' >/dev/null; then
    install=("$python" -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target "$wheels")
    # A wheel that does not fit costs the part that needs it, not the others.
    "${install[@]}" .gpu/wheels/*.whl || for wheel in .gpu/wheels/*.whl; do
      "${install[@]}" --upgrade "$wheel" || echo "not installed: $wheel"
    done
  fi
  "$python" -m venv --without-pip "$made/venv"
  there="$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
  python="$made/venv/bin/python"
  # The machine's own packages before the wheels: only what is missing there is taken from these.
  { echo "$PWD"; echo "import site; site.addsitedir('$there')"; echo "$wheels"; } \
    >"$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/machine.pth"
fi
"$python" -m tests.gpu "$@"
