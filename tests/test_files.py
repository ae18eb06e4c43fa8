"""Reading tables and writing results: what is accepted, and one sentence for the rest."""

import errno
import gzip
import os
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.feather
import pytest
from pyarrow import parquet

from muhat._files import FileError, atomic_write, check_writable
from muhat.data import _text as text_module
from muhat.data import open_batches, read_table
from muhat.data._paths import ENDINGS
from muhat.data._text import TextTable

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


def test_unicode_text_of_excel_is_read_and_without_its_mark_utf_8_is_asked_for(tmp_path):
    text = "größe\tb\r\n1\t2.5\r\n-3\t4e-3\r\n"
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode("utf-16"))
    table = read_table(path)
    assert table.feature_names == ("größe", "b")
    np.testing.assert_array_equal(table.data, NUMBERS)
    path.write_bytes(text.encode("utf-16-le"))
    sentence = "text is needed, got binary data in line 1; check that it is a text file, saved as"
    assert f"{sentence} UTF-8." in refused(path)


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


@pytest.mark.parametrize(
    ("dtype", "expected"), [("float32", "float32"), ("float64", "float64"), ("int16", "float64")]
)
def test_npy_is_read_as_floats(tmp_path, dtype, expected):
    path = tmp_path / "data.npy"
    np.save(path, np.arange(6).reshape(3, 2).astype(dtype))
    table = read_table(path)
    assert table.data.dtype == expected
    np.testing.assert_array_equal(table.data, np.arange(6).reshape(3, 2))


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_missing_file_is_refused(tmp_path, ending):
    with pytest.raises(FileError) as caught:
        read_table(tmp_path / f"data{ending}")
    assert str(caught.value) == f"no such file: {tmp_path / f'data{ending}'}"


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_folder_without_tables_is_refused(tmp_path, ending):
    path = tmp_path / f"data{ending}"
    path.mkdir()
    assert "a folder without .parquet files" in refused(path)


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
    assert ("save the sheet as a CSV file" in sentence) == (name == "data.xlsx")


def test_blank_lines_only_are_refused(tmp_path):
    assert "only blank lines" in refused(written(tmp_path, "\n  \n\n"))


def test_a_header_only_is_refused(tmp_path):
    assert "only a header" in refused(written(tmp_path, "a,b\n"))


def test_parquet_without_rows_is_refused(tmp_path):
    path = tmp_path / "data.parquet"
    parquet.write_table(pyarrow.table({"a": pyarrow.array([], pyarrow.float64())}), path)
    assert "only a header" in refused(path)


def test_a_ragged_row_is_refused_with_its_line(tmp_path):
    sentence = refused(written(tmp_path, "a,b\n1,2\n\n3,4,5\n"))
    assert "every line must have 2 fields, as the first line has, got 3 in line 4" in sentence


def test_a_column_of_words_is_refused_with_its_first_word_and_line(tmp_path):
    sentence = refused(written(tmp_path, "size,colour\n1,2\n2,red\n3,blue\n"))
    assert "column 'colour' must be numeric, got 'red' in line 3" in sentence


def test_words_in_a_file_without_a_header_are_refused_in_line_1(tmp_path):
    sentence = refused(written(tmp_path, "5.1,setosa\n4.9,setosa\n"))
    assert "column 'column 2' must be numeric, got 'setosa' in line 1" in sentence


def test_decimal_commas_are_refused_with_advice(tmp_path):
    sentence = refused(written(tmp_path, "a;b\n1,5;2,5\n3;4\n"))
    assert (
        "column 'a' has decimal commas, as '1,5' in line 2; use decimal=',' or convert them."
        in sentence
    )


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("1,000", "remove them, or use decimal=',' if they are decimal commas"),
        ("-12,500,000", "remove them"),
        ("1,000.5", "remove them"),
    ],
)
def test_thousands_separators_are_called_so(tmp_path, value, advice):
    sentence = refused(written(tmp_path, f"a;b\n{value};2\n3;4\n"))
    assert f"column 'a' has thousands separators, as {value!r} in line 2; {advice}." in sentence


@pytest.mark.parametrize(
    "values",
    [["2.440", "1.038", "785", "612"], ["785", "-1.038", "", "0"], ["999", "1.000", "12.000"]],
)
def test_points_that_look_like_thousands_separators_are_refused_between_semicolons(
    tmp_path, values
):
    rows = [f"{value};0.5" for value in values]
    path = written(tmp_path, "\n".join(["sales;x", *rows, ""]))
    sentence = refused(path)
    assert "column 'sales' seems to have points as thousands separators, as '" in sentence
    advice = "remove the points, or use decimal='.' if they are decimal points."
    assert sentence.endswith(advice)
    read = read_table(path, decimal=".", missing="drop")
    assert read.data[:, 0].tolist() == [float(each) for each in values if each]
    assert read_table(path, drop=["sales"]).feature_names == ("x",)


@pytest.mark.parametrize(
    ("values", "separator"),
    [
        (["2.440", "1.038", "785"], ","),
        (["2.440", "1.038", "785"], "\t"),
        (["12.500", "1.038", "7.125"], ";"),
        (["0.123", "1.038", "7"], ";"),
        (["2.44", "1.038", "785"], ";"),
        (["2.440", "1038", "785"], ";"),
        (["2.440", "0", "1.038"], ";"),
        (["2.440", "785.0", "612"], ";"),
        (["1.5", "2", "3"], ";"),
    ],
)
def test_points_of_decimals_are_read_without_a_question(tmp_path, values, separator):
    rows = [f"{value}{separator}1.234" for value in values]
    path = written(tmp_path, "\n".join([f"size{separator}x", *rows, ""]))
    assert read_table(path).data[:, 0].tolist() == list(map(float, values))


@pytest.mark.parametrize("first", ["785", "2.440"])
@pytest.mark.parametrize(("last", "is_refused"), [("785\n2.440", True), ("2.5\n785", False)])
def test_points_far_below_the_first_rows_are_looked_at_too(tmp_path, first, last, is_refused):
    values = [*[first] * 1500, *last.split()]
    path = written(tmp_path, "\n".join(["sales", *values, ""]))
    batches = open_batches(path, separator=";")
    if not is_refused:
        assert batches.read().data[:, 0].tolist() == list(map(float, values))
        return
    with pytest.raises(FileError, match="'sales' seems to have points as thousands separators"):
        batches.read()


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("3.633,92", "remove the points and use decimal=','"),
        ("1.234.567", "remove the points"),
        ("-1.234.567,5", "remove the points and use decimal=','"),
    ],
)
def test_points_that_can_only_separate_thousands_are_called_so(tmp_path, value, advice):
    path = written(tmp_path, f"a;b\n{value};2\n3;4\n")
    found = "column 'a' has points as thousands separators"
    assert f"{found}, as {value!r} in line 2; {advice}." in refused(path)
    with pytest.raises(FileError, match=found):
        read_table(path, one_hot=True)
    assert read_table(path, only_numeric=True).feature_names == ("b",)
    versions = written(tmp_path, f"a;b\n{value};2\nbeta;4\n", "versions.csv")
    assert read_table(versions, one_hot=True).data.shape == (2, 3)


def test_digits_grouped_by_underscores_are_no_number(tmp_path):
    assert "'1_000' in line 2" in refused(written(tmp_path, "a\n1_000\n"))


def test_parquet_words_are_refused_by_column(tmp_path):
    path = tmp_path / "data.parquet"
    parquet.write_table(pyarrow.table({"a": [1.0, 2.0], "colour": [None, "red"]}), path)
    assert "column 'colour' must be numeric, got 'red' in data row 2 (counted from 1)" in refused(
        path
    )


@pytest.mark.parametrize("marker", ["", "NA", "nan", "?", "null", "inf"])
def test_missing_values_are_refused_with_line_and_column(tmp_path, marker):
    sentence = refused(written(tmp_path, f"a,b\n1,2\n3,{marker}\n5,6\n"))
    kind = "infinite" if marker == "inf" else "missing"
    assert f"column 'b' must have no {kind} values, got one in line 3;" in sentence
    assert (marker == "inf") != (
        "drop these rows with missing='drop', or fill them in." in sentence
    )


def test_many_missing_values_are_counted(tmp_path):
    sentence = refused(written(tmp_path, "a,b,c\n" + "NA,1,\n" * 5))
    needed = "columns 'a', 'c' must have no missing values"
    assert f"{needed}, got some in lines 2, 3, 4 and 2 more;" in sentence


def test_missing_values_of_parquet_are_refused(tmp_path):
    path = tmp_path / "data.parquet"
    parquet.write_table(pyarrow.table({"a": [1, None, 3], "b": [1.0, 2.0, float("nan")]}), path)
    needed = "columns 'a', 'b' must have no missing values"
    assert f"{needed}, got some in data rows 2, 3 (counted from 1);" in refused(path)


def test_missing_values_of_an_array_are_refused(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, np.array([[1.0, np.nan], [1.0, 2.0]]))
    needed = "column 'column 2' must have no missing values"
    assert f"{needed}, got one in data row 1 (counted from 1);" in refused(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    assert "UTF-8" in refused(written(tmp_path, "größe\n1\n", encoding="latin-1"))
    assert "binary data" in refused(written(tmp_path, "a\n1\0\n"))


def test_a_quote_that_is_never_closed_is_refused(tmp_path):
    assert "broken quotes" in refused(written(tmp_path, 'a,b\n1,"2\n'))


def test_one_dimension_is_refused_with_how_to_reshape(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, np.ones(3))
    assert "reshape(-1, 1)" in refused(path)


@pytest.mark.parametrize(
    "array", [np.ones((2, 2, 2)), np.array([["a"]]), np.ones((2, 2), complex), np.ones((0, 3))]
)
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
def test_without_pyarrow_it_says_how_to_install_it_and_arrays_are_read(
    tmp_path, monkeypatch, ending
):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "run pip install 'muhat[cli]'" in refused(written(tmp_path, "x", f"data{ending}"))
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
    with pytest.raises(
        FileError, match=r"has no column 'lable'; its columns are a, label; did you mean 'label'\?"
    ):
        read_table(path, drop=["lable"])
    with pytest.raises(
        FileError, match="at least one column must be left, got all of them dropped"
    ):
        read_table(path, drop=["a", "label"])


def test_an_unnamed_first_column_that_was_dropped_does_not_drop_the_next(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",a,b\n7,0,5\n8,1,6\n")
    assert read_table(path, drop=["column 1"]).feature_names == ("a", "b")


def test_a_first_row_of_missing_values_is_no_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("NA,NA\n1,2\n3,4\n")
    with pytest.raises(FileError, match="must have no missing values, got one in line 1"):
        read_table(path)


# Options and what is warned of


@pytest.mark.parametrize("separator", ["|", " ", "  ", "\t ", ":"])
def test_other_separators_are_learnt_or_given(tmp_path, separator):
    rows = [separator.join(map(str, row)) for row in NUMBERS.tolist()]
    path = written(tmp_path, "\n".join([separator.join(["a", "b"]), *rows, ""]), "data.txt")
    given = {":": ":"}.get(separator)
    np.testing.assert_array_equal(read_table(path, separator=given).data, NUMBERS)


def test_columns_aligned_by_blanks_are_read(tmp_path):
    text = "   a      b\n   1    2.5 \n  -3   4e-3\n"
    np.testing.assert_array_equal(read_table(written(tmp_path, text, "data.txt")).data, NUMBERS)


@pytest.mark.parametrize("separator", ["", "ab", "1", "e", '"', "\n", "é"])
def test_a_separator_that_is_none_is_refused(tmp_path, separator):
    with pytest.raises(FileError, match="separator must be 'tab', 'space' or one character"):
        read_table(written(tmp_path, "1,2\n"), separator=separator)


def test_a_separator_of_a_file_without_text_is_refused(tmp_path):
    np.save(tmp_path / "data.npy", NUMBERS)
    with pytest.raises(
        FileError, match=r"separator applies only to text files, got the ending '\.npy'"
    ):
        read_table(tmp_path / "data.npy", separator=";")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("header", ["a;b\n", ""])
@pytest.mark.parametrize("first", ["sep=;\n", '"sep=;"\r\n', "SEP=;\n"])
def test_a_first_line_for_excel_names_the_separator(tmp_path, first, header, encoding):
    path = written(tmp_path, f"{first}{header}1;2.5\n-3;4e-3\n", encoding=encoding)
    table = read_table(path)
    np.testing.assert_array_equal(table.data, NUMBERS)
    assert table.feature_names == (("a", "b") if header else ("column 1", "column 2"))
    wrong = written(tmp_path, f"{first}a;b\n1;2.5\n1;x\n", encoding=encoding)
    assert "'x' in line 4" in refused(wrong)


def test_a_given_separator_wins_over_that_of_a_first_line_for_excel(tmp_path):
    path = written(tmp_path, "sep=,\na;b\n1;2.5\n-3;4e-3\n")
    np.testing.assert_array_equal(read_table(path, separator=";").data, NUMBERS)
    tabs = written(tmp_path, "sep=\t\na\tb\n1\t2.5\n-3\t4e-3\n")
    np.testing.assert_array_equal(read_table(tabs).data, NUMBERS)


@pytest.mark.parametrize("separator", [";", ","])
def test_an_empty_last_column_without_a_name_is_left_out_and_named(tmp_path, separator):
    text = "a;b;\n1;2.5;\n-3;4e-3;\n".replace(";", separator)
    table = read_table(written(tmp_path, text))
    np.testing.assert_array_equal(table.data, NUMBERS)
    assert (table.feature_names, table.left_out) == (("a", "b"), ())
    said = "data.csv: Left out: the last column, which has no name and no values."
    assert table.notes[0].endswith(said)
    two = read_table(written(tmp_path, text.replace("\n", f"{separator}\n")))
    assert "the last 2 columns, which have no names" in two.notes[0]
    bare = read_table(written(tmp_path, text[text.index("\n") + 1 :]))
    assert bare.feature_names == ("column 1", "column 2")
    named = written(tmp_path, text.replace("\n", "c\n", 1))
    assert "column 'c' must have no missing values" in refused(named)


@pytest.mark.parametrize("n_before", [2000, 0])
def test_a_value_in_a_last_column_without_a_name_is_never_lost(tmp_path, n_before):
    text = "".join(["a;b;\n", "1;2;\n" * n_before, "3;4;5\n"])
    path = written(tmp_path, text)
    if n_before:
        sentence = refused(path)
        needed = "the last column must be empty, as in the first rows, or have a name, got '5'"
        assert f"{needed} in line 2002." in sentence
    else:
        assert read_table(path).data.tolist() == [[3, 4, 5]]


def test_comments_are_no_rows_but_lines(tmp_path):
    text = '# made "here"\n\na,b\n# units, too\n1,2.5\n  # one more\n-3,4e-3\n'
    table = read_table(written(tmp_path, text))
    np.testing.assert_array_equal(table.data, NUMBERS)
    assert table.feature_names == ("a", "b")
    assert "'x' in line 8" in refused(written(tmp_path, text + "x,1\n"))
    assert "'#1' in line 8" in refused(written(tmp_path, text + "1,#1\n"))


def test_a_line_within_quotes_is_no_comment(tmp_path):
    path = written(tmp_path, 'a,note,b\n1,"first\n# second",2.5\n-3,"x",4e-3\n')
    np.testing.assert_array_equal(read_table(path, drop=["note"]).data, NUMBERS)


def test_booleans_are_numbers(tmp_path):
    text = "flag,a\ntrue,1\nFalse,2\nTRUE,3\n"
    assert read_table(written(tmp_path, text)).data.tolist() == [[1, 1], [0, 2], [1, 3]]
    assert read_table(written(tmp_path, "1,2\ntrue,3\n")).data.tolist() == [[1, 2], [1, 3]]
    assert "'maybe' in line 5" in refused(written(tmp_path, text + "maybe,4\n"))


def test_columns_are_read_in_the_order_asked_for(tmp_path):
    for name, text in (("a.csv", "x,y,z\n1,two,3\n4,five,6\n"), ("b.csv.gz", None)):
        path = tmp_path / name
        path.write_bytes(
            gzip.compress((tmp_path / "a.csv").read_bytes()) if text is None else text.encode()
        )
        table = read_table(path, columns=["z", "x"])
        assert table.feature_names == ("z", "x")
        assert table.data.tolist() == [[3, 1], [6, 4]]
    with pytest.raises(
        FileError, match=r"has no column 'zz'; its columns are x, y, z; did you mean"
    ):
        read_table(path, columns=["zz"])
    with pytest.raises(TypeError, match="columns must be a list of names, got 'z'"):
        read_table(path, columns="z")


def test_only_numeric_columns_are_read_where_that_is_asked_for(tmp_path):
    frame = pd.DataFrame(
        {"a": [1.0, 2.0], "word": ["x", "3"], "b": [True, False], "hole": [1.0, 2.0]}
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.to_parquet(tmp_path / "data.parquet")
    frame.to_feather(tmp_path / "data.feather")
    for ending in ("csv", "parquet", "feather"):
        table = read_table(tmp_path / f"data.{ending}", only_numeric=True)
        assert table.feature_names == ("a", "b", "hole")
        assert table.data.tolist() == [[1, 1, 1], [2, 0, 2]]
    with pytest.raises(FileError, match="at least one column of numbers is needed"):
        read_table(tmp_path / "data.csv", columns=["word"], only_numeric=True)


def test_a_word_far_below_the_numbers_is_refused_even_so(tmp_path):
    path = written(tmp_path, "a,b\n" + "1,2\n" * 5000 + "1,x\n")
    with pytest.raises(FileError, match="column 'b' must be numeric, got 'x' in line 5002"):
        read_table(path, only_numeric=True)


def test_standard_input_is_read_whatever_it_holds(tmp_path, monkeypatch):
    frame = pd.DataFrame(NUMBERS, columns=["a", "b"])
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.to_csv(tmp_path / "data.csv.gz", index=False)
    frame.to_parquet(tmp_path / "data.parquet")
    np.save(tmp_path / "data.npy", NUMBERS)
    for path in sorted(tmp_path.iterdir()):
        with path.open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            batches = open_batches("-", rows=1)
        assert batches.name == "standard input"
        for _ in range(2):
            np.testing.assert_array_equal(np.concatenate(list(batches)), NUMBERS)
    with written(tmp_path, "a\nx\n").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        with pytest.raises(FileError, match=r"^standard input: column 'a' must be numeric"):
            read_table("-")
    monkeypatch.setattr(sys, "stdin", None)  # as with <&-
    with pytest.raises(FileError, match=r"^standard input: rows are needed, got a closed one; "):
        read_table("-")


ROWS = 30
DRAWN = np.random.default_rng(0)
NOISE = DRAWN.normal(size=ROWS).tolist()


def warned(path):
    """Return what opening and reading a file warns of, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        batches = open_batches(path)
        list(batches)
        batches.read()
    return [str(each.message) for each in caught]


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_a_column_that_looks_like_an_id_or_a_label_is_warned_of_once(tmp_path, ending):
    columns = {
        "number": [100 + 3 * row for row in range(ROWS)],
        "x": NOISE,
        "user_id": [row * 7 % ROWS * 1000 for row in range(ROWS)],
        "z": [row * 7 % ROWS + 5000 for row in range(ROWS)],
        "price": [row * 7 % ROWS * 1000 for row in range(ROWS)],
        "class": [row % 3 for row in range(ROWS)],
        "count": [row % 3 for row in range(ROWS)],
    }
    path = tmp_path / f"data.{ending}"
    frame = pd.DataFrame(columns)
    {
        "csv": partial(frame.to_csv, index=False),
        "parquet": frame.to_parquet,
        "feather": frame.to_feather,
    }[ending](path)
    assert warned(path) == [
        "columns 'number', 'user_id' look like an id; "
        "exclude them, as with drop=['number'], if they are not features.",
        "column 'class' looks like a class label; "
        "exclude it with drop=['class'] if it is not a feature.",
    ]
    list(open_batches(path, drop=["number", "user_id", "class"]))


@pytest.mark.parametrize(
    ("name", "values", "is_id"),
    [
        ("customer_id", [row % 7 for row in range(60)], True),
        ("customerID", [row % 7 for row in range(60)], True),
        ("Customer Id", [row % 7 for row in range(60)], True),
        ("id", [*range(30), *range(30)], True),
        ("patient", [row // 2 + 1 for row in range(60)], True),
        ("body_mass_index", [20 + row % 7 for row in range(60)], False),
        ("age", [18 + row // 2 for row in range(60)], False),
        ("grid", [row % 7 for row in range(60)], False),
        ("visits", [row * row % 7 for row in range(60)], False),
        ("bid", [0.5 * (row % 7) for row in range(60)], False),
    ],
)
def test_ids_whose_values_repeat_are_warned_of_by_name_or_if_they_count(
    tmp_path, name, values, is_id
):
    path = tmp_path / "data.csv"
    pd.DataFrame({name: values, "x": np.sin(np.arange(60))}).to_csv(path, index=False)
    expected = []
    if is_id:
        drop = f"exclude it with drop=['{name}'] if it is not a feature."
        expected = [f"column '{name}' looks like an id; {drop}"]
    assert warned(path) == expected


def test_names_that_count_from_0_are_read_as_numbers_with_a_warning(tmp_path):
    path = tmp_path / "data.csv"
    pd.DataFrame(np.column_stack([NOISE, NOISE, NOISE])).to_csv(path, index=False)
    [sentence] = warned(path)
    assert "the first line looks like a header" in sentence


def test_names_that_count_after_an_index_are_names(tmp_path):
    path = tmp_path / "data.csv"
    pd.DataFrame(np.column_stack([NOISE, NOISE])).to_csv(path)
    [sentence] = warned(path)
    assert "counts the rows" in sentence
    with pytest.warns(UserWarning, match="counts the rows"):
        assert read_table(path).feature_names == ("0", "1")


def test_a_truncated_archive_is_refused(tmp_path):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + os.urandom(5000).hex().encode())[:-1000])
    assert "a damaged one" in refused(path)


@pytest.mark.parametrize("line", ['"1"2,3', '1,"2" 3', '"1" ,2'])
def test_a_quote_that_neither_opens_nor_closes_a_field_is_refused(tmp_path, line):
    assert "broken quotes" in refused(written(tmp_path, f"a,b\n1,2\n{line}\n"))


def test_pyarrow_and_our_own_rules_read_the_same_numbers(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(500, 3)) * 10.0 ** rng.integers(-300, 300, (500, 3))
    frame = pd.DataFrame(values, columns=["a", "b", "c"]).assign(d='quoted, "text"')
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    plain = read_table(path, drop=["d"]).data
    np.testing.assert_array_equal(plain, values)
    monkeypatch.setattr(TextTable, "_parsed_by_pyarrow", lambda *_: None)
    np.testing.assert_array_equal(read_table(path, drop=["d"]).data, values)


@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_it_does_not_matter_where_a_block_ends(tmp_path, monkeypatch, size):
    text = 'a,"b\r\nb",c\r\n1,"x\r\n,y",2.5\r\n\r\n# z\r\n-3,"p""q",4e-3'
    path = written(tmp_path, text)
    monkeypatch.setattr(text_module, "CHUNK_CHARACTERS", size)
    table = read_table(path, drop=["b\nb"])
    assert table.feature_names == ("a", "c")
    np.testing.assert_array_equal(table.data, NUMBERS)
    with pytest.raises(FileError, match=r"got 'x' in line 8"):
        read_table(written(tmp_path, text + "\r\nx,y,1"), drop=["b\nb"])


@pytest.mark.parametrize("ending", [".parquet", ".feather"])
def test_row_labels_that_pandas_stores_are_no_column(tmp_path, ending):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]})[lambda each: each.a > 1]
    path = tmp_path / f"data{ending}"
    if ending == ".parquet":
        frame.to_parquet(path)
    else:  # whose writer in pandas refuses row labels
        pyarrow.feather.write_feather(pyarrow.Table.from_pandas(frame), path)
    read = read_table(path)
    assert read.feature_names == ("a", "b")
    assert read.data.tolist() == [[2.0, 5.0], [3.0, 6.0]]
