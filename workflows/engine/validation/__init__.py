"""What Argo refuses when a workflow is submitted, judged here before anything starts.

Where this package and Argo's own validator differ, Argo is right: ``tests/validation`` holds it to ``argo lint``.
"""
