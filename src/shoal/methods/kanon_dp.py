"""k-anonymous quasi-identifiers, and record-wise noise on the confidential columns.

domingoferrer2015, Section 4. Groups form from the quasi-identifiers alone. A confidential number,
date or rank gets discrete Laplace noise, one draw per cell, of scale width / epsilon_j; a nominal
passes through randomised response over its declared categories, which is a PRAM. epsilon is that of
a record, all its m confidential columns together, and epsilon_j = epsilon / m; or t is stated in
its place, jointly or column by column.

Claims, proved in `recordwise`: k-anonymity of the quasi-identifiers; epsilon for the confidential
values, given the quasi-identifiers and who is in the table; stochastic t-closeness.
"""

from dataclasses import replace

from shoal.core import Claim, Kind, Role, Status
from shoal.io.table import Table
from shoal.mechanism.microaggregate_noise import Purchase
from shoal.mechanism.randomised_response import responses
from shoal.methods.method import (
    TWO_NUMBERS,
    ContributionProof,
    CostModel,
    Example,
    Masked,
    Method,
    Promises,
    Setting,
    Tools,
)
from shoal.methods.noise import noisy_microaggregation, recordwise
from shoal.methods.noise.recordwise import EpsilonReading, RecordwiseParameters

NAME = "kanon-dp"


def _claims(setting: Setting[RecordwiseParameters]) -> tuple[Claim, ...]:
    reading = EpsilonReading(
        Status.PROVED,
        "groups depend on the quasi-identifiers alone, and each confidential cell gets its own "
        "noise; a record affects only the noise draws of its own cells, which together cost "
        "epsilon",
    )
    return recordwise.claims(setting, [reading])


def _run(table: Table, setting: Setting[RecordwiseParameters], tools: Tools) -> Masked:
    partition = recordwise.group(table, setting, tools)
    singletons, price = recordwise.alone(table), recordwise.price(setting)
    privacy_losses = []
    for name in recordwise.confidential(setting.schema):
        tools.progress("adding noise", 0, 1)
        purchase = Purchase(name, price)
        if setting.schema[name].kind is Kind.NOMINAL:
            answers, privacy_loss = responses(
                table.codes(name),
                categories=len(table.categories(name)),
                purchase=purchase,
                noise=tools.noise,
            )
            table = table.with_codes(name, answers)
        else:
            part = (noisy_microaggregation.put_on_grid(table, name), singletons, purchase)
            table, (privacy_loss,) = noisy_microaggregation.perturb(table, tools, [part])
        privacy_losses.append(privacy_loss)
    return Masked(recordwise.centre(table, setting, partition), tuple(privacy_losses))


METHOD = Method(
    name=NAME,
    summary="Group by quasi-identifiers, add noise to confidential cells (k-anonymity, epsilon).",
    reference=recordwise.SOURCE,
    parameters=RecordwiseParameters,
    example=Example(
        {"k": 5, "epsilon": 1},
        (TWO_NUMBERS[0], replace(TWO_NUMBERS[1], role=Role.CONFIDENTIAL)),
    ),
    forms=noisy_microaggregation.LINKED,
    promises=Promises(_claims, recordwise.not_claimed, ContributionProof.EXACT),
    run=_run,
    refuse=lambda setting: recordwise.refuse(setting, NAME),
    input=recordwise.INPUT,
    noise_by_row=True,
    cost=CostModel(1.0, 0.15, 1.0, 0),
)
