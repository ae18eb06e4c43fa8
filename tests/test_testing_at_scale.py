"""Tests of samples of any size and from any source.

The same as the obvious loop over rows, and exact.
"""

import numpy as np
import pandas as pd
import pytest

from muhat import (
    MMD,
    Gaussian,
    Landweber,
    Laplacian,
    Linear,
    Nystrom,
    RandomFeatures,
    ShrunkMeans,
    Spectral,
    Tikhonov,
    TruncatedSVD,
    TwoSampleTest,
)
from muhat.data import ArraySource, open_batches
from muhat.testing import _pool, _samples, _units
from muhat.testing._permutations import NullMoments
from muhat.testing._pool import MemoryPool
from muhat.testing._sequential import SequentialTable, permute_sequentially
from muhat.testing._streams import SourcePool
from muhat.testing._units import PermutationUnits, UnitAssignment

RNG = np.random.default_rng(0)
TOLERANCE = 1e-10
STATISTICS = [
    *(
        MMD(),
        MMD(unbiased=True),
        Spectral(Tikhonov(), 0.01),
        Spectral(Tikhonov(), 0.1, unbiased=True),
    ),
    *(ShrunkMeans(Landweber(1.0), 5), Spectral(TruncatedSVD(), 0.01)),
]


@pytest.fixture
def small(monkeypatch):
    """Rows are permuted one by one up to 30 of them, so that little data goes the way of much."""
    monkeypatch.setattr(TwoSampleTest, "max_single_rows", 30)
    monkeypatch.setattr(_units, "N_BINS", 20)


def share(work, parts, rows):
    return [work(part) for part in parts]


def statistic_of_rows(phi, is_x, units, statistic):
    """The statistic from the features of all rows that take part, as the formulas say.

    T = N Σ_k h(γ_k) (u_kᵀ w)².
    """
    N, size = len(phi), units.size
    centred = phi - phi.mean(axis=0)
    gamma, U = np.linalg.eigh(centred @ centred.T / N)
    kept = gamma > 1e-12 * gamma.max()
    gamma, U = gamma[kept], U[:, kept]
    S = N * (U * statistic.weight(gamma)) @ U.T
    if not statistic.unbiased:
        w = np.where(is_x, 1 / is_x.sum(), -1 / (~is_x).sum())
        return w @ S @ w
    unit = np.arange(N) // size  # the pairs of rows that are in one unit are left out
    apart = unit[:, None] != unit
    first, second = (int(each.sum()) // size for each in (is_x, ~is_x))
    within = sum(
        (S * apart)[np.ix_(each, each)].sum() / (count * (count - 1) * size**2)
        for each, count in ((is_x, first), (~is_x, second))
    )
    return within - 2 * S[np.ix_(is_x, ~is_x)].sum() / (first * second * size**2)


def rows_in_units(pool, samples):
    """The rows of a pool of sums, unit by unit, as its urns have dealt them."""
    found = []
    for sample, assignment, count in zip(
        samples, pool.assignments, (pool.units.x, pool.units.y), strict=True
    ):
        unit = assignment(0, len(sample))
        found += [sample[unit == number] for number in range(count)]
    return np.concatenate(found)


@pytest.mark.parametrize(
    ("n", "m", "block"), [(40, 40, None), (61, 23, None), (24, 90, None), (50, 40, 3)]
)
@pytest.mark.parametrize(
    "gram", [Nystrom(12), RandomFeatures(10)], ids=["landmarks", "random features"]
)
def test_sums_of_one_pass_give_the_statistics_of_the_obvious_loop(n, m, block, gram):
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=(m, 2)) + 0.3
    units = PermutationUnits.choose(n, m, bins=10, block=block, one_by_one=0)
    samples = [
        _samples.TestSample.from_source(ArraySource(each), None, 60, number)
        for number, each in enumerate((X, Y))
    ]
    pool = SourcePool.from_samples(*samples, gram, units, rng)
    kernel = Gaussian(1.0)
    labels = rng.permuted(np.tile(pool.observed, (6, 1)), axis=1).T
    [(values, _)] = pool.map(
        lambda _, spectrum: spectrum.statistics(STATISTICS, labels), [kernel], share
    )
    phi = gram.resolve(kernel, pool.rows)(rows_in_units(pool, (X, Y)))
    for b, each in enumerate(labels.T):
        is_x = np.repeat(each, units.size)
        for j, statistic in enumerate(STATISTICS):
            expected = statistic_of_rows(phi, is_x, units, statistic)
            assert values[j, b] == pytest.approx(expected, rel=TOLERANCE, abs=TOLERANCE)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(2.0), Linear()], ids=repr)
def test_blocks_of_the_gram_matrix_give_the_statistic_of_the_obvious_loop(
    kernel, unbiased, monkeypatch
):
    monkeypatch.setattr(_pool, "TILE_ROWS", 7)
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(26, 2)), rng.normal(size=(33, 2)) + 1
    units = PermutationUnits.choose(26, 33, bins=10, block=None, one_by_one=0)
    assert units.size > 1
    pool = MemoryPool.from_rows(X, Y, "blocks", units, rng)
    labels = rng.permuted(np.tile(pool.observed, (5, 1)), axis=1).T
    [(values, _)] = pool.map(
        lambda _, spectrum: spectrum.statistics([MMD(unbiased)], labels), [kernel], share
    )
    K = kernel(pool.rows)
    phi = np.linalg.cholesky(K + 1e-13 * np.eye(len(K)))
    for b, each in enumerate(labels.T):
        expected = statistic_of_rows(phi, np.repeat(each, units.size), units, MMD(unbiased))
        assert values[0, b] == pytest.approx(expected, rel=TOLERANCE, abs=TOLERANCE)
    [witness] = pool.map(
        lambda _, spectrum: spectrum.witness(MMD(), pool.observed), [kernel], share
    )
    is_x = np.repeat(pool.observed, units.size)
    expected = K[is_x].mean(axis=0) - K[~is_x].mean(axis=0)
    np.testing.assert_allclose(
        np.ptp(witness(pool.rows) - expected), 0, atol=1e-9
    )  # a constant is no difference


def test_bins_in_memory_are_means_of_rows():
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(20, 2)), rng.normal(size=(30, 2))
    units = PermutationUnits.choose(20, 30, bins=10, block=None, one_by_one=0)
    pool = MemoryPool.from_rows(X, Y, "dense", units, rng)
    [(values, _)] = pool.map(
        lambda _, spectrum: spectrum.statistics(STATISTICS, pool.observed[:, None]),
        [Gaussian(1.0)],
        share,
    )
    phi = np.linalg.cholesky(Gaussian(1.0)(pool.rows) + 1e-13 * np.eye(len(pool.rows)))
    for value, statistic in zip(values[:, 0], STATISTICS, strict=True):
        expected = statistic_of_rows(phi, np.repeat(pool.observed, units.size), units, statistic)
        assert value == pytest.approx(expected, rel=1e-8, abs=TOLERANCE)


def test_every_source_gives_the_same_result(small, tmp_path):
    rng = np.random.default_rng(4)
    X, Y = rng.normal(size=(70, 2)), rng.normal(size=(60, 2)) * [1, 3]
    frames = [pd.DataFrame(each, columns=["a", "b"]) for each in (X, Y)]
    for name, frame in zip("xy", frames, strict=True):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        frame.to_parquet(tmp_path / f"{name}.parquet")
    statistics = ["mmd", Spectral("f-kmse", 0.01)]
    test = TwoSampleTest(
        "gaussian", bandwidths=3, statistics=statistics, gram=Nystrom(15), n_permutations=199
    )
    test.set_params(random_state=0)
    expected = test.test(*frames)
    assert expected.p_value == 0.005
    assert expected.rows_together > 1
    assert expected.features[0].name == "b"
    sources = {
        "arrays": (X, Y),
        "batches": (np.array_split(X, 4), [frames[1][:7], frames[1][7:]]),
        "text": [open_batches(tmp_path / f"{name}.csv", rows=9) for name in "xy"],
        "Parquet": [open_batches(tmp_path / f"{name}.parquet", rows=50) for name in "xy"],
        "mixed": (X, [Y]),
    }
    for name, both in sources.items():
        result = test.test(*both)
        np.testing.assert_allclose(
            result.permuted, expected.permuted, rtol=1e-9, atol=1e-9, err_msg=name
        )
        assert result.p_value == expected.p_value, name
        assert result.rows_x[:3].tolist() == expected.rows_x[:3].tolist(), name
        assert [each.share for each in result.features] == pytest.approx(
            [each.share for each in expected.features]
        )
    array = pytest.importorskip("dask.array")
    result = test.test(*(array.from_array(each, chunks=(25, 2)) for each in (X, Y)))
    np.testing.assert_allclose(result.permuted, expected.permuted, rtol=1e-9, atol=1e-9)


def test_few_rows_in_batches_are_tested_as_if_they_were_an_array():
    X, Y = RNG.normal(size=(30, 2)), RNG.normal(size=(20, 2))
    test = TwoSampleTest("gaussian", n_permutations=49, random_state=0)
    assert test.test(np.array_split(X, 3), [Y]).to_dict() == test.test(X, Y).to_dict()


@pytest.mark.parametrize(
    ("n", "m", "bins", "block"), [(100, 120, 20, None), (1000, 9, 10, None), (90, 130, 12, 4)]
)
def test_an_urn_deals_every_row_once_however_rows_are_batched(n, m, bins, block, monkeypatch):
    monkeypatch.setattr(_units, "BLOCKS_PER_PAGE", 16)
    units = PermutationUnits.choose(n, m, bins=bins, block=block, one_by_one=0)
    assignment = UnitAssignment.draw(n, units.x, units, np.random.default_rng(5))
    unit = assignment(0, n)
    assert np.bincount(unit, minlength=units.x + 1)[: units.x].tolist() == [units.size] * units.x
    for step in (1, 7, 50):
        parts = [assignment(start, min(step, n - start)) for start in range(0, n, step)]
        assert np.concatenate(parts).tolist() == unit.tolist()
    if block:
        assert all(len(set(some)) == 1 for some in np.split(unit[: n // block * block], n // block))
    else:  # with so many rows, no order of the file is left in it
        assert abs(np.corrcoef(np.arange(n), unit)[0, 1]) < 4 / np.sqrt(n)


def test_urns_are_uniform():
    """400 assignments of 8 rows in 4 bins.

    Every row is in every bin as often, within 4 standard errors (16 cells or 32).
    """
    units = PermutationUnits(1, 2, 4, 4)
    drawn = np.array(
        [UnitAssignment.draw(9, 4, units, np.random.default_rng(seed))(0, 9) for seed in range(400)]
    )
    shares = np.array([[np.mean(column == number) for number in range(5)] for column in drawn.T])
    expected = np.array([2 / 9] * 4 + [1 / 9])
    assert np.abs(shares - expected).max() < 4 * np.sqrt(2 / 9 * 7 / 9 / 400)


def test_units_are_of_one_size_and_leave_little_out():
    for n, m in [(10**6, 10**6), (10**6, 10**5), (50, 10**6), (10**7, 2000), (15_000, 15_000)]:
        units = PermutationUnits.choose(n, m, bins=None, block=None, one_by_one=20_000)
        used, smaller = (units.size * units.x, units.size * units.y), min(n, m)
        assert units.x + units.y <= 2001
        assert min(units.x, units.y) >= min(50, smaller)
        assert 1 / used[0] + 1 / used[1] <= 1.06 * (1 / n + 1 / m)
    assert PermutationUnits.choose(
        100, 30, bins=None, block=None, one_by_one=20_000
    ) == PermutationUnits(1, 1, 100, 30)
    assert PermutationUnits.choose(
        100, 30, bins=None, block=7, one_by_one=20_000
    ) == PermutationUnits(7, 1, 14, 4)


@pytest.mark.parametrize(
    "settings",
    [{"gram": Nystrom(8), "bins": 12}, {"gram": "blocks", "bins": 12}, {"early_stopping": 3}],
    ids=["sums", "blocks", "stopped early"],
)
def test_the_level_holds_with_bins_and_with_early_stopping(settings, small):
    """Of 200 null draws at most α + 4 standard errors are rejected: chance 3e-5 at each α."""
    rng = np.random.default_rng(6)
    test = TwoSampleTest("gaussian", bandwidths=2, statistics="mmd", n_permutations=39, **settings)
    sizes = (9, 12) if "early_stopping" in settings else (36, 30)
    p_values = np.array(
        [
            test.set_params(random_state=number)
            .test(*(rng.integers(4, size=(each, 1)) * 1.0 for each in sizes))
            .p_value
            for number in range(200)
        ]
    )
    for level in (0.05, 0.1, 0.2):
        assert (p_values <= level).mean() <= level + 4 * np.sqrt(level * (1 - level) / 200)
    assert 0.4 < p_values.mean() < 0.7


def test_a_sequential_p_value_stops_where_it_is_clear():
    rng = np.random.default_rng(7)

    def values_of(labels):
        return labels.sum(axis=0, keepdims=True).astype(float)

    def draw(count, observed=0.0):
        return np.concatenate([[observed], rng.normal(size=count)])[None]

    law = NullMoments(np.zeros(1), np.ones(1), np.zeros(1))
    table, others = permute_sequentially(values_of, law, draw, n_exceeding=5, most=10_000)
    assert isinstance(table, SequentialTable)
    assert others.shape == (1, 500)
    assert table.values.shape[1] == 101
    stop = np.flatnonzero(np.cumsum(table.values[0, 1:] >= 0) == 5)[0] + 1
    assert table.p_value == 5 / stop
    table, _ = permute_sequentially(
        values_of, law, lambda count: draw(count, 9.0), n_exceeding=5, most=1000
    )
    assert table.p_value == 1 / 1001


def test_early_stopping_finds_a_difference_with_all_permutations():
    X, Y = RNG.normal(size=(40, 2)), RNG.normal(size=(40, 2)) + 1
    test = TwoSampleTest(early_stopping=10, n_permutations=999, random_state=0)
    different, alike = test.test(X, Y), test.test(X, X + 1e-9)
    assert (different.p_value, different.n_permutations) == (0.001, 999)
    assert alike.p_value > 0.05
    assert alike.n_permutations < 999


def test_blocks_of_rows_that_depend_on_each_other_are_called_approximate():
    """Slow returns to one mean.

    Rows one by one see a difference in most of 30 pairs, blocks of 25 in few.
    """
    rng = np.random.default_rng(8)

    def walk(n):
        values = np.zeros(n)
        for row in range(1, n):
            values[row] = 0.9 * values[row - 1] + rng.normal()
        return values[:, None]

    found = {None: 0, 25: 0}
    for number in range(30):
        X, Y = walk(250), walk(250)
        for block in found:
            test = TwoSampleTest(
                "gaussian",
                bandwidths="median",
                statistics="mmd",
                gram=Nystrom(20),
                n_permutations=99,
            )
            result = test.set_params(block_length=block, random_state=number).test(X, Y)
            found[block] += result.p_value <= 0.1
    assert found[None] > 15
    assert found[25] < 11
    assert not result.is_exact
    assert "blocks of 25 rows, approximate" in repr(result)


REFUSED = {
    "few blocks": (
        {"block_length": 20},
        (30, 50),
        "at least 2 blocks of 20 rows are needed in each sample, got 30 and",
    ),
    "no bins": ({"bins": 1}, (30, 50), "bins must be a whole number of at least 4, got 1"),
    "no block": (
        {"block_length": 0},
        (30, 50),
        "block_length must be a whole number of at least 1, got 0",
    ),
    "blocks": (
        {"gram": "blocks"},
        (30, 50),
        "statistics must be 'mmd' with gram='blocks', got Spectral",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_permuted_is_refused_in_one_sentence(case):
    settings, sizes, sentence = REFUSED[case]
    with pytest.raises(ValueError, match=f"^TwoSampleTest: .*{sentence}"):
        TwoSampleTest(**settings).test(*(RNG.normal(size=(each, 2)) for each in sizes))


def test_batches_are_refused_where_they_cannot_be_tested(small):
    X = RNG.normal(size=(40, 2))
    with pytest.raises(
        ValueError, match="rows in memory are needed for gram='dense', got 40 rows in batches"
    ):
        TwoSampleTest(gram="dense").test([X], X)
    with pytest.raises(
        ValueError,
        match="Y: batches that can be iterated more than once are needed, got a list_iterator",
    ):
        TwoSampleTest().test(X, iter([X]))
    with pytest.raises(ValueError, match=r"batch 1: .*got NaN in its row 0"):
        TwoSampleTest().test(X, [X, X * np.nan])
    with pytest.raises(ValueError, match="X and Y must have the same columns, got 2 and 1 columns"):
        TwoSampleTest().test(X, [X[:, :1]])


@pytest.mark.parametrize(("n", "m", "bins"), [(100, 4, 4), (300, 20, 10), (2, 2, 4), (3, 10**6, 4)])
def test_every_sample_has_two_units_however_few_bins(n, m, bins):
    units = PermutationUnits.choose(n, m, bins=bins, block=None, one_by_one=0)
    assert min(units.x, units.y) >= 2
    if n + m < 1000:
        rng = np.random.default_rng(0)
        found = TwoSampleTest(bins=bins, n_permutations=19).test(
            rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
        )
        assert np.isfinite([found.p_value, *found.mmd_interval]).all()
