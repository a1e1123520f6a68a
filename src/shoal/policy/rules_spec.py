"""The models of `[constraints]` and `[evaluate]`."""

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from shoal.policy.reading_spec import Spec
from shoal.policy.values import Category, Number


class ConstraintsSpec(Spec):
    """Rules that hold for every true record, as everybody knows."""

    rules: list[str] = Field(
        default_factory=list,
        description="Relations between columns, such as tax <= income. Every released row keeps "
        "them.",
    )
    lookups: dict[str, dict[str, dict[Category, Category]]] = Field(
        default_factory=dict,
        description="The pairs of values, for a column that determines another.",
    )
    observed: bool = Field(
        default=False,
        description="The rules were copied from the data. An epsilon becomes conditional.",
    )
    repair: bool = Field(
        default=False,
        description="Repair records that break a rule. Otherwise a method without epsilon stops.",
    )


class EvaluateSpec(Spec):
    """What `shoal evaluate` computes beyond its defaults; never published with the release."""

    rules: list[str] = Field(
        default_factory=list,
        description="Relations that every true record satisfies, such as tax <= income. "
        "Violations are counted before and after.",
    )
    groups: str | None = Field(
        None,
        description="The column by whose values losses are reported, the group that lost most "
        "first.",
    )
    learn: str | None = Field(
        None,
        description="The column that a model learns to predict. By default the first confidential "
        "one.",
    )
    secret: str | None = Field(
        None,
        description="The confidential column that attacks try to guess. By default the first one "
        "with categories.",
    )
    regression: str | None = Field(
        None,
        description="A linear model of your own, whose coefficients are compared, such as income "
        "~ age + hours.",
    )
    queries: str | None = Field(
        None,
        description="A TOML file with COUNT queries of your own. It is looked for beside the "
        "policy.",
    )
    smoothing: Annotated[Number, Field(ge=0, le=1000)] = Field(
        Decimal(1),
        description="Records of which nothing is known that the naive Bayes attack adds to each "
        "value. 0 is the paper's attacker.",
    )
