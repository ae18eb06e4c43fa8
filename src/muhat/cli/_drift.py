"""``muhat drift``: new files against a reference, with a state to resume from."""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from typer import Argument, Context, Exit, Option, echo

from muhat._files import FileError
from muhat._messages import Note, lacks_columns
from muhat._python_lines import (
    drift_lines,
    options_set,
    reading_columns,
    resumed_drift_lines,
)
from muhat._text import agree, count, listed
from muhat._wording import rows_text
from muhat.cli._command_line import errors_named, say, shown_warnings, standard_output
from muhat.cli._options import (
    FOUND,
    AsJson,
    BlockLength,
    Decimal,
    Distinct,
    Drop,
    FigureFile,
    Missing,
    OneHot,
    OnlyNumeric,
    RandomState,
    ReportFile,
    Separator,
    Standardize,
)
from muhat.cli._outputs import (
    ALERT,
    check_figure,
    check_model_file,
    check_outputs,
    check_report,
    console_of,
    print_sentence,
    print_written,
)
from muhat.cli._progress import spinner
from muhat.cli._reading import (
    ids_text,
    reading_options,
    readings_of,
    sample_names,
    show_notes,
    without,
)
from muhat.cli._samples import (
    ReadSample,
    are_large,
    encoded,
    opened,
    read_sample,
    text_and_numbers,
    values_of,
)
from muhat.data import INDICATOR, DataSet, FileBatches, alike_values_note, text_column_of
from muhat.data._errors import first_quoted
from muhat.errors import MuhatError
from muhat.persistence import load
from muhat.persistence import save as save_model
from muhat.testing import DriftDetector, DriftResult

KEPT_BY_STATE = (
    "alpha",
    "fail_below",
    "horizon",
    "block_length",
    "standardize",
    "distinct",
    "random_state",
)
"""Options that a resumed detector keeps; ``--fail-below`` is another name of alpha."""


def drift_command(
    context: Context,
    files: Annotated[
        list[Path],
        Argument(
            metavar="REFERENCE NEW ...",
            show_default=False,
            help="One file for the reference, then one for each new batch, in order of time (.csv, "
            ".parquet and others). With --resume, new batches only.",
        ),
    ],
    alpha: Annotated[
        float,
        Option(
            metavar="LEVEL",
            help="Largest allowed probability of one or more false alarms in all batches together.",
        ),
    ] = 0.05,
    horizon: Annotated[
        int,
        Option(
            min=1,
            metavar="NUMBER",
            help="Planned number of batches, over which half of alpha is spread evenly. The other "
            "half is kept for batches beyond this number.",
        ),
    ] = 100,
    block_length: BlockLength = None,
    resume: Annotated[
        Path | None,
        Option(
            metavar="STATE",
            show_default=False,
            help="Continue with the state in this file, which --save wrote.",
        ),
    ] = None,
    save_to: Annotated[
        Path | None,
        Option(
            "--save",
            metavar="STATE",
            show_default=False,
            help="Save the state of the detector to this file after every batch. If "
            "the file exists, --resume must name it too; otherwise the command stops.",
        ),
    ] = None,
    fail_below: Annotated[
        float | None,
        Option(
            metavar="LEVEL",
            show_default=False,
            help=f"Set --alpha to LEVEL, and exit with status {FOUND} on an alarm (for scripts and "
            "CI).",
        ),
    ] = None,
    random_state: RandomState = 0,
    standardize: Standardize = True,
    distinct: Distinct = False,
    drop: Drop = None,
    only_numeric: OnlyNumeric = False,
    one_hot: OneHot = False,
    missing: Missing = "error",
    separator: Separator = None,
    decimal: Decimal = None,
    out: FigureFile = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Test new batches against a reference. Limits the probability of false alarms to alpha."""
    check_figure(out)
    check_report(report)
    check_model_file(save_to)
    check_outputs([*files, resume], out=out, report=report)
    # a state may be saved to the file that it was resumed from, and then continues that
    replaced = check_outputs(files, out=out, report=report, save=save_to) - {save_to}
    _check_no_other_state(save_to, resume)
    for option, level in (("--alpha", alpha), ("--fail-below", fail_below)):
        if level is not None and not 0 < level < 1:
            raise MuhatError(option, "a level between 0 and 1 is needed", level)
    reading = reading_options(files, drop, only_numeric, separator, missing, decimal)
    if resume is None:
        if len(files) < 2:
            needed = "a reference and at least one new file are needed"
            raise MuhatError("muhat drift", needed, "1 file")
        if fail_below is not None:
            alpha = fail_below
        detector = DriftDetector(
            alpha=alpha,
            horizon=horizon,
            block_length=block_length,
            standardize=standardize,
            distinct=distinct,
            random_state=random_state,
        )
        new = files[1:]
    else:
        detector = _resumed(resume)
        _check_same_options(context, detector, resume)
        new = files
    readings = readings_of(files, reading)
    reference = None
    if resume is None:
        reference = _fit_reference(detector, files[0], readings[0], one_hot)
    tested = list(_updates(detector, new, readings[-len(new) :], one_hot, save_to))
    results = [each for each, is_new in tested if is_new]
    if save_to is not None and not results:
        save_model(detector, save_to)
    if out is not None:
        from muhat.plots import figure_of_drift, save  # here, as it takes long to import

        save(figure_of_drift(detector.history_), out)
    if report is not None:
        settings = options_set({**reading, "one_hot": one_hot})
        if resume is not None:
            settings["reference"] = f"the reference of {resume.name}"
        if one_hot:
            columns = detector.feature_names_in_.tolist()
            readings = [reading_columns(each, columns) for each in readings]
        lines = _python_lines(detector, files, resume, readings)
        detector.to_html(
            report, data=reference, code=lines, settings=settings, warnings=shown_warnings()
        )
    with standard_output():
        if as_json:
            echo(json.dumps(_as_dict(detector, results), allow_nan=False))
        else:
            _print(detector, results)
            print_written(replaced, Figure=out, Report=report, Saved=save_to)
    if resume is not None and save_to is None and results:
        batches = agree(len(results), "this batch", "these batches")
        advice = f"add --save {quote(str(resume))} to keep {batches}"
        say(f"The state was not saved, and {resume} is unchanged; {advice}.")
    if fail_below is not None and any(each.is_alarm for each, _ in tested):
        raise Exit(FOUND)


def _fit_reference(
    detector: DriftDetector, file: Path, reading: dict[str, Any], one_hot: bool
) -> DataSet | FileBatches:
    """Fit the detector to the rows of the reference, and return them."""
    reference: DataSet | FileBatches
    if are_large([file]) and not one_hot and detector.block_length is None:
        reference = opened(file, reading)
    else:
        sample = read_sample(file, reading, one_hot)
        reference = encoded(sample, sample.table.feature_names, values_of([sample]))
    with errors_named({"DriftDetector": file}):
        detector.fit(reference)
    if isinstance(reference, FileBatches):
        show_notes(reference)
    return reference


def _python_lines(
    detector: DriftDetector,
    files: Sequence[Path],
    resume: Path | None,
    readings: Sequence[dict[str, Any]],
) -> str:
    """Return the lines of Python that look for drift as the command does."""
    if resume is not None:
        return resumed_drift_lines(resume, files, readings)
    return drift_lines(detector, files, readings)


def _as_dict(detector: DriftDetector, results: Sequence[DriftResult]) -> dict[str, Any]:
    """Return the new batches and the state of the detector in JSON's types."""
    return {
        "batches": [each.to_dict() for each in results],
        "n_batches": detector.n_batches_,
        "n_alarms": detector.n_alarms_,
        "alpha": detector.alpha,
        "spent": detector.spent_,
        "verdict": detector.verdict(),
        "warnings": shown_warnings(),
    }


def _updates(
    detector: DriftDetector,
    files: Sequence[Path],
    readings: Sequence[dict[str, Any]],
    one_hot: bool,
    save_to: Path | None,
) -> Iterator[tuple[DriftResult, bool]]:
    """Test the files in turn, save the state after each, and yield the results.

    A file that the state has seen is skipped: its former result comes with False.
    """
    names = sample_names(files, endings=True)
    for file, name, reading in zip(files, names, readings, strict=True):
        if are_large([file]) and not one_hot and detector.block_length is None:
            batch: DataSet | FileBatches = opened(file, reading, tuple(detector.feature_names_in_))
        else:
            batch = _as_reference(detector, read_sample(file, reading, one_hot))
        with errors_named({"DriftDetector": file}):
            before = detector.result_of(batch)
        if before is not None:
            drifted = ""
            if before.is_alarm:
                drifted = "; drift was detected then"
            say(f"{file} has been tested before and is skipped{drifted}.")
            yield before, False
            continue
        with spinner(f"testing {file}", shown=sys.stderr.isatty()):
            result = detector.update(batch, name)
        if isinstance(batch, FileBatches):
            show_notes(batch)
        if result.test is not None and result.test.has_same_rows:
            warnings.warn(f"{file} has the same rows as the reference.", Note, stacklevel=2)
        if save_to is not None:
            save_model(detector, save_to)
        yield result, True


def _as_reference(detector: DriftDetector, batch: ReadSample) -> DataSet:
    """Return a batch with the reference's columns in their order; other columns raise FileError."""
    known = list(detector.feature_names_in_)
    columns: list[str] = []
    values: dict[str, list[str]] = {name: [] for name in batch.words}
    for name in known:
        text = text_column_of(name, values)
        if name in batch.table.feature_names:
            columns.append(name)
        elif text is not None:
            values[text].append(name.removeprefix(text + INDICATOR))
        elif name in (*batch.words, *batch.not_numbers):
            raise text_and_numbers(name, batch.who, "the reference")
        elif source := text_column_of(name, batch.table.feature_names):
            raise text_and_numbers(source, "the reference", batch.who)
        else:
            raise FileError(lacks_columns(batch.who, [name], "the reference has", batch.names))
    more = without(batch.table.feature_names, columns)
    more += [name for name, each in values.items() if not each]
    if more:
        sentence = f"{batch.who} has a column {more[0]!r} that the reference does not have"
        raise FileError(f"{sentence}; leave it out with --drop {quote(more[0])}.")
    found = encoded(batch, columns, values)
    unknown = _unknown_values(batch, values)
    for sentence in unknown:
        warnings.warn(sentence, Note, stacklevel=2)
    return replace(found, notes=(*found.notes, *unknown, *ids_text(known)))


def _unknown_values(batch: ReadSample, values: dict[str, list[str]]) -> list[str]:
    """Return a sentence for each text column with values that the reference does not have."""
    found = []
    for name, known in values.items():
        words = batch.words[name]
        unknown = words[~np.isin(words, known)]
        if len(unknown):
            rows = f"{rows_text(len(unknown))} {agree(len(unknown), 'has', 'have')}"
            value = f"a value of {name} that the reference does not have"
            found.append(
                f"{batch.who}: {rows} {value} ({first_quoted(Counter(unknown.tolist()))})."
            )
            alike = alike_values_note(name, [*known, *np.unique(unknown).tolist()])
            if alike:
                found.append(alike)
    return found


def _resumed(path: Path) -> DriftDetector:
    """Return the detector of a state; another kind of model raises MuhatError."""
    detector = load(path)
    if not isinstance(detector, DriftDetector):
        needed, advice = "a state that muhat drift --save wrote is needed", "name that"
        raise MuhatError(str(path), needed, f"a {type(detector).__name__}", advice)
    return detector


def _check_no_other_state(save_to: Path | None, resume: Path | None) -> None:
    """Raise MuhatError where --save would overwrite a state that is not resumed.

    The alpha that it has spent and its alarms would be lost.
    """
    if save_to is None or not save_to.exists():
        return
    if resume is None or not resume.exists() or not save_to.samefile(resume):
        state = quote(str(save_to))
        raise MuhatError(
            f"--save: {save_to} exists and would be overwritten; continue it with --resume "
            f"{state}. To start again, delete it or choose another name."
        )


def _check_same_options(context: Context, detector: DriftDetector, state: Path) -> None:
    """Raise MuhatError for an option that was given and differs from the state's."""
    for option in KEPT_BY_STATE:
        name = {"fail_below": "alpha"}.get(option, option)
        source = context.get_parameter_source(option)
        given, kept = context.params[option], getattr(detector, name)
        if source is not None and source.name == "COMMANDLINE" and given != kept:
            who = f"--{option.replace('_', '-')}"
            needed = f"the {name} of {state} is needed, {kept}"
            raise MuhatError(
                who, needed, given, "leave out this option, or start again without --resume"
            )


def _print(detector: DriftDetector, results: Sequence[DriftResult]) -> None:
    """Print a line for each new batch, the alarms as sentences, and the verdict on all."""
    console = console_of()
    kept, n = len(detector.reference_), detector.n_reference_rows_
    rows = rows_text(kept)
    if n > kept:
        rows = f"{kept:,} random rows of {n:,}"
    d = detector.n_features_in_
    columns = count(d, "column")
    n = detector.n_batches_
    batches = count(n, "batch")
    spent = f"alpha = {detector.alpha:g}, of which {detector.spent_:.2g} is spent on {batches}"
    print_sentence(console, f"reference: {rows}, {columns}; {spent}")
    if results:
        console.print(_table(results))
    has_alarm = False
    for each in results:
        if each.is_alarm:
            has_alarm = True
            print_sentence(console, each.verdict())
    if not has_alarm:
        _print_horizon(console, detector, results)
    style: str | None = "bold"
    if has_alarm:
        style = ALERT
    verdict = detector.verdict()
    if detector.n_alarms_ and results and not has_alarm:  # the alarms are of earlier runs
        new = listed([each.name for each in results])
        if len(results) == 1:
            new = f"{new} (p = {results[0].p_value:.2g})"
        print_sentence(console, f"No drift detected in {new}.", style)
        verdict, style = f"All batches so far: {verdict}", None
    print_sentence(console, verdict, style)


def _table(results: Sequence[DriftResult]) -> Table:
    """Return a table with a row for each batch."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("batch", overflow="ellipsis", no_wrap=True)
    for title in ("rows", "MMD", "p", "level"):
        table.add_column(title, justify="right", no_wrap=True, min_width=6)
    table.add_column("most changed", overflow="ellipsis", no_wrap=True)
    table.add_column("", no_wrap=True, min_width=7)
    for each in results:
        p = f"{each.p_value:.2g}"
        if each.is_at_floor:
            p = f"≤ {p}"
        cells = each.name, f"{each.n:,}", f"{each.mmd:.2g}", p, f"{each.level:.2g}"
        found, style = "", None
        if each.is_alarm:
            found, style = "drifted", ALERT
        elif each.finding == "too few rows":
            found = each.finding
        table.add_row(*cells, each.most_changed or "several columns", found, style=style)
    return table


def _print_horizon(
    console: Console, detector: DriftDetector, results: Sequence[DriftResult]
) -> None:
    """Say that fewer planned batches get higher levels, if a p-value would be small alone."""
    has_small_p = any(each.p_value <= detector.alpha for each in results)
    if has_small_p and detector.n_batches_ < detector.horizon:
        planned = f"Alarm levels are set for {detector.horizon:,} batches and more"
        advice = "where fewer are planned, say so before testing: --horizon NUMBER"
        print_sentence(console, f"{planned}; {advice}.")
