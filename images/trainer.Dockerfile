# syntax=docker/dockerfile:1
# argosy/trainer: what the gang's pods and the evaluation run in. The base brings torch, CUDA and NCCL; they stay as
# they are. Build from the repository's root:
#   docker build -f images/trainer.Dockerfile -t argosy/trainer:0.1.0 .
# Pin the base by digest for anything that is kept: --build-arg BASE=pytorch/pytorch:...@sha256:...
ARG BASE=pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime

FROM ${BASE} AS wheel
USER 0
WORKDIR /source
# The two links in argosy/ point at these folders: they go in together or not at all.
COPY pyproject.toml README.md LICENSE ./
COPY argosy argosy
COPY steps steps
COPY workflows workflows
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheel .

FROM ${BASE}
USER 0
COPY requirements/train.txt scripts/without_torch.py /requirements/
COPY --from=wheel /wheel /wheel
# The base's torch and its CUDA libraries stay: they are taken out of the lock, and the version is compared.
RUN set -eu; cd /requirements; before="$(python -c 'import torch; print(torch.__version__)')"; \
    python without_torch.py train.txt > rest.txt; \
    python -m pip install --no-cache-dir --require-hashes -r rest.txt; \
    python -m pip install --no-cache-dir --no-deps /wheel/argosy-*.whl; \
    test "$before" = "$(python -c 'import torch; print(torch.__version__)')"; \
    cd /; rm -rf /wheel /requirements
# Numbers, not names: Kubernetes' runAsNonRoot check cannot read /etc/passwd.
RUN install -d -o 1000 -g 1000 /argosy
USER 1000:1000
WORKDIR /argosy
ENV PYTHONUNBUFFERED=1 HOME=/argosy
# No ENTRYPOINT: every template names its command, as Argo wants it.
