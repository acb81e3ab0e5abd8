"""What runs at author time: describe a run, compile it to Argo YAML, run that YAML on one machine."""
