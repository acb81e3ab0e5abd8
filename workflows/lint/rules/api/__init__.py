"""API: what the API server, a CRD or an operator's webhook takes: versions, fields, types, names."""
