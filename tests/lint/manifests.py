"""Small manifests that are right, for tests that break one thing in them."""

from __future__ import annotations

from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text


def found(text: str, *families: str) -> set[tuple[str, int]]:
    """(rule, line) of what lint finds of some families."""
    findings = lint([read_text(text.encode(), "manifest.yaml")])
    return {(each.rule, each.line) for each in findings if each.rule.rstrip("0123456789") in families}


def rules(text: str, *families: str) -> set[str]:
    """The rules of some families that find something above a note."""
    findings = lint([read_text(text.encode(), "manifest.yaml")])
    return {each.rule for each in findings if each.level > 1 and each.rule.rstrip("0123456789") in families}


JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  backoffLimit: 0
  template:
    metadata:
      labels: {app: train}
    spec:
      restartPolicy: Never
      subdomain: train
      terminationGracePeriodSeconds: 60
      containers:
        - name: trainer
          image: registry.example/train:1.4.2
          command: [torchrun, --nnodes=2, --node-rank=$(JOB_COMPLETION_INDEX), --master-addr=train-0.train, train.py]
"""

PYTORCH = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: train
spec:
  runPolicy:
    cleanPodPolicy: Running
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          terminationGracePeriodSeconds: 60
          containers:
            - name: pytorch
              image: registry.example/train:1.4.2
              command: [torchrun, train.py]
    Worker:
      replicas: 3
      restartPolicy: Never
      template:
        spec:
          terminationGracePeriodSeconds: 60
          containers:
            - name: pytorch
              image: registry.example/train:1.4.2
              command: [torchrun, train.py]
"""

JOBSET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: train
spec:
  failurePolicy:
    maxRestarts: 3
    restartStrategy: BlockingRecreate
  replicatedJobs:
    - name: node
      replicas: 2
      template:
        spec:
          completions: 2
          parallelism: 2
          backoffLimit: 0
          template:
            spec:
              restartPolicy: Never
              terminationGracePeriodSeconds: 60
              containers:
                - name: trainer
                  image: registry.example/train:1.4.2
                  command: [torchrun, --nnodes=4, --master-addr=train-node-0-0.train, train.py]
"""

VOLCANO = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: train
spec:
  schedulerName: volcano
  minAvailable: 3
  policies:
    - {event: PodEvicted, action: RestartJob}
    - {event: PodFailed, action: RestartJob}
  tasks:
    - name: master
      replicas: 1
      template: &template
        spec:
          restartPolicy: Never
          terminationGracePeriodSeconds: 60
          containers:
            - name: trainer
              image: registry.example/train:1.4.2
              command: [torchrun, --nnodes=3, --master-addr=train-master-0.train, train.py]
    - name: worker
      replicas: 2
      template: *template
"""

GROUP = """\
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: train}
spec: {minMember: 2}
---
"""
