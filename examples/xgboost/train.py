"""XGBoost on several nodes, as people write it for an XGBoostJob; it has never heard of argosy.

RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=9091 python train.py --rounds 20
"""

import argparse
import os

import numpy as np
import xgboost as xgb
from xgboost import collective
from xgboost.tracker import RabitTracker


def make_rows(rank, world_size, rows, features=20):
    """This rank's rows: there is something to learn, and noise."""
    generator = np.random.default_rng(0)
    points = generator.standard_normal((rows, features), dtype=np.float32)
    weights = generator.standard_normal(features)
    noise = generator.standard_normal(rows)
    labels = (np.tanh(points * 2) @ weights + points[:, 0] * points[:, 1] + noise > 0).astype(np.float32)
    return xgb.DMatrix(points[rank::world_size], labels[rank::world_size])


class Save(xgb.callback.TrainingCallback):
    """The model after every few rounds, whole or not at all."""

    def __init__(self, folder, every):
        self.folder, self.every = folder, every

    def after_iteration(self, model, epoch, evals_log):
        done = model.num_boosted_rounds()
        if collective.get_rank() == 0:
            print(f"step {done} loss {evals_log['train']['logloss'][-1]:.6f}")
            if done % self.every == 0:
                model.save_model("part.ubj")
                os.replace("part.ubj", os.path.join(self.folder, f"rounds-{done:05}.ubj"))
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--save-every", type=int, default=10)
    parser.add_argument("--out", default="out")
    args = parser.parse_args()
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    os.makedirs(args.out, exist_ok=True)
    saved = sorted(name for name in os.listdir(args.out) if name.endswith(".ubj"))
    if rank == 0:
        tracker = RabitTracker(world_size, address, port, sortby="task")
        tracker.start()
    with collective.CommunicatorContext(
        dmlc_tracker_uri=address, dmlc_tracker_port=port, dmlc_task_id=f"{rank:05}", dmlc_retry=60
    ):
        rows = make_rows(rank, world_size, args.rows)
        model = xgb.Booster(model_file=os.path.join(args.out, saved[-1])) if saved else None
        done = model.num_boosted_rounds() if model else 0
        settings = {"objective": "binary:logistic", "eta": 0.1, "max_depth": 4, "tree_method": "hist", "nthread": 1}
        model = xgb.train(
            settings,
            rows,
            num_boost_round=args.rounds - done,
            evals=[(rows, "train")],
            verbose_eval=False,
            xgb_model=model,
            callbacks=[Save(args.out, args.save_every)],
        )
        if rank == 0:
            print(f"finished after {model.num_boosted_rounds()} rounds")
    if rank == 0:
        tracker.wait_for()


if __name__ == "__main__":
    main()
