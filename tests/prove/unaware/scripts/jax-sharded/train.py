"""JAX with weights that lie over its processes; Orbax's CheckpointManager, all of whose processes write one folder."""

import argparse
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--save-every", type=int, default=20)
parser.add_argument("--out", required=True)
args = parser.parse_args()

address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
world, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
jax.distributed.initialize(address, num_processes=world, process_id=rank)
mesh = Mesh(np.array(jax.devices()), ("data",))
optimizer = optax.adam(1e-2)


def begin():
    params = {"w": jax.random.normal(jax.random.PRNGKey(0), (32, 1)), "b": jnp.zeros((1,))}
    return {"params": params, "moments": optimizer.init(params)}


shapes = jax.eval_shape(begin)
places = jax.tree.map(lambda leaf: NamedSharding(mesh, PartitionSpec(*["data"] * (leaf.ndim == 2))), shapes)
state = jax.jit(begin, out_shardings=places)()
options = ocp.CheckpointManagerOptions(max_to_keep=3, save_interval_steps=args.save_every)
manager = ocp.CheckpointManager(os.path.abspath(args.out), options=options)
start = manager.latest_step() or 0
if start:
    wanted = jax.tree.map(lambda leaf, at: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=at), shapes, places)
    found = manager.restore(
        start, args=ocp.args.Composite(state=ocp.args.StandardRestore(wanted), told=ocp.args.JsonRestore())
    )
    state, start = found["state"], found["told"]["step"]


@jax.jit
def update(state, x, y):
    loss, gradient = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"] + p["b"] - y) ** 2))(state["params"])
    changes, moments = optimizer.update(gradient, state["moments"], state["params"])
    state = {"params": optax.apply_updates(state["params"], changes), "moments": moments}
    return jax.lax.with_sharding_constraint(state, places), loss


def spread(value):
    return multihost_utils.host_local_array_to_global_array(value, mesh, PartitionSpec("data"))


truth = np.random.default_rng(1).normal(size=(32, 1)).astype(np.float32)
for step in range(start + 1, args.steps + 1):
    x = np.random.default_rng([step, rank]).normal(size=(16, 32)).astype(np.float32)
    state, loss = update(state, spread(x), spread(x @ truth))
    time.sleep(0.03)
    if rank == 0:
        print(f"step {step} loss {float(loss):.6f}", flush=True)
    told = ocp.args.JsonSave({"step": step})
    manager.save(step, args=ocp.args.Composite(state=ocp.args.StandardSave(state), told=told))
manager.wait_until_finished()
