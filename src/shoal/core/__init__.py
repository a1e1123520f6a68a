"""The nouns of Shoal: frozen values that are valid because they exist.

Three kinds of truth have three types. A `Claim` is promised by a method, a `Check` was
computed on the released table, an `Estimate` was measured and has an interval. Only
`shoal.pipeline.protecting` attaches claims to a release.
"""

from shoal.core.columns import (
    Column,
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
from shoal.core.guarantees import (
    KNOWN_COLUMNS,
    ONE_ROW,
    Audience,
    Check,
    Claim,
    DifferentialPrivacy,
    Distance,
    Diversity,
    Estimate,
    Extract,
    Guarantee,
    KAnonymity,
    LDiversity,
    Neighbours,
    ReleaseForm,
    Status,
    StochasticTCloseness,
    TCloseness,
    Testable,
    figure,
    shown,
)
from shoal.core.privacy_loss import LAPLACE, RESPONSE, SELECTION, Noise, PrivacyLoss
from shoal.core.release import Partition, Policy, Release, SpatialDecomposition, whole_numbers

__all__ = [
    "KNOWN_COLUMNS",
    "LAPLACE",
    "ONE_ROW",
    "RESPONSE",
    "SELECTION",
    "Audience",
    "Check",
    "Claim",
    "Column",
    "Confidential",
    "DifferentialPrivacy",
    "Distance",
    "Diversity",
    "Estimate",
    "Extract",
    "Guarantee",
    "Hierarchy",
    "KAnonymity",
    "Kind",
    "LDiversity",
    "Neighbours",
    "Noise",
    "Partition",
    "Persons",
    "Policy",
    "PrivacyLoss",
    "Progress",
    "Release",
    "ReleaseForm",
    "Role",
    "Schema",
    "SpatialDecomposition",
    "Status",
    "StochasticTCloseness",
    "TCloseness",
    "Testable",
    "Transform",
    "figure",
    "shown",
    "silent",
    "whole_numbers",
]
