"""What ended a training, from anybody's logs: a bounded excerpt of each file, one verdict over all of them."""
