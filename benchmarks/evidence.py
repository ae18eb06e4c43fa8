"""The experiments: many samples at once against one at a time."""

from collections.abc import Iterator

from benchmarks.timing import Ratio, medians
from muhat import KernelMean
from muhat._arrays import BLAS_ON_ONE_THREAD
from muhat.datasets import SyntheticFamily
from muhat.selection import GCV, LeaveOneOut
from paper._estimators import BY_GCV, BY_LOO, PAPER, LeadingComponents, filter_named
from paper._samples import SAMPLES_PER_TASK, exact_losses


def samples_per_second(
    batch: int = SAMPLES_PER_TASK, few: int = 10, rounds: int = 3
) -> Iterator[Ratio]:
    """(f) The losses of the paper's seven estimators on samples of 50 points in 20 dimensions."""
    draws = list(SyntheticFamily().draw(range(batch), n=50, random_state=0))

    def at_once() -> None:
        exact = exact_losses(draws)
        choices = LeaveOneOut().choices(exact.problem, [filter_named(name) for name in BY_LOO])
        choices.append(GCV().choose(exact.problem, LeadingComponents()))
        for choice in choices:
            exact.of_choice(choice)

    def one_at_a_time() -> None:
        for draw in draws[:few]:
            for name in PAPER:
                mean = KernelMean(filter=name, selection="gcv" if name in BY_GCV else "loo").fit(
                    draw.X
                )
                draw.distribution.squared_distance(mean.embedding_)

    with BLAS_ON_ONE_THREAD:  # as in the experiments' workers
        ours, loop = medians(at_once, one_at_a_time, rounds=rounds)
    print(f"(f) {batch / ours:.0f} samples per second at once, {few / loop:.0f} one at a time")
    what = (
        f"(f) losses of seven estimators on {batch} samples of 50, against a loop (timed on {few})"
    )
    yield Ratio(what, ours, loop * batch / few, 20, larger_is_better=True)


BENCHMARKS = {samples_per_second: {"batch": 4, "few": 1, "rounds": 1}}
