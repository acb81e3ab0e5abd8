"""Topics of what runs: devices, links, programs and their peers; less narrow than those of what a job is given."""

from argosy.steps.contract.causes import Cause
from argosy.steps.verdict.families.words import ABSENT, FAILED, GONE, LATE, RDMA, UNEQUAL
from argosy.steps.verdict.topic import Topic

RUNNING = (
    Topic(
        Cause.NCCL_IB_ERROR,
        RDMA + r"|\b(CQ|QP|MR|GID|LID)s?\b",
        FAILED + r"|timeout|retry|syndrome|port down|link down|\bsynd\b|bad address|unreachable|invalid",
        "mlx5_2: CREATE_QP failed, status limits exceeded",
    ),
    Topic(
        Cause.NCCL_NETWORK_INIT,
        r"NCCL WARN NET/(OFI|Socket|Plugin)",  # the part of NCCL that speaks
        FAILED,
        "NCCL WARN NET/OFI creating an endpoint failed: invalid argument",
    ),
    Topic(
        Cause.NCCL_INVALID_USAGE,
        r"\b\w*ccl\b|\b[nrh]ccl\w*|cudadev",
        r"invalid (usage|argument|parameter)|duplicate|(un|not )supported|version.*mismatch|mismatch\w* .*version",
        "RCCL operation AllReduce failed: invalid usage",
    ),
    Topic(
        Cause.COLLECTIVE_MISMATCH,
        r"\b(collectives?|all.?(reduce|gather)\w*|reduce.?scatter|allto\w+|ranks?|process(es)? \d|world|same param)\b",
        UNEQUAL + r"|different (shape|size|order|number|tensor|operation)\w*|out of sync|desync\w*|ran ahead|uneven",
        "ranks disagree: rank 3 called a broadcast of a different shape",
    ),
    Topic(
        Cause.NCCL_TIMEOUT,
        r"\b(collectives?|nccl\w*|rccl\w*|hccl\w*|all.?(reduce|gather)\w*|barrier|broadcast|reduce.?scatter\w*|gloo)\b",
        LATE + r"|stuck",
        "HCCL allreduce notify wait timed out after 1800 s",
    ),
    Topic(
        Cause.NCCL_NETWORK_INIT,
        r"\b(nccl\w*|rccl\w*|hccl\w*|gloo|bootstrap|ifname|interfaces?|nics?|socket_ifname|net/\w+|(fi|ofi)_\w+"
        r"|providers?)\b",
        rf"{ABSENT}|no (usable|socket|network|matching) |unreachable|no route|fail\w* to (bind|connect|init\w*|find)"
        r"|could( no|n.)t (bind|connect|find)|address family|not supported|connect.*(timed out|refused|failed)",
        "gloo: no usable interface for device eth9",
    ),
    Topic(
        Cause.CUDA_HARDWARE,
        r"\b(gpus?|amdgpu\w*|ecc|nvlink\w*|nvswitch|xid|pcie|hbm\w*|sram|dcgm|npu|tpu\w*|chips?|accelerator)\b"
        r"|/dev/(accel|nvidia|kfd|davinci|hl|vfio)",
        r"uncorrect\w*|hardware|\bfell\b|fallen|\blost\b|degraded|unhealthy|row.?remap\w*|thermal|fatal|bad state"
        r"|reset required|needs? (a )?reset|recovery action|error interrupt|results may be corrupted"
        r"|\binactive\b|\bfaulty\b|health check failed|ring \w+ timeout|gpu reset",
        "DCGM: GPU 3 unhealthy, row remap pending",
    ),
    Topic(
        Cause.IMPORT_ERROR,
        r"\blib(cu(dart|dnn|blas|fft|sparse|solver|rand)\w*|nccl|nvrtc\w*|nvjitlink)\.so|\bcuda runtime library\b",
        ABSENT,  # the driver brings libcuda.so and libnvidia-*.so, and no package does
        "libcudart.so not found in any environmental path",
    ),
    Topic(
        Cause.CUDA_DRIVER,
        r"\b(cuda\w*|nvidia\w*|gpus?|nvml|hip|rocm|drivers?|accelerators?|device ordinal|fabric ?manager"
        r"|libcuda\w*|hpus?|habana\w*|gaudi|syn\w+|neuron\w*|nrt|nvidia-fabricmanager|hip\w+|backend|ze_\w+"
        r"|level.?zero|tpu\w*)\b|/dev/(vfio|nvidia|accel|davinci|hl|kfd|dri)|\bdevice ?open",
        rf"{ABSENT}|insufficient|too old|not? (cuda|gpu|devices?|nvidia)\b|{FAILED}.*(init\w*|load\w*|communicat\w*)"
        r"|unsupported|incompatible|version mismatch|not compatible|driver/library|newer|older"
        r"|no (\w+ )?(devices?|gpus?|accelerators?) (were |was |are )?(found|visible)|no visible|select device driver"
        r"|open ?fail\w*|fail\w* to open|resource busy|unable to (initiali[sz]e|determine)|NoBinaryFor\w+|code object"
        r"|fabric ?manager\S* ?.*(fail|exited)|NVSwitch driver failed|device acquire failed|DeviceAcquire\b.* failed",
        "device check: the runtime is newer than its accelerators allow",
    ),
    Topic(
        Cause.HOST_OOM,
        r"cannot allocate memory|\bENOMEM\b",
        r".",
        "fork: Cannot allocate memory",
    ),
    Topic(
        Cause.HUB_NETWORK,
        r"hugging ?face|\bhub\b|https?://|\bhttps?\b|\bdownload\w*|\bprox(y|ies)\b|\bssl\b|\btls\b|wandb|mlflow"
        r"|clearml|comet|neptune|modelscope|kaggle|licen[cs]e|github|\burl\b|urlopen",
        rf"\b(429|5\d\d)\b|{LATE}|max retries|unreachable|refused|offline|handshake|certificate|too many requests"
        r"|connect\w*.*(error|fail\w*|abort\w*)|connectionerror|fail\w* to (fetch|download|reach)|temporarily"
        r"|could ?n.t reach|checkout failed|\b40[134]\b|forbidden|unauthori[sz]ed",
        "modelscope: could not download the model, connection error",
    ),
    Topic(
        Cause.IMPORT_ERROR,
        r"\b(modules?|librar(y|ies)|lib\w+\.so\S*|\w+\.so|symbols?|packages?|import\w*|glibc\w*|dlopen|dependenc\w+"
        r"|cpp extension|ninja|nvcc|wheel|\w*version \d)\b",
        r"not (be )?(found|installed|importable)|cannot|could not|unable|undefined|no module|fail\w* to (load|import"
        r"|build)|requires?\b|incompatible|not available|built (for|with|against)|compiled (for|with|against)",
        "plugin check: the collective library is not installed",
    ),
    Topic(
        Cause.CONFIG_OR_RBAC,
        r"\b(containers?|plugins?|prolog|epilog|sandbox|hooks?|spank|runtime|shim|taskprolog|job ?script)\b",
        r"(could ?n.t|could not|cannot|unable to|fail\w* to|error) (start\w*|creat\w*|launch\w*|init\w*|mkdir|set ?up"
        r"|invoke|exec\w*)|(start|launch|creation|initiali[sz]ation|setup|exec\w*) failed|couldn.t mkdir",
        "enroot: container start failed with error code: 1",
    ),
    Topic(
        Cause.IMPORT_ERROR,
        r"\bcuda[_ ]setup failed|\bcompile with [A-Z_]+=|\b(not|without being) (compiled|built) with",
        r".",
        "kvstore.h:161: compile with USE_DIST=1 to use several nodes",
    ),
    Topic(
        Cause.IMPORT_ERROR,
        r"\bnot installed\b",
        r"error|require|\bmust\b|abort|fatal",
        "error: FlashAttention is not installed",
    ),
    Topic(
        Cause.LAUNCHER_USAGE,
        r"\b((?<!invalid )arguments?(?!.* in method\b)|args?|options?|flags?|script|entrypoint|commands?"
        r"|nproc\w*|nnodes|usage|world.?size|hostfile"
        r"|slots|srun|sbatch|master_port|node_rank|local.?rank|environment|num_(executors|workers|nodes|processes"
        r"|gpus|procs)"
        r"|cluster.?size|executable|execute)\b",
        rf"unrecogni[sz]ed|unable to layout|unknown|required|\bexpected|\bmatch(es)?\b|not ?null|not set|\bunset\b"
        rf"|unsupported|must be"
        rf"|not divisible"
        rf"|no such file|{ABSENT}"
        r"|not executable|invalid|permission denied|not enough",
        "launcher: unsupported nproc value",
    ),
    Topic(
        Cause.ADDRESS_IN_USE,
        r"\b(ports?|address\w*|sockets?|bind\w*|listen\w*)\b",
        r"in use|already|taken|occupied|EADDR\w+|conflict",
        "store: port 29500 is occupied by another job",
    ),
    Topic(
        Cause.RENDEZVOUS_TIMEOUT,
        r"\b(rendezvous|workers?|nodes?|ranks?|clients?|peers?|tasks?|hosts?|members?|registration|join\w*|grpc"
        r"|remote target|\w*CollectiveExecutor|context_distributed\w*)\b",
        r"deadline[ _]exceeded|still waiting (for|on)|waiting to connect|(wait\w*|barrier|join\w*|regist\w*"
        r"|rendezvous|arriv\w*|start\w*"
        r"|connect\w*).*(tim(ed?"
        r"|ing) ?-?out|deadline)"
        r"|(tim(ed?|ing) ?-?out|deadline).*(wait\w*|barrier|join\w*|regist\w*|rendezvous|arriv\w*|start\w*)|not all"
        r"|only \d+ (of|out of) \d+|\d+/\d+ (joined|ready|arrived|connected)|never (joined|arrived|came)",
        "leader: only 3 of 4 hosts arrived",
    ),
    Topic(
        Cause.RENDEZVOUS_CONNECT,
        r"\b(master|coordinator|endpoint|leader|server|scheduler|gcs|head node|hostnames?|dns|nslookup|daemons?|ssh"
        r"|orte\w*|orted|prte\w*|resolv\w*|parameter servers?|ps|connect_socket|slurm_\w+msgs?|connect to \S+:\d+)\b",
        r"refused|resolv\w*|unreachable|(cannot|could ?n.t|unable to|fail\w* to) (connect|reach|contact|start)"
        r"|unavailable"
        r"|no route|not know how to route|socket timed out|not reachable|after launch and before|connect\w* (error"
        r"|fail\w*|timeout)|permission denied",
        "launcher: head node could not be resolved",
    ),
    Topic(
        Cause.DEADLINE_EXCEEDED,
        r"\b(jobs?|steps?|runs?|walltime|task|workflow|trial|pods?|budget)\b",
        r"time limit|deadline exceeded|wall ?time|max\w* (run ?time|duration)|timed out|tim(ed|ing)-?out"
        r"|exceeded .*(time|deadline)"
        r"|ran longer",
        "scheduler: the job ran longer than allowed",
    ),
    Topic(
        Cause.HANG,
        r"\b(training|ranks?|steps?|process\w*|components?|progress|workers?|iteration\w*|operations?|ops?"
        r"|threads?)\b",
        r"\b(hang\w*|hung|stuck|stall\w*|deadlock\w*|unresponsive|not progressing|no progress|frozen"
        r"|(no|lack of|missed) heartbeats?|no (\w+ )?steps? (for|in|within))\b",
        "monitor: rank 3 is unresponsive",
    ),
    Topic(
        Cause.PEER_LOST,
        r"\b(peers?|remote|ranks?|workers?|executors?|\w*executor\w*|daemons?|connections?|sockets?|communicat\w+"
        r"|channels?|rpc|grpc\w*|stream)\b",
        rf"{GONE}|\b(recv|send|read|write)\w* (error|fail\w*)",
        "grpc: stream to task 3 disconnected",
    ),
    Topic(
        Cause.PEER_LOST,
        r"\b(aborted|unavailable): ",  # statuses of gRPC
        r".",
        "Aborted: Session 42 of the accelerator is over",
    ),
    Topic(
        Cause.USER_EXCEPTION,
        r"\binvalid[ _]argument: ",  # likewise: what the program gave an operation
        r".",
        "StartAbort Invalid argument: var and grad do not have the same shape",
    ),
    Topic(
        Cause.USER_EXCEPTION,
        r"\b(internal compiler|compilation|unhandled|uncaught)\b",
        r"\b(error|fail\w*|exception)\b",
        "the model could not be lowered, compilation error",
    ),
    Topic(
        Cause.SIGTERM,
        r"\b(sigterm|sigint|sighup|signal 15|job|process|task|step|run|execution)\b",
        r"cancel+ed|interrupted by|stopped by|\bsigterm\b|\bsigint\b|killed by user|abort requested",
        "queue: execution cancelled on request",
    ),
)
