"""A task of yours before and after our train step: python compose.py > flow.yaml && argosy run flow.yaml"""

from pathlib import Path

from hera.workflows import DAG, Container, Parameter, Workflow

from argosy import TrainingRun
from argosy.steps.store import open_store
from argosy.workflows.code import pack, push
from argosy.workflows.compile import workflow_annotations
from argosy.workflows.templates import train

here = Path(__file__).resolve().parent
checkpoint = {"mode": "opaque", "path": "out", "include": ["state.json"]}
storage = {"uri": f"file://{here}/.argosy/store"}
run = TrainingRun(name="composed", script="train.py", storage=storage, checkpoint=checkpoint)
code = pack(here)
push(code, open_store(run.storage.uri), run.name)
with Workflow(generate_name="composed-", entrypoint="main", annotations=workflow_annotations(run)) as workflow:
    prepare = Container(name="prepare", image="python:3.11-slim", command=["python", "-c", "print('preparing')"])
    training = train(run, code.digest)
    announce = Container(name="announce", image="python:3.11-slim", inputs=[Parameter(name="digest")])
    announce.command = ["python", "-c", "import sys; print('trained', sys.argv[1])"]
    announce.args = ["{{inputs.parameters.digest}}"]
    with DAG(name="main"):
        trained = training(name="train")
        told = announce(name="announce", arguments={"digest": trained.get_parameter("checkpoint-digest")})
        prepare(name="prepare") >> trained >> told
print(workflow.to_yaml(), end="")
