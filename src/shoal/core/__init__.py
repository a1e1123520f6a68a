"""The nouns of Shoal: frozen values that are valid because they exist.

Three kinds of truth have three types. A `Claim` is promised by a method, a `Check` was
computed on the released table, an `Estimate` was measured and has an interval. Only
`shoal.pipeline.protect_table` attaches claims to a release.
"""

from shoal.core.claims import (
    KNOWN_COLUMNS,
    ONE_DRAW,
    ONE_ROW,
    Check,
    Claim,
    Estimate,
    ReleaseForm,
    Status,
)
from shoal.core.columns import (
    Column,
    Discover,
    Hierarchy,
    Kind,
    Persons,
    Progress,
    Role,
    Schema,
    Transform,
    silent,
)
from shoal.core.confidential import Confidential
from shoal.core.constraints import Constraint
from shoal.core.decomposition import SpatialDecomposition
from shoal.core.guarantees import (
    DifferentialPrivacy,
    Distance,
    Diversity,
    Guarantee,
    KAnonymity,
    KeptRule,
    LDiversity,
    MissingMeaning,
    Neighbours,
    StochasticTCloseness,
    TCloseness,
    Testable,
    figure,
    write_fraction,
)
from shoal.core.mixed_records import MixedRecords
from shoal.core.partition import Partition, whole_numbers
from shoal.core.policy import (
    Audience,
    BoxKernel,
    BudgetUse,
    ConstraintChoices,
    EvaluationChoices,
    Extract,
    FileReading,
    Policy,
)
from shoal.core.privacy_loss import (
    EXPONENTIAL,
    GAUSSIAN,
    LAPLACE,
    RESPONSE,
    SELECTION,
    THRESHOLD,
    Noise,
    Price,
    PrivacyLoss,
    PrivacyMeasure,
)
from shoal.core.release import Release, Scheme

__all__ = [
    "EXPONENTIAL",
    "GAUSSIAN",
    "KNOWN_COLUMNS",
    "LAPLACE",
    "ONE_DRAW",
    "ONE_ROW",
    "RESPONSE",
    "SELECTION",
    "THRESHOLD",
    "Audience",
    "BoxKernel",
    "BudgetUse",
    "Check",
    "Claim",
    "Column",
    "Confidential",
    "Constraint",
    "ConstraintChoices",
    "DifferentialPrivacy",
    "Discover",
    "Distance",
    "Diversity",
    "Estimate",
    "EvaluationChoices",
    "Extract",
    "FileReading",
    "Guarantee",
    "Hierarchy",
    "KAnonymity",
    "KeptRule",
    "Kind",
    "LDiversity",
    "MissingMeaning",
    "MixedRecords",
    "Neighbours",
    "Noise",
    "Partition",
    "Persons",
    "Policy",
    "Price",
    "PrivacyLoss",
    "PrivacyMeasure",
    "Progress",
    "Release",
    "ReleaseForm",
    "Role",
    "Schema",
    "Scheme",
    "SpatialDecomposition",
    "Status",
    "StochasticTCloseness",
    "TCloseness",
    "Testable",
    "Transform",
    "figure",
    "silent",
    "whole_numbers",
    "write_fraction",
]
