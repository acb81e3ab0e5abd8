"""Kinds of trouble and of things in many programs' words, for the topics."""

ABSENT = (
    r"not (be )?(found|exist\w*|loaded|available|detected|visible|installed)|missing|no such|does ?n.t exist|\b404\b"
)
FAILED = (
    r"\b(error|fail\w*|fatal|cannot|can.?t|could ?n.t|could not|unable|denied|refused|not permitted|invalid|abort\w*"
    r"|rejected|unsuccessful|critical)\b"
)
LATE = r"tim(ed?|es|ing) ?-?out|deadline|too long|expired|gave up|giving up"
STORE = (
    r"\b(s3|s3a|gcs(?! at| server|\. | or head| start)|gs|minio|boto\w*|gsutil"
    r"|awscli|x-amz-\w+|bucket\w*|blob\w*|object stor\w*|azblob|abfss?|storage account|r2)\b|s3://"
)
GONE = (
    r"lost|closed|reset|disconnect\w*|disassociated|broken|hung up|went away|gone|died|dead\b"
    r"|terminated unexpectedly|unexpectedly (failed|exit\w*|closed)|no longer reachable|end of file|\bEOF\b"
)
CORRUPT = (
    r"corrupt\w*|truncat\w*|unexpected (EOF|end)|bad (magic|crc|header)|crc|checksum|invalid (header|magic|data|block)"
    r"|magic (number|bytes)|cannot (be )?(decod\w*|pars\w*|identif\w*)|incomplete|wrong size|malformed"
)
UNEQUAL = r"mismatch\w*|not match|does ?n.t match|must match|differ\w*|incompatible|unequal|inconsistent|not equal"
RDMA = (
    r"\b(\w*rdma\w*|\w*_nic|work queue|infiniband|verbs|mlx\d?\w*|ibv?_\w+|roce\w*|libfabric|efa\d?|ucx|hca"
    r"|qpairs?|subnet manager)\b"
)
