"""Selection rules: each against its definition, with ties, edges and misfits."""

from dataclasses import replace

import numpy as np
import pytest

import reference
from catalogue import EXACT, NAMES, SAMPLES, SEED
from muhat import Embedding, KernelMean, SyntheticFamily, compare
from muhat.data import SampleBatch
from muhat.data._summaries import folds_of
from muhat.filters import (
    AUTO,
    FILTERS,
    KME,
    Landweber,
    NuMethod,
    SimpleShrinkage,
    Tikhonov,
    TruncatedSVD,
)
from muhat.gram import (
    DenseGram,
    DenseProblem,
    FeatureProblem,
    FeatureSums,
    Folds,
    Nystrom,
    RandomFeatures,
)
from muhat.kernels import Gaussian, Linear
from muhat.selection import GCV, MAX_ROWS_REFIT, RULES, Fixed, KFold, LeaveOneOut, Rate

KERNEL = Gaussian(1.4)
X = SAMPLES["random"]
VARIED = [name for name in NAMES if name not in ("kme", "s-kmse")]


@pytest.mark.parametrize("name", VARIED)
def test_gcv_is_its_formula(name):
    mu = KernelMean(kernel=KERNEL, filter=name, selection="gcv").fit(X)
    K, n = KERNEL(X), len(X)
    U = np.linalg.eigh(K / n).eigenvectors
    for parameter, score in zip(mu.choice_.grid, mu.choice_.scores, strict=True):
        fixed = LeaveOneOut() if name == "componentwise" else LeaveOneOut(grid=[parameter])
        beta = KernelMean(kernel=KERNEL, filter=name, selection=fixed).fit(X).weights_
        # s_λ(A) from the weights it gives: β = U s Uᵀ1_n.
        s = (U.T @ beta) / (U.T @ np.full(n, 1 / n))
        freedom = 1 - s.sum() / n
        if abs(freedom) < 1e-12:  # nothing is cut off: 0/0, which must never win
            assert score == np.inf
            continue
        true = ((K @ (beta - 1 / n)) ** 2).sum() / n / freedom**2
        assert score == pytest.approx(true, rel=1e-6)


@pytest.mark.parametrize("n_splits", [2, 3, 5, 12])
@pytest.mark.parametrize("name", NAMES)
def test_k_fold_scores_equal_really_leaving_the_folds_out(name, n_splits):
    mu = KernelMean(kernel=KERNEL, filter=name, selection=KFold(n_splits, random_state=3)).fit(X)
    folds = np.array_split(np.random.default_rng(3).permutation(len(X)), n_splits)
    F = reference.features(KERNEL(X))
    true = [
        reference.leave_out_score(name, value, F, np.ones(len(X)), folds)
        for value in mu.choice_.grid
    ]
    np.testing.assert_allclose(mu.choice_.scores, true, rtol=EXACT)


@pytest.mark.filterwarnings("ignore:.*is at the end of its grid")
@pytest.mark.parametrize("gram", ["dense", "blocks"])
@pytest.mark.parametrize("name", ["s-kmse", "f-kmse", "nu-method"])
def test_k_fold_leaves_the_fold_out_of_a_target_on_the_sample_too(name, gram):
    tau, folds = (
        np.random.default_rng(1).dirichlet(np.ones(len(X))),
        KFold(4, random_state=3).folds(np.ones(12) / 12),
    )
    mu = KernelMean(
        kernel=KERNEL, filter=name, selection=KFold(4, random_state=3), gram=gram, target=tau
    ).fit(X)
    F, grid = reference.features(KERNEL(X)), mu.choice_.grid
    true = [
        reference.leave_out_score(name, value, F, np.ones(12), folds, target_weights=tau)
        for value in grid
    ]
    np.testing.assert_allclose(mu.choice_.scores, true, rtol=EXACT)


def test_k_fold_with_weights_and_a_target_equals_really_leaving_out():
    rng = np.random.default_rng(SEED + 1)
    Y, tau, weight = rng.normal(size=(4, 3)), rng.normal(size=4), rng.uniform(0.5, 2, size=len(X))
    F = reference.features(KERNEL(np.concatenate([X, Y])))
    folds = np.array_split(np.random.default_rng(0).permutation(len(X)), 5)
    for name in NAMES:
        mu = KernelMean(
            kernel=KERNEL, filter=name, selection="kfold", target=Embedding(KERNEL, Y, tau)
        )
        choice = mu.fit(X, sample_weight=weight).choice_
        target = F[len(X) :].T @ tau
        true = [
            reference.leave_out_score(name, value, F[: len(X)], weight, folds, target)
            for value in choice.grid
        ]
        np.testing.assert_allclose(choice.scores, true, rtol=EXACT)


def test_as_many_folds_as_points_is_leave_one_out():
    for name in NAMES:
        one = KernelMean(kernel=KERNEL, filter=name).fit(X).choice_
        other = KernelMean(kernel=KERNEL, filter=name, selection=KFold(len(X))).fit(X).choice_
        np.testing.assert_allclose(one.scores, other.scores, rtol=EXACT)
        assert one.parameter == other.parameter


def test_the_rate_is_c_times_n_to_the_minus_beta_and_iterations_act_as_that():
    n = len(X)
    lam = 2.0 * n**-1.5
    assert KernelMean(filter="f-kmse", selection=Rate(2.0, 1.5)).fit(
        X
    ).choice_.parameter == pytest.approx(lam)
    assert KernelMean(filter="landweber", selection=Rate(2.0, 1.5)).fit(
        X
    ).choice_.parameter == round(1 / lam)
    assert KernelMean(filter="nu-method", selection=Rate(2.0, 1.5)).fit(
        X
    ).choice_.parameter == round(lam**-0.5)


@pytest.mark.parametrize("name", ["s-kmse", "landweber", "nu-method"])
def test_a_fixed_parameter_needs_no_eigenvalues(name):
    mu = KernelMean(filter=name, selection=Fixed(3)).fit(X)
    assert mu.eigenvalues_ is None
    assert mu.choice_.parameter == 3


def test_constant_filters_need_no_eigenvalues_to_be_chosen():
    for name in ("kme", "s-kmse"):
        assert KernelMean(filter=name).fit(X).eigenvalues_ is None


def test_auto_is_f_kmse_or_the_plain_average_by_a_rule_that_counts_bias_more_often():
    mu = KernelMean(kernel=KERNEL).fit(X)
    assert [type(choice.filter) for choice in mu.choices_] == [FILTERS[name] for name in AUTO]
    assert mu.rule_ == LeaveOneOut(bias_factor="auto")
    same = KernelMean(
        kernel=KERNEL, filter=["kme", "f-kmse"], selection=LeaveOneOut(bias_factor="auto")
    ).fit(X)
    assert mu.choice_.gain == same.choice_.gain
    plain = KernelMean(kernel=KERNEL, selection=LeaveOneOut(bias_factor=1)).fit(X)
    assert plain.choice_.gain == KernelMean(kernel=KERNEL, filter="f-kmse").fit(X).choice_.gain
    assert plain.choice_.strength > mu.choice_.strength > 0


def brute_force_gain(lam, F, p, folds, factor, target=None):
    """2A − κQ with every fold really left out, of F-KMSE."""
    gain = 0.0
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(F)), fold)
        m, mu = (
            reference.estimate(name, lam, F[rest], p[rest], target) for name in ("kme", "f-kmse")
        )
        h = m - mu
        gain += sum(p[i] * (-2 * (F[i] - m) @ h - factor * h @ h) for i in fold)
    return gain


def effective_dimension(F, p):
    """(tr Σ̂)²/tr Σ̂² of the centred covariance."""
    centred = F - p @ F
    covariance = (centred * p[:, None]).T @ centred
    return np.trace(covariance) ** 2 / (covariance**2).sum()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("with_target", [False, True])
@pytest.mark.parametrize(
    ("gram", "selection"),
    [
        ("dense", LeaveOneOut),
        ("dense", KFold),
        ("blocks", KFold),
        ("nystrom", LeaveOneOut),
        ("nystrom", KFold),
    ],
)
def test_bias_is_counted_as_by_refits(gram, selection, with_target, weighted):
    rng, few, grid = np.random.default_rng(SEED), X[:25], [1e-3, 1e-2, 0.1, 1.0]
    weights = rng.uniform(0.5, 2, size=len(few)) if weighted else np.ones(len(few))
    p, F = weights / weights.sum(), reference.features(KERNEL(few))
    target = (
        KernelMean(kernel=KERNEL, filter="kme").fit(few[:8] + 0.5).embedding_
        if with_target
        else None
    )
    rule = selection(grid=grid, bias_factor="auto")
    mu = KernelMean(kernel=KERNEL, filter="f-kmse", selection=rule, gram=gram, target=target)
    mu.fit(few, sample_weight=weights)
    if selection is KFold and gram == "nystrom":
        number = folds_of(few, 5, 0)
        folds = [np.flatnonzero(number == fold) for fold in np.unique(number)]
    else:
        folds = KFold().folds(p) if selection is KFold else [[i] for i in range(len(few))]
    D = effective_dimension(F, p)
    aim = None
    if with_target:  # in the features' coordinates, with what is outside of them as one more
        inside = np.linalg.pinv(F) @ target(few)
        outside = np.sqrt(max(target.squared_norm() - inside @ inside, 0))
        F, aim = np.column_stack([F, np.zeros(len(F))]), np.append(inside, outside)
    expected = [brute_force_gain(lam, F, p, folds, D / (D - 2), aim) for lam in grid]
    np.testing.assert_allclose(mu.choice_.gains, expected, rtol=1e-7, atol=1e-12)


def test_the_effective_dimension_keeps_its_digits_for_a_wide_kernel():
    rows, p = np.random.default_rng(SEED).normal(size=(30, 4)), np.full(30, 1 / 30)
    problem = DenseProblem(DenseGram.from_sample(Gaussian(1e4), rows))
    assert float(problem.effective_dimension) == pytest.approx(
        effective_dimension(rows, p), rel=1e-5
    )


@pytest.mark.parametrize("gram", ["dense", "blocks", "nystrom"])
def test_auto_keeps_the_plain_average_where_the_noise_has_two_dimensions_or_fewer(gram):
    yes_no = (np.random.default_rng(SEED).random((40, 1)) < 0.2).astype(float)
    for rows in (yes_no, X[:2], X[:3]):
        mu = KernelMean(kernel=KERNEL, gram=gram).fit(rows)
        assert mu.filter_ == KME()
        assert mu.choice_.gain == mu.choice_.strength == 0
        np.testing.assert_allclose(mu.embedding_(rows), KERNEL(rows).mean(axis=0), rtol=1e-10)


def test_streams_keep_the_plain_average_too():
    yes_no = (np.random.default_rng(SEED).random((60, 1)) < 0.2).astype(float)
    mu = KernelMean(kernel=KERNEL).partial_fit(yes_no)
    assert mu.filter_ == KME()
    assert mu.rule_ == KFold(bias_factor="auto")


def test_float32_rows_have_the_same_default():
    single, double = (
        KernelMean(kernel=KERNEL).fit(X.astype(kind)) for kind in (np.float32, np.float64)
    )
    assert single.choice_.parameter == pytest.approx(double.choice_.parameter, rel=1e-2)
    assert single.choice_.gain == pytest.approx(double.choice_.gain, rel=1e-3)


@pytest.mark.parametrize("factor", [0, -1, "large", np.inf])
def test_a_bias_factor_that_is_no_factor_is_refused(factor):
    with pytest.raises(ValueError, match="bias_factor must be positive and finite, 'auto' or None"):
        KernelMean(filter="f-kmse", selection=LeaveOneOut(bias_factor=factor)).fit(X)


def test_of_a_list_of_filters_the_best_is_taken():
    mu = KernelMean(kernel=KERNEL, filter=["kme", "tsvd", NuMethod(2.0)]).fit(X)
    assert [type(choice.filter) for choice in mu.choices_] == [KME, TruncatedSVD, NuMethod]
    assert mu.choice_.score == min(choice.score for choice in mu.choices_)


class TestPolicy:
    """Filters without a cheap exact score: refits for few points, another rule for many."""

    many = np.random.default_rng(SEED).normal(size=(MAX_ROWS_REFIT + 1, 2))

    def test_few_points_are_left_out_by_refits(self):
        for name in ("tsvd", "componentwise"):
            assert isinstance(KernelMean(filter=name).fit(X).rule_, LeaveOneOut)

    @pytest.mark.parametrize("gram", ["dense", Nystrom(20), "blocks"])
    def test_generalised_cross_validation_stands_in_for_many(self, gram):
        mu = KernelMean(filter="tsvd", gram=gram).fit(self.many)
        assert isinstance(mu.rule_, GCV)
        np.testing.assert_array_equal(
            mu.weights_,
            KernelMean(filter="tsvd", gram=gram, selection="gcv").fit(self.many).weights_,
        )

    def test_and_in_streams(self):
        mu = KernelMean(filter="tsvd", gram=Nystrom(5)).fit_batches(iter([X]))
        assert isinstance(mu.rule_, GCV)

    def test_compare_does_the_same(self):
        row = compare(self.many, filters=["tsvd"], standardize=False)["tsvd"]
        assert (row.selection, row.scores) == ("gcv", None)
        assert row.parameter == KernelMean(filter="tsvd").fit(self.many).choice_.parameter

    def test_scores_of_two_rules_are_not_compared(self):
        with pytest.raises(ValueError, match=r"TruncatedSVD can only.*'kfold'.*muhat.compare"):
            KernelMean(filter=["kme", "f-kmse", "tsvd"]).fit(self.many)

    def test_leave_one_out_stands_in_where_gcv_is_flat(self):
        mu = KernelMean(filter="s-kmse", selection="gcv").fit(X)
        assert isinstance(mu.rule_, LeaveOneOut)
        assert mu.choice_.parameter == KernelMean(filter="s-kmse").fit(X).choice_.parameter


def closed_form(kernel, X, copies=1):
    """λ = n(ϱ−ρ)/((n−1)(nρ−ϱ)) of S-KMSE, ρ the mean of K and ϱ that of its diagonal."""
    n, X = copies * len(X), X.astype(np.float64)
    rho, varrho = kernel.product(X, np.full(len(X), 1 / len(X))).mean(), kernel.diagonal(X).mean()
    return n * (varrho - rho) / ((n - 1) * (n * rho - varrho))


class TestGainsFarBelowTheScores:
    """Gains are of the order of 1/n², scores of one: no route may decide by a score's digits."""

    kernel = Gaussian(1.5)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("gram", ["dense", "blocks"])
    @pytest.mark.parametrize("n", [10, 200, 3000])
    def test_simple_shrinkage_is_its_closed_form(self, n, gram, dtype):
        rows = np.random.default_rng(n).normal(size=(n, 3)).astype(dtype)
        choice = KernelMean(kernel=self.kernel, filter="s-kmse", gram=gram).fit(rows).choice_
        assert choice.parameter == pytest.approx(closed_form(self.kernel, rows), rel=1e-6)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("source", ["array", "batches", "iterator", "dask"])
    @pytest.mark.parametrize("n", [200, 60_000])
    def test_on_features_too(self, n, source, dtype):
        rows = np.random.default_rng(n).normal(size=(n, 2)).astype(dtype)
        mu = KernelMean(
            kernel=Linear(), filter="s-kmse", gram=Nystrom(landmarks=np.eye(2, dtype=dtype))
        )
        shifted = rows + dtype(1.0)
        if source == "array":
            mu.fit(shifted)
        elif source == "dask":
            mu.fit(pytest.importorskip("dask.array").from_array(shifted, chunks=(n // 3, 2)))
        else:
            batches = np.array_split(shifted, 7)
            mu.fit_batches(iter(batches) if source == "iterator" else batches)
        assert mu.choice_.parameter == pytest.approx(closed_form(Linear(), shifted), rel=1e-6)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_on_landmarks_whose_gram_matrix_has_tiny_eigenvalues_too(self, dtype):
        rows = np.random.default_rng(1).normal(size=(200, 2)).astype(dtype)
        mu = KernelMean(kernel=self.kernel, filter="s-kmse", gram=Nystrom(landmarks=rows)).fit(
            np.tile(rows, (100, 1))
        )
        assert mu.choice_.parameter == pytest.approx(
            closed_form(self.kernel, rows, copies=100), rel=1e-6
        )

    @pytest.mark.parametrize("bandwidth", [1.0, 3.0, 8.0])
    @pytest.mark.parametrize("n", [10, 60])
    def test_where_all_rows_are_landmarks_too(self, n, bandwidth):
        rows = np.random.default_rng(n).normal(size=(n, 5)).astype(np.float32)
        mu = KernelMean(
            kernel=Gaussian(bandwidth), filter="s-kmse", gram=Nystrom(landmarks=rows)
        ).fit(rows)
        assert mu.choice_.parameter == pytest.approx(
            closed_form(Gaussian(bandwidth), rows), rel=1e-6
        )

    @pytest.mark.parametrize(("n", "m", "bandwidth"), [(1000, 50, 0.2), (300, 30, 0.3)])
    def test_and_the_estimate_on_landmarks_has_its_digits_too(self, n, m, bandwidth):
        rows = np.random.default_rng(1).normal(size=(n, 1)).astype(np.float32)
        mu = KernelMean(kernel=Gaussian(bandwidth), filter="kme", gram=Nystrom(m))
        single, double = (mu.fit(X).embedding_ for X in (rows, rows.astype(np.float64)))
        np.testing.assert_allclose(single(rows), double(rows), rtol=1e-6)
        assert single.squared_norm() == pytest.approx(double.squared_norm(), rel=1e-6)

    @pytest.mark.parametrize("gram", [Nystrom(80), RandomFeatures(200)], ids=repr)
    def test_with_a_target_on_the_sample_too(self, gram):
        rows = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
        weights = np.random.default_rng(1).random(200)
        mu = KernelMean(
            kernel=Gaussian(2.0), filter="s-kmse", gram=gram, target=weights / weights.sum()
        )
        single, double = (mu.fit(X).choice_.parameter for X in (rows, rows.astype(np.float64)))
        assert single == pytest.approx(double, rel=1e-5)

    def test_at_ten_million_rows(self):
        features = Nystrom(landmarks=np.array([[1.0]], np.float32)).resolve(
            Linear(), np.ones((1, 1), np.float32)
        )
        values, count = (
            np.array([[1.0], [2.0], [4.0]], np.float32),
            np.array([5_000_000, 3_000_000, 2_000_000]),
        )
        sums = FeatureSums.from_batch(
            SampleBatch(values, 0, count.astype(float)), features, Folds()
        )
        sums = replace(
            sums, count=np.array([10**7]), squared_masses=np.array([1e7]), weight_range=(1.0, 1.0)
        )
        choice = LeaveOneOut().choose(FeatureProblem(features, sums), SimpleShrinkage())
        n, x, p = 10**7, values[:, 0].astype(float), count / 10**7
        rho, varrho = (p @ x) ** 2, p @ x**2
        assert choice.parameter == pytest.approx(
            n * (varrho - rho) / ((n - 1) * (n * rho - varrho)), rel=1e-6
        )

    @pytest.mark.parametrize("gram", ["dense", "blocks"])
    def test_single_precision_chooses_as_double_does(self, gram):
        rows = np.random.default_rng(1).normal(size=(300, 2))
        for name in ("f-kmse", "nu-method"):
            single, double = (
                KernelMean(kernel=self.kernel, filter=name, gram=gram)
                .fit(rows.astype(dtype))
                .choice_
                for dtype in (np.float32, np.float64)
            )
            assert single.gain == pytest.approx(double.gain, rel=1e-2)
            assert single.parameter == pytest.approx(double.parameter, rel=0.1)

    @pytest.mark.parametrize(
        "gram", [Nystrom(80), RandomFeatures(80)], ids=lambda gram: type(gram).__name__
    )
    def test_and_so_it_does_on_features_of_many_rows(self, gram):
        rows = np.random.default_rng(1).normal(size=(20_000, 2)).astype(np.float32)
        single, double = (
            KernelMean(kernel=self.kernel, filter="f-kmse", gram=gram)
            .fit(rows.astype(dtype))
            .choice_
            for dtype in (np.float32, np.float64)
        )
        assert single.gain == pytest.approx(double.gain, rel=1e-3, abs=0)  # of the order of 1e-11
        assert single.parameter == pytest.approx(double.parameter, rel=1e-6)

    def test_gains_are_differences_of_scores_with_all_their_digits(self):
        F = reference.features(KERNEL(X))
        kme = reference.leave_one_out_score("kme", None, F, np.ones(len(X)))
        for name in ("s-kmse", "f-kmse", "landweber", "nu-method", "tsvd", "componentwise"):
            choice = KernelMean(kernel=KERNEL, filter=name).fit(X).choice_
            true = [
                kme - reference.leave_one_out_score(name, value, F, np.ones(len(X)))
                for value in choice.grid
            ]
            np.testing.assert_allclose(choice.gains, true, atol=1e-13)
            assert choice.unshrunk == pytest.approx(kme, rel=1e-12)

    def test_next_to_no_shrinkage_gains_in_proportion(self):
        small, smaller = (
            KernelMean(kernel=KERNEL, filter="f-kmse", selection=LeaveOneOut(grid=[lam]))
            .fit(X)
            .choice_.gain
            for lam in (1e-9, 1e-10)
        )
        assert small / smaller == pytest.approx(10, rel=1e-4)


class TestGrids:
    """From no shrinkage to all of it, refined around the best: thousands do no better."""

    @pytest.mark.parametrize("share", [1.0, 0.1, 0.05, 0.01])
    @pytest.mark.parametrize(
        "name", ["s-kmse", "f-kmse", "iterated-tikhonov", "landweber", "nu-method", "tsvd"]
    )
    def test_the_risk_is_that_of_a_grid_of_thousands(self, name, share):
        ours, theirs = [], []
        for draw in SyntheticFamily(2).draw(range(3), n=30, random_state=0):
            kernel = Gaussian(share * Gaussian().resolve(draw.X).bandwidth)
            grid = np.geomspace(1e-10, 1e10, 10_000)
            if name in ("landweber", "nu-method"):
                grid = np.unique(np.geomspace(1, 300, 10_000).round())
            fits = [
                KernelMean(kernel=kernel, filter=name, selection=LeaveOneOut(each))
                for each in (None, grid)
            ]
            for fit, losses in zip(fits, (ours, theirs), strict=True):
                losses.append(draw.distribution.squared_distance(fit.fit(draw.X).embedding_))
        assert np.mean(ours) <= 1.05 * np.mean(theirs)

    def test_the_nu_method_goes_on_beyond_fifty_steps(self):
        sample = np.random.default_rng(0).normal(size=(1500, 5))
        choice = KernelMean(filter="nu-method").fit(sample).choice_
        assert choice.grid[-1] > 100
        assert not choice.at_edge

    def test_a_narrow_kernel_shrinks_all_the_way(self):
        sample = np.random.default_rng(0).normal(size=(60, 5))
        choice = KernelMean(kernel=Gaussian(0.01), filter="f-kmse").fit(sample).choice_
        assert choice.strength > 0.9999

    def test_thresholds_keep_as_much_of_a_sample_without_a_point(self):
        problem = DenseProblem(DenseGram.from_sample(KERNEL, X))
        thresholds = TruncatedSVD().grid(problem)
        whole = problem.spectrum.gamma
        kept = (whole >= thresholds[:, None]).sum(axis=1)
        np.testing.assert_array_equal(kept, np.arange(len(X), -1, -1))
        apart = np.append(whole[1:] * (1 - 1 / len(X)) > whole[:-1], [True, True])[
            np.r_[-1, : len(X)]
        ]
        assert apart.sum() > 8  # of 13: where eigenvalues are closer than that, no threshold can
        for i in range(len(X)):
            gamma = np.linalg.eigvalsh(KERNEL(np.delete(X, i, axis=0)) / (len(X) - 1))
            left = (gamma >= thresholds[:, None]).sum(axis=1)
            np.testing.assert_array_equal(left[apart], np.minimum(kept, len(X) - 1)[apart])

    def test_a_grid_that_is_given_is_left_as_it_is(self):
        mu = KernelMean(filter="f-kmse", selection=LeaveOneOut(grid=[1e3, 1e4])).fit(X)
        np.testing.assert_array_equal(mu.choice_.grid, [1e3, 1e4])
        assert mu.choice_.at_edge


def test_flat_curves_resolve_towards_less_shrinkage():
    # All points equal: every estimate that does not shrink is exact, every score of such an
    # estimate is zero.
    same = np.ones((6, 2))
    mu = KernelMean(
        kernel=Gaussian(1.0),
        filter="f-kmse",
        selection=LeaveOneOut(grid=[1e-14, 1e-13, 1e-12, 0.5]),
    )
    assert mu.fit(same).choice_.parameter == 1e-14
    assert KernelMean(kernel=Gaussian(1.0), filter="landweber").fit(same).choice_.strength == 0
    assert isinstance(KernelMean(kernel=Gaussian(1.0)).fit(same).filter_, KME)


def test_flat_curves_resolve_the_same_way_every_time():
    rng = np.random.default_rng(SEED)
    points = rng.integers(0, 2, size=(20, 2)).astype(float)
    chosen = {repr(KernelMean(kernel=Gaussian(1.0)).fit(points).choice_) for _ in range(5)}
    assert len(chosen) == 1


def test_a_choice_says_when_it_sits_at_the_edge():
    narrow = (
        KernelMean(kernel=KERNEL, filter="f-kmse", selection=LeaveOneOut(grid=[1e-5, 1e-4]))
        .fit(X)
        .choice_
    )
    assert narrow.at_edge
    assert narrow.parameter == 1e-4
    assert "at_edge=True" in repr(narrow)
    assert not KernelMean(kernel=KERNEL, filter="f-kmse").fit(X).choice_.at_edge
    assert (
        not KernelMean(kernel=KERNEL, filter="f-kmse", selection=LeaveOneOut(grid=[1e-4]))
        .fit(X)
        .choice_.at_edge
    )


def test_strength_is_how_far_the_mean_was_moved():
    for name in NAMES:
        mu = KernelMean(kernel=KERNEL, filter=name).fit(X)
        mean = KernelMean(kernel=KERNEL, filter="kme").fit(X).embedding_
        assert mu.choice_.strength == pytest.approx(
            mu.embedding_.distance(mean) / mean.norm(), abs=1e-7
        )


@pytest.mark.parametrize("rule", [LeaveOneOut(), GCV(), KFold(3), Rate(), Fixed(3)])
def test_a_thousand_samples_go_through_the_same_lines_as_one(rule):
    rng = np.random.default_rng(SEED)
    samples = rng.normal(size=(2, 3, 10, 2))
    masses = np.full(10, 0.1)
    grams = np.stack([[KERNEL(one) / 10 for one in row] for row in samples])
    batch = DenseProblem(DenseGram(grams, masses))
    for filter in (
        Tikhonov(),
        Landweber(),
        NuMethod(),
        *(kind() for kind in (FILTERS["tsvd"], FILTERS["s-kmse"])),
    ):
        if isinstance(rule, GCV) and filter.constant:
            continue
        if not isinstance(rule, Rate | Fixed):
            rule.set_params(grid=None)
            rule.set_params(
                grid=rule.choose(batch, filter).grid
            )  # one grid for all, so that each can be compared
        choice = rule.choose(batch, filter)
        weights = choice.weights(batch)
        assert weights.shape == (2, 3, 10)
        for place in np.ndindex(2, 3):
            problem = DenseProblem(DenseGram(grams[place], masses))
            one = rule.choose(problem, filter)
            np.testing.assert_allclose(choice.scores[place], one.scores, rtol=1e-9)
            assert np.asarray(choice.parameter)[place] == one.parameter
            np.testing.assert_allclose(weights[place], one.weights(problem), atol=1e-10)
            assert np.asarray(choice.strength)[place] == pytest.approx(one.strength, abs=1e-6)


def test_every_rule_by_name_can_be_used():
    for name in RULES:
        assert KernelMean(filter="f-kmse", selection=name).fit(X).choice_.parameter > 0
