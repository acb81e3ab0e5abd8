"""Trainings for other launchers than torchrun: steps and seconds of a step are their arguments, each step is saved."""

OVER_MPI = """\
import json, os, pathlib, sys, time
from mpi4py import MPI
world, saved = MPI.COMM_WORLD, pathlib.Path("out/state.json")
done = world.bcast(json.loads(saved.read_text()) if world.rank == 0 and saved.exists() else 0)
for step in range(done + 1, int(sys.argv[1]) + 1):
    time.sleep(float(sys.argv[2]))
    total = world.allreduce(world.rank + 1)
    print(f"step {step} loss {total / step} of rank {world.rank} on {MPI.Get_processor_name()}", flush=True)
    if world.rank == 0:
        saved.parent.mkdir(exist_ok=True)
        part = saved.with_suffix(".part")
        part.write_text(json.dumps(step))
        part.replace(saved)
"""
WITHOUT_TORCH = """\
import json, os, pathlib, socket, sys, time
rank, size, saved = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), pathlib.Path("out/state.json")
meet = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    server = socket.create_server(meet)
    peers = [server.accept()[0].makefile("rwb") for _ in range(size - 1)]
    done = json.loads(saved.read_text()) if saved.exists() else 0
else:
    while True:
        try:
            root = socket.create_connection(meet).makefile("rwb")
            break
        except OSError:
            time.sleep(0.1)
while True:
    if rank:  # a step is what the first rank says, and it waits for all
        line = root.readline()
        if not line:
            raise ConnectionError("the first rank is gone")
        done = int(line)
        if done < 0:
            break
        root.write(b"%d\\n" % done)
        root.flush()
        continue
    if done == int(sys.argv[1]):
        break
    time.sleep(float(sys.argv[2]))
    done += 1
    for peer in peers:
        peer.write(b"%d\\n" % done)
        peer.flush()
    for peer in peers:
        if not peer.readline():
            raise ConnectionError("a rank is gone")
    print(f"step {done} loss {1 / done}", flush=True)
    saved.parent.mkdir(exist_ok=True)
    part = saved.with_suffix(".part")
    part.write_text(json.dumps(done))
    part.replace(saved)
if rank == 0:
    for peer in peers:
        peer.write(b"-1\\n")
        peer.flush()
"""
