"""The program and its start: imports, arguments, and anything it raised."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.pattern import Pattern

_NOT_FOUND = (
    "未找到命令|未找到指令|找不到指令|コマンドが見つかりません|명령어를 찾을 수 없음|команда не найдена"
    "|commande introuvable|Kommando nicht gefunden|Befehl nicht gefunden|orden no encontrada"
    "|comando n(ão encontrado|on trovato)"
)
"""The shell's "command not found" in the languages of its users (bash's po files)."""

PATTERNS = (
    Pattern(
        Cause.IMPORT_ERROR,
        r"^ModuleNotFoundError\b|^ImportError: (cannot import|No module)|python[\d.]*(\.exe)?:? No module named"
        r"|Error while finding module specification",
        "ModuleNotFoundError: No module named 'flash_attn'",
    ),
    Pattern(
        Cause.IMPORT_ERROR,
        r"undefined symbol:|version `GLIBC(XX)?_[\d.]+' not found|DLL load failed",
        "ImportError: /usr/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by x.so)",
    ),
    Pattern(
        Cause.IMPORT_ERROR,
        r"cannot open shared object file|(?i:(unable|failed|could not|cannot|not able) (to )?(load|find|open|import)"
        r"( the)?( dynamic| shared)?( \w+)? (librar(y|ies)|lib\w+\.so))",
        "OSError: libcudart.so.12: cannot open shared object file: No such file or directory",
    ),
    Pattern(
        Cause.IMPORT_ERROR,
        r"^ImportError\b|^AttributeError: (partially initialized )?module '[\w.]+' has no attribute"
        r"|module was compiled (using|against)|compiled with different CUDA|: Numpy is not available"
        r"|operator \S+::\S+ does not exist|numpy\.dtype size changed|ABI version"
        r"|Error building extension|CUDAMismatchException",
        "RuntimeError: module was compiled against NumPy C-API version 0x10 but this version of NumPy is 0xf",
    ),
    Pattern(
        Cause.LAUNCHER_USAGE,
        rf"can't open file '.*'|\b(torchrun|deepspeed|accelerate|python\d?)(: |：)((command )?not found|{_NOT_FOUND})"
        r"|not enough slots available|(?i:exec format error)|exec user process caused",
        "/usr/bin/python: can't open file '/argosy/workspace/trian.py': [Errno 2] No such file or directory",
    ),
    Pattern(
        Cause.LAUNCHER_USAGE,
        rf"^\S*sh: (line )?(\d+: )?\S+: ([Pp]ermission denied|not found|[Nn]o such file)|(: |：)({_NOT_FOUND})$",
        "/bin/bash: line 1: ./run.sh: Permission denied",
        Weight.HINT,  # a script goes on after a helper that is not there
    ),
    Pattern(
        Cause.LAUNCHER_USAGE,
        r"^\S+: (unrecognized|unknown|invalid) option\b",
        "sbatch: unrecognized option '--container-image=a'",
        Weight.HINT,  # likewise; of getopt
    ),
    Pattern(
        Cause.LAUNCHER_USAGE,
        r"error: (unrecognized arguments|the following arguments are required|argument [-\w/, ]+:|invalid choice)",
        "train.py: error: unrecognized arguments: --stesp 100",
    ),
    Pattern(
        Cause.LAUNCHER_USAGE,
        r"^\S+\.py: error: |^Error: (Invalid value for|Got unexpected extra|No such (option|command)|Missing (option"
        r"|argument|parameter))|Could not consume arg|^(Could not override|Error parsing override) '"
        r"|^Key '.*' is not in "
        r"struct|^Primary config (module|directory)|^In '.*': Could not find '|Flags parsing error"
        r"|UnrecognizedFlagError"
        r"|^(\w+\.)*(hydra|omegaconf)\.errors\.|not used by the HfArgumentParser|error: Parser key ",
        "train.py: error: too few arguments",  # argparse, click, fire, hydra, absl, jsonargparse, transformers
    ),
    Pattern(
        Cause.LAUNCHER_USAGE,
        r"mpirun was unable to (launch|find) the specified|enroot-switchroot: failed to execute"
        r"|execve\(\): (?!\S*/slurm_script:).*: (No such file|Permission denied)"
        r"|^(/usr/bin/)?env: .*: No such file",
        "slurmstepd: error: execve(): trian.sh: No such file or directory",
    ),
    Pattern(
        Cause.LAUNCHER_USAGE,
        r"^usage: \S+ \[-h\]",
        "usage: train.py [-h] -opt OPT [--local_rank LOCAL_RANK]",
        Weight.HINT,  # printed before the error, and by a program that is asked for help
    ),
    Pattern(
        Cause.LAUNCHER_USAGE,
        r"(?i)Default process group has not been initialized|environment variable \w+ expected, but not set"
        r"|no rendezvous handler for|using \w+:// rendezvous: path missing",
        "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, "
        "but not set",
    ),
    Pattern(
        Cause.LAUNCHER_USAGE,
        r"(?i)world.?size \(?\d+\)? (is not|must be|should be)|divisible by .*\b(world|tensor|pipeline|parallel"
        r"|[tpem]p)|(must divide|divisible by|multiple of) .*world.?size",
        "RuntimeError: world size (6) is not divisible by tensor model parallel size (4)",
    ),
    Pattern(
        Cause.USER_EXCEPTION,
        r"^(?!nccl[A-Z])(?!.*: Traceback \()"
        r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Iteration|Warning|Failure|Exit|Timeout"
        r"|Disconnected)(:|$)|^Exception:"
        r"|^([a-z_]\w*\.)*(exc|errors?|exceptions?)\.[A-Z]\w*: \S",
        "ValueError: loss is not a scalar",
        Weight.GENERIC,
    ),
)
