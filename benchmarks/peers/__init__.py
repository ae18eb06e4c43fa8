"""Other packages on the same problems, each in an environment of its own; their results are kept as data."""
