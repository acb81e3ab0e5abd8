"""A small S3 server for tests, in memory, whose requests go wrong as told.

In a test::

    with S3Server() as server:                       # http://127.0.0.1:PORT, bucket "argosy-tests", path style
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.endpoint)     # any key id and secret will do
        server.begin(at(17, "reset-after"))          # request 17 (from 0) is carried out and its answer lost
        ...
        [seen.operation for seen in server.requests] # the log: operation, path, fault, status

As a process, for runs of several processes (prints its endpoint first; SIGTERM ends it with a summary)::

    python -m tests.s3 --port 9300 --seed 7 --fault-rate 0.1 [--kinds slow-down,error-after,…] [--bucket NAME]
    python -m tests.s3 --forward http://127.0.0.1:5000 --fault-rate 0.1      # a real S3 keeps the objects
    AWS_ENDPOINT_URL=http://127.0.0.1:9300 AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b AWS_REGION=us-east-1 argosy …

Kinds of faults are listed in faults.py; the default of ``--kinds`` is what a repeated request gets over (``truncated``
and ``wrong-bytes`` are bytes that no retry sees: whoever reads must hash). A plan decides by a request's number alone,
so a seed gives the same faults for the same requests. ``lying.py`` has buckets that break a promise each.

The log grows with every request (about 200 bytes each). Signatures are not checked. It is written to be small and
fast, not to be a store: nothing survives the process.
"""

from tests.s3.bucket import Bucket
from tests.s3.faults import KINDS, TRANSIENT, Plan, Seen, at, at_random, nothing, on
from tests.s3.server import S3Server

__all__ = ["KINDS", "TRANSIENT", "Bucket", "Plan", "S3Server", "Seen", "at", "at_random", "nothing", "on"]
