"""A speed-of-light S3: data sets that nobody stores, served as fast as one Python process can.

    python -m benchmarks.staging.origin --dataset small:2000:16384 [--latency 0.03] [--rate 83886080] …

Prints its endpoint first; SIGTERM ends it. Bucket ``bench`` holds the data sets and is read-only; the buckets of
``--bucket`` are those of tests/s3, in memory, for everything else that S3 can. ``GET /-/counters`` tells what was
asked for and sent, ``GET /-/set?latency=0.03&rate=0&refuse=0&crc=1`` sets and begins counting anew.
"""
