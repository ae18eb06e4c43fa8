"""Medians of interleaved runs, and the ratios they are printed as."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Ratio:
    """One measurement against another, and the limit it should keep, if it has one."""

    what: str
    ours: float
    peer: float
    limit: float | None = None
    larger_is_better: bool = False
    unit: str = " s"

    @property
    def value(self) -> float:
        """Peer over ours where larger is better, else ours over peer."""
        return self.peer / self.ours if self.larger_is_better else self.ours / self.peer

    @property
    def kept(self) -> bool:
        """Whether the limit is kept; true without one."""
        if self.limit is None:
            return True
        return self.value >= self.limit if self.larger_is_better else self.value <= self.limit

    def __str__(self) -> str:
        times = f"{self.ours:9.4f}{self.unit} against {self.peer:9.4f}{self.unit}"
        line = f"{self.what:72} {times}  {self.value:9.3g}"
        if self.limit is None:
            return f"{line}  (no limit)"
        sign = "≥" if self.larger_is_better else "≤"
        verdict = "kept" if self.kept else "MISSED"
        return f"{line}  ({sign} {self.limit:g}: {verdict})"


def medians(*works: Callable[[], object], rounds: int = 5) -> list[float]:
    """Run the works in turn, after one round to warm up, and return each one's median time."""
    times: list[list[float]] = [[] for _ in works]
    for round_ in range(rounds + 1):
        for taken, work in zip(times, works, strict=True):
            start = time.perf_counter()
            work()
            if round_:
                taken.append(time.perf_counter() - start)
    return [median(taken) for taken in times]
