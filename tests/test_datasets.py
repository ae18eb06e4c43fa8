"""The nine data sets of Table 2 and the synthetic family are those of the paper."""

import gzip
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_wine

from muhat.datasets import (
    NAMES,
    PublishedDataSet,
    SyntheticFamily,
    at_hand,
    load_dataset,
    standardized,
    wine,
)
from muhat.datasets._loading import CATALOGUE, digest
from muhat.embedding import Embedding
from muhat.kernels import Gaussian

PACKED = ["ionosphere", "glass", "vowel", "vehicle"]
IN_REPOSITORY = ["bodyfat", "housing"]
AT_HAND = [name for name in NAMES if name != "svmguide2"]
ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("MUHAT_DATA") or ROOT.parent / "shared" / "data")
SEED = 11
STANDARD_ERRORS = 5

with_the_shared_tables = pytest.mark.skipif(
    not (SHARED / "svmguide2.csv").is_file(),
    reason="needs the tables in ../shared/data, which are not in the repository",
)


@pytest.fixture(autouse=True)
def no_data_folder_is_named(monkeypatch):
    monkeypatch.delenv("MUHAT_DATA", raising=False)


def resource(name):
    return files("muhat.datasets").joinpath("files", name)


def write_random_svmguide2(path):
    """A table of the right form with other values."""
    values = np.random.default_rng(SEED).random((391, 20))
    header = ",".join([*(f"x{j}" for j in range(1, 21)), "target"])
    np.savetxt(
        path, np.column_stack([values, np.ones(391)]), delimiter=",", header=header, comments=""
    )


def test_the_names_are_those_of_table_2_in_its_order():
    assert NAMES == (
        "ionosphere",
        "glass",
        "bodyfat",
        "housing",
        "vowel",
        "svmguide2",
        "vehicle",
        "wine",
        "wdbc",
    )


@pytest.fixture
def outside_a_clone(monkeypatch):
    monkeypatch.setattr("muhat.datasets._loading.repository_folder", lambda: None)


@pytest.mark.parametrize("name", AT_HAND)
def test_in_a_clone_eight_data_sets_are_found_unasked_and_say_where_they_come_from(name):
    sample = load_dataset(name)
    assert sample.name == name
    assert sample.data.shape == CATALOGUE[name].shape
    assert sample.data.dtype == np.float64
    assert np.isfinite(sample.data).all()
    assert len(set(sample.feature_names)) == sample.data.shape[1]
    assert "target" not in sample.feature_names
    assert sample.target.shape == (len(sample.data),)
    for line in (sample.source, sample.licence):
        assert line
        assert "\n" not in line


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("ionosphere", {"b": 126, "g": 225}),
        ("glass", {1: 70, 2: 76, 3: 17, 5: 13, 6: 9, 7: 29}),
        ("vowel", dict.fromkeys(range(11), 90)),
        ("vehicle", {"bus": 218, "opel": 212, "saab": 217, "van": 199}),
        ("wine", {1: 59, 2: 71, 3: 48}),
        ("wdbc", {"B": 357, "M": 212}),
    ],
)
def test_the_classes_are_as_large_as_the_source_says(name, counts):
    labels, sizes = np.unique(load_dataset(name).target, return_counts=True)
    assert dict(zip(labels.tolist(), sizes.tolist(), strict=True)) == counts


@pytest.mark.parametrize(("name", "theirs"), [("wine", load_wine), ("wdbc", load_breast_cancer)])
def test_wine_and_wdbc_are_those_of_scikit_learn(name, theirs):
    ours, bunch = load_dataset(name), theirs()
    np.testing.assert_array_equal(ours.data, bunch.data)
    pairs = set(zip(ours.target.tolist(), bunch.target.tolist(), strict=True))
    assert len(pairs) == len(bunch.target_names)  # the classes have other names, and only that
    named = [name.replace(" ", "_").replace("/", "_") for name in bunch.feature_names]
    assert list(ours.feature_names) == named


def test_other_values_of_scikit_learn_are_noticed(monkeypatch):
    bunch = load_wine()
    bunch.data[3, 4] += 1
    monkeypatch.setattr("sklearn.datasets.load_wine", lambda: bunch)
    with pytest.raises(
        ValueError,
        match=r"^wine of scikit-learn: the 178 × 13 .* got other values; install scikit-",
    ):
        load_dataset("wine")


def test_wine_is_the_short_way_to_the_wine_data():
    np.testing.assert_array_equal(wine().data, load_dataset("wine").data)


def test_percent_fat_is_a_feature_of_bodyfat_and_density_its_target():
    sample = load_dataset("bodyfat")
    assert sample.feature_names[0] == "bodyfat_pct"
    siri = 495 / sample.target - 450
    assert np.median(np.abs(siri - sample.data[:, 0])) < 0.1


@pytest.mark.parametrize("name", AT_HAND)
def test_a_standardized_data_set_has_mean_0_and_variance_1_or_0(name):
    X = standardized(load_dataset(name).data)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    constant = np.ptp(X, axis=0) == 0
    np.testing.assert_allclose(X.std(axis=0), np.where(constant, 0, 1), atol=1e-12)
    assert constant.sum() == (name == "ionosphere")


def test_a_folder_changes_nothing_for_a_data_set_in_the_package(tmp_path):
    np.testing.assert_array_equal(load_dataset("glass", tmp_path).data, load_dataset("glass").data)


def test_the_package_holds_four_files_without_a_date():
    names = {file.name for file in resource("").iterdir()}
    assert names == {"README.md", *(f"{name}.csv.gz" for name in PACKED)}
    for name in PACKED:
        assert resource(f"{name}.csv.gz").read_bytes()[4:8] == bytes(
            4
        )  # the time in the header of gzip


def test_the_tables_beside_the_files_say_what_load_says():
    package, repository = (
        resource("README.md").read_text(encoding="utf-8"),
        (ROOT / "data" / "README.md").read_text(),
    )
    for name in (*PACKED, *IN_REPOSITORY):
        entry, packed = CATALOGUE[name], name in PACKED
        file = f"{name}.csv.gz" if packed else f"{name}.csv"
        line = (
            f"| {file} | {entry.shape[0]} × {entry.shape[1]} | {entry.source} | {entry.licence} |"
        )
        assert line in (package if packed else repository)


def test_the_package_holds_only_data_whose_licence_allows_it():
    assert {CATALOGUE[name].licence for name in PACKED} == {"CC BY 4.0"}
    assert {path.name for path in (ROOT / "data").iterdir()} == {
        "README.md",
        *(f"{name}.csv" for name in IN_REPOSITORY),
    }


@pytest.mark.usefixtures("outside_a_clone")
@pytest.mark.parametrize("name", [*IN_REPOSITORY, "svmguide2"])
def test_outside_a_clone_data_that_may_not_be_given_away_are_refused_by_saying_where_to_get_them(
    name,
):
    assert name not in at_hand()
    sentence = rf"^{name}: a folder that contains {name}\.csv or LIBSVM's file {name} is needed, "
    sentence += rf"got none; get {name}.* from "
    with pytest.raises(
        ValueError,
        match=sentence
        + r".* and name its folder by load_dataset\(.*, folder\) or in MUHAT_DATA\.$",
    ) as refused:
        load_dataset(name)
    assert_one_sentence(refused)


@pytest.mark.usefixtures("outside_a_clone")
@pytest.mark.parametrize("name", IN_REPOSITORY)
def test_outside_a_clone_they_are_read_from_a_folder_named_either_way(name, monkeypatch):
    expected = load_dataset(name, ROOT / "data").data
    assert expected.shape == CATALOGUE[name].shape
    monkeypatch.setenv("MUHAT_DATA", str(ROOT / "data"))
    assert name in at_hand()
    np.testing.assert_array_equal(load_dataset(name).data, expected)


def test_a_folder_with_one_data_set_hides_no_other(tmp_path, monkeypatch):
    (tmp_path / "housing.csv").write_text((ROOT / "data" / "housing.csv").read_text())
    monkeypatch.setenv("MUHAT_DATA", str(tmp_path))
    assert load_dataset("housing").data.shape == (506, 13)
    assert load_dataset("bodyfat", tmp_path).data.shape == (252, 14)


@with_the_shared_tables
@pytest.mark.parametrize("name", [*PACKED, *IN_REPOSITORY])
def test_what_is_packed_is_the_shared_table(name):
    packed = name in PACKED
    table = (
        gzip.decompress(resource(f"{name}.csv.gz").read_bytes())
        if packed
        else (ROOT / "data" / f"{name}.csv").read_bytes()
    )
    assert table == (SHARED / f"{name}.csv").read_bytes()


@with_the_shared_tables
def test_svmguide2_is_read_from_a_folder_named_either_way(monkeypatch):
    given_folder = load_dataset("svmguide2", SHARED)
    assert given_folder.data.shape == (391, 20)
    assert np.unique(given_folder.target).tolist() == [1, 2, 3]
    monkeypatch.setenv("MUHAT_DATA", str(SHARED))
    np.testing.assert_array_equal(load_dataset("svmguide2").data, given_folder.data)


@with_the_shared_tables
def test_svmguide2_is_read_from_the_file_of_libsvm(tmp_path):
    table = load_dataset("svmguide2", SHARED)
    dump_svmlight_file(table.data, table.target, str(tmp_path / "svmguide2"), zero_based=False)
    sparse = load_dataset("svmguide2", tmp_path)
    np.testing.assert_allclose(sparse.data, table.data, rtol=1e-14)
    np.testing.assert_array_equal(sparse.target, table.target)
    assert sparse.feature_names == table.feature_names


@with_the_shared_tables
def test_a_folder_that_is_given_goes_before_the_one_in_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MUHAT_DATA", str(tmp_path))
    assert load_dataset("svmguide2", SHARED).data.shape == (391, 20)


@with_the_shared_tables
def test_one_changed_value_of_svmguide2_is_noticed(tmp_path):
    text = (SHARED / "svmguide2.csv").read_text()
    (tmp_path / "svmguide2.csv").write_text(
        text.replace("0.0915178571428571", "0.0915178581428571", 1)
    )
    with pytest.raises(ValueError, match="got other values; get the file again"):
        load_dataset("svmguide2", tmp_path)


def assert_one_sentence(refused):
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")


@pytest.mark.parametrize("variable", [None, ""])
def test_without_a_folder_svmguide2_is_refused_by_saying_where_to_get_it(variable, monkeypatch):
    if variable is not None:
        monkeypatch.setenv("MUHAT_DATA", variable)
    sentence = r"^svmguide2: a folder .* got none; "
    sentence += r"get svmguide2 from .* LIBSVM site .* folder\) or in MUHAT_DATA\.$"
    with pytest.raises(ValueError, match=sentence) as refused:
        load_dataset("svmguide2")
    assert_one_sentence(refused)


@pytest.mark.parametrize("by_environment", [False, True])
@pytest.mark.parametrize(
    ("place", "got"),
    [
        ("nowhere", "nowhere', no such folder; get"),
        ("empty", "empty', one without them; get"),
        ("file", "', a file; get"),
    ],
)
def test_a_folder_without_svmguide2_is_refused(place, got, by_environment, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    if by_environment:
        monkeypatch.setenv("MUHAT_DATA", str(tmp_path / place))
    with pytest.raises(ValueError, match=got) as refused:
        load_dataset("svmguide2", None if by_environment else tmp_path / place)
    assert_one_sentence(refused)


@pytest.mark.parametrize(
    ("file", "content", "got"),
    [
        ("svmguide2.csv", b"", "unreadable"),
        ("svmguide2.csv", b"x,target\n", r"shape \(0,\)"),
        ("svmguide2.csv", b"x,target\n1,2\n", r"shape \(1, 1\) and 1 names"),
        ("svmguide2.csv", b"x,y,target\n1,2,3\n1,2\n", "unreadable"),
        ("svmguide2.csv", b"x,target\nmuch,2\n", "unreadable"),
        ("svmguide2.csv", b'x,target\n"1,2\n', "unreadable"),
        ("svmguide2.csv", b"\xff\xfe\x00", "unreadable"),
        ("svmguide2", b"", "unreadable|shape"),
        ("svmguide2", b"1 1:0.5 2:0.5\n", r"shape \(1, 20\)"),
        ("svmguide2", b"1 1:0.5 21:0.5\n", "unreadable"),
        ("svmguide2", b"1 0:0.5\n", "unreadable"),
        ("svmguide2", b"<html>not found</html>\n", "unreadable"),
    ],
)
def test_a_broken_file_is_refused_by_its_name(file, content, got, tmp_path):
    (tmp_path / file).write_bytes(content)
    with pytest.raises(
        ValueError, match=rf"{file}: the 391 × 20 .* got .*({got}).*; get the file again\.$"
    ) as refused:
        load_dataset("svmguide2", tmp_path)
    assert_one_sentence(refused)


def test_a_table_of_the_right_form_with_other_values_is_refused(tmp_path):
    write_random_svmguide2(tmp_path / "svmguide2.csv")
    with pytest.raises(ValueError, match="got other values; get the file again") as refused:
        load_dataset("svmguide2", tmp_path)
    assert_one_sentence(refused)


@pytest.mark.parametrize(
    "damage", [lambda raw: raw[:-20], lambda raw: b"", lambda raw: raw[:500] + b"?" + raw[501:]]
)
def test_a_damaged_package_is_refused(damage, tmp_path, monkeypatch):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "glass.csv.gz").write_bytes(damage(resource("glass.csv.gz").read_bytes()))
    monkeypatch.setattr("muhat.datasets._loading.files", lambda _: tmp_path)
    with pytest.raises(
        ValueError, match=r"glass\.csv\.gz: the 214 × 9 .*; install muhat again\.$"
    ) as refused:
        load_dataset("glass")
    assert_one_sentence(refused)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("wines", "did you mean 'wine'"), ("iris", "one of 'ionosphere', 'glass'"), (3, "got 3")],
)
def test_an_unknown_name_is_refused(name, sentence):
    with pytest.raises(ValueError, match=f"^load_dataset: the name must be .*{sentence}"):
        load_dataset(name)


tables = st.integers(1, 4).flatmap(
    lambda d: st.lists(
        st.lists(st.floats(-1e5, 1e5), min_size=d + 1, max_size=d + 1), min_size=1, max_size=5
    )
)


def with_target(values):
    return PublishedDataSet("sample", values[:, :-1], (), values[:, -1])


@settings(max_examples=50, deadline=None)
@given(tables, st.data())
def test_the_digest_notices_a_change_of_a_value_and_forgives_rounding(table, data):
    values = np.array(table).round(4)
    expected = digest(with_target(values))
    assert digest(with_target(values * (1 + np.finfo(float).eps))) == expected
    assert digest(with_target(np.where(values == 0, -0.0, values))) == expected
    place = data.draw(st.integers(0, values.size - 1))
    values.flat[place] += 1e-8 * max(abs(values.flat[place]), 1)
    assert digest(with_target(values)) != expected


def test_loading_a_packed_data_set_does_not_import_scikit_learn_s_data_sets():
    load = "from muhat.datasets import load_dataset; load_dataset('glass')"
    code = f"import sys; {load}; print('sklearn.datasets' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


@settings(max_examples=30, deadline=None)
@given(dimension=st.integers(1, 100), seed=st.integers(0, 2**64))
def test_a_member_of_the_family_is_what_the_paper_says(dimension, seed):
    P = SyntheticFamily(dimension).distribution(random_state=seed)
    np.testing.assert_array_equal(P.weights, [0.05, 0.3, 0.4, 0.25])
    assert P.means.shape == (4, dimension)
    assert np.abs(P.means).max() <= 10
    assert P.covariances.shape == (4, dimension, dimension)
    variances = np.linalg.eigvalsh(P.covariances) - 0.2
    free = max(dimension - 7, 0)
    np.testing.assert_allclose(variances[:, :free], 0, atol=1e-10)
    assert (variances[:, free:] > -1e-10).all()
    assert (variances[:, -min(dimension, 7) :].max(axis=1) > 0).all()


def test_the_family_has_the_moments_of_the_paper():
    members = [SyntheticFamily(3).distribution(seed) for seed in range(2000)]
    means = np.array([P.means for P in members]).ravel()
    error = 10 / np.sqrt(3 * len(means))
    assert abs(means.mean()) < STANDARD_ERRORS * error
    assert means.var() == pytest.approx(100 / 3, rel=0.05)
    average = np.mean([P.covariances for P in members], axis=(0, 1))
    np.testing.assert_allclose(
        average, (3 * 7 + 0.2) * np.eye(3), atol=STANDARD_ERRORS * 3 * np.sqrt(14 / 8000)
    )


@pytest.mark.parametrize("redraw", [True, False])
@settings(max_examples=30, deadline=None)
@given(
    dimension=st.integers(1, 30),
    start=st.integers(0, 6),
    stop=st.integers(0, 6),
    n=st.integers(1, 20),
    seed=st.integers(0, 2**64),
)
def test_a_block_of_samples_is_the_same_part_of_all(redraw, dimension, start, stop, n, seed):
    family = SyntheticFamily(dimension, redraw)
    everything = list(family.draw(range(6), n, seed))[start:stop]
    block = list(family.draw(range(start, max(start, stop)), n, seed))
    assert len(block) == len(everything)
    for here, there in zip(block, everything, strict=True):
        assert here.X.shape == (n, dimension)
        np.testing.assert_array_equal(here.X, there.X)
        np.testing.assert_array_equal(here.distribution.means, there.distribution.means)
        np.testing.assert_array_equal(here.distribution.covariances, there.distribution.covariances)


def test_samples_with_other_seeds_and_indices_differ_even_beyond_the_size_of_a_word():
    family, seeds = SyntheticFamily(2), (0, 1, 2**32, 2**32 + 1, 2**64)
    samples = [
        draw.X.tobytes() for seed in seeds for draw in family.draw([0, 1, 2, 2**32], 3, seed)
    ]
    assert len(set(samples)) == len(samples)


def test_each_sample_has_a_mixture_of_its_own_unless_asked_otherwise():
    first, second = SyntheticFamily(2).draw(range(2), 5, SEED)
    assert not np.array_equal(first.distribution.means, second.distribution.means)
    family = SyntheticFamily(2, redraw=False)
    first, second = family.draw(range(2), 5, SEED)
    assert first.distribution is second.distribution
    np.testing.assert_array_equal(first.distribution.means, family.distribution(SEED).means)
    assert not np.array_equal(first.X, second.X)


def test_the_average_of_many_samples_is_the_mean_of_the_mixture():
    family = SyntheticFamily(20, redraw=False)
    draws = list(family.draw(range(400), 50, SEED))
    P = draws[0].distribution
    center = P.weights @ P.means
    X = np.concatenate([draw.X for draw in draws])
    spread = np.einsum("j,jkk->k", P.weights, P.covariances) + P.weights @ (P.means - center) ** 2
    assert (np.abs(X.mean(axis=0) - center) < STANDARD_ERRORS * np.sqrt(spread / len(X))).all()


def test_the_average_loss_of_the_empirical_mean_is_its_risk_in_closed_form():
    kernel, n = Gaussian(15.0), 10
    draws = list(SyntheticFamily(20, redraw=False).draw(range(300), n, SEED))
    P = draws[0].distribution
    losses = np.array(
        [P.squared_distance(Embedding(kernel, draw.X, np.full(n, 1 / n))) for draw in draws]
    )
    risk = (1 - P.inner(kernel, P)) / n
    assert abs(losses.mean() - risk) < STANDARD_ERRORS * losses.std() / np.sqrt(len(losses))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SyntheticFamily(0), "dimension must be a whole number of at least 1, got 0"),
        (lambda: SyntheticFamily(2.0), "dimension must be a whole number of at least 1, got 2.0"),
        (lambda: SyntheticFamily(True), "dimension must be a whole number of at least 1, got True"),
        (lambda: SyntheticFamily("20"), "dimension must be a whole number of at least 1, got '20'"),
        (lambda: SyntheticFamily(2, redraw="no"), "redraw must be True or False, got 'no'"),
        (
            lambda: SyntheticFamily().distribution(-1),
            "random_state must be a whole number of at least 0, got -1",
        ),
        (
            lambda: SyntheticFamily().distribution(None),
            "random_state must be a whole number of at least 0, got None",
        ),
        (
            lambda: SyntheticFamily().draw(1000, 50, 0),
            r"got 1000; pass range\(1000\) for that many",
        ),
        (
            lambda: SyntheticFamily().draw(range(-1, 1), 50, 0),
            "each index must be .* at least 0, got -1",
        ),
        (lambda: SyntheticFamily().draw([0.5], 50, 0), "each index must be .* at least 0, got 0.5"),
        (
            lambda: SyntheticFamily().draw(range(1), 0, 0),
            "n must be a whole number of at least 1, got 0",
        ),
        (
            lambda: SyntheticFamily().draw(range(1), 50, None),
            "random_state must be a whole number of at least 0, got None",
        ),
        (
            lambda: SyntheticFamily().draw(range(1), 50, 0.5),
            "random_state must be a whole number of at least 0, got 0.5",
        ),
    ],
)
def test_a_bad_parameter_of_the_family_is_refused_before_anything_is_drawn(make, sentence):
    with pytest.raises(ValueError, match=f"SyntheticFamily: .*{sentence}"):
        make()
