"""The experiments: many samples at once against one at a time."""

from collections.abc import Iterator

from benchmarks.timing import Ratio, medians
from muhat import KernelMean
from muhat._arrays import BLAS_ON_ONE_THREAD
from muhat.datasets import SyntheticFamily
from muhat.paper.experiments.contenders import BY_GCV, PAPER, Batch, LeadingComponents, filter_named
from muhat.paper.experiments.samples import BLOCK
from muhat.selection import GCV, LeaveOneOut


def samples_per_second(batch: int = BLOCK, few: int = 10, rounds: int = 3) -> Iterator[Ratio]:
    """(f) The losses of the paper's seven estimators on samples of 50 points in 20 dimensions."""
    draws = list(SyntheticFamily().draw(range(batch), n=50, seed=0))
    by_loo = [name for name in PAPER if name not in BY_GCV]

    def at_once() -> None:
        samples = Batch.of(draws)
        choices = LeaveOneOut().choices(samples.problem, [filter_named(name) for name in by_loo])
        choices.append(GCV().choose(samples.problem, LeadingComponents()))
        for choice in choices:
            samples.losses(choice.shrinkage(samples.problem)[None])

    def one_at_a_time() -> None:
        for draw in draws[:few]:
            for name in PAPER:
                mean = KernelMean(filter=name, selection="gcv" if name in BY_GCV else "loo").fit(draw.X)
                draw.distribution.squared_distance(mean.embedding_)

    with BLAS_ON_ONE_THREAD:  # as in the experiments' workers
        ours, loop = medians(at_once, one_at_a_time, rounds=rounds)
    print(f"(f) {batch / ours:.0f} samples per second at once, {few / loop:.0f} one at a time")
    what = f"(f) losses of seven estimators on {batch} samples of 50, against a loop (timed on {few})"
    yield Ratio(what, ours, loop * batch / few, 20, larger_is_better=True)


BENCHMARKS = {samples_per_second: {"batch": 4, "few": 1, "rounds": 1}}
