"""Faults that surely ruin a run are seen at the default level; what something else may mend is a note."""

from __future__ import annotations

import pytest

from argosy.workflows.lint.finding import Level
from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text
from tests.lint.test_missed import HEAD, POD, STEP, STEPS, fill

SHM = "volumeMounts: [{name: s, mountPath: /dev/shm}]"
SHMS = "volumes: [{name: s, emptyDir: {medium: Memory, sizeLimit: 8Gi}}]"
GPUS = "resources: {limits: {nvidia.com/gpu: 8}}"
RANKS = (
    fill(HEAD, "batch/v1", "Job")
    + "  completionMode: Indexed\n  completions: 2\n  parallelism: 2\n  backoffLimit: 0\n  template:\n    spec:\n"
    "      {restartPolicy: Never, subdomain: train, @" + SHMS + ", containers: [{name: c, image: r/x:1, command: [@], "
    "env: [@], @, " + SHM + "}]}\n"
)
TORCHRUN = "torchrun, --nnodes=2, --nproc-per-node=8, --node-rank=@, --master-addr=train-0.train, train.py"
INDEXED = fill(TORCHRUN, "$(JOB_COMPLETION_INDEX)")
SHELL = "bash, -c, 'torchrun --nnodes=2 --nproc-per-node=8 --node-rank=@ --master-addr=train-0.train train.py'"
MASTER = "{name: MASTER_ADDR, value: train-0.train}, {name: WORLD_SIZE, value: '@'}, {name: RANK, value: $(I)}"
OWN_NAME = "{name: P, valueFrom: {fieldRef: {fieldPath: metadata.name}}}"
SERVICE = (
    "---\napiVersion: v1\nkind: Service\nmetadata: {name: @}\n"
    "spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {@: train}}\n"
)
SELECTED = fill(SERVICE, "train", "batch.kubernetes.io/job-name")
TORCH = fill(HEAD, "kubeflow.org/v1", "PyTorchJob") + "  @: {}\n  pytorchReplicaSpecs:\n"
ROLE = (
    "    @:\n      replicas: @\n      restartPolicy: Never\n"
    "      template: {metadata: {labels: {@: g}}, spec: {@containers: [{name: pytorch, image: r/x:1, command: [@]}]}}\n"
)
WORKERS = TORCH + fill(ROLE, "Worker", "4", "a", "") + "@"
GROUP = "---\napiVersion: scheduling.@1\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: @}\n"
COSCHEDULED = fill(TORCH, "runPolicy") + fill(ROLE, "Master", "2", "scheduling.x-k8s.io/pod-group", "") + GROUP
ANNOTATED = (
    fill(HEAD, "batch/v1", "Job")
    + "  parallelism: 2\n  completions: 2\n  template:\n    metadata: {annotations: {@: g}}\n"
    "    spec: {restartPolicy: Never, containers: [{name: c, image: r/x:1, command: [python, train.py]}]}\n" + GROUP
)
VOLCANO = (
    fill(HEAD, "batch.volcano.sh/v1alpha1", "Job") + "  minAvailable: 2\n  schedulerName: volcano\n  plugins: {@}\n"
    "  tasks: [{name: w, replicas: 2, template: {spec: {containers: [{name: c, image: r/x:1, command: [@], "
    "env: [{name: MASTER_ADDR, value: @}]}]}}}]\n"
)
UNKNOWN = fill(VOLCANO, "svc: []", "./run", "a").replace("env: [{name: MASTER_ADDR, value: a}]", GPUS)
RUNTIME = (
    fill(HEAD, "trainer.kubeflow.org/v1alpha1", "TrainingRuntime") + "  mlPolicy: {numNodes: 2, @: {}}\n  template:\n"
    "    spec:\n      replicatedJobs:\n      - name: node\n        template:\n          metadata: {labels: @}\n"
    "          spec: {template: {spec: {containers: [{name: node, image: r/x:1, command: [torchrun, t.py]}]}}}\n"
)
MPI = (
    fill(HEAD, "kubeflow.org/v2beta1", "MPIJob")
    + "  slotsPerWorker: @\n  mpiReplicaSpecs:\n    Launcher: {replicas: 1, "
    "template: {spec: {containers: [{name: l, image: r/x:1, command: [mpirun, a.out]}]}}}\n    Worker: {replicas: 2, "
    "template: {spec: {containers: [{name: w, image: r/x:1, " + GPUS + "}]}}}\n"
)
SCRIPT = (
    POD + "  containers: [{name: c, image: r/x:1, command: [bash, /s/@], volumeMounts: [{name: v, mountPath: /s}]}]\n"
    "  volumes: [{name: v, configMap: {name: m}}]\n"
    "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {run.sh: 'true'}\n"
)
ALONE = (
    fill(HEAD, "batch/v1", "Job") + "  parallelism: 2\n  completions: 2\n  completionMode: @\n  template: {spec: {"
    "restartPolicy: Never, containers: [{name: c, image: r/x:1, command: [python, train.py], " + GPUS + "}]}}\n"
)
HOST = "hostNetwork: true, "
DNS = "dnsPolicy: ClusterFirstWithHostNet, "
PLAIN = POD + "  containers: [{name: c, image: r/x:1, command: [@]}]\n"
TWO_PODS = (
    PLAIN.replace("name: train", "name: master")
    + "---\n"
    + fill(PLAIN, "torchrun, --nnodes=2, --node-rank=1, --master-addr=@, t.py")
)
TRAINJOB = (
    fill(HEAD, "trainer.kubeflow.org/v1alpha1", "TrainJob") + "  runtimeRef: {name: @}\n"
    "  trainer: {numNodes: 2, image: 'r/x:1', command: [@]}\n"
)
SCRIPTED = POD.replace("v1\nkind: Pod", "batch/v1\nkind: Job") + (
    "  template:\n    spec:\n      restartPolicy: Never\n      containers:\n      - name: c\n        image: r/x:1\n"
    "        command:\n        - bash\n        - -c\n        - |\n          @\n"
)
SETTINGS = fill(HEAD, "v1", "ConfigMap").replace("spec:\n", "data: {@: '@'}\n")
TARGETED = (
    fill(HEAD, "jobset.x-k8s.io/v1alpha2", "JobSet") + "  successPolicy: {operator: All, targetReplicatedJobs: [@]}\n"
    "  replicatedJobs: [{name: w, template: {spec: {template: {spec: {containers: [{name: c, image: r/x:1}]}}}}}]\n"
)
LOUD = "{name: NCCL_DEBUG, value: INFO}, {name: NCCL_DEBUG_SUBSYS, value: 'INIT,P2P'}"
PLACED = fill(VOLCANO, "svc: []", "python, t.py", "a").replace("Name: volcano", "Name: @")
NCCL = PLAIN.replace("[@]", "[torchrun, --nproc-per-node=2, train.py, @]") + "  @\n"
ENTERED = fill(HEAD, "ray.io/v1", "RayJob").rstrip() + " {@clusterSelector: {ray.io/cluster: c}}\n"
SLEEPS = fill(TORCH, "runPolicy") + (
    fill(ROLE, "Master", "1", "a", "", "torchrun, --nnodes=2, --node-rank=0, --master-addr=m, t.py")
    + fill(ROLE, "Worker", "1", "a", "")
)
SEEN = [
    (fill(RANKS, "", INDEXED, "", GPUS) + fill(SERVICE, "headless", "batch.kubernetes.io/job-name"), "REND005", True),
    (fill(RANKS, "", INDEXED, "", GPUS) + fill(SERVICE, "headless", "app"), "REND005", False),
    (fill(RANKS, HOST, INDEXED, "", GPUS) + SELECTED, "REND014", True),
    (fill(RANKS, HOST + DNS, INDEXED, "", GPUS) + SELECTED, "REND014", False),
    (fill(RANKS, "", fill(TORCHRUN, "$(P)"), OWN_NAME, GPUS), "REND025", True),
    (fill(RANKS, "", fill(SHELL, "$NODE_RANK"), "", GPUS), "REND025", True),
    (fill(RANKS, "", fill(SHELL, "${NODE_RANK:-0}"), "", GPUS), "REND025", False),
    (fill(RANKS, "", fill(SHELL, "$NODE_RANK").replace("'torch", "'source /env; torch"), "", GPUS), "REND025", False),
    (fill(RANKS, "", fill(TORCHRUN, "$(NODE_RANK)"), "", GPUS), "ARGV020", True),
    (fill(RANKS, "", fill(TORCHRUN, "$(MY_OWN)"), "", GPUS), "ARGV020", False),
    (fill(RANKS, "", "python, train.py", fill(MASTER, "2"), GPUS), "REND055", True),
    (fill(RANKS, "", "python, train.py", fill(MASTER, "16"), GPUS), "REND055", False),
    (fill(ALONE, "NonIndexed"), "REND054", True),
    (fill(ALONE, "Indexed"), "REND054", False),
    (fill(ALONE, "NonIndexed"), "MEM001", True),
    (fill(ALONE, "NonIndexed").replace("train.py", "main.py"), "MEM001", False),
    (fill(MPI, "8"), "MEM001", True),
    (fill(MPI, "1"), "MEM001", False),
    (fill(WORKERS, "runPolicy", "torchrun, t.py", ""), "API014", True),
    (fill(WORKERS, "elasticPolicy", "torchrun, t.py", ""), "API014", False),
    (fill(WORKERS, "runPolicy", "torchrun, --standalone, t.py", ""), "API014", False),
    (fill(WORKERS, "numWorkers", "torchrun, t.py", ""), "API002", True),
    (fill(COSCHEDULED, "python, t.py", "x-k8s.io/v1alpha", "8"), "GANG006", True),
    (fill(COSCHEDULED, "python, t.py", "x-k8s.io/v1alpha", "1"), "GANG006", False),
    (fill(ANNOTATED, "scheduling.k8s.io/group-name", "volcano.sh/v1beta", "2"), "GANG008", True),
    (fill(COSCHEDULED, "python, t.py", "x-k8s.io/v1alpha", "2"), "GANG008", False),
    (fill(VOLCANO, "svc: []", "python, t.py", "train-workers"), "REND013", True),
    (UNKNOWN, "RESTART036", True),
    (UNKNOWN.replace("replicas: 2", "replicas: 4"), "RESTART036", False),
    (fill(VOLCANO, "svc: []", "python, t.py", "rendezvous"), "REND013", False),
    (fill(VOLCANO, "svc: []", "torchrun, --node-rank=$(VC_TASK_INDEX), t.py", "a.b"), "ARGV020", True),
    (fill(VOLCANO, "env: []", "torchrun, --node-rank=$(VC_TASK_INDEX), t.py", "a.b"), "ARGV020", False),
    (fill(RUNTIME, "torch", "{}"), "API012", True),
    (fill(RUNTIME, "mpi", "{}"), "API012", False),
    (fill(RUNTIME, "torch", STEP), "API012", False),
    (fill(TWO_PODS, "sleep", "master"), "REND010", True),
    (fill(TWO_PODS, "sleep", "other"), "REND010", False),
    (fill(SCRIPT, "start.sh"), "STORE017", True),
    (fill(SCRIPT, "run.sh"), "STORE017", False),
    (STEPS + "    container: {image: r/x:1, command: [echo]}\n    successCondition: a == b\n", "API003", True),
    (fill(HEAD, "jobset.sigs.k8s.io/v1alpha2", "JobSet"), "API020", True),
    (fill(HEAD, "cluster.ray.io/v1", "RayCluster"), "API020", False),
    (fill(RANKS, "", INDEXED, "{name: CUDA_VISIBLE_DEVICES, value: ''}", GPUS), "MEM016", True),
    (fill(TRAINJOB, "torch-distributed", "python, train.py"), "REND054", True),
    (fill(TRAINJOB, "torch-distributed", "torchrun, train.py"), "REND054", False),
    (fill(TRAINJOB, "jax-distributed", "python, train.py"), "REND054", False),
    (fill(MPI, "8").replace("mpirun, a.out", "python, train.py"), "REND052", True),
    (fill(MPI, "8").replace("mpirun, a.out", "python, launch.py"), "REND052", False),
    (fill(MPI, "8").replace("name: w,", "name: w, command: [python, t.py],"), "REND052", True),
    (fill(MPI, "8").replace("name: w,", "name: w, command: [bash, -c, 'sshd; python t.py'],"), "REND052", False),
    (fill(SCRIPTED, "torchrun t.py &\n          wait"), "ARGV042", True),
    (fill(SCRIPTED, "torchrun t.py &\n          wait $!"), "ARGV042", False),
    (fill(SCRIPTED, "torchrun t.py\n          RC=$?\n          echo $RC"), "ARGV042", True),
    (fill(SCRIPTED, "torchrun t.py\n          RC=$?\n          echo $RC\n          exit $RC"), "ARGV042", False),
    (fill(SCRIPTED, "torchrun t.py > log &\n          tail -f log"), "ARGV043", True),
    (fill(SCRIPTED, "tail -f log &\n          torchrun t.py > log"), "ARGV043", False),
    (fill(SCRIPTED, "while true; do torchrun t.py; sleep 5; done"), "ARGV043", True),
    (fill(SCRIPTED, "while true; do torchrun t.py && break; done"), "ARGV043", False),
    (fill(SCRIPTED, "while :; do nvidia-smi; done &\n          if [ -f x ]; then torchrun t.py; fi"), "ARGV043", False),
    (fill(SCRIPTED, "wandb login " + "4f1c0e5a" * 5 + "\n          torchrun t.py"), "SEC017", True),
    (fill(SETTINGS, "WANDB_API_KEY", "4f1c0e5a"), "SEC016", True),
    (fill(SETTINGS, "WANDB_API_KEY", "{{ .Values.key }}"), "SEC016", False),
    (SETTINGS.split("data")[0] + "data:\n  credentials: |\n    {}\n    {}\n", "SEC016", False),
    (fill(SETTINGS, "config.yaml", "token: hf_" + "a1B2" * 9), "SEC016", True),
    (fill(TARGETED, "worker"), "API015", True),
    (fill(TARGETED, "w"), "API015", False),
    (STEPS + "    dag: {tasks: [{name: a, template: m, dependsOn: b}]}\n", "API002", True),
    (fill(SCRIPTED, "if torchrun t.py; then echo ok; else echo failed; fi"), "ARGV041", True),
    (fill(SCRIPTED, "if torchrun t.py; then echo ok; else exit 1; fi"), "ARGV041", False),
    (fill(HEAD, "ray.io/v1", "RayJob") + "  entrypoint: python t.py || true\n", "ARGV041", True),
    (fill(HEAD, "ray.io/v1", "RayJob") + "  entrypoint: python t.py || python u.py\n", "ARGV041", False),
    (fill(VOLCANO, "svc: []", "torchrun, --nnodes=2, t.py", "a").replace("able: 2", "able: 1"), "GANG007", True),
    (fill(VOLCANO, "svc: []", "python, t.py", "a").replace("able: 2", "able: 1"), "GANG007", False),
    (fill(NCCL, "--backend, nccl", "serviceAccountName: a"), "MEM017", True),
    (fill(NCCL, "--backend, nccl", "runtimeClassName: nvidia"), "MEM017", False),
    (fill(NCCL, "--backend, gloo", "serviceAccountName: a"), "MEM017", False),
    (fill(NCCL, "--seed, '1'", "nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}"), "MEM017", True),
    (fill(ENTERED, ""), "RAY003", True),
    (fill(ENTERED, "submissionMode: InteractiveMode, "), "RAY003", False),
    (fill(ENTERED, "entrypoint: python t.py, "), "RAY003", False),
    (fill(PLACED, "default-scheduler"), "GANG008", True),
    (fill(PLACED, "volcano"), "GANG008", False),
    (fill(SLEEPS, "sleep, infinity"), "REND040", True),
    (fill(SLEEPS, "torchrun, --nnodes=2, --node-rank=1, --master-addr=m, t.py"), "REND040", False),
    (fill(RANKS, "", INDEXED, LOUD, GPUS), "NCCL021", True),
    (fill(RANKS, "", INDEXED.replace("train.py", "nccl_preflight.py"), LOUD, GPUS), "NCCL021", False),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rule", "seen"), SEEN)
def test_what_is_seen_by_default(text: str, rule: str, seen: bool) -> None:
    found = lint([read_text(text.encode(), "manifest.yaml")])
    assert not [each for each in found if each.rule == "YAML001"], text
    shown = {each.rule for each in found if each.level > Level.NOTE}
    assert (rule in shown) == seen, [(each.rule, each.level.word, each.message) for each in found]


def test_one_cause_in_two_replica_types_is_one_finding() -> None:
    role = "{replicas: 1, template: {apiVersion: v1, kind: Pod, spec: {containers: [{name: c, image: r/x:1}]}}}"
    text = fill(TORCH, "runPolicy") + f"    Master: {role}\n    Worker: {role}\n"
    found = [each for each in lint([read_text(text.encode(), "job.yaml")]) if each.rule in ("API002", "API012")]
    assert [each.rule for each in found] == ["API002", "API012"]
    assert all(each.message.endswith("(also on line 8)") for each in found)


def test_a_service_is_missed_where_others_stand_beside() -> None:
    job, other = fill(RANKS, "", INDEXED, "", GPUS), fill(SERVICE, "board", "app").removeprefix("---\n")
    for beside, expected in ((["service.yaml"], Level.WARNING), ([], Level.NOTE)):
        texts = [read_text(job.encode(), "job.yaml"), *(read_text(other.encode(), name) for name in beside)]
        assert [each.level for each in lint(texts) if each.rule == "REND005"] == [expected]
