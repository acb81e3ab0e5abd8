"""MEM: memory, ``/dev/shm``, GPUs and other resources of a pod."""
