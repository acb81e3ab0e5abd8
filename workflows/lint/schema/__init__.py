"""What the APIs take: the fields of the kinds, as data."""
