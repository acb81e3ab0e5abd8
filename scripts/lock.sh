#!/usr/bin/env bash
# Resolve the lock: hashes, no index hosts (uv.lock would name them, so it is not used).
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:$PWD/.venv/bin" # where environment.sh put uv, if this machine has none of its own
options=(--universal --generate-hashes --no-emit-index-url --quiet --python-version 3.11 --custom-compile-command "make lock")
uv pip compile "${options[@]}" pyproject.toml --extra local --group dev -o requirements/dev.txt
uv pip compile "${options[@]}" pyproject.toml --extra step -o requirements/step.txt
uv pip compile "${options[@]}" pyproject.toml --extra train -o requirements/train.txt
echo uv | uv pip compile "${options[@]}" - -o requirements/uv.txt
uv pip compile "${options[@]}" pyproject.toml --group docs -o requirements/docs.txt
# What the suites of unaware scripts need beside all that; the same torch, so only the difference is listed.
known="$(sed -nE 's/^([a-z0-9._-]+)==.*/--no-emit-package \1/p' requirements/dev.txt)"
printf 'transformers\naccelerate\nlightning\ndeepspeed==0.19.8\njax\noptax\norbax-checkpoint\n' |
  uv pip compile "${options[@]}" -c requirements/dev.txt $known pyproject.toml --extra local --group dev - -o requirements/frameworks.txt
