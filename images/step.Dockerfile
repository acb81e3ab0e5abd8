# syntax=docker/dockerfile:1
# argosy/step: the steps that touch no GPU (snapshot, admit, stage, train's supervisor, gate, promote, finalize).
# No CUDA, no torch, no Hera. Build from the repository's root:
#   docker build -f images/step.Dockerfile -t argosy/step:0.1.0 .
# Pin the base by digest for anything that is kept: --build-arg BASE=python:3.12-slim@sha256:...
ARG BASE=python:3.12-slim

FROM ${BASE} AS wheel
WORKDIR /source
# The two links in argosy/ point at these folders: they go in together or not at all.
COPY pyproject.toml README.md LICENSE ./
COPY argosy argosy
COPY steps steps
COPY workflows workflows
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheel .

FROM ${BASE}
COPY requirements/step.txt /requirements/
COPY --from=wheel /wheel /wheel
RUN set -eu; \
    pip install --no-cache-dir --require-hashes -r /requirements/step.txt; \
    pip install --no-cache-dir --no-deps /wheel/argosy-*.whl; \
    rm -rf /wheel /requirements
# Numbers, not names: Kubernetes' runAsNonRoot check cannot read /etc/passwd.
RUN install -d -o 1000 -g 1000 /argosy
USER 1000:1000
WORKDIR /argosy
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/argosy
# No ENTRYPOINT: every template names its command, as Argo wants it.
