"""Files in batches: the same numbers as read whole, and errors with batch and row."""

import pickle
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import hypothesis
import numpy as np
import pandas as pd
import pyarrow
import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from pyarrow import parquet

from muhat._files import FileError
from muhat._messages import in_command
from muhat.data import BatchError, open_batches, read_table
from muhat.data._paths import ENDINGS

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.made import GROUP, made_parquet

SEED = 20
ROWS = [1, 3, 7, 8192]
LARGE = 300_000
LARGE_COLUMNS = 10
FLAT = 0.25
"""The most memory a pass may take, as a share of the whole array."""

FRAME = pd.DataFrame(np.random.default_rng(SEED).standard_normal((23, 3)), columns=["a", "b", "c"])
WRITERS = {
    ".csv": lambda frame, path: frame.to_csv(path, index=False),
    ".tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    ".txt": lambda frame, path: frame.to_csv(path, index=False, sep=" "),
    ".csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    ".tsv.gz": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    ".txt.gz": lambda frame, path: frame.to_csv(path, index=False, sep="|"),
    ".parquet": lambda frame, path: frame.to_parquet(path, row_group_size=10),
    ".feather": lambda frame, path: frame.to_feather(path),
    ".arrow": lambda frame, path: in_record_batches(frame, path),
    ".npy": lambda frame, path: np.save(path, frame.to_numpy()),
    ".npz": lambda frame, path: np.savez(path, frame.to_numpy()),
}


def in_record_batches(frame, path):
    """Write an Arrow stream of several record batches."""
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    with (
        pyarrow.OSFile(str(path), "wb") as file,
        pyarrow.ipc.new_stream(file, table.schema) as stream,
    ):
        stream.write_table(table, max_chunksize=10)


def written(folder, ending, frame=FRAME):
    path = folder / f"data{ending}"
    WRITERS[ending](frame, path)
    return path


def said(folder, text, name="data.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def numbered(rows, **changed):
    """Lines of a text file with a header, some of them changed: 'line7="x,y"'."""
    return "\n".join(
        ["a,b", *(changed.get(f"line{line}", f"{line}.5,1") for line in range(2, rows + 2)), ""]
    )


def assert_reads_like_the_whole(path, rows, **options):
    whole = read_table(path, **options)
    batches = open_batches(path, rows=rows, **options)
    assert batches.columns == whole.feature_names
    assert batches.name == whole.name
    for _ in range(2):
        read = list(batches)
        assert all(0 < len(batch) <= rows and batch.ndim == 2 for batch in read)
        assert all(batch.flags.c_contiguous and batch.flags.owndata for batch in read)
        np.testing.assert_array_equal(np.concatenate(read), whole.data)
    assert batches.n == len(whole.data)


def broken(path, batch, row, rows=4):
    """Return the sentence of the error that ends a pass, after the good batches before it."""
    batches = open_batches(path, rows=rows)
    read = []
    with pytest.raises(BatchError) as caught:
        read.extend(batches)
    assert (caught.value.batch, caught.value.row) == (batch, row)
    assert len(read) == batch
    assert f"batch {batch} (counted from 0)" in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_batches_are_the_whole_in_pieces_every_time(tmp_path, ending, rows):
    assert_reads_like_the_whole(written(tmp_path, ending), rows)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_columns_are_dropped_whatever_they_hold(tmp_path, ending):
    frame = FRAME.assign(label=['"odd", \n\tlabel'] * len(FRAME))[["a", "label", "b", "c"]]
    assert_reads_like_the_whole(written(tmp_path, ending, frame), 5, drop=["label", "b"])


def test_columns_of_an_array_are_dropped_by_number(tmp_path):
    assert_reads_like_the_whole(written(tmp_path, ".npy"), 5, drop=["column 2"])


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(
    values=arrays(
        np.float64,
        array_shapes(min_dims=2, max_dims=2, max_side=12),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    ),
    ending=st.sampled_from([*ENDINGS]),
    rows=st.integers(1, 13),
)
def test_any_table_is_read_alike(tmp_path_factory, values, ending, rows):
    frame = pd.DataFrame(values, columns=[f"x{place}" for place in range(values.shape[1])])
    path = written(tmp_path_factory.mktemp("made"), ending, frame)
    assert_reads_like_the_whole(path, rows)
    np.testing.assert_array_equal(np.concatenate(list(open_batches(path, rows=rows))), values)


FIELDS = st.sampled_from(
    [
        "1",
        " -2.5",
        "3e-4 ",
        '"7"',
        '" 8"',
        "+.5",
        "1e400",
        "١",
        "NA",
        "",
        "red",
        "1,5",
        "1_0",
        '"2\n"',
    ]
)


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(
    lines=st.lists(
        st.one_of(st.lists(FIELDS, min_size=2, max_size=2), st.just([]), st.just([" "])),
        max_size=12,
    ),
    separator=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    header=st.booleans(),
    rows=st.integers(1, 13),
)
def test_any_text_is_read_alike_or_refused_by_both(
    tmp_path_factory, lines, separator, end, header, rows
):
    first = ["1", "2"] if not header else ["a", "b"]
    text = end.join([separator.join(first), "3" + separator + "4", *map(separator.join, lines), ""])
    path = said(tmp_path_factory.mktemp("made"), text)
    try:
        read_table(path)
    except FileError:
        with pytest.raises(FileError):
            list(open_batches(path, rows=rows))
    else:
        assert_reads_like_the_whole(path, rows)


ODD = [
    "0x10",
    "1e",
    "nan(1)",
    "-Infinity",
    "1 2",
    "\xa05",
    "1d3",
    "1\x0b",
    "1.e5",
    "1j",
    "#1",
    "1#2",
    "1e-400",
    "-",
    "1_0",
]


@pytest.mark.parametrize("field", ["1", "-2.5e3", *ODD])
def test_numbers_mean_the_same_with_and_without_quotes(tmp_path, field):
    answers = []
    for quote in ("", '"'):
        path = said(tmp_path, f"a;b\n1;2\n3;{quote}{field}{quote}\n")
        try:
            answers.append(read_table(path).data.tolist())
        except FileError as problem:
            answers.append(str(problem))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-8"])
def test_encodings_are_read_alike(tmp_path, encoding):
    assert_reads_like_the_whole(said(tmp_path, "größe;b\r\n1;2\r\n\r\n3;4".encode(encoding)), 2)


def test_a_header_over_several_lines_after_blank_ones_is_read_alike(tmp_path):
    assert_reads_like_the_whole(
        said(tmp_path, '\n\n"a, in\nmetres";"b"\n"1";"2.5"\n\n-3;4e-3\n'), 1
    )


def test_batches_of_blank_lines_are_none(tmp_path):
    path = said(tmp_path, "a\n1\n\n\n\n\n2\n")
    assert [batch.tolist() for batch in open_batches(path, rows=1)] == [[[1.0]], [[2.0]]]


def test_the_number_of_rows_is_known_where_the_file_knows_it(tmp_path):
    assert open_batches(written(tmp_path, ".parquet")).n == len(FRAME)
    assert open_batches(written(tmp_path, ".npy")).n == len(FRAME)
    batches = open_batches(written(tmp_path, ".csv"), rows=2)
    next(iter(batches))
    assert batches.n is None


def test_two_passes_at_once_do_not_meet(tmp_path):
    batches = open_batches(written(tmp_path, ".csv"), rows=5)
    for one, other in zip(batches, batches, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("ending", [".parquet", ".npy"])
def test_float32_stays_float32(tmp_path, ending):
    frame = FRAME.astype(np.float32)
    path = written(tmp_path, ending, frame)
    read = list(open_batches(path, rows=5))
    assert {batch.dtype for batch in read} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(np.concatenate(read), frame.to_numpy())


def test_float32_beside_float64_becomes_float64(tmp_path):
    path = written(tmp_path, ".parquet", FRAME.astype({"a": np.float32}))
    assert next(iter(open_batches(path))).dtype == np.float64
    assert next(iter(open_batches(path, drop=["b", "c"]))).dtype == np.float32


@pytest.mark.parametrize(
    "array", [np.arange(12).reshape(6, 2), np.asfortranarray(FRAME), np.eye(3, dtype=bool)]
)
def test_other_arrays_are_read_alike(tmp_path, array):
    np.save(tmp_path / "data.npy", array)
    assert_reads_like_the_whole(tmp_path / "data.npy", 4)


def test_integers_booleans_and_decimals_of_parquet_are_numbers(tmp_path):
    columns = {
        "integer": pyarrow.array([1, 2**53, -3], pyarrow.int64()),
        "small": pyarrow.array([1, 2, 255], pyarrow.uint8()),
        "flag": [True, False, True],
        "decimal": [Decimal("1.25"), Decimal("-2.50"), Decimal("0.00")],
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "data.parquet")
    assert_reads_like_the_whole(tmp_path / "data.parquet", 2)
    last = list(open_batches(tmp_path / "data.parquet", rows=2))[-1]
    assert last.tolist() == [[-3.0, 255.0, 1.0, 0.0]]


def test_a_column_named_like_the_inside_of_another_is_still_dropped(tmp_path):
    parquet.write_table(
        pyarrow.table({"a": [1.0], "a.b": [2.0], "c": [3.0]}), tmp_path / "data.parquet"
    )
    assert next(iter(open_batches(tmp_path / "data.parquet", drop=["a.b"]))).tolist() == [
        [1.0, 3.0]
    ]


def folder_of(tmp_path, *frames):
    folder = tmp_path / "many"
    folder.mkdir()
    for place, frame in enumerate(frames):
        frame.to_parquet(folder / f"part-{place}.parquet")
    return folder


@pytest.mark.parametrize("rows", ROWS)
def test_a_folder_of_parquet_files_is_one_in_the_order_of_names(tmp_path, rows):
    folder = folder_of(tmp_path, FRAME[:10], FRAME[10:10], FRAME[10:])
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet").touch()
    batches = open_batches(folder, rows=rows)
    assert (batches.name, batches.n, batches.columns) == ("many", len(FRAME), ("a", "b", "c"))
    for _ in range(2):
        np.testing.assert_array_equal(np.concatenate(list(batches)), FRAME.to_numpy())


def test_a_folder_with_files_of_different_columns_is_refused(tmp_path):
    folder = folder_of(tmp_path, FRAME, FRAME.rename(columns={"b": "x"}))
    with pytest.raises(
        FileError,
        match=r"part-1.parquet: .* columns of its first file, 'a', 'b', 'c', got 'a', 'x', 'c'",
    ):
        open_batches(folder)


def test_a_place_in_a_folder_is_told_by_file_and_counted_through(tmp_path):
    second = FRAME.copy()
    second.loc[6, "b"] = np.nan
    sentence = broken(folder_of(tmp_path, FRAME, second), batch=7, row=1)
    assert "part-1.parquet: " in sentence
    place = "data row 7 (counted from 1), batch 7 (counted from 0)"
    assert (
        f"column 'b' must have no missing values, got one in {place}; drop these rows with "
        "missing='drop', or fill them in." in sentence
    )


def test_a_command_names_the_line_and_not_its_own_batches(tmp_path):
    path = said(tmp_path, numbered(60, line52="1,red"))
    with in_command(), pytest.raises(BatchError) as caught:
        list(open_batches(path, rows=4))
    assert "got 'red' in line 52; leave it out with --drop b or --only-numeric" in str(caught.value)
    assert caught.value.batch == 12


def test_a_folder_without_parquet_files_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"a folder without \.parquet files"):
        open_batches(tmp_path)


def test_an_empty_file_in_a_folder_is_refused(tmp_path):
    folder = folder_of(tmp_path, FRAME)
    (folder / "part-1.parquet").touch()
    with pytest.raises(FileError, match=r"part-1.parquet: .* an empty file"):
        open_batches(folder)


@pytest.mark.parametrize("ending", [".parquet", ".npy", ".csv"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_hole_is_told_with_batch_row_and_column(tmp_path, ending, value):
    frame = FRAME.copy()
    frame.loc[[14, 15], "c"] = value
    places = "lines 16, 17" if ending == ".csv" else "data rows 15, 16 (counted from 1)"
    name = "column 3" if ending == ".npy" else "c"
    kind, advice = (
        ("missing", "drop these rows with missing='drop'")
        if np.isnan(value)
        else ("infinite", "replace")
    )
    sentence = broken(written(tmp_path, ending, frame), batch=3, row=2)
    assert (
        f"column '{name}' must have no {kind} values, got some in {places}, "
        f"batch 3 (counted from 0); {advice}" in sentence
    )


def test_a_null_of_parquet_is_a_hole(tmp_path):
    parquet.write_table(pyarrow.table({"a": [1, 2, 3, 4, 5, None]}), tmp_path / "data.parquet")
    sentence = broken(tmp_path / "data.parquet", batch=1, row=1)
    assert "column 'a' must have no missing values" in sentence
    assert "got one in data row 6 (counted from 1), batch 1" in sentence
    singles = pyarrow.table({"a": pyarrow.array([1, None], pyarrow.float32())})
    parquet.write_table(singles, tmp_path / "data.parquet")
    broken(tmp_path / "data.parquet", batch=0, row=1)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("NA,1", "column 'a' must have no missing values, got one in line 52, batch 12"),
        ("inf,1", "column 'a' must have no infinite values, got one in line 52, batch 12"),
        ("1,2,3", "2 fields, as the first line has, got 3 in line 52, batch 12"),
        ("1", "2 fields, as the first line has, got 1 in line 52, batch 12"),
        (
            "1,red",
            "column 'b' must be numeric, got 'red' in line 52, batch 12 (counted from 0); "
            "leave it out",
        ),
        (
            '"1,5",2',
            "column 'a' has decimal commas, as '1,5' in line 52, batch 12 (counted from 0); "
            "use decimal=','",
        ),
        ("1,1_000", "got '1_000' in line 52, batch 12"),
        ("1,2\0", "binary data in line 52, batch 12"),
        ('"1,2', "broken quotes or fields (unexpected end of data) in line 52, batch 12"),
        ('"1"x,2', "broken quotes or fields (',' expected after '\"') in line 52, batch 12"),
    ],
)
def test_a_bad_line_is_told_with_batch_and_line(tmp_path, line, told):
    path = said(tmp_path, numbered(60, line52=line))
    assert told in broken(path, batch=12, row=2)


def test_blank_lines_count_as_lines_and_not_as_rows(tmp_path):
    path = said(tmp_path, numbered(30, line5="", line12="x,1"))
    assert "'x' in line 12, batch 2" in broken(path, batch=2, row=1)


def test_a_quote_never_closed_does_not_draw_in_the_file(tmp_path):
    path = said(tmp_path, numbered(100_000, line12='"1,2'))
    assert "field larger than field limit" in broken(path, batch=2, row=2)


def test_bytes_that_are_no_text_are_told_with_the_batch(tmp_path):
    path = said(tmp_path, numbered(20_000).encode() + "ä,1\n".encode("latin-1"))
    place = r"in line 20002, batch 20 \(counted from 0\);"
    with pytest.raises(BatchError, match=rf"UTF-8 is needed, got other bytes {place}"):
        list(open_batches(path, rows=1000))


def test_a_damaged_page_of_parquet_is_told_with_its_batch(tmp_path):
    path = written(tmp_path, ".parquet", pd.concat([FRAME] * 100))
    raw = bytearray(path.read_bytes())
    middle = len(raw) // 2
    raw[middle : middle + 4000] = bytes(4000)
    path.write_bytes(raw)
    with pytest.raises(BatchError, match="a readable file is needed"):
        list(open_batches(path, rows=10))


def test_parquet_words_are_refused_when_opened(tmp_path):
    parquet.write_table(
        pyarrow.table({"a": [1.0, 2.0], "colour": [None, "red"]}), tmp_path / "data.parquet"
    )
    with pytest.raises(
        FileError,
        match=r"column 'colour' must be numeric, got 'red' in data row 2 \(counted from 1\);",
    ):
        open_batches(tmp_path / "data.parquet")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("data.csv", "", "an empty file"),
        ("data.csv", "\n \n", "only blank lines"),
        ("data.csv", "a,b\n\n", "only a header"),
        ("data.xlsx", "1", "a file ending in .csv, .tsv, .txt, "),
        ("data.parquet", "PAR1 this is not", "a damaged one"),
        ("data.npy", "neither is this", "a damaged one"),
        ("data.csv", b"\xe4,1\n", "UTF-8"),
    ],
)
def test_what_no_pass_can_read_is_refused_when_opened(tmp_path, name, content, told):
    with pytest.raises(FileError, match=told) as caught:
        open_batches(said(tmp_path, content, name))
    assert not isinstance(caught.value, BatchError)


def test_a_file_that_is_not_there_and_columns_that_are_not_are_refused(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        open_batches(tmp_path / "data.csv")
    for ending in ENDINGS:
        names = "column 1, column 2, column 3" if ending in (".npy", ".npz") else "a, b, c"
        with pytest.raises(FileError, match=f"has no column 'z'; its columns are {names}"):
            open_batches(written(tmp_path, ending), drop=["z"])


@pytest.mark.parametrize("rows", [0, -1, 2.5, None])
def test_batches_of_no_rows_are_refused(tmp_path, rows):
    with pytest.raises(
        ValueError, match=r"open_batches: rows must be a whole number of at least 1, got"
    ):
        open_batches(written(tmp_path, ".csv"), rows=rows)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_changed_between_passes_is_refused(tmp_path, ending):
    batches = open_batches(written(tmp_path, ending), rows=4)
    list(batches)
    written(tmp_path, ending, FRAME[:-1])
    with pytest.raises(
        BatchError,
        match=r"must not change after they were opened, got another size or modification time",
    ) as caught:
        next(iter(batches))
    assert (caught.value.batch, caught.value.row) == (0, None)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_changed_within_a_pass_is_refused(tmp_path, ending):
    batches = iter(open_batches(written(tmp_path, ending), rows=4))
    next(batches)
    written(tmp_path, ending, FRAME[:3])
    with pytest.raises(
        BatchError, match=r"another size or modification time in batch 1 \(counted from 0\);"
    ) as caught:
        next(batches)
    assert (caught.value.batch, caught.value.row) == (1, None)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_vanished_is_refused(tmp_path, ending):
    path = written(tmp_path, ending)
    batches = open_batches(path)
    path.unlink()
    with pytest.raises(BatchError, match="a file that no longer exists"):
        next(iter(batches))


def test_files_that_come_or_go_in_a_folder_are_refused(tmp_path):
    folder = folder_of(tmp_path, FRAME, FRAME)
    batches = open_batches(folder)
    FRAME.to_parquet(folder / "part-2.parquet")
    with pytest.raises(BatchError, match="must not change after they were opened"):
        next(iter(batches))
    batches = open_batches(folder)
    (folder / "part-1.parquet").unlink()
    with pytest.raises(BatchError, match="a file that no longer exists"):
        next(iter(batches))


@pytest.mark.parametrize("start", [0, 1])
def test_row_numbers_without_a_name_are_left_out_with_one_warning(tmp_path, start):
    path = said(tmp_path, ",a\n" + "".join(f"{start + row},{row}.5\n" for row in range(10)))
    with pytest.warns(UserWarning, match="counts the rows") as warned:
        batches = open_batches(path, rows=4)
    assert len(warned) == 1
    assert batches.columns == ("a",)
    assert np.concatenate(list(batches)).ravel().tolist() == [row + 0.5 for row in range(10)]


def test_an_unnamed_column_that_does_not_count_is_data(tmp_path):
    assert_reads_like_the_whole(said(tmp_path, ",a\n4,5\n2,7\n"), 1)


def test_a_batch_error_survives_the_way_between_processes():
    error = pickle.loads(pickle.dumps(BatchError("a sentence.", 7, 50)))
    assert (str(error), error.batch, error.row) == ("a sentence.", 7, 50)


def test_batches_survive_the_way_between_processes(tmp_path):
    batches = pickle.loads(pickle.dumps(open_batches(written(tmp_path, ".csv"), rows=4)))
    np.testing.assert_array_equal(
        np.concatenate(list(batches)), read_table(written(tmp_path, ".tsv")).data
    )


ONE_PASS = """
import sys, tracemalloc, pyarrow
from muhat.data import open_batches
tracemalloc.start()
total = sum(float(batch.sum()) for batch in open_batches(sys.argv[1], rows=4096))
print(tracemalloc.get_traced_memory()[1] + pyarrow.default_memory_pool().max_memory(), total)
"""


def peak_of_a_pass(path):
    """Return the most bytes that Python and Arrow held in one pass, and the sum of all values.

    In a process of its own, because Arrow's peak is that of all that was ever read.
    """
    command = [sys.executable, "-c", ONE_PASS, str(path)]
    peak, total = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(peak), float(total)


def test_memory_stays_flat_on_parquet(tmp_path):
    path = tmp_path / "large.parquet"
    made_parquet(path, LARGE, LARGE_COLUMNS, SEED)
    peak, total = peak_of_a_pass(path)
    assert total == pytest.approx(float(read_table(path).data.sum()))
    assert peak < FLAT * 8 * LARGE * LARGE_COLUMNS


def test_memory_does_not_grow_with_the_row_groups_of_parquet(tmp_path):
    peaks = []
    for rows in (LARGE // 2, LARGE):
        path = tmp_path / f"{rows}.parquet"
        column = np.random.default_rng(SEED).standard_normal(rows)
        parquet.write_table(pyarrow.table({"a": column, "b": column}), path, row_group_size=rows)
        peaks.append(peak_of_a_pass(path)[0])
    assert peaks[1] < 1.2 * peaks[0]


def test_memory_does_not_grow_with_the_lines_of_text(tmp_path):
    lines = "".join(
        f"{row % 1000},{row}.25,{-row % 1000},1,2,3,4,5,6,7\n" for row in range(LARGE)
    ).encode()
    peaks = []
    for times in (1, 2):
        path = tmp_path / f"{times}.csv"
        path.write_bytes(lines * times)
        peaks.append(peak_of_a_pass(path)[0])
    assert peaks[1] < 1.2 * peaks[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_made_files_are_the_same_from_the_same_seed_and_longer_ones_go_on(tmp_path, dtype):
    paths = [tmp_path / f"{place}.parquet" for place in range(4)]
    sizes = [(GROUP + 5, SEED), (GROUP + 5, SEED), (GROUP, SEED), (GROUP, SEED + 1)]
    for path, (rows, seed) in zip(paths, sizes, strict=True):
        made_parquet(path, rows, 2, seed, dtype)
    one, same, shorter, other = (np.concatenate(list(open_batches(path))) for path in paths)
    assert one.dtype == dtype
    assert one.shape == (GROUP + 5, 2)
    np.testing.assert_array_equal(one, same)
    np.testing.assert_array_equal(one[:GROUP], shorter)
    assert not np.array_equal(shorter, other)
    assert parquet.ParquetFile(paths[0]).num_row_groups == 2
