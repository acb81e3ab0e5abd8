"""Exceptions by the class that a library raises, whatever their words: https://docs.ray.io/en/latest/ray-core/api/exceptions.html,
https://huggingface.co/docs/huggingface_hub/package_reference/utilities, botocore/exceptions.py,
https://googleapis.dev/python/google-api-core/latest/exceptions.html, torch/_C/__init__.pyi.in."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.pattern import Pattern

_REFUSED = ExitCode.CONFIGURATION


def _of(
    cause: Cause, module: str, names: str, example: str, weight: Weight = Weight.ROOT, code: ExitCode | None = None
) -> Pattern:
    """Classes of one module; a traceback may show a shorter path than they are defined at."""
    return Pattern(cause, rf"^(?:{module})\.(?:\w+\.)*(?:{names})\b", example, weight, code)


_RAY = (
    _of(Cause.DISK_FULL, "ray", "OutOfDiskError", "ray.exceptions.OutOfDiskError: Local disk is full"),
    _of(
        Cause.SHM_EXHAUSTED, "ray", "ObjectStoreFullError", "ray.exceptions.ObjectStoreFullError: Object store is full"
    ),
    _of(
        Cause.PREEMPTED_EVICTED,
        "ray",
        "NodeDiedError|LocalRayletDiedError|PreemptionError",
        "ray.exceptions.NodeDiedError: The node that the task ran on is gone",
    ),
    _of(
        Cause.UNSCHEDULABLE,
        "ray",
        "(Task|Actor)UnschedulableError",
        "ray.exceptions.ActorUnschedulableError: The actor is not schedulable",
    ),
    _of(
        Cause.CONFIG_OR_RBAC,
        "ray",
        "RuntimeEnvSetupError|AuthenticationError",
        "ray.exceptions.RuntimeEnvSetupError: Failed to set up runtime environment.",
    ),
    _of(
        Cause.NCCL_TIMEOUT,
        "ray",
        "NCCLHangError|RayChannelTimeoutError|GetTimeoutError",
        "ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready.",
        Weight.MESSENGER,
    ),
    _of(
        Cause.PEER_LOST,
        "ray",
        r"ActorUnavailableError|ObjectLostError|OwnerDiedError|ObjectReconstructionFailed\w*|ObjectFetchTimedOutError"
        r"|ReferenceCountingAssertionError|RpcError|RayChannelError|RayDirectTransportError",
        "ray.exceptions.OwnerDiedError: Failed to retrieve object",
        Weight.CASCADE,
    ),
    _of(
        Cause.UNKNOWN,
        "ray",
        r"RaySystemError|TaskCancelledError|(Task|Actor)PlacementGroupRemoved|WorkerGroupError|ControllerError",
        "ray.exceptions.RaySystemError: System error: unknown",
        Weight.CASCADE,
    ),
)

_TORCH = (
    _of(
        Cause.SIGTERM,
        "torch",
        "SignalException",
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 12 got a signal",
        Weight.MESSENGER,
    ),
    _of(
        Cause.CUDA_DRIVER,
        r"torch\.cuda|pynvml",
        r"DeferredCudaCallError|NVMLError\w*",
        "pynvml.NVMLError_Unknown: Unknown Error",
    ),
    _of(  # of the network and its peers, never of the program
        Cause.UNKNOWN,
        "torch",
        "_?Dist(Backend)?Error|FatalError",
        "torch.distributed.DistBackendError: the backend says no more",
        Weight.CASCADE,
    ),
    _of(
        Cause.RENDEZVOUS_CONNECT,
        "etcd3?",
        r"[A-Z]\w+",
        "etcd.EtcdKeyNotFound: Key not found : /torch/elastic/store",
        Weight.MESSENGER,
    ),
    _of(
        Cause.PEER_LOST,
        "horovod|distributed|dask",
        "HorovodInternalError|CommClosedError",
        "horovod.common.exceptions.HorovodInternalError: ncclAllReduce failed",
        Weight.CASCADE,
    ),
)

_STORES = (
    _of(
        Cause.S3_MISSING,
        r"google\.(api_core|cloud)|azure",
        "NotFound|ResourceNotFoundError",
        "google.api_core.exceptions.NotFound: 404 GET the object",
    ),
    _of(
        Cause.S3_ACCESS,
        "google|azure|botocore",
        r"Forbidden|Unauthorized|PermissionDenied|Unauthenticated|RefreshError|ClientAuthenticationError"
        r"|MalformedError|(No|Partial|Unknown)Credential\w*|CredentialRetrievalError|NoAuthTokenError"
        r"|TokenRetrievalError|UnknownTokenProviderError|Profile\w+|\w*SSO\w*|Login\w+",
        "google.auth.exceptions.RefreshError: the account is gone",
    ),
    _of(
        Cause.S3_ACCESS,
        "botocore|boto3",
        r"(No|Unknown|Invalid|ServiceNotIn)Region\w*|(Invalid|Unsupported|Unknown|Missing|Undefined|ParamValidation|Config"
        r"|EndpointVariant|EndpointProvider|EndpointResolution|AliasConflict|Validation|Range|\w+Config|DataNotFound|ApiVersionNotFound|OperationNotPageable)\w*",
        "botocore.exceptions.NoRegionError: You must specify a region.",
    ),
    _of(
        Cause.S3_THROTTLE,
        "google|azure|botocore",
        r"TooManyRequests|ServiceUnavailable|InternalServerError|BadGateway|GatewayTimeout|DeadlineExceeded|RetryError"
        r"|Aborted|TransportError|Service(Request|Response)(Timeout)?Error|\w*(Connection|Timeout|Proxy|HTTPClient|SSL"
        r"|ResponseStreaming|IncompleteRead|Checksum)\w*Error",
        "google.api_core.exceptions.TooManyRequests: 429 slower",
    ),
)

_HUBS = (
    _of(
        Cause.HUB_NETWORK,
        "huggingface_hub|datasets|wandb|requests|httpx|modelscope",
        r"HFValidationError|GatedRepoError|(Disabled)?Repo(sitory)?(NotFound)?Error|(Revision"
        r"|(Remote)?Entry)NotFoundError"
        r"|LocalTokenNotFoundError|BadRequestError|(Dataset|DataFiles)NotFoundError|AuthenticationError|UsageError"
        r"|MissingSchema|Invalid(Schema|URL|Header|ProxyURL)|UnsupportedProtocol|NotExistError",
        "huggingface_hub.errors.RevisionNotFoundError: nothing of that name",
        code=_REFUSED,
    ),
    Pattern(
        Cause.HUB_NETWORK,
        r"not a valid (model|git) identifier|^OSError: Can't load (the )?\w+ (for|of) '|Incorrect path_or_model_id"
        r"|was not found in (\w+ )?model name list|does not appear to have a file named"
        r"|Couldn't find (a|any) (dataset script|data file) ",
        "OSError: a/b is not a local folder and is not a valid model identifier listed on"
        " 'https://huggingface.co/models'",
        code=_REFUSED,
    ),
    Pattern(
        Cause.HUB_NETWORK,
        r"There was a specific connection error when trying to load|Consistency check failed: file should be of size"
        r"|looks like there is no internet connection|invalid hash value \(expected",
        "OSError: Consistency check failed: file should be of size 9 but has size 3",
    ),
    _of(
        Cause.DATA_CORRUPT,
        "datasets",
        r"NonMatching(Checksum|SplitsSizes)Error|(Expected|Unexpected)\w*(Splits|Files?)\w*",
        "datasets.utils.info_utils.NonMatchingSplitsSizesError: [{'expected'",
    ),
)

PATTERNS = (*_RAY, *_TORCH, *_STORES, *_HUBS)
