"""Tolerances: how much rounding is allowed, each with its reason.

Sizes and choices are constants of the modules that use them. What is here separates a number from
its rounding error; docs/maths.md has the measurements behind those of leave-one-out.
"""

import numpy as np

# Eigenvalues

TINY_SHARE = 1e-30
"""The share of γ_max that eigenvalues are raised to where a filter divides by them.

Far below rounding, so that no eigenvalue that means anything changes, and far above underflow.
"""

EIGENSPACE_TOL = 1e-8
"""Eigenvalues closer than this share of the largest one belong to the same eigenspace."""

DISTINCT_RATIO = 1 + 1e-8
"""Eigenvalues with a smaller ratio count as equal: no threshold goes between them."""

ROUNDING_UNITS = 10
"""Rounding units of k(x, x) by which an eigenvalue of zero may be off."""

MAX_UNITS_LOST = 8
"""Rounding units of the largest k(x, x) that centring may leave in an eigenvalue."""

ROOT_TOL = 1e-7
"""Relative step after which a root has converged: the error left is about the step's square."""

MIN_WEIGHT_SHARE = 1e-30
"""Share of ‖w‖² that w_k² is raised to, so that every interval has a root inside."""

# Kernels and Gram matrices

EXPONENT_TOL = 1e-13
"""Rounding allowed in an exponent of order one; in float32 the same multiple of its unit."""

EXPONENTIAL_TOL = {"float64": 1e-14, "float32": 2e-7}
"""The quotient's share of the relative error of exp(x)."""

MIN_TARGET_MASS = 1e-12
"""Relative mass below which the rest of a target counts as empty and is not scaled up."""

MISSED_MEAN_TOL = 1e-12
"""Share of ‖μ̂‖² up to which the part that landmarks miss counts as rounding."""

MAX_ROUNDING_SHARE = 1e-8
"""Largest share of ‖z(x)‖² that rounding may add for the type of the points to be used."""

MIN_FACTOR_TOL = 1e-14
"""The least share of tr K that can be distinguished from the rounding of r products in double."""

FACTOR_TOL = 1e-14
"""The share of the largest l(y, y) that a factor of the Gram matrix of y leaves out."""

MAX_MISSING_TRACE = 1e-9
"""The share of K's trace that F Fᵀ may lack: the factor is a preconditioner of exact products."""

# Filters and leave-one-out scores

MIN_SHRINKAGE = 1e-14
"""A minimiser λ below this is a rounding error of zero."""

SINGLE_POINT_TOL = 1e-9
"""Effective sizes this close to one are a single point, whose noise cannot be estimated."""

STEP_TOL = 1e-9
"""Relative rounding error up to which a step size or κ² may violate the kernel's bound."""

MAX_FIT_ERROR = 1e-11
"""Largest error of a filter as a sum of resolvents, relative to 1."""

MAX_CANCELLATION = 4e5
"""Largest size of the sum's terms, relative to what they cancel to: rounding stays below 1e-10."""

MAX_SMOOTHER_FIT_ERROR = 5e-12
"""Largest error of κ√γ ĝ(γ) as a sum of resolvents, relative to its maximum or 1."""

CONVERGED = 1e-11
"""The relative change at which a solution has converged; in float32, 64 rounding units."""

GAIN_TOLERANCE = 1e-9
"""Gains closer than this share of the largest are one gain."""

GAIN_ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""Gains closer than this share of what one point adds to tr A are one gain too: where all points
are equal, every gain is rounding of zero."""

MIN_REMAINING_MASS = 1e-3
"""The mass that must be left when points are left out: results are divided by it twice, and lose
six of sixteen digits at this value."""

# Estimators and tests

INNER_PRODUCT_TOL = 1e-12
"""Share of the largest inner product below which a value is rounding."""

EMPTY_CLUSTER_SHARE = 1e-12
"""Share of its mass up to which a cluster without a fold counts as empty."""

MIN_VARIANCE_SHARE = 1e-13
"""The least variance within groups, as a share of the mean of k(x, x): below it is rounding."""

TIE_TOLERANCE = 1e-12
"""Values of a statistic that differ by less than this share of its scale count as ties."""

COMBINED_TIE_TOLERANCE = 1e-9
"""The same for the combination: rounding errors of statistics over their standard deviation."""

CONSTANT_TOLERANCE = 1e-6
"""A statistic that permutations change by less than this share of its scale is ignored."""

PROBABILITY_TOL = 1e-6
"""Error of a probability of the limit law: far below the difference between confidence levels."""

BOUND_SLACK = 1e-6
"""The relative excess over a bound that counts as rounding."""

VISIBLE_RESIDUAL = 1e-10
"""Residuals |r_λ| below this are taken for zero: 1 − s_λ has lost their digits."""
