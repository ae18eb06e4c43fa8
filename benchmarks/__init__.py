"""Speed, as ratios against a peer or a limit measured in the same run.

Every module has ``BENCHMARKS``: its functions, each with the tiny sizes of the tests.
"""
