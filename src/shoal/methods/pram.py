"""k-anonymous quasi-identifiers, and invariant PRAM of the confidential columns.

The future work of domingoferrer2015: stochastic t-closeness by post-randomisation instead of noise.
Groups form as in `kanon-dp`. Each confidential category passes through randomised response at
epsilon / m, and then through a draw from the distribution of the truth given the response, under
the table's own shares: expected counts are kept (`mechanism.randomised_response` has the algebra).

Two readings of the price. Conditional: if the shares of each confidential column in the whole table
are public, and held fixed while a record changes, the second stage is post-processing, and a
record costs epsilon. t-closeness makes the same assumption: the distribution over the table is
what everybody knows. Two tables that do have equal shares differ in two records or more, and these
cost epsilon each.

Refuted, for tables that differ in one record: their shares differ. A category that nobody has is
never released; if one record has it, it is released with positive probability. No epsilon bounds
that ratio.

Numbers are refused: a posterior over a grid of a million values is the table itself, nearly.
"""

import numpy as np

from shoal.core import Claim, Column, Kind, Role, Status
from shoal.errors import InputError
from shoal.io.table import Table
from shoal.mechanism.microaggregate_noise import Purchase
from shoal.mechanism.randomised_response import posterior, redrawn, response_matrix, responses
from shoal.methods.method import (
    TWO_NUMBERS,
    CellFacts,
    ContributionProof,
    CostModel,
    Example,
    Masked,
    Method,
    Pair,
    Promises,
    Setting,
    Tools,
)
from shoal.methods.noise import epsilon_claims, noisy_microaggregation, recordwise
from shoal.methods.noise.recordwise import EpsilonReading, RecordwiseParameters

NAME = "pram"
REFERENCE = (
    "Gouweleeuw, Kooiman, Willenborg and de Wolf, Post randomisation for statistical disclosure "
    "control: theory and implementation, Journal of Official Statistics 14 (1998); after "
    f"{recordwise.SOURCE}, Section 8"
)
FIXED_SHARES = (
    "the share of each value in the whole table is public, and stays fixed when a record changes"
)


def counterexample(k: int) -> Pair:
    """Make two tables of 2k records: all with the first category, and all but one."""
    before = np.zeros((2 * k, 1))
    after = before.copy()
    after[0] = 1.0
    return Pair(
        before,
        after,
        "a value that a single record has can be released, and without that record it never is",
    )


def _claims(setting: Setting[RecordwiseParameters]) -> tuple[Claim, ...]:
    conditional = EpsilonReading(
        Status.CONDITIONAL,
        "groups depend on the quasi-identifiers alone, each confidential cell gets its own "
        "randomised response at its share of epsilon, and with fixed shares the second draw is "
        "post-processing; two tables that do have the same shares differ in at least two "
        "records, each of which costs epsilon",
        (FIXED_SHARES,),
        "tables with the same shares of values",
    )
    refuted = EpsilonReading(
        Status.REFUTED,
        "counterexample: a value that nobody has is never released; if one record has it, it is "
        "released with positive probability, since shares follow the table",
        about=epsilon_claims.RECORDS,
        instead="'kanon-dp' keeps the same groups and this epsilon, proved, because it releases "
        "each randomised answer itself. It costs accuracy: on occupation of Adult (k = 10, t = 3), "
        "the people counted by bands of the quasi-identifiers and by value are off by 35% in total "
        "variation with it, and by 25% with this method. (The paper names PRAM as future work; "
        "this construction is Shoal's.)",
    )
    return recordwise.claims(setting, [conditional, refuted])


def _refuse(setting: Setting[RecordwiseParameters]) -> None:
    recordwise.refuse(setting, NAME)
    for name in recordwise.confidential(setting.schema):
        if setting.schema[name].kind not in {Kind.ORDINAL, Kind.NOMINAL}:
            raise InputError(
                f"Column '{name}': method '{NAME}' redraws categories, but this column holds "
                "numbers or dates. Recode it as ordinal with categories, or use kanon-dp."
            )


def _run(table: Table, setting: Setting[RecordwiseParameters], tools: Tools) -> Masked:
    partition = recordwise.group(table, setting, tools)
    price = recordwise.price(setting)
    privacy_losses = []
    for name in recordwise.confidential(setting.schema):
        tools.progress("redrawing categories", 0, 1)
        codes, categories = table.codes(name), len(table.categories(name))
        answers, privacy_loss = responses(
            codes, categories=categories, purchase=Purchase(name, price), noise=tools.noise
        )
        shares = np.bincount(codes, minlength=categories) / codes.size
        Q = posterior(response_matrix(categories, float(price)), shares)
        table = table.with_codes(name, redrawn(answers, Q, tools.rng))
        privacy_losses.append(privacy_loss)
    return Masked(recordwise.centre(table, setting, partition), tuple(privacy_losses))


METHOD = Method(
    name=NAME,
    summary="Group records, redraw confidential categories (k-anonymity; conditional epsilon).",
    reference=REFERENCE,
    parameters=RecordwiseParameters,
    example=Example(
        {"k": 5, "epsilon": 1},
        (TWO_NUMBERS[0], Column("b", Role.CONFIDENTIAL, Kind.NOMINAL, categories=("x", "y"))),
    ),
    forms=noisy_microaggregation.LINKED,
    promises=Promises(_claims, recordwise.not_claimed, ContributionProof.EXACT, counterexample),
    run=_run,
    refuse=_refuse,
    input=recordwise.INPUT,
    noise_by_row=True,
    cost=CostModel(1.0, 0.16, 1.0, 0),
    cells=CellFacts(shrinks=True),
)
