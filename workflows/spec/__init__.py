"""The description of a training run: fields, defaults, rules, and its TOML."""
