"""Disks, object stores, hubs."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.verdict.pattern import Pattern

PATTERNS = (
    Pattern(
        Cause.IMAGE_PULL,
        r"(?i)failed to register layer.*no space left",
        "failed to register layer: write /usr/lib/libx.so: no space left on device",
    ),
    Pattern(
        Cause.DISK_FULL,
        r"(?i)no space left on device|Errno 28\]|disk quota exceeded|database or disk is full",
        "OSError: [Errno 28] No space left on device: '/argosy/workspace/out/ckpt.pt'",
    ),
    Pattern(
        Cause.DISK_FULL,
        r"PytorchStreamWriter failed writing file|inline_container\.cc.*unexpected pos",
        "RuntimeError: PytorchStreamWriter failed writing file data/17: file write failed",
    ),
    Pattern(
        Cause.S3_ACCESS,
        r"(?i)ExpiredToken|token (included in the request )?(has|is) expired|RequestExpired",
        "botocore.exceptions.ClientError: An error occurred (ExpiredToken) when calling the GetObject operation",
        code=ExitCode.TRANSIENT,
    ),
    Pattern(
        Cause.S3_ACCESS,
        r"RequestTimeTooSkewed",
        "An error occurred (RequestTimeTooSkewed) when calling the PutObject operation: The difference between",
        code=ExitCode.SUSPECT_NODE,
    ),
    Pattern(
        Cause.S3_ACCESS,
        r"\(AccessDenied\)|AccessDenied|\(403\) when calling|\(InvalidAccessKeyId\)|SignatureDoesNotMatch",
        "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the GetObject operation",
    ),
    Pattern(
        Cause.S3_ACCESS,
        r"NoCredentialsError|Unable to locate credentials|DefaultCredentialsError|CredentialUnavailableError",
        "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
    ),
    Pattern(
        Cause.S3_MISSING,
        r"NoSuchBucket|NoSuchKey|\(404\) when calling the (Head|Get)|ObjectMissing|BlobNotFound",
        "An error occurred (NoSuchKey) when calling the GetObject operation: The specified key does not exist.",
    ),
    Pattern(
        Cause.S3_THROTTLE,
        r"SlowDown|\((503|500|429)\) when calling|ServiceUnavailable|RequestLimitExceeded|reduce your request rate",
        "An error occurred (SlowDown) when calling the GetObject operation (reached max retries: 4): Please reduce",
    ),
    Pattern(
        Cause.S3_THROTTLE,
        r"EndpointConnectionError|Could not connect to the endpoint URL|Read timeout on endpoint URL"
        r"|Connect timeout on endpoint URL",
        'botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "https://s3.x.example/"',
    ),
    Pattern(
        Cause.HUB_NETWORK,
        r"GatedRepoError|RepositoryNotFoundError|401 Client Error.*huggingface|Cannot access gated repo",
        "huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo for url",
        code=ExitCode.CONFIGURATION,
    ),
    Pattern(
        Cause.HUB_NETWORK,
        r"couldn't connect to 'https?://huggingface|LocalEntryNotFoundError|HfHubHTTPError|OfflineModeIsEnabled",
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them cached",
    ),
    Pattern(
        Cause.HUB_NETWORK,
        r"Max retries exceeded with url|wandb\.errors\.CommError|[Ll]icen[cs]e server",
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub', port=443): Max retries exceeded with url",
    ),
)
