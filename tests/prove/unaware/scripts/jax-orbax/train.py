"""JAX on one process with Orbax's CheckpointManager, which writes beside the training."""

import argparse
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--save-every", type=int, default=20)
parser.add_argument("--out", default="checkpoints")
args = parser.parse_args()

optimizer = optax.adam(1e-2)
params = {"w": jax.random.normal(jax.random.PRNGKey(0), (32, 1)), "b": jnp.zeros((1,))}
state = {"params": params, "moments": optimizer.init(params)}
options = ocp.CheckpointManagerOptions(max_to_keep=3, save_interval_steps=args.save_every)
manager = ocp.CheckpointManager(os.path.abspath(args.out), options=options)
start = 0
if manager.latest_step() is not None:
    start = manager.latest_step()
    wanted = ocp.args.Composite(state=ocp.args.StandardRestore(state), told=ocp.args.JsonRestore())
    found = manager.restore(start, args=wanted)
    state, start = found["state"], found["told"]["step"]


@jax.jit
def update(state, x, y):
    loss, gradient = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"] + p["b"] - y) ** 2))(state["params"])
    changes, moments = optimizer.update(gradient, state["moments"], state["params"])
    return {"params": optax.apply_updates(state["params"], changes), "moments": moments}, loss


truth = np.random.default_rng(1).normal(size=(32, 1)).astype(np.float32)
for step in range(start + 1, args.steps + 1):
    x = np.random.default_rng(step).normal(size=(16, 32)).astype(np.float32)
    state, loss = update(state, x, x @ truth)
    time.sleep(0.03)
    print(f"step {step} loss {float(loss):.6f}", flush=True)
    told = ocp.args.JsonSave({"step": step})
    manager.save(step, args=ocp.args.Composite(state=ocp.args.StandardSave(state), told=told))
manager.wait_until_finished()
np.save(os.path.join(args.out, "final.npy"), np.asarray(state["params"]["w"]))
