"""Other packages on the same problems, each in its own environment; results are data."""
