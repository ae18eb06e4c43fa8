"""Reading tables and writing results: what is accepted, and the one sentence that refuses the rest."""

import errno
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
from pyarrow import parquet

from muhat._files import FileError, atomic_write, check_writable
from muhat.data import open_batches, read_table
from muhat.data._files import ENDINGS

NUMBERS = np.array([[1.0, 2.5], [-3.0, 4e-3]])


def refused(path: Path) -> str:
    """Return the sentence a file is refused with, one line that names the file."""
    with pytest.raises(FileError) as caught:
        read_table(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: ")
    assert "\n" not in sentence
    assert sentence.endswith((".", "?"))
    return sentence


def written(folder: Path, text: str, name: str = "data.csv", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t", ", "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_separator_and_line_end_is_read(tmp_path, separator, end):
    rows = [separator.join(map(str, row)) for row in NUMBERS.tolist()]
    table = read_table(written(tmp_path, end.join([separator.join(["a", "b"]), *rows, ""])))
    np.testing.assert_array_equal(table.data, NUMBERS)
    assert table.feature_names == ("a", "b")
    assert table.name == "data"


def test_columns_without_a_header_are_numbered(tmp_path):
    table = read_table(written(tmp_path, "1,2.5\n-3,4e-3\n"))
    np.testing.assert_array_equal(table.data, NUMBERS)
    assert table.feature_names == ("column 1", "column 2")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path, encoding):
    table = read_table(written(tmp_path, "größe,b\n1,2.5\n-3,4e-3\n", encoding=encoding))
    assert table.feature_names == ("größe", "b")
    np.testing.assert_array_equal(table.data, NUMBERS)


def test_quotes_may_hold_separators_and_line_breaks(tmp_path):
    table = read_table(written(tmp_path, '"a, in\nmetres";"b"\n"1";"2.5"\n\n-3;4e-3\n'))
    assert table.feature_names == ("a, in\nmetres", "b")
    np.testing.assert_array_equal(table.data, NUMBERS)


def test_one_column_needs_no_separator(tmp_path):
    assert read_table(written(tmp_path, "1\n2\n3\n")).data.shape == (3, 1)


def test_a_header_may_hold_numbers_where_a_word_tells_it_apart(tmp_path):
    with pytest.warns(UserWarning, match="read as names, though '2019' is a number"):
        table = read_table(written(tmp_path, "id,2019,2020\n1,2,3\n"))
    assert table.feature_names == ("id", "2019", "2020")
    assert table.data.shape == (1, 3)


@pytest.mark.parametrize("start", [0, 1])
def test_row_numbers_without_a_name_are_left_out_with_a_warning(tmp_path, start):
    text = f",a\n{start},5\n{start + 1},7\n"
    with pytest.warns(UserWarning, match="counts the rows"):
        table = read_table(written(tmp_path, text))
    assert table.feature_names == ("a",)


def test_an_unnamed_column_that_does_not_count_is_data(tmp_path):
    assert read_table(written(tmp_path, ",a\n4,5\n2,7\n")).feature_names == ("column 1", "a")


def test_parquet_is_read_with_its_names(tmp_path):
    path = tmp_path / "data.parquet"
    columns = {"a": [1, -3], "b": [2.5, 4e-3], "flag": [True, False]}
    parquet.write_table(pyarrow.table(columns), path)
    table = read_table(path)
    np.testing.assert_array_equal(table.data, np.column_stack([NUMBERS, [1, 0]]))
    assert table.feature_names == ("a", "b", "flag")


@pytest.mark.parametrize(("dtype", "expected"), [("float32", "float32"), ("float64", "float64"), ("int16", "float64")])
def test_npy_is_read_as_floats(tmp_path, dtype, expected):
    path = tmp_path / "data.npy"
    np.save(path, np.arange(6).reshape(3, 2).astype(dtype))
    table = read_table(path)
    assert table.data.dtype == expected
    np.testing.assert_array_equal(table.data, np.arange(6).reshape(3, 2))


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_missing_file_is_refused(tmp_path, ending):
    assert "no such file" in refused(tmp_path / f"data{ending}")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_folder_without_tables_is_refused(tmp_path, ending):
    path = tmp_path / f"data{ending}"
    path.mkdir()
    assert "a folder without any" in refused(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_empty_file_is_refused(tmp_path, ending):
    assert "an empty file" in refused(written(tmp_path, "", f"data{ending}"))


@pytest.mark.parametrize("ending", [".parquet", ".npy", ".npz", ".feather", ".arrow", ".csv.gz"])
def test_a_damaged_file_is_refused(tmp_path, ending):
    assert "a damaged one" in refused(written(tmp_path, "PAR1 this is neither", f"data{ending}"))


def test_a_truncated_array_is_refused(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, np.ones((100, 2)))
    path.write_bytes(path.read_bytes()[:-300])
    assert "a damaged one" in refused(path)


@pytest.mark.parametrize("name", ["data.xlsx", "data"])
def test_an_unknown_ending_is_refused_with_those_that_are_known(tmp_path, name):
    sentence = refused(written(tmp_path, "1,2\n", name))
    assert all(ending in sentence for ending in ENDINGS)


def test_blank_lines_only_are_refused(tmp_path):
    assert "blank lines only" in refused(written(tmp_path, "\n  \n\n"))


def test_a_header_only_is_refused(tmp_path):
    assert "a header only" in refused(written(tmp_path, "a,b\n"))


def test_parquet_without_rows_is_refused(tmp_path):
    path = tmp_path / "data.parquet"
    parquet.write_table(pyarrow.table({"a": pyarrow.array([], pyarrow.float64())}), path)
    assert "a header only" in refused(path)


def test_a_ragged_row_is_refused_with_its_line(tmp_path):
    sentence = refused(written(tmp_path, "a,b\n1,2\n\n3,4,5\n"))
    assert "2, got 3 in line 4" in sentence


def test_a_column_of_words_is_refused_with_its_first_word_and_line(tmp_path):
    sentence = refused(written(tmp_path, "size,colour\n1,2\n2,red\n3,blue\n"))
    assert "column 'colour' must be numeric, got 'red' in line 3" in sentence


def test_words_in_a_file_without_a_header_are_refused_in_line_1(tmp_path):
    sentence = refused(written(tmp_path, "5.1,setosa\n4.9,setosa\n"))
    assert "column 'column 2' must be numeric, got 'setosa' in line 1" in sentence


def test_decimal_commas_are_refused_with_advice(tmp_path):
    sentence = refused(written(tmp_path, "a;b\n1,5;2,5\n3;4\n"))
    assert "'1,5' in line 2; write decimals with a point" in sentence


def test_digits_grouped_by_underscores_are_no_number(tmp_path):
    assert "'1_000' in line 2" in refused(written(tmp_path, "a\n1_000\n"))


def test_parquet_words_are_refused_by_column(tmp_path):
    path = tmp_path / "data.parquet"
    parquet.write_table(pyarrow.table({"a": [1.0, 2.0], "colour": [None, "red"]}), path)
    assert "column 'colour' must be numeric, got 'red' in row 1" in refused(path)


@pytest.mark.parametrize("marker", ["", "NA", "nan", "?", "null", "inf"])
def test_missing_values_are_refused_with_line_and_column(tmp_path, marker):
    sentence = refused(written(tmp_path, f"a,b\n1,2\n3,{marker}\n5,6\n"))
    assert "a missing or infinite value in line 3, column 'b';" in sentence


def test_many_missing_values_are_counted(tmp_path):
    sentence = refused(written(tmp_path, "a,b,c\n" + "NA,1,\n" * 5))
    assert "in lines 2, 3, 4 and 2 more, columns 'a', 'c';" in sentence


def test_missing_values_of_parquet_are_refused(tmp_path):
    path = tmp_path / "data.parquet"
    parquet.write_table(pyarrow.table({"a": [1, None, 3], "b": [1.0, 2.0, float("nan")]}), path)
    assert "in rows 1, 2 of the file, columns 'a', 'b';" in refused(path)


def test_missing_values_of_an_array_are_refused(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, np.array([[1.0, np.nan], [1.0, 2.0]]))
    assert "in row 0 of the file, column 'column 2';" in refused(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    assert "UTF-8" in refused(written(tmp_path, "größe\n1\n", encoding="latin-1"))
    assert "binary data" in refused(written(tmp_path, "a\n1\0\n"))


def test_a_quote_that_is_never_closed_is_refused(tmp_path):
    assert "broken quotes" in refused(written(tmp_path, 'a,b\n1,"2\n'))


def test_one_dimension_is_refused_with_how_to_reshape(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, np.ones(3))
    assert "reshape(-1, 1)" in refused(path)


@pytest.mark.parametrize("array", [np.ones((2, 2, 2)), np.array([["a"]]), np.ones((2, 2), complex), np.ones((0, 3))])
def test_arrays_that_are_no_table_of_numbers_are_refused(tmp_path, array):
    path = tmp_path / "data.npy"
    np.save(path, array)
    assert refused(path)


def test_a_pickled_array_is_refused_and_not_run(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, np.array([[{}]], dtype=object), allow_pickle=True)
    assert "no array of numbers" in refused(path)


def test_an_archive_of_several_arrays_is_refused(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, a=np.ones((2, 2)), b=np.ones((2, 2)))
    assert "several arrays (a, b)" in refused(path)


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".feather"])
def test_without_pyarrow_it_says_how_to_install_it_and_arrays_are_read(tmp_path, monkeypatch, ending):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install 'muhat[cli]'" in refused(written(tmp_path, "x", f"data{ending}"))
    np.save(tmp_path / "data.npy", NUMBERS)
    np.testing.assert_array_equal(read_table(tmp_path / "data.npy").data, NUMBERS)


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    def forbidden(self, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    path = written(tmp_path, "1,2\n")
    monkeypatch.setattr(Path, "open", forbidden)
    assert "Permission denied" in refused(path)


@pytest.mark.parametrize("content", [b"new", lambda file: file.write(b"new")])
def test_a_file_is_written_whole_and_replaces_what_was_there(tmp_path, content):
    path = tmp_path / "out.txt"
    path.write_bytes(b"an older and longer text")
    atomic_write(path, content)
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_new_file_has_the_rights_of_any_other(tmp_path):
    atomic_write(tmp_path / "ours", b"")
    (tmp_path / "any").touch()
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "any").stat().st_mode


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "there").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    atomic_write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_bytes() == b"new"


@pytest.mark.parametrize("problem", [RuntimeError("a bug"), KeyboardInterrupt()])
def test_nothing_is_half_written_when_the_writer_fails(tmp_path, problem):
    path = tmp_path / "out.txt"
    path.write_bytes(b"old")

    def fails(file):
        file.write(b"half")
        raise problem

    with pytest.raises(type(problem)):
        atomic_write(path, fails)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_full_disk_is_told_and_nothing_is_left(tmp_path):
    def full(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(FileError, match="No space left on device"):
        atomic_write(tmp_path / "out.txt", full)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("write", [check_writable, lambda path: atomic_write(path, b"new")])
@pytest.mark.parametrize("place", ["nowhere/out.txt", "file/out.txt", "folder", "x" * 300])
def test_an_unwritable_place_is_refused(tmp_path, write, place):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError) as caught:
        write(tmp_path / place)
    assert "\n" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_a_device_is_not_replaced_by_a_file():
    with pytest.raises(FileError, match="a device"):
        atomic_write(os.devnull, b"new")
    assert not Path(os.devnull).is_file()


def test_checking_a_place_leaves_it_as_it_was(tmp_path):
    check_writable(tmp_path / "out.txt")
    assert os.listdir(tmp_path) == []


def test_columns_can_be_dropped_by_name_whatever_they_hold(tmp_path):
    text, array, frame = tmp_path / "t.csv", tmp_path / "t.npy", tmp_path / "t.parquet"
    text.write_text("a,label,b\n1,red,2\n3,blue,4\n")
    np.save(array, [[1.0, 9.0, 2.0], [3.0, 9.0, 4.0]])
    pd.DataFrame({"a": [1.0, 3.0], "label": ["red", "blue"], "b": [2.0, 4.0]}).to_parquet(frame)
    for path, name in ((text, "label"), (array, "column 2"), (frame, "label")):
        np.testing.assert_array_equal(read_table(path, drop=[name]).data, [[1, 2], [3, 4]])
    assert read_table(text, drop=["label"]).feature_names == ("a", "b")


def test_a_column_to_drop_that_is_not_there_and_dropping_all_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,label\n1,2\n")
    with pytest.raises(FileError, match=r"got 'lable'; did you mean 'label'\?"):
        read_table(path, drop=["lable"])
    with pytest.raises(FileError, match="at least one column must be left, got all of them dropped"):
        read_table(path, drop=["a", "label"])


def test_an_unnamed_first_column_that_was_dropped_does_not_drop_the_next(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",a,b\n7,0,5\n8,1,6\n")
    assert read_table(path, drop=["column 1"]).feature_names == ("a", "b")


def test_a_first_row_of_missing_values_is_no_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("NA,NA\n1,2\n3,4\n")
    with pytest.raises(FileError, match="missing or infinite value in line 1"):
        read_table(path)
