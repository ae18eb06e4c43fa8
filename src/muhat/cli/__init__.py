"""The command line: parse, call, print. Whatever goes wrong is said in one sentence."""

from muhat.cli._command_line import app_of, say, standard_output
from muhat.cli._progress import ProgressBatches, progress_bars

__all__ = ["ProgressBatches", "app_of", "progress_bars", "say", "standard_output"]
