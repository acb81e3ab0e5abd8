"""What newcomers wrote wrongly in their first hour: (id, text of run.toml, what the message must name...)."""

from __future__ import annotations

RUN = 'name = "r"\nscript = "train.py"\ncode = ""\n'
DATA = '[dataset]\nuri = "s3://b/x"\n'
OPAQUE = RUN + '[checkpoint]\nmode = "opaque"\npath = "out"\n'
JUDGED = '[evaluation]\nscript = "e.py"\nmetric = "loss"\ndirection = "min"\n'

TOML: list[tuple[str | bytes, ...]] = [
    ("word-data", RUN + 'args = ["--data", "{data}"]\n', "args.1", "{data}", "[dataset]"),
    ("word-near", RUN + f'args = ["{{dat}}"]\n{DATA}', "{dat}", "'data'"),
    ("word-unknown", RUN + 'args = ["{epoch}.pt"]\n', "{epoch}", "backslash"),
    ("word-env", RUN + 'env = { A = "{data}" }\n', "env.A", "{data}"),
    ("word-env-unknown", RUN + 'env = { A = "{time} {level}" }\n', "env.A", "{time}"),
    ("word-stream", RUN + f'args = ["{{data}}"]\n{DATA}staging = "stream"\n', "{data_uri}"),
    ("word-checkpoint", RUN + 'args = ["{checkpoint}"]\n', "{checkpoint}", "opaque"),
    ("word-metrics", RUN + 'args = ["{metrics}"]\n', "{metrics}"),
    ("word-newest", RUN + 'args = ["{newest}"]\n', "{newest}"),
    ("word-batch", RUN + 'args = ["{micro_batch_size}"]\n', "[batch]"),
    ("word-rate", RUN + 'args = ["{learning_rate}"]\n[batch]\nmicro_batch_size = 2\n', "base_learning_rate"),
    ("word-resume", OPAQUE + 'resume_args = ["{newst}"]\n', "checkpoint.resume_args.0", "'newest'"),
    ("word-held-out", RUN + JUDGED + 'args = ["{data}"]\n', "evaluation.args.0", "dataset_uri"),
    ("word-held-out-digest", RUN + JUDGED + 'args = ["{data_digest}"]\n', "evaluation.args.0"),
    ("memory-huge", RUN + '[gang.resources]\nmemory = "99999999Ti"\n', "gang.resources.memory", "99999999Ti"),
    ("memory-typo", RUN + '[gang.resources]\nmemory = "16GB"\n', "gang.resources.memory", "16Gi"),
    ("memory-milli", RUN + '[gang.resources]\nmemory = "100m"\n', "gang.resources.memory"),
    ("memory-tiny", RUN + '[gang.resources]\nmemory = "16"\n', "gang.resources.memory", "16Gi"),
    ("cpu-huge", RUN + '[gang.resources]\ncpu = "1000000"\n', "gang.resources.cpu"),
    ("cpu-memory", RUN + '[gang.resources]\ncpu = "4Gi"\n', "gang.resources.cpu"),
    ("gpu-huge", RUN + "[gang.resources]\ngpu = 100000\n", "gang.resources.gpu"),
    ("shm-huge", RUN + '[gang]\nshm_size = "99999999Ti"\n', "gang.shm_size"),
    ("hang-huge", RUN + "[deadlines]\nhang_seconds = 1e20\n", "deadlines.hang_seconds", "1e+20"),
    ("hang-forever", RUN + "[deadlines]\nhang_seconds = inf\n", "deadlines.hang_seconds"),
    ("hang-whole-huge", RUN + "[deadlines]\nhang_seconds = 100000000000000000000\n", "deadlines.hang_seconds"),
    ("grace-huge", RUN + "[deadlines]\ngrace_seconds = 999999999999\n", "deadlines.grace_seconds"),
    ("grace-text", RUN + '[deadlines]\ngrace_seconds = "1m"\n', "deadlines.grace_seconds"),
    ("backoff-huge", RUN + "[retry]\nbackoff_seconds = 1e300\n", "retry.backoff_seconds"),
    ("restarts-huge", RUN + "[retry]\nmax_restarts = 100000000000000000000\n", "retry.max_restarts"),
    ("keep-huge", RUN + "[checkpoint]\nkeep = 100000000000000000000\n", "checkpoint.keep"),
    ("end-huge", RUN + "[checkpoint]\nend_step = 100000000000000000000\n", "checkpoint.end_step"),
    ("every-huge", RUN + "[checkpoint]\nevery_steps = 100000000000000000000\n", "checkpoint.every_steps"),
    ("timeout-huge", RUN + JUDGED + "timeout_seconds = 100000000000000000000\n", "evaluation.timeout_seconds"),
    ("floor-huge", RUN + JUDGED + 'floor = "1e400"\n', "evaluation.floor"),
    ("batch-huge", RUN + "[batch]\nmicro_batch_size = 100000000000000000000\n", "batch.micro_batch_size"),
    ("failure-hours-huge", RUN + "[checkpoint]\nfailure_hours = 1e300\n", "checkpoint.failure_hours"),
    ("ranks-huge", RUN + "[gang]\nnproc_per_node = 100000000000\n", "gang.nproc_per_node"),
    ("script-shell", 'name = "r"\nscript = "python train.py"\ncode = ""\n', "script", "train.py"),
    ("script-folder", 'name = "r"\nscript = "src/"\ncode = ""\n', "script"),
    ("script-home", 'name = "r"\nscript = "~/train.py"\ncode = ""\n', "script"),
    ("module-path", 'name = "r"\nmodule = "src/train.py"\n', "module"),
    ("env-number", RUN + "env = { A = 1 }\n", "env.A", '"1"'),
    ("env-rank", RUN + 'env = { RANK = "0" }\n', "env.RANK"),
    ("image-space", RUN + 'image = "my image"\n', "image"),
    ("metric-missing", RUN + '[evaluation]\nscript = "e.py"\ndirection = "min"\n', "evaluation.metric"),
    ("uri-windows", RUN + '[storage]\nuri = "C:\\\\data"\n', "storage.uri"),
    ("uri-http", RUN + '[dataset]\nuri = "https://b.s3.amazonaws.com/x"\n', "dataset.uri", "s3://"),
    ("uri-slash", RUN + '[dataset]\nuri = "/data/c4"\n', "dataset.uri", "file:///data/c4"),
    ("pattern-no-step", RUN + 'progress_pattern = "loss (.*)"\n', "progress_pattern", "step"),
    ("pattern-slow", RUN + 'progress_pattern = "(?P<step>(a+)+$"\n', "progress_pattern"),
]

FLAGS: list[tuple[str, str, tuple[str, ...]]] = [
    ("output-not-writable", "compile run.toml -o /sys/w.yaml", ("--output", "/sys/w.yaml")),
    ("inject-absent-rank", "run run.toml -j 2x1 --inject kill:rank=7@step=4", ("rank=7", "0..1")),
    ("inject-absent-node", "run run.toml -j 2x1 --inject node-loss:node=5@step=4", ("node=5", "node-1")),
    ("args-word", 'run run.toml -p args=["{dta}"]', ("{dta}", "'data'")),
    ("init-dataset", "init train.py -o o.toml --dataset nowhere", ("--dataset", "nowhere")),
    ("init-dataset-scheme", "init train.py -o o.toml --dataset hdfs://a/b", ("--dataset", "s3://")),
    ("get-no-run", "checkpoint get nope out", ("argosy run",)),
    ("ls-file", "ls run.toml", ("run.toml", "s3://")),
    ("ls-scheme", "ls ftp://a/b", ("ftp",)),
    ("stop-no-run", "stop", ("argosy run",)),
    ("rm-nothing", "rm", ("RUN",)),
    ("open-no-run", "open", ("argosy run",)),
]

NOT_PRESENT = [
    ("script-not-there", ("compile", "run.toml"), ("trian.py", "train.py"), b'name = "r"\nscript = "trian.py"\n'),
    ("run-not-there", ("run", "run.toml"), ("trian.py", "train.py"), b'name = "r"\nscript = "trian.py"\n'),
    ("evaluation-not-there", ("compile", "run.toml"), ("evaluation.script", "evla.py"),
     f'name = "r"\nscript = "train.py"\n{JUDGED}'.replace("e.py", "evla.py").encode()),
    ("module-not-there", ("compile", "run.toml"), ("module", "train.main"), b'name = "r"\nmodule = "train.main"\n'),
    ("path-is-file", ("compile", "run.toml"), ("checkpoint.path", "train.py"),
     b'name = "r"\nscript = "train.py"\n[checkpoint]\nmode = "opaque"\npath = "train.py"\n'),
]  # fmt: skip
