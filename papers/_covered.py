"""What Cormode et al. (2013) have, and where Shoal has it."""

COVERED = [
    (
        "Definition 1, average empirical privacy π",
        "accuracy of naive Bayes, and 1 less it",
        "`shoal.metrics.attacks.naive_bayes.empirical_privacy`, `shoal evaluate`",
    ),
    (
        "breach increase β, and its baseline ρ",
        "“breach increase”, with an interval",
        "the same; `[evaluate] secret`",
    ),
    (
        "variant: the tuples of highest confidence",
        "“surest guesses”, a hundredth or any number",
        "the same; `[evaluate] surest`",
    ),
    (
        "Definition 2, relative error and α",
        "median relative error, with an interval",
        "`shoal.metrics.count_queries`, `shoal evaluate`",
    ),
    (
        "COUNT queries over half of the domain of each attribute",
        "the same, rounded up; by two other readings here",
        "`count_queries.half_ranges`; `[evaluate] query_columns`, `round_down`",
    ),
    (
        "trees of boxes with histograms",
        '`output = "tree"`',
        "`mondrian`, `dp-kdtree`, `dp-quadtree`",
    ),
    (
        "k-anonymity by Mondrian",
        "`mondrian`, `k`",
        "[method](../reference/methods/mondrian.md); Figure 1",
    ),
    (
        "l-diversity",
        "`[require] l-diversity`, four kinds",
        "Figure 2",
    ),
    (
        "t-closeness: nodes beyond t are not split",
        "`halt_beyond`, `halt_distance`",
        "`mondrian`; Figure 3",
    ),
    (
        "differential privacy: kd-trees and quadtrees, present or absent",
        '`dp-kdtree`, `dp-quadtree`, `neighbours = "add-remove"`',
        "[methods](../reference/methods/dp-kdtree.md); Figure 4",
    ),
    (
        "“noise is added to the histogram counts” of the leaves",
        '`levels = "leaves"`, `fit = "none"`, a `height`',
        "the same; dashed with squares in Figures 4 to 6",
    ),
    (
        "naive Bayes on boxes, uniform kernel, negative counts as 0",
        "the same; `smoothing = 0`",
        "`naive_bayes.learn`; `[evaluate] smoothing`",
    ),
    (
        "different kernels",
        "the middle, twice the width",
        "`naive_bayes.learn`; `[evaluate] kernel`; the table above",
    ),
    (
        "more sophisticated Bayes classifiers, other classifiers",
        "gradient boosting, the person's own box",
        "`shoal.metrics.attacks.boosting`, `shoal evaluate`; the table above",
    ),
    (
        "maximum height of the tree",
        "`max_height`, `height`",
        "Figure 6",
    ),
    (
        "eight runs with distinct seeds",
        "the same, with standard errors",
        "this page",
    ),
    (
        "one plot of utility and privacy for all models",
        '`axes = "alpha-beta"` of `compare`',
        "Figure 5; `shoal compare`, `shoal.compare`, the studio",
    ),
    (
        "Adult, 30,162 tuples",
        "the same",
        "[data](data.md)",
    ),
    (
        "Census, 100,000 tuples of IPUMS USA",
        "the ACS excerpt of NIST, or your own extract by `SHOAL_IPUMS`",
        "[data](data.md)",
    ),
    (
        "size of the data set, 10% to 100%",
        "the same",
        "Figure 6",
    ),
    (
        "models judged by their distance to the origin",
        "the same, beside standings by intervals: on the frontier, tied with it, or beaten",
        "`shoal compare`, [how](../how-to/compare.md#the-axes)",
    ),
    (
        "other recipients, other models: a third party, a trusted department",
        "`[release] audience` says which claims do for whom",
        "[policy](../reference/policy.md)",
    ),
]
"""In the paper, in Shoal, where."""
