"""Object stores and hubs."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.verdict.pattern import Pattern

_REFUSED = (
    r"AccountProblem|AllAccessDisabled|AuthorizationHeaderMalformed|AuthorizationQueryParametersError|InvalidToken"
    r"|InvalidSecurity|NotSignedUp|InvalidClientTokenId|UnrecognizedClientException|AuthFailure|Forbidden"
    r"|PermanentRedirect"
    r"|TemporaryRedirect|30[17]|400|405|IllegalLocation\w*|InvalidLocationConstraint|Invalid(BucketName|Argument"
    r"|Request|URI"
    r"|ObjectState|Payer|StorageClass)|MethodNotAllowed|Malformed\w+|EntityTooLarge|BadRequest|ValidationError|KMS\.\w+"
)
"""What S3 answers to a request that is wrong each time:
https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html#ErrorCodeList."""

_PASSES = (
    r"5\d\d", "408", "409", "412", "425", "429", "Unknown", r"Internal\w*", "OperationAborted", r"Conditional\w+",
    r"Precondition\w+", r"\w+InProgress\w*", r"\w*Timeout\w*", r"\w*Thrott\w*", r"\w*Exceed\w*", r"\w*Unavailable\w*",
    r"Prior\w+", "SlowDown", r"\w*Busy", r"TooMany\w+", r"Insufficient\w+", r"\w+Digest", r"Incomplete\w+",
    r"\w+Mismatch",
)  # fmt: skip
"""What passes by itself (botocore/retries/standard.py). Any other code, known or new, refuses each time: so says the
protocol, whose errors are documents of their own (https://cloud.google.com/storage/docs/xml-api/reference-status)."""


def _code(before: str, after: str) -> str:
    """A code between two marks that does not pass. The look-ahead has no groups: the filter of files leaves it out."""
    passing = "|".join(code + after for code in _PASSES)
    return rf"{before}(?!{passing})[\w.]+"


PATTERNS = (
    Pattern(
        Cause.S3_ACCESS,
        r"(?i)ExpiredToken|token (included in the request )?(has|is) expired|RequestExpired|credentials? (has|have"
        r"|is) expired|TokenRefreshRequired",
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
        r"AccessDenied|\((40[13]|Unauthorized)\) when calling|\(InvalidAccessKeyId\)|SignatureDoesNotMatch"
        rf"|\(({_REFUSED})\) when calling|<Code>({_REFUSED})<"
        r"|PermissionError: (Forbidden|Access)|does not have \W*storage\.\w+\.\w+\W* (access|IAM)"
        r"|AuthorizationPermissionMismatch|AuthorizationFailure",
        "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the GetObject operation",
    ),
    Pattern(
        Cause.S3_ACCESS,
        r"NoCredentialsError|PartialCredentialsError|Unable to locate credentials|DefaultCredentialsError"
        r"|CredentialUnavailableError",
        "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
    ),
    Pattern(
        Cause.S3_MISSING,
        r"NoSuchBucket|NoSuchKey|(S3|\b)(Bucket|Blob|Object|Key)\w*NotFound"
        r"|specified (bucket|key|container|blob) does not exist"
        r"|\b404 (blob|bucket|object|gs://|s3://)"
        r"|\(404\) when calling the (Head|Get)|ObjectMissing|No S3 objects found|ContainerNotFound"
        r"|(?i:(NotFoundError|No such file).*\b(s3a?|gs|gcs|abfss?|r2|oci)://)",
        "An error occurred (NoSuchKey) when calling the GetObject operation: The specified key does not exist.",
    ),
    Pattern(
        Cause.S3_THROTTLE,
        r"(?i)\bslow ?down\b|\((503|429)\) when calling|ServiceUnavailable|RequestLimitExceeded"
        r"|reduce your request rate|Throttling(Exception)?\b|\((TooManyRequests|RequestTimeout|OperationAborted"
        r"|Busy|BandwidthLimitExceeded)|Rate exceeded|ServerBusy",
        "An error occurred (SlowDown) when calling the GetObject operation (reached max retries: 4): Please reduce",
    ),
    Pattern(
        Cause.S3_THROTTLE,
        r"\((500|502|504)\) when calling|occurred \(InternalError\)|EndpointConnectionError"
        r"|Could not connect to the endpoint URL|Read timeout on endpoint URL|Connect timeout on endpoint URL",
        'botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "https://s3.x.example/"',
    ),
    Pattern(
        Cause.S3_ACCESS,
        _code(r"occurred \(", r"\)") + r"\) when calling|" + _code("<Code>", "<") + "</Code>",
        "  <Code>SomethingThatNobodyListed</Code>",
    ),
    Pattern(
        Cause.S3_THROTTLE,
        rf"occurred \(({'|'.join(_PASSES)})\) when calling|<Code>({'|'.join(_PASSES)})</Code>",
        "  <Code>PriorRequestNotComplete</Code>",
    ),
    Pattern(
        Cause.HUB_NETWORK,
        r"GatedRepoError|RepositoryNotFoundError|4(0[0-7]|1\d|2[1-468]|31|51) Client Error|gated repo"
        r"|Repository Not Found for url"
        r"|HfHubHTTPError: 4(0[0-7]|1\d|2[246])",
        "huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo for url",
        code=ExitCode.CONFIGURATION,
    ),
    Pattern(
        Cause.HUB_NETWORK,
        r"do not have permission to access the requested resource|failed to upsert bucket: returned error 40[134]"
        r"|Error while calling W&B API: .*\[40[134]\]",
        "wandb: ERROR failed to upsert bucket: returned error 403 Forbidden: permission denied",
        code=ExitCode.CONFIGURATION,
    ),
    Pattern(
        Cause.HUB_NETWORK,
        r"api_key not configured",
        "wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])",
        code=ExitCode.CONFIGURATION,
    ),
    Pattern(
        Cause.HUB_NETWORK,
        r"(couldn't connect to|Couldn't reach) '?https?://|LocalEntryNotFoundError|HfHubHTTPError"
        r"|Connection error, and we cannot find|OfflineModeIsEnabled|ProxyError|(429 Client|50\d Server) Error",
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them cached",
    ),
    Pattern(
        Cause.HUB_NETWORK,
        r"urlopen error|HTTPS?ConnectionPool|Max retries exceeded with url|MaxRetryError|wandb\.errors\.CommError"
        r"|[Ll]icen[cs]e server",
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub', port=443): Max retries exceeded with url",
    ),
)
