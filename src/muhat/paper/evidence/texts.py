"""What a reader has to know to read each figure of the evidence page."""

TEXTS = {
    "loss": (
        "Everything below is measured by the loss ‖μ_λ − μ‖² in closed form. Here it stands against averages "
        "over draws, and KME's average loss, under one mixture and one fixed bandwidth, against its analytic "
        "risk."
    ),
    "figure-1": (
        "x ~ N(θ, Σ) in the plane. Shaded: where shrinking by α brings x closer to θ. On the right, how that "
        "depends on the direction of θ."
    ),
    "figure-2": (
        "s_λ(γ) = γ g_λ(γ): what each filter leaves of a component with eigenvalue γ, with parameters that "
        "act as the same λ."
    ),
    "figure-3a": (
        "Risk against the number of iterations, and where leave-one-out stops. The paper's figure has no "
        "scale that we could compare with; the claims are in the table above."
    ),
    "figure-3b": (
        "Times of one core. *Parameter known*: one linear system for F-KMSE, t products for the others. *The "
        "paper's way*: a matrix inverse for each λ, or the iteration on all left-out samples. *Ours*: one "
        "eigendecomposition and a contour."
    ),
    "figure-3c": (
        "100 (R − R_λ)/R, n = 50, with the paper's rules, with ours, and with an oracle that knows the loss and bounds "
        "what any rule could reach. Where one mixture serves all samples, intervals are those of that mixture: another "
        "one for the same d gives other values."
    ),
    "appendix": ("S-KMSE with λ = c·n^(−β). The paper does not say which c, β and n it took."),
    "when-it-pays": (
        "Not in the paper. (a) Gains are large where the bandwidth is far below the median rule's, and small at it; "
        "(b) most fall with n. (c) The bandwidth is fixed in advance, so that Theorem 1 applies to the letter: left of "
        "its boundary S-KMSE with that rate must win for every n."
    ),
    "table-2": (
        "Mean negative log-likelihood on the test part, ours (printed). Bold: significantly below KME (paired "
        "t test over the repetitions, 5 %); †: significantly above. The paper does not say when its solver "
        "stopped, and much depends on it. The table is for the number of steps with which **KME's column "
        "alone** is nearest to the printed one; all others follow."
    ),
}
