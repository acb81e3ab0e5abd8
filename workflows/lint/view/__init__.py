"""What the documents mean, whatever their kind: workloads of pods, pods of containers, containers of processes."""
