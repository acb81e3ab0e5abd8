"""A task of yours before and after our train step.

On this machine: python compose.py > flow.yaml && argosy run flow.yaml
On a cluster:    python compose.py s3://bucket/store > flow.yaml && argosy submit flow.yaml -n research
"""

import os
import sys
from pathlib import Path

from hera.workflows import DAG, Container, Parameter, Workflow

from argosy import TrainingRun
from argosy.steps.store import open_store
from argosy.workflows.code import pack, push
from argosy.workflows.compile import workflow_annotations
from argosy.workflows.templates import restricted, train

here = Path(__file__).resolve().parent
checkpoint = {"mode": "opaque", "path": "out", "include": ["state.json"]}
uri = sys.argv[1] if len(sys.argv) > 1 else f"file://{here}/.argosy/store"
# On a cluster the pods take the bucket's keys from the secret s3, and its address, if it is not AWS, from [env].
bucket = {"secrets": ["s3"], "env": {k: v for k, v in os.environ.items() if k in ("AWS_ENDPOINT_URL", "AWS_REGION")}}
run = TrainingRun(
    name="composed",
    script="train.py",
    storage={"uri": uri},
    checkpoint=checkpoint,
    **(bucket if uri.startswith("s3:") else {}),
)
code = pack(here)
push(code, open_store(run.storage.uri), run.name)
account = run.gang.service_account
facts = workflow_annotations(run)
with Workflow(
    generate_name="composed-", entrypoint="main", annotations=facts, service_account_name=account
) as workflow:
    prepare = restricted(Container(name="prepare", image="python:3.11-slim"))
    prepare.command = ["python", "-c", "print('preparing')"]
    training = train(run, code.digest)
    announce = restricted(Container(name="announce", image="python:3.11-slim", inputs=[Parameter(name="digest")]))
    announce.command = ["python", "-c", "import sys; print('trained', sys.argv[1])"]
    announce.args = ["{{inputs.parameters.digest}}"]
    with DAG(name="main"):
        trained = training(name="train")
        told = announce(name="announce", arguments={"digest": trained.get_parameter("checkpoint-digest")})
        prepare(name="prepare") >> trained >> told
print(workflow.to_yaml(), end="")
