"""Data-parallel JAX on as many processes as it is told of; the first writes NumPy's archives, all read the newest."""

import argparse
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.experimental import multihost_utils
from jax.sharding import Mesh, PartitionSpec

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--save-every", type=int, default=20)
parser.add_argument("--out", default="checkpoints")
args = parser.parse_args()

world = int(os.environ.get("WORLD_SIZE", "1"))
if world > 1:
    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    jax.distributed.initialize(address, num_processes=world, process_id=int(os.environ["RANK"]))
rank, mesh = jax.process_index(), Mesh(np.array(jax.devices()), ("data",))


def spread(value, spec):
    return multihost_utils.host_local_array_to_global_array(np.asarray(value), mesh, spec)


optimizer = optax.adam(1e-2)
params = {"w": jax.random.normal(jax.random.PRNGKey(0), (32, 1)), "b": jnp.zeros((1,))}
state = (params, optimizer.init(params))
start = 0
os.makedirs(args.out, exist_ok=True)
saved = sorted(name for name in os.listdir(args.out) if name.startswith("state_") and name.endswith(".npz"))
if saved:
    with np.load(os.path.join(args.out, saved[-1])) as archive:
        leaves, tree = jax.tree.flatten(state)
        state = jax.tree.unflatten(tree, [archive[f"leaf{number}"] for number in range(len(leaves))])
        start = int(archive["step"])
state = jax.tree.map(lambda leaf: spread(leaf, PartitionSpec()), state)


@jax.jit
def update(state, x, y):
    params, moments = state
    loss, gradient = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"] + p["b"] - y) ** 2))(params)
    changes, moments = optimizer.update(gradient, moments, params)
    return (optax.apply_updates(params, changes), moments), loss


def write(name, **more):
    leaves = {
        f"leaf{number}": np.asarray(leaf.addressable_data(0)) for number, leaf in enumerate(jax.tree.leaves(state))
    }
    part = os.path.join(args.out, f".part_{name}")
    np.savez(part, **leaves, **more)
    os.replace(part, os.path.join(args.out, name))


truth = np.random.default_rng(1).normal(size=(32, 1)).astype(np.float32)
for step in range(start + 1, args.steps + 1):
    x = np.random.default_rng([step, rank]).normal(size=(16, 32)).astype(np.float32)
    state, loss = update(state, spread(x, PartitionSpec("data")), spread(x @ truth, PartitionSpec("data")))
    time.sleep(0.03)
    if rank == 0:
        print(f"step {step} loss {float(loss):.6f}", flush=True)
        if step % args.save_every == 0:
            write(f"state_{step:06d}.npz", step=step)
if rank == 0:
    write("final.npz")
