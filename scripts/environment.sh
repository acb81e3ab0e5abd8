#!/usr/bin/env bash
# Make .venv with the locked versions. An installed torch (same major.minor) is reused, since it is 3 GB.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${PYTHON:-python3}"
"$python" - <<'PY'
import sys
if sys.version_info < (3, 11):
    sys.exit(f"argosy needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}. Set PYTHON=/path/to/python3.11")
PY
echo "argosy: preparing .venv (the first time this downloads torch, about 3 GB; later it takes no time)"
if [ ! -x .venv/bin/python ]; then
  reuse=()
  if "$python" -c 'import torch' 2>/dev/null; then
    reuse=(--system-site-packages)
    echo "argosy: reusing the torch that is installed: $("$python" -c 'import torch; print(torch.__version__)' 2>/dev/null)"
  fi
  "$python" -m venv "${reuse[@]}" .venv
fi
uv="$(command -v uv || true)"
if [ -z "$uv" ]; then
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
  uv=.venv/bin/uv
fi
locked=requirements/dev.txt
if .venv/bin/python -c 'import torch' 2>/dev/null; then
  # torch is here already: everything else from the lock, without it and the CUDA libraries it brings.
  locked="$(mktemp)"
  trap 'rm -f "$locked"' EXIT
  .venv/bin/python scripts/without_torch.py requirements/dev.txt > "$locked"
fi
install=("$uv" pip install --python .venv/bin/python --require-hashes -r "$locked")
if [ -t 2 ]; then
  "${install[@]}"
else
  "${install[@]}" >.venv/install.log 2>&1 &
  pid=$!
  seconds=0
  while kill -0 "$pid" 2>/dev/null; do
    sleep 1
    seconds=$((seconds + 1))
    if [ $((seconds % 10)) -eq 0 ]; then echo "argosy: installing, ${seconds} s"; fi
  done
  wait "$pid" || { cat .venv/install.log; exit 1; }
  grep -E '^(Resolved|Prepared|Installed)' .venv/install.log || true
fi
# compat: a plain path. The finder that setuptools writes otherwise costs every start of Python 20 ms.
"$uv" pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation -C editable_mode=compat -e .
touch .venv/.ready
echo "argosy: .venv is ready"
