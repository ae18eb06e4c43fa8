"""Speed, as ratios against a peer or a limit measured in the same run.

Every module has ``BENCHMARKS``: its functions, each with the sizes at which the tests run it in a moment.
"""
