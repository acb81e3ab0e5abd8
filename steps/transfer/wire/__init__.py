"""Our own wire to S3: HTTP/1.1, TLS and SigV4 over sockets that never block (docs/s3-transport.md)."""
