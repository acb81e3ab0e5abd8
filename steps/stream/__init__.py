"""Mode ``stream``: samples read from the dataset's store ahead of the step, each byte verified before it is used."""
