"""The ``argosy`` command. One module per verb; a verb's module is imported only when it is used."""
