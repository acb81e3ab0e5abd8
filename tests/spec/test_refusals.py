"""A wrong value dies at construction, on one line, with value, rule and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.steps.contract.errors import InputError
from argosy.workflows.spec.gang import Gang
from argosy.workflows.spec.load import load_run, parse_run
from argosy.workflows.spec.run import TrainingRun, warnings

GOOD = 'name = "n"\nscript = "t.py"\n'
OPAQUE = GOOD + '[checkpoint]\nmode = "opaque"\npath = "o"\n'
EVALUATION = GOOD + '[evaluation]\nscript = "e.py"\nmetric = "loss"\ndirection = "min"\n'
DATASET = GOOD + '[dataset]\nuri = "s3://b/d"\n'
SECRET = "hf_" + "a1B2" * 8

# TOML, what the message starts with, and what it must contain besides.
WRONG = [
    (
        DATASET + "[dataset.cache]",
        "dataset.cache: none of claim, host_path and ephemeral is given",
        "write for example",
    ),
    (
        DATASET + '[dataset.cache]\nclaim = "c"\nephemeral = "1Ti"',
        "dataset.cache: claim and ephemeral are given",
        "on one volume",
    ),
    (DATASET + '[dataset.cache]\nhost_path = "nvme"', "dataset.cache.host_path = 'nvme': must be an absolute", "/mnt/"),
    (DATASET + '[dataset.cache]\nhost_path = "/etc/x"', "dataset.cache.host_path = '/etc/x': belongs to the", "/mnt/"),
    (
        DATASET + '[dataset.cache]\nclaim = "c"\nstorage_class = "s"',
        "dataset.cache.storage_class = 's': has an effect with ephemeral only",
        "remove it",
    ),
    (
        DATASET + '[dataset.cache]\nephemeral = "1Ti"\nread_only = true',
        "dataset.cache.read_only = True: nothing ever lies on a new volume",
        "remove it",
    ),
    (DATASET + '[dataset.cache]\nclaim = "c"\nsize_gib = -1', "dataset.cache.size_gib = -1: must be at least 0", "see"),
    (
        DATASET + 'staging = "stream"\n[dataset.cache]\nclaim = "c"',
        "dataset.cache: nothing is staged",
        "remove [dataset.cache]",
    ),
    (
        DATASET + 'staging = "shared"\n[dataset.cache]\nhost_path = "/mnt/x"',
        "dataset.cache: every pod must see it",
        "claim =",
    ),
    ("", "name: is required", "add it"),
    ('name = "n"', "script: is required", 'or module = "pkg.train"'),
    ('script = "t.py"', "name: is required", "add it"),
    ('name = "Upper"\nscript = "t.py"', "name = 'Upper': must be a DNS label", "use a-z"),
    (f'name = "{"n" * 41}"\nscript = "t.py"', "name = 'nnn", "at most 40"),
    ('name = ""\nscript = "t.py"', "name = '': must not be empty", "explain-config name"),
    ('name = 7\nscript = "t.py"', "name = 7: must be text", 'write "7"'),
    (GOOD + 'module = "m"', "module = 'm': cannot be given beside script", "remove one"),
    ('name = "n"\nmodule = "a/b.py"', "module = 'a/b.py': must be a dotted module", "pkg.module"),
    ('name = "n"\nscript = "../t.py"', "script = '../t.py': must be a path inside the code folder", "relative"),
    ('name = "n"\nscript = "/t.py"', "script = '/t.py': lies in the image, but code = '.' travels", 'code = ""'),
    ('name = "n"\nscript = "/a/../t.py"\ncode = ""', "script = '/a/../t.py': must not hold '..'", "the image has"),
    (GOOD + '[env]\nNCCL_TIMEOUT = "3600"', "env.NCCL_TIMEOUT = '3600': no NCCL", "(NCCL001)"),
    (GOOD + 'working_dir = "/w"', "working_dir = '/w': lies in the image, but code = '.' travels", 'code = ""'),
    (GOOD + 'code = ""\nworking_dir = "w"', "working_dir = 'w': must be an absolute folder", "/workspace"),
    (
        GOOD + '[[gang.pod.volumes]]\nname = "shm"\nmount_path = "/m"\nsource = {emptyDir = {}}',
        "gang.pod.volumes.0.name = 'shm'",
        "another name",
    ),
    (
        GOOD + '[[gang.pod.volumes]]\nname = "d"\nmount_path = "/argosy/x"\nsource = {emptyDir = {}}',
        "gang.pod.volumes.0.mount_path = '/argosy/x': is argosy's own",
        "elsewhere",
    ),
    (
        GOOD + '[[gang.pod.volumes]]\nname = "a.b"\nmount_path = "/m"\nsource = {emptyDir = {}}',
        "gang.pod.volumes.0.name = 'a.b': must be a DNS label",
        "use a-z",
    ),
    (
        GOOD + '[[gang.pod.volumes]]\nname = "d"\nmount_path = "/m:ro"\nsource = {emptyDir = {}}',
        "gang.pod.volumes.0.mount_path = '/m:ro': must be an absolute folder below '/', without ':'",
        "/mnt/data",
    ),
    (
        GOOD + '[[gang.pod.volumes]]\nname = "d"\nmount_path = "/m"\nsub_path = "../x"\nsource = {emptyDir = {}}',
        "gang.pod.volumes.0.sub_path = '../x': must be a path within the volume",
        "relative",
    ),
    (
        GOOD + '[gang.resources.extended]\n"rdma/ib" = 0.5',
        "gang.resources.extended.rdma/ib = '0.5': is counted in whole ones",
        '"1"',
    ),
    (
        GOOD + "[retry]\nnan_losses = 0\nnan_skip_steps = 5",
        "retry.nan_skip_steps = 5: has no effect with nan_losses = 0",
        "remove it",
    ),
    (
        GOOD + '[[gang.pod.volumes]]\nname = "d"\nmount_path = "/m"\nsource = {}',
        "gang.pod.volumes.0.source = []: must say one kind",
        "claimName",
    ),
    (GOOD + '[gang.resources.extended]\n"rdma" = 1', "gang.resources.extended.rdma", "domain/name"),
    ('name = "n"\nscript = "--help"', "script = '--help': must be a path inside", "relative"),
    (GOOD + "scirpt = 1", "scirpt: there is no such field", "did you mean 'script'?"),
    (GOOD + "[gang]\nnode = 2", "gang.node: there is no such field", "did you mean 'nnodes'?"),
    (GOOD + "[gang.resources]\ncpus = 2", "gang.resources.cpus: there is no such field", "did you mean 'cpu'?"),
    (GOOD + "[[gang.tolerations]]\nkeys = 'a'", "gang.tolerations.0.keys: there is no such field", "'key'"),
    (GOOD + "qqqq = 1", "qqqq: there is no such field", "the fields are name, image"),
    (GOOD + 'image = "has space"', "image = 'has space': must be an image reference", "registry/name:tag"),
    (GOOD + 'image = "r.io/Team/x:1"', "image = 'r.io/Team/x:1': must be an image reference", "in lower case"),
    (GOOD + 'args = "--x"', "args = '--x': must be a list", "explain-config args"),
    (GOOD + "args = ['--lr', 0.1]", "args.1 = 0.1: must be text in quotes", 'write "0.1"'),
    (GOOD + "args = [true]", "args.0 = True: must be text in quotes", 'write "true"'),
    (GOOD + 'args = ["{{workflow.uid}}"]', "args.0 = '{{workflow.uid}}': must not contain '{{'", "Argo would expand"),
    (GOOD + 'args = ["a}}"]', "args.0 = 'a}}': must not contain '}}'", "Argo would expand"),
    (GOOD + 'args = ["$(X)"]', "args.0 = '$(X)': must not contain '$('", "kubelet would expand"),
    (GOOD + 'args = ["a\\nb"]', "args.0 = 'a\\nb': must be one line", "file"),
    (GOOD + 'args = ["a\\u0000"]', "args.0 = 'a\\x00': must not contain a NUL", "remove"),
    (GOOD + f'args = ["--token={SECRET}"]', "args.0 = '***': looks like a credential", "Kubernetes Secret"),
    (GOOD + f'env = {{ ANY = "{SECRET}" }}', "env.ANY = '***': looks like a credential", "secrets = "),
    (GOOD + 'env = { DB_PASSWORD = "correct horse" }', "env.DB_PASSWORD = '***': looks", "Kubernetes Secret"),
    (GOOD + 'env = { X = "https://u:p@h/" }', "env.X = '***': looks like a credential", "secrets = "),
    (GOOD + "env = { X = 1 }", "env.X = 1: must be text in quotes", 'write X = "1"'),
    (GOOD + "env = { X = true }", "env.X = True: must be text in quotes", 'write X = "true"'),
    (GOOD + 'env = { "a b" = "1" }', "env.a b: is no name of a variable", "letters"),
    (GOOD + 'env = { ARGOSY_RUN_ID = "1" }', "env.ARGOSY_RUN_ID: is set by argosy", "another name"),
    (GOOD + 'env = { ARGOSY_S3_TRANSPORT = "fast" }', "env.ARGOSY_S3_TRANSPORT = 'fast': must be auto", "library"),
    (GOOD + 'env = { WORLD_SIZE = "1" }', "env.WORLD_SIZE: is set by the launcher", "remove it"),
    (GOOD + 'env = { X = "{{a}}" }', "env.X = '{{a}}': must not contain '{{'", "Argo"),
    (GOOD + 'secrets = ["No Name"]', "secrets.0 = 'No Name': must be a Kubernetes name", "lower-case"),
    (GOOD + 'progress_pattern = "("', "progress_pattern = '(': is no regular expression", "Python's re"),
    (GOOD + 'progress_pattern = "x"', "progress_pattern = 'x': has no group named step", "'step (?P<step>[0-9]+) "),
    (GOOD + '[storage]\nuri = "http://x/y"', "storage.uri = 'http://x/y': unknown scheme", "use s3://"),
    (GOOD + '[storage]\nuri = "file://x/y"', "storage.uri = 'file://x/y': a file uri is absolute", "three slashes"),
    (GOOD + '[storage]\nuri = ""', "storage.uri = '': must not be empty", "explain-config storage.uri"),
    (
        GOOD + '[storage]\nuri = "file:///argosy/tmp/s"',
        "storage.uri = 'file:///argosy/tmp/s': lies on each pod",
        "write",
    ),
    (GOOD + '[storage]\nmount_path = "argosy"', "storage.mount_path = 'argosy': must be an absolute", "/argosy"),
    (
        GOOD + '[storage]\nmount_path = "/argosy/in"',
        "storage.mount_path = '/argosy/in': is a folder that every",
        "mount",
    ),
    (GOOD + '[storage]\nclaim = "a_b"', "storage.claim = 'a_b': must be a Kubernetes name", "lower-case"),
    (GOOD + 'dataset = "s3://b/d"', "dataset = 's3://b/d': must be a table", "explain-config dataset"),
    (GOOD + "[dataset]", "dataset.uri: is required", "add it"),
    (GOOD + '[dataset]\nuri = "s3://"', "dataset.uri = 's3://': no bucket", "s3://bucket/prefix"),
    (GOOD + '[dataset]\nuri = "s3://b"\nlayout = "x"', "dataset.layout = 'x': must be 'replicated' or 'sharded'", ""),
    (GOOD + '[dataset]\nuri = "s3://b"\nversion = "7"', "dataset.version = '7': must be 64 hex digits", "snapshot"),
    (GOOD + "[gang]\nnnodes = 0", "gang.nnodes = 0: must be at least 1", "nnodes = 2"),
    (GOOD + "[gang]\nnnodes = true", "gang.nnodes = True: must be a whole number or a range", '"2:4"'),
    (GOOD + "[gang]\nnnodes = 1.5", "gang.nnodes = 1.5: must be a whole number or a range", '"2:4"'),
    (GOOD + '[gang]\nnnodes = "4:2"', "gang.nnodes = '4:2': needs 1 <= min < max", '"2:4"'),
    (GOOD + '[gang]\nnnodes = "a:b"', "gang.nnodes = 'a:b': must be a whole number or a range", '"2:4"'),
    (GOOD + "[gang]\nnproc_per_node = 0", "gang.nproc_per_node = 0: must be at least 1", "explain-config"),
    (GOOD + '[gang]\nnproc_per_node = "2"', "gang.nproc_per_node = '2': must be a whole number", "explain-config"),
    (GOOD + "[gang]\nnproc_per_node = 4\n[gang.resources]\ngpu = 2", "gang.nproc_per_node = 4: more ranks than", "= 2"),
    (GOOD + '[gang]\nnnodes = 2\nfabric = "single-node"', "gang.fabric = 'single-node': one node's loopback", "tcp"),
    (GOOD + '[gang]\ntransport = "enforce"', "gang.transport = 'enforce': has nothing to compare", "gang.fabric"),
    (
        GOOD + '[gang]\npreflight = "warn"\nlauncher = "plain"',
        "gang.preflight = 'warn': is done by torchrun's ranks",
        "leave preflight out",
    ),
    (GOOD + '[gang]\ntransport = "on"', "gang.transport = 'on': must be 'warn', 'enforce' or 'off'", "explain-config"),
    (GOOD + '[gang]\nshm_size = "9Gi"', "gang.shm_size = '9Gi': /dev/shm counts towards", "raise resources.memory"),
    (GOOD + '[gang]\nshm_size = "lots"', "gang.shm_size = 'lots': must be a Kubernetes quantity", "16Gi"),
    (GOOD + "[gang.resources]\ngpu = -1", "gang.resources.gpu = -1: must be at least 0", "explain-config"),
    (
        GOOD + '[gang.resources]\ngpu_resource = "gpu"',
        "gang.resources.gpu_resource = 'gpu': must be an ext",
        "nvidia.com",
    ),
    (
        GOOD + '[gang]\nnode_selector = { "a b" = "c" }',
        "gang.node_selector.a b = 'a b': must be a Kubernetes",
        "domain",
    ),
    (GOOD + '[gang]\nnode_selector = { "" = "c" }', "gang.node_selector.\"\" = '': must not be empty", "node_selector"),
    (GOOD + '[gang.pod]\nlabels = { "" = "c" }', "gang.pod.labels.\"\" = '': must not be empty", "pod.labels"),
    (GOOD + '[gang.pod]\nannotations = { "" = "c" }', "gang.pod.annotations.\"\" = '': must not be", "annotations"),
    (DATASET + '[trigger]\nmarker = [""]', "trigger.marker.0 = '': must not be empty", "trigger.marker"),
    (GOOD + '[[gang.tolerations]]\noperator = "Equal"', "gang.tolerations.0.key: is required", "name the taint"),
    (GOOD + '[gang]\nplacement = "kai"', "gang.queue: is required with placement", "name a Queue of KAI"),
    (GOOD + '[gang]\nruntime = "job"\nplacement = "kai"', "gang.placement = 'kai': cannot go with", "placement = "),
    (GOOD + '[gang]\nruntime = "jbset"', "gang.runtime = 'jbset': is no runtime", "did you mean 'jobset'"),
    (GOOD + '[gang]\nplacement = "queue"', "gang.placement = 'queue': is no placement", "did you mean 'kueue'"),
    (GOOD + '[gang]\nplacement = "kueue"', "gang.queue: is required with placement", "LocalQueue"),
    (GOOD + '[gang]\nqueue = "q"', "gang.queue = 'q': cannot go with placement = 'none': nothing would admit", "kueue"),
    (GOOD + '[gang]\nqueue = "q"\nplacement = "native"', "gang.queue = 'q': cannot go with placement", "remove it"),
    (GOOD + '[gang]\nqueue = "Q"\nplacement = "kueue"', "gang.queue = 'Q': must be a Kubernetes name", "63"),
    (GOOD + '[gang]\nqueue_priority = "p"', "gang.queue_priority = 'p': is Kueue's alone", "remove it"),
    (
        GOOD + '[gang]\nlauncher = "ray"\nnproc_per_node = 2',
        "gang.nproc_per_node = 2: cannot go with launcher = 'ray': Ray starts the workers",
        "num_workers in the script",
    ),
    (GOOD + '[gang]\nlauncher = "ray"\nnnodes = "1:2"', "gang.nnodes = '1:2': cannot go with launcher", "nnodes = 2"),
    (GOOD + '[gang]\nlauncher = "ray"\npreflight = "warn"', "gang.preflight = 'warn': is done by torchrun", "leave"),
    (GOOD + '[gang]\nlauncher = "ray"\n[batch]\nmicro_batch_size = 1', "batch: cannot go with launcher", "[batch] out"),
    (
        GOOD
        + '[gang]\nlauncher = "ray"\nnnodes = 2\n[checkpoint]\nmode = "opaque"\npath = "o"\nexpect = ["{rank}.pt"]',
        "checkpoint.expect = ('{rank}.pt',): cannot go with launcher = 'ray': Ray decides which node",
        "argosy.Checkpointer",
    ),
    (
        GOOD + '[gang]\nruntime = "trainjob"\nplacement = "native"',
        "gang.placement = 'native': is not built yet with",
        "'none'",
    ),
    (GOOD + '[gang]\nruntime = "mpijob"\nplacement = "native"', "gang.placement = 'native': cannot go with", "exists"),
    (GOOD + '[gang]\nruntime = "volcano"\nplacement = "kueue"', "gang.placement = 'kueue': cannot go with", "exists"),
    (
        GOOD + '[checkpoint]\npath = "out"',
        "checkpoint.path = 'out': has an effect in opaque mode only",
        'mode = "opaque"',
    ),
    (GOOD + '[checkpoint]\nmode = "opaque"', "checkpoint.path: is required in opaque mode", "folder"),
    (
        GOOD + '[checkpoint]\nmode = "opaque"\npath = "out/c_*/*.pt"',
        "checkpoint.path = 'out/c_*/*.pt': is a folder, and no glob",
        'path = "out" and include = ["c_*/*.pt"]',
    ),
    (GOOD + '[checkpoint]\nmode = "opaque"\npath = "."', "checkpoint.path = '.': is the folder of the code", "include"),
    (
        GOOD + '[checkpoint]\nmode = "opaque"\npath = "/mnt/shared"',
        "checkpoint.path = '/mnt/shared': must be a folder of this run alone, with {run_id} in its path",
        "/mnt/shared/{run_id}",
    ),
    (
        GOOD + '[checkpoint]\nmode = "opaque"\npath = "/mnt/../{run_id}"',
        "checkpoint.path = '/mnt/../{run_id}': must be a folder of this run alone",
        "/mnt/shared/{run_id}",
    ),
    (
        GOOD + '[checkpoint]\nmode = "opaque"\npath = "/mnt/shared/{run_id}"',
        "checkpoint.path = '/mnt/shared/{run_id}': lies on no volume",
        "[[gang.pod.volumes]]",
    ),
    (
        GOOD + '[checkpoint]\nmode = "opaque"\npath = "/mnt/argosy/store/{run_id}"',
        "checkpoint.path = '/mnt/argosy/store/{run_id}': lies on no volume",
        "[[gang.pod.volumes]]",
    ),
    (
        GOOD + '[[gang.pod.volumes]]\nname = "d"\nmount_path = "/d"\n'
        'source = {persistentVolumeClaim = {claimName = "d"}}\n[checkpoint]\nmode = "opaque"\n'
        'path = "/d/{run_id}"\nwriters = "every"\nmarker = "done"',
        "checkpoint.path = '/d/{run_id}': lies on a volume that the nodes share",
        'writers = "first"',
    ),
    (
        GOOD + 'code = ""\nworking_dir = "/app"\n[checkpoint]\nmode = "opaque"\npath = "out"\n'
        '[[gang.pod.volumes]]\nname = "d"\nmount_path = "/app/out"\nsource = {nfs = {server = "s", path = "/"}}',
        "checkpoint.path = 'out': lies on the volume 'd', where what is in no checkpoint of this run would be removed",
        "/app/out/{run_id}",
    ),
    (GOOD + '[checkpoint]\nmode = "opaque"\npath = "./"', "checkpoint.path = './': is the folder of the code", "*.pt"),
    (
        GOOD + '[checkpoint]\nmode = "opaque"\npath = "o"\nevery_steps = 5',
        "checkpoint.every_steps = 5: has no",
        "remove",
    ),
    (GOOD + "[checkpoint]\nevery_steps = -1", "checkpoint.every_steps = -1: must be a whole number", '"auto"'),
    (GOOD + "[checkpoint]\nevery_steps = true", "checkpoint.every_steps = True: must be a whole number", '"auto"'),
    (GOOD + '[checkpoint]\nevery_steps = "often"', "checkpoint.every_steps = 'often': must be a whole", '"auto"'),
    (OPAQUE + 'every_steps = "auto"', "checkpoint.every_steps = 'auto': has no effect in opaque mode", "remove"),
    (OPAQUE + "failure_hours = 5", "checkpoint.failure_hours = 5.0: has no effect in opaque mode", "remove"),
    (GOOD + "[checkpoint]\nfailure_hours = 0", "checkpoint.failure_hours = 0: must be more than 0", "explain-config"),
    (
        GOOD + "[checkpoint]\nevery_steps = 5\nfailure_hours = 1",
        "checkpoint.failure_hours = 1.0: has no effect with every_steps = 5",
        '"auto"',
    ),
    (OPAQUE + 'include = ["a**b"]', "checkpoint.include.0 = 'a**b': is no glob", "'**'"),
    (OPAQUE + 'marker = "."', "checkpoint.marker = '.': is no glob", "'**'"),
    (OPAQUE + 'unit = ["a/*"]', "checkpoint.unit.0 = 'a/*': is not directly below path", "checkpoint-*"),
    (OPAQUE + 'expect = ["*.pt"]', "checkpoint.expect.0 = '*.pt': does not name the rank", "{rank:05d}"),
    (OPAQUE + 'expect = ["{rang}"]', "checkpoint.expect.0 = '{rang}': does not name the rank", "{rank}"),
    (OPAQUE + 'writers = "every"', "checkpoint.writers = 'every': needs expect or marker", "expect = "),
    (OPAQUE + 'writers = "all"', "checkpoint.writers = 'all': must be 'first' or 'every'", "explain-config"),
    (OPAQUE + 'reshard = "all"', "checkpoint.reshard = 'all': has an effect with writers = every only", "every"),
    (OPAQUE + "timeout_seconds = 0", "checkpoint.timeout_seconds = 0: must be more than 0", "explain-config"),
    (GOOD + '[checkpoint]\nmarker = "x"', "checkpoint.marker = 'x': has an effect in opaque mode only", "opaque"),
    (GOOD + "[checkpoint]\nkeep = -1", "checkpoint.keep = -1: must be at least 0", "explain-config"),
    (
        GOOD + "[retry]\nexit_codes = { 0 = 75 }",
        "retry.exit_codes.0 = '0': must be an exit code 1 to 255",
        "for example 3",
    ),
    (GOOD + "[retry]\nexit_codes = { 3 = 5 }", "retry.exit_codes.3 = 5: must be a class 70 to 78", "75 (transient)"),
    (GOOD + "[retry]\nbackoff_seconds = 900", "retry.backoff_cap_seconds = 300.0: is less than", "raise it"),
    (GOOD + "[retry]\nbackoff_seconds = nan", "retry.backoff_seconds = nan: must be a finite number", "explain"),
    (GOOD + '[evaluation]\nscript = "e.py"', "evaluation.metric: is required", "(also wrong: evaluation.direction)"),
    (EVALUATION + 'module = "m"', "evaluation.module = 'm': cannot be given beside script", "remove"),
    (EVALUATION + 'baseline = "none"', "evaluation.baseline = 'none': every number would pass", "floor"),
    (EVALUATION + "floor = inf", "evaluation.floor = inf: must be a finite number", "explain"),
    (EVALUATION + f'args = ["{SECRET}"]', "evaluation.args.0 = '***': looks like a credential", "Secret"),
    (EVALUATION + "timeout_seconds = 0", "evaluation.timeout_seconds = 0: must be at least 1", "explain"),
    (GOOD + '[promotion]\npointer = "p"', "promotion: has no effect without [evaluation]", "add [evaluation]"),
    (GOOD + "[deadlines]\nrun_seconds = -1", "deadlines.run_seconds = -1: must be at least 0", "explain"),
    (GOOD + "[deadlines]\ngrace_seconds = '1m'", "deadlines.grace_seconds = '1m': must be a whole number", "explain"),
    (GOOD + "[batch]\nmicro_batch_size = 0", "batch.micro_batch_size = 0: must be at least 1", "explain"),
    (GOOD + "[batch]\nmicro_batch_size = 1\nbase_batch_size = 8", "batch.base_learning_rate: is required", "neither"),
    (
        GOOD + '[batch]\nmicro_batch_size = 1\n[gang]\nnnodes = "2:4"',
        "batch.accumulation_steps = 1: the effective batch of 4 samples would not stay the same with 3 of 4 nodes",
        "accumulation_steps = 3 or",
    ),
    (GOOD + '[notify]\nwebhook_secret = "A"', "notify.webhook_secret = 'A': must be a Kubernetes name", "lower-case"),
    ("name = ", "not TOML: ", "line 1"),
    (GOOD + "[gang\nnnodes = 2", "not TOML: ", "'[gang'"),
    (GOOD + GOOD, "not TOML: ", "line 3"),
    ("[" * 100_000, "not TOML", ""),
]


@pytest.mark.parametrize(("text", "begins", "contains"), WRONG, ids=[each[1][:40] for each in WRONG])
def test_refused_with_value_rule_and_remedy(text: str, begins: str, contains: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_run(text, "run.toml")
    message = str(caught.value)
    assert message.startswith(f"run.toml: {begins}"), message
    assert contains in message, message
    assert ";" in message or "did you mean" in message, message
    assert "\n" not in message
    assert SECRET not in message
    assert "correct horse" not in message
    assert "u:p@h" not in message


def test_python_construction_says_the_same() -> None:
    with pytest.raises(InputError, match=r"^gang\.nnodes = 0: must be at least 1"):
        TrainingRun(name="n", script="t.py", gang={"nnodes": 0})
    with pytest.raises(InputError, match=r"^nnodes = 0: must be at least 1"):
        Gang(nnodes=0)
    with pytest.raises(InputError, match=r"did you mean 'gang'\?"):
        TrainingRun(name="n", script="t.py", gnag={})  # type: ignore[call-arg]


def test_help_names_the_error_that_is_raised() -> None:
    assert "InputError" in str(TrainingRun.__init__.__doc__)


def test_a_run_is_frozen() -> None:
    run = TrainingRun(name="n", script="t.py")
    with pytest.raises(InputError, match="a description does not change"):
        run.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    "variables",
    [
        {"TOKENIZERS_PARALLELISM": "false"},
        {"MAX_TOKENS": "512"},
        {"PAD_TOKEN": "<pad>"},
        {"AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/secrets/token"},
        {"HF_HOME": "/argosy/tmp/hub"},
        {"NCCL_DEBUG": "INFO"},
        {"PYTHONPATH": "src"},
        {"ARGOSY_S3_TRANSPORT": "library"},
    ],
)
def test_ordinary_variables_are_no_secrets(variables: dict[str, str]) -> None:
    assert TrainingRun(name="n", script="t.py", env=variables).env == variables


@pytest.mark.parametrize(
    ("make", "contains"),
    [
        (lambda folder: folder / "absent.toml", "no such file; write one with"),
        (lambda folder: folder, "is a folder"),
        (lambda folder: _written(folder, b"name = '\xff'"), "not UTF-8"),
        (lambda folder: folder / "nul\0.toml", "cannot be read"),
        (lambda folder: folder / ("n" * 300), "cannot be read"),
    ],
)
def test_files_that_cannot_be_read(make: object, contains: str, tmp_path: Path) -> None:
    assert callable(make)
    with pytest.raises(InputError, match=contains):
        load_run(make(tmp_path))


def _written(folder: Path, data: bytes) -> Path:
    path = folder / "run.toml"
    path.write_bytes(data)
    return path


def test_bytes_may_be_a_number() -> None:
    """Of a number of seven digits and more only six were kept, as 2.14748e+09, which was refused."""
    resources = {"cpu": 2.5, "memory": 64e9}
    run = TrainingRun(name="n", script="t.py", gang={"shm_size": 2147483648, "resources": resources})
    told = run.gang.resources
    assert (run.gang.shm_size, told.cpu, told.memory) == ("2147483648", "2.5", "64000000000")


def test_editors_byte_order_mark_and_line_ends(tmp_path: Path) -> None:
    text = (GOOD + "[gang]\nnnodes = 2\n").replace("\n", "\r\n")
    assert load_run(_written(tmp_path, b"\xef\xbb\xbf" + text.encode())).gang.max_nnodes == 2


@pytest.mark.parametrize("source", ["{emptyDir = {}}", "{ephemeral = {volumeClaimTemplate = {}}}"])
def test_a_volume_of_the_pod_alone_may_hold_its_checkpoints(source: str) -> None:
    """A pod's large disk below the script, also where the code around it lies on a volume of everybody's."""
    mounts = [("code", "/app", '{nfs = {server = "s", path = "/"}}'), ("disk", "/app/out", source)]
    tables = (
        f'[[gang.pod.volumes]]\nname = "{name}"\nmount_path = "{path}"\nsource = {kind}\n'
        for name, path, kind in mounts
    )
    head = 'code = ""\nworking_dir = "/app"\n[checkpoint]\nmode = "opaque"\npath = "out"\n'
    assert parse_run(GOOD + head + "".join(tables)).checkpoint.path == "out"


def test_warnings_of_what_is_probably_not_meant() -> None:
    run = TrainingRun(
        name="n", script="t.py", storage={"uri": "file:///srv/store"}, gang={"resources": {"gpu": 8, "memory": "9Gi"}}
    )
    outside, idle, unjudged = warnings(run)
    assert "storage.uri = 'file:///srv/store' is not below storage.mount_path = '/mnt/argosy'" in outside
    assert "7 GPUs of each node stay idle" in idle
    assert "no [evaluation]" in unjudged
    assert not run.mounts_claim


def test_the_description_has_one_digest() -> None:
    first = TrainingRun(name="n", script="t.py")
    assert first.digest() == parse_run(GOOD).digest()
    assert len({first.digest(), first.digest("a" * 64), TrainingRun(name="n", script="u.py").digest()}) == 3


def test_a_field_without_its_name_is_refused() -> None:
    with pytest.raises(InputError, match="TrainingRun\\('gpt'\\): fields are given by name"):
        TrainingRun("gpt", script="train.py")
