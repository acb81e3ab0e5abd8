# Two commands for everyone: `make demo`, `make test`. Each does all of its own set-up.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/argosy

# A machine that forbids bytecode has every process compile what it imports: a quarter of a chain's seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test cluster cluster-down check style types bench bench-checkpoint bench-recovery bench-stage docs prove gpu lowest lock fmt clean
.DEFAULT_GOAL := help

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

# The first line must appear at once: what follows may download torch.
$(READY): requirements/dev.txt pyproject.toml scripts/environment.sh
	@PYTHON="$(PYTHON)" bash scripts/environment.sh

demo: $(READY) ## a two-node run on this machine: killed, resumed, evaluated, gated, promoted (about a minute)
	@$(BIN)/python -m examples.demo

# What collects first leaves bytecode, which six workers would each make for themselves; so does what DDP and Ray import
# as they are used: 14 s of CPU, once an environment. Types are checked by one process for half a minute: beside the tests.
test: $(READY) style ## checks and tests, then those on a real cluster (root)
	@$(MAKE) --no-print-directory types & types=$$!; \
	[ -e .venv/.compiled ] || { $(BIN)/pytest -q --collect-only --ignore=tests/cluster -p no:cacheprovider; \
	$(BIN)/python -c "import torch._dynamo, ray.train.torch, moto.server"; touch .venv/.compiled; } >/dev/null 2>&1; \
	bash scripts/in_memory.sh bash scripts/tests.sh -n 6 --ignore=tests/cluster -m "not variant"; tests=$$?; \
	wait $$types || { echo "make types failed: see above"; exit 1; }; exit $$tests
	@if reason=$$($(BIN)/python -m tests.cluster able); then bash scripts/tests.sh tests/cluster -m "not variant" -n 2 \
	&& echo "those that are deselected: make prove SUITE=variants"; \
	else echo "tests/cluster: skipped, $$reason"; fi

cluster: $(READY) ## a real Kubernetes with Argo on this machine, no Docker (root; ARGOSY_CLUSTER=2: a second one)
	@$(BIN)/python -m tests.cluster up

cluster-down: $(READY) ## end it, also what a killed start left
	@$(BIN)/python -m tests.cluster down

check: style types ## format, lint, import arrows, sizes, types

style: $(READY)
	@$(BIN)/ruff format --check -q . || { echo "run: make fmt"; exit 1; }
	@$(BIN)/ruff check -q .
	@$(BIN)/lint-imports --no-cache >/tmp/argosy-arrows-$$$$ 2>&1 || { cat /tmp/argosy-arrows-$$$$; rm -f /tmp/argosy-arrows-$$$$; exit 1; }; rm -f /tmp/argosy-arrows-$$$$
	@$(BIN)/python scripts/sizes.py

types: $(READY)
	@$(BIN)/mypy

fmt: $(READY) ## format
	@$(BIN)/ruff format -q . && $(BIN)/ruff check -q --fix .

bench: $(READY) ## paired timings against peers (table)
	@$(BIN)/python -m benchmarks.all

bench-checkpoint: $(READY) ## what a checkpoint costs, beside torch, DCP and DeepSpeed (1.2 GB, two ranks; FOLDER= the disk)
	@$(BIN)/python -m benchmarks.checkpoints $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(FOLDER),--folder $(FOLDER))

bench-recovery: $(READY) ## how long training stands still after a fault, beside torchrun: make bench-recovery [ROUNDS=5] [ONLY="torchrun sigkill"]
	@$(BIN)/python -m benchmarks.recovery $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-stage: $(READY) ## staging beside boto3, s5cmd, rclone and obstore: make bench-stage [ONLY="small-0ms kill"] [ROUNDS=5]
	@$(BIN)/python -m benchmarks.staging $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(FOLDER),--folder $(FOLDER))

docs: $(READY) ## a site of docs/ and of a reference written from the code: build/site
	@$(BIN)/python scripts/docs_site.py build/pages
	@cmp -s requirements/docs.txt $(CACHE)/docs/locked || { PATH="$$PATH:$(BIN)"; uv venv -q --clear --python $(BIN)/python $(CACHE)/docs \
	&& uv pip install -q --python $(CACHE)/docs/bin/python --require-hashes -r requirements/docs.txt && cp requirements/docs.txt $(CACHE)/docs/locked; }
	@$(CACHE)/docs/bin/zensical build --strict -f mkdocs.yml && echo build/site/index.html

prove: $(READY) ## large counts, resumable: make prove SUITE=engine-kill [COUNT=20] [TRANSPORT=library]
	@$(BIN)/python -m tests.prove $(SUITE) $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED)) $(if $(TRANSPORT),--transport $(TRANSPORT))

gpu: ## everything that a GPU must show, resumable: make gpu [MINUTES=9] [TOGETHER=8] [ONLY="saves stalls"] [CPU=1: a stand-in]
	@PYTHON="$(PYTHON)" bash scripts/gpu.sh $(if $(MINUTES),--minutes $(MINUTES)) $(if $(TOGETHER),--together $(TOGETHER)) $(if $(ONLY),--only $(ONLY)) $(if $(CPU),--cpu)

lowest: $(READY) ## the lower bounds of pyproject.toml, installed apart and tested (without torch)
	@uv venv -q --clear --python $(BIN)/python $(CACHE)/lowest
	@uv pip install -q --python $(CACHE)/lowest/bin/python --resolution lowest-direct -e '.[submit]' --group dev
	@$(CACHE)/lowest/bin/python -m pytest -q -m "not torch" tests/spec tests/compile tests/cli tests/store tests/data tests/transfer tests/engine tests/steps

lock: ## resolve the locked versions again
	@bash scripts/lock.sh

clean: ## remove the environment and what runs left in this folder
	rm -rf .venv .argosy build dist *.egg-info
