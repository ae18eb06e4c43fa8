"""Running experiments in parallel, so that one that is killed goes on where it ended; and reading their results."""

from muhat.paper.reproduction.progress import Progress, progress_on
from muhat.paper.reproduction.results import Results, read_finished, read_results
from muhat.paper.reproduction.run import reproduce
from muhat.paper.reproduction.tables import where
from muhat.paper.reproduction.workers import PieceError

__all__ = ["PieceError", "Progress", "Results", "progress_on", "read_finished", "read_results", "reproduce", "where"]
