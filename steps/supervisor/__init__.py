"""The owner of restarts: control channel, ledger, and the loop of gangs and restarts."""
