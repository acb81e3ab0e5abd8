"""The protocol's code driven through every order, every kind of history and every removed guard."""
