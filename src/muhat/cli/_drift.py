"""``muhat drift``: new files against a reference; a table, a verdict, a time line, and a state to resume from."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from typer import Argument, Context, Exit, Option, echo

from muhat._files import FileError
from muhat._messages import Note, lacks_columns, rows_text
from muhat.cli._command_line import in_own_words, say, standard_output
from muhat.cli._compare import check_figure
from muhat.cli._outputs import check_model_file, check_outputs
from muhat.cli._progress import spinner
from muhat.cli._reading import (
    Decimal,
    Drop,
    Missing,
    OneHot,
    OnlyNumeric,
    Separator,
    readings_of,
    sample_names,
    show_notes,
)
from muhat.cli._report import ReportFile, check_report, drift_lines, noted_warnings, print_written
from muhat.cli._samples import ReadSample, are_large, encoded, opened, read_sample, values_of
from muhat.cli._testing import (
    ALERT,
    FOUND,
    AsJson,
    Distinct,
    Out,
    RandomState,
    Standardize,
    as_option,
    console_of,
    print_sentence,
)
from muhat.data import DataSet, FileBatches
from muhat.data._formats import INDICATOR, text_column_of
from muhat.errors import MuhatError
from muhat.persistence import load
from muhat.persistence import save as save_model
from muhat.plots import figure_of_drift, save
from muhat.testing import DriftDetector, DriftResult


def drift_command(
    context: Context,
    files: Annotated[
        list[Path],
        Argument(
            metavar="REFERENCE NEW ...",
            show_default=False,
            help="The reference, then new batches in order of time, a file each (formats as for muhat compare); with "
            "--resume, new ones only.",
        ),
    ],
    alpha: Annotated[
        float,
        Option(
            metavar="LEVEL", help="Probability of any false alarm over all batches ever tested."
        ),
    ] = 0.05,
    horizon: Annotated[
        int,
        Option(
            min=1,
            metavar="NUMBER",
            help="Number of batches over which half of alpha is spread evenly.",
        ),
    ] = 100,
    block_length: Annotated[
        int | None,
        Option(
            min=1,
            metavar="ROWS",
            show_default=False,
            help="Permute blocks of this many consecutive rows, for rows that depend on those before (approximate).",
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        Option(
            metavar="STATE", show_default=False, help="Continue from a state that --save wrote."
        ),
    ] = None,
    save_to: Annotated[
        Path | None,
        Option(
            "--save",
            metavar="STATE",
            show_default=False,
            help="Save the state here after every batch.",
        ),
    ] = None,
    fail_below: Annotated[
        float | None,
        Option(
            metavar="LEVEL",
            show_default=False,
            help=f"As --alpha, and exit with status {FOUND} on an alarm (for CI).",
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
    decimal: Decimal = ".",
    out: Out = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Test new batches against a reference, with a bound on the probability of any false alarm."""
    if out is not None:
        check_figure(out)
    check_report(report)
    check_model_file(save_to)
    check_outputs([*files, resume], out=out, report=report)
    check_outputs(
        files, out=out, report=report, save=save_to
    )  # a state is continued in its own file
    reading = {"drop": tuple(drop or ()), "only_numeric": only_numeric, "separator": separator}
    reading |= {"missing": missing, "decimal": decimal}
    if resume is None:
        if len(files) < 2:
            raise MuhatError(
                "muhat drift", "a reference and at least one new file are needed", "1 file"
            )
        detector, new = (
            DriftDetector(
                alpha=alpha if fail_below is None else fail_below,
                horizon=horizon,
                block_length=block_length,
                standardize=standardize,
                distinct=distinct,
                random_state=random_state,
            ),
            files[1:],
        )
    else:
        detector, new = _resumed(resume), files
        _check_same_options(context, detector, resume)
    readings = readings_of(files, reading)
    with noted_warnings() as warned:
        reference = (
            _reference(files[0], readings[0], one_hot, block_length) if resume is None else None
        )
        if reference is not None:
            with in_own_words({"DriftDetector": str(files[0])}):
                detector.fit(reference)
            if isinstance(reference, FileBatches):
                show_notes(reference)
        tested = list(_updates(detector, new, readings[-len(new) :], one_hot, save_to))
        results = [each for each, is_new in tested if is_new]
    if out is not None:
        save(figure_of_drift(detector.history_), out)
    if report is not None:
        settings = {name: value for name, value in {**reading, "one_hot": one_hot}.items() if value}
        settings |= {"reference": f"the reference of {resume.name}"} if resume else {}
        is_same = all(each == readings[0] for each in readings)
        lines = "" if one_hot or not is_same else drift_lines(detector, files, resume, reading)
        detector.to_html(report, data=reference, code=lines, settings=settings, warnings=warned)
    with standard_output():
        if as_json:
            batches = [each.to_dict() for each in results]
            totals = {
                "n_batches": detector.n_batches_,
                "n_alarms": detector.n_alarms_,
                "alpha": detector.alpha,
            }
            echo(
                json.dumps(
                    {
                        "batches": batches,
                        **totals,
                        "spent": detector.spent_,
                        "verdict": detector.verdict(),
                    },
                    allow_nan=False,
                )
            )
        else:
            _print(detector, results)
            print_written(Figure=out, Report=report, Saved=save_to)
    if fail_below is not None and any(each.is_alarm for each, _ in tested):
        raise Exit(FOUND)


def _updates(
    detector: DriftDetector,
    files: Sequence[Path],
    readings: Sequence[dict[str, Any]],
    one_hot: bool,
    save_to: Path | None,
) -> Iterator[tuple[DriftResult, bool]]:
    """Test the files in turn, and keep the state after each; one that the state has seen is skipped, and not new."""
    names = sample_names(files, endings=True)
    for file, name, reading in zip(files, names, readings, strict=True):
        if are_large([file]) and not one_hot and detector.block_length is None:
            batch: DataSet | FileBatches = opened(file, reading, tuple(detector.feature_names_in_))
        else:
            batch = _as_reference(detector, read_sample(file, reading, one_hot))
        with in_own_words({"DriftDetector": str(file)}):
            before = detector.result_of(batch)
        if before is not None:
            say(
                f"{file} has been tested before and is skipped{'; it had drifted' * before.is_alarm}."
            )
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


def _reference(
    file: Path, reading: dict[str, Any], one_hot: bool, block_length: int | None
) -> DataSet | FileBatches:
    """Return the rows of the reference, or a file to draw them from."""
    if are_large([file]) and not one_hot and block_length is None:
        return opened(file, reading)
    sample = read_sample(file, reading, one_hot)
    return encoded(sample, sample.table.feature_names, values_of([sample]))


def _as_reference(detector: DriftDetector, batch: ReadSample) -> DataSet:
    """Return a batch with the reference's columns in their order, or refuse it and name one that is missing."""
    known = list(detector.feature_names_in_)
    columns: list[str] = []
    values: dict[str, list[str]] = {name: [] for name in batch.words}
    for name in known:
        text = text_column_of(name, values)
        if name in batch.table.feature_names:
            columns.append(name)
        elif text is not None:
            values[text].append(name.removeprefix(text + INDICATOR))
        else:
            raise FileError(lacks_columns(batch.who, [name], "the reference has", batch.names))
    more = [name for name in batch.table.feature_names if name not in columns]
    more += [name for name, each in values.items() if not each]
    if more:
        sentence = f"{batch.who} has a column {more[0]!r} that the reference does not have"
        raise FileError(f"{sentence}; leave it out with --drop {quote(more[0])}.")
    return encoded(batch, columns, values)


def _resumed(path: Path) -> DriftDetector:
    """Return the detector of a state, or refuse another kind of model."""
    detector = load(path)
    if not isinstance(detector, DriftDetector):
        needed, advice = "a state that muhat drift --save wrote is needed", "name that"
        raise MuhatError(str(path), needed, f"a {type(detector).__name__}", advice)
    return detector


def _check_same_options(context: Context, detector: DriftDetector, state: Path) -> None:
    """Refuse an option that was given and is another than the state's, which goes on with its own."""
    for option in (
        "alpha",
        "fail_below",
        "horizon",
        "block_length",
        "standardize",
        "distinct",
        "random_state",
    ):
        name = "alpha" if option == "fail_below" else option
        source, given, kept = (
            context.get_parameter_source(option),
            context.params[option],
            getattr(detector, name),
        )
        if source is not None and source.name == "COMMANDLINE" and given != kept:
            who, needed = (
                f"--{option.replace('_', '-')}",
                f"the {name} of {state} is needed, {kept}",
            )
            raise MuhatError(who, needed, given, "leave it out, or begin anew without --resume")


def _print(detector: DriftDetector, results: Sequence[DriftResult]) -> None:
    """Print a line for each new batch, the alarms as sentences, and the verdict on all."""
    console = console_of()
    rows = rows_text(len(detector.reference_))
    batches = f"{detector.n_batches_} batch{'' if detector.n_batches_ == 1 else 'es'}"
    spent = f"alpha = {detector.alpha:g}, of which {detector.spent_:.2g} is spent on {batches}"
    columns = f"{detector.n_features_in_} column{'s' * (detector.n_features_in_ != 1)}"
    print_sentence(console, f"reference: {rows}, {columns}; {spent}")
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("batch", overflow="ellipsis", no_wrap=True)
    for title in ("rows", "MMD", "p", "level"):
        table.add_column(title, justify="right", no_wrap=True, min_width=6)
    table.add_column("most changed", overflow="ellipsis", no_wrap=True)
    table.add_column("", no_wrap=True, min_width=7)
    for each in results:
        p = f"{'≤ ' * each.is_at_floor}{each.p_value:.2g}"
        numbers = (f"{each.n:,}", f"{each.mmd:.2g}", p, f"{each.level:.2g}")
        style = ALERT if each.is_alarm else None
        table.add_row(
            each.name, *numbers, each.features[0].name, "drifted" * each.is_alarm, style=style
        )
    if results:
        console.print(table)
    for each in results:
        if each.is_alarm:
            print_sentence(console, as_option(each.verdict()))
    _print_horizon(console, detector, results)
    print_sentence(
        console, detector.verdict(), ALERT if any(each.is_alarm for each in results) else "bold"
    )


def _print_horizon(
    console: Console, detector: DriftDetector, results: Sequence[DriftResult]
) -> None:
    """Say how few batches could be tested at higher levels, where one has a p-value that alone would be small."""
    if any(each.is_alarm for each in results) or not any(
        each.p_value <= detector.alpha for each in results
    ):
        return
    planned = f"Alarm levels are set for {detector.horizon:,} batches and more"
    if detector.n_batches_ < detector.horizon:
        print_sentence(
            console, f"{planned}; where fewer are planned, say so before testing: --horizon NUMBER."
        )
