"""``argosy lint``: what is wrong in a training manifest, found without a cluster.

A file becomes documents (:mod:`~argosy.workflows.manifests.reading`), documents become what they mean
(:mod:`~argosy.workflows.manifests`: workloads, pods, containers, processes, services), and small named rules
(:mod:`~argosy.workflows.lint.rules`) look at one kind of thing each. A rule's page (``pages/FAMILY/ID.md``) says what
it finds and why, with its sources, a bad example in which it is found and a good one in which nothing is.
"""
