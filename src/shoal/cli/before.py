"""Commands before a release: its promises, and an inspection of the table."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.console import Command, Panel, running, say, showing_progress, tell
from shoal.cli.options import STDIN, AsJson, Audience, Data, PolicyFile, display_path, spell_out

if TYPE_CHECKING:
    from shoal.core import Progress
    from shoal.pipeline.options import BudgetOptions, ReadingOptions
    from shoal.policy.drafted import DraftedPolicy

before = typer.Typer()
command = partial(before.command, cls=Command)


@command(rich_help_panel=Panel.START)
@spell_out
def init(
    *,
    data: Data,
    out: Annotated[Path, typer.Option(help="Where to write the policy; - prints it.")] = Path(
        "policy.toml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    audience: Annotated[
        str | None,
        typer.Option("--for", metavar="USE", help="public-use, scientific-use or secure-use."),
    ] = None,
    k: Annotated[int, typer.Option("--k", help="How many people must share a value.")] = 5,
    keep: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="Columns to release as they are, between commas."),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="safe-harbor: the fields of 45 CFR 164.514(b)(2)."),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(help="Draft a release with this epsilon, from the header alone."),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(help="With --epsilon: find categories and bounds with noise. About 1e-9."),
    ] = None,
    metadata: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A data package (JSON) or DDI codebook (XML): labels, missing codes, weight.",
        ),
    ] = None,
    attacks: Annotated[
        bool,
        typer.Option("--try", help="Attack what the draft would release, and say what would help."),
    ] = False,
    as_json: AsJson = False,
    reading: "ReadingOptions",
    budget: "BudgetOptions",
) -> None:
    """Read a table and draft a commented policy for you to correct."""
    import json
    from contextlib import suppress

    from shoal import policy as policies
    from shoal.errors import InputError, ShoalError
    from shoal.pipeline import forecast, planning
    from shoal.policy.draft import draft, draft_from_header

    _check_together(budget, template, keep, k, attacks=attacks, epsilon=epsilon, metadata=metadata)
    if delta is not None and epsilon is None:
        raise InputError("--delta goes with --epsilon: expected both, found --delta alone.")
    with showing_progress() as progress:
        progress("reading the file", 0, 1)
        if epsilon is None:
            columns = [name.strip() for name in (keep or "").split(",") if name.strip()]
            drafted = draft(data, audience=audience, k=k, keep=columns, template=template,
                            metadata=metadata, **vars(reading))  # fmt: skip
        else:
            drafted = draft_from_header(
                data, epsilon=epsilon, delta=delta, audience=audience, **vars(reading)
            )
        if attacks:
            drafted = _try_draft(drafted, data, reading, budget, progress)
    printed = out == STDIN
    if not printed:
        drafted.write(out, force=force)
    if as_json:
        say(json.dumps({"file": None if printed else str(out), **drafted.facts()}, indent=2))
        return
    if printed:
        say(drafted.text.rstrip("\n"))
        return
    for question in drafted.questions:
        say(f"Question: {question}")
    for remark in drafted.remarks:
        say(f"Exposed: {remark}")
    for line in drafted.attacks:
        say(line)
    with suppress(ShoalError):  # A draft may need an answer before it can be planned.
        planned = planning.plan(policies.loads(drafted.text), rows=drafted.rows)
        say(f"As drafted, a run takes {forecast.takes(planned)}.")
    table = display_path(data)
    say(f"Wrote {out}. Correct its guesses, then: "
        f"shoal protect {table} --policy {out} --out release")  # fmt: skip


def _check_together(
    budget: "BudgetOptions",
    template: str | None,
    keep: str | None,
    k: int,
    *,
    attacks: bool,
    epsilon: str | None,
    metadata: Path | None,
) -> None:
    from shoal.errors import InputError
    from shoal.policy.exposure import NO_PURPOSE

    if epsilon is not None and (attacks or template):
        option = "--try" if attacks else "--template"
        raise InputError(
            f"{option} reads the table, and an --epsilon draft must not. Use one of them."
        )
    if metadata is not None and epsilon is not None:
        raise InputError(
            "Whoever wrote the --metadata may have seen the table, and an --epsilon draft must not "
            "depend on it. State labels and categories that are public in the policy."
        )
    if epsilon is not None and (keep or k != NO_PURPOSE.k):
        raise InputError(
            f"{'--keep' if keep else '--k'} is for a release in which k people share a value, and "
            "one with an --epsilon protects each person by noise. Use one of them."
        )
    if (budget.file or budget.source) and not attacks:
        raise InputError("--budget and --source record the inspection of --try. Add --try.")


def _try_draft(
    drafted: "DraftedPolicy",
    data: Path,
    reading: "ReadingOptions",
    budget: "BudgetOptions",
    progress: "Progress",
) -> "DraftedPolicy":
    """Attack a trial release of a draft, and write the attackers' gains into the draft."""
    from shoal import policy as policies
    from shoal.evaluation import inspect_table

    seen = inspect_table.inspect(
        data,
        budget.apply_to(policies.loads(drafted.text)),
        reading=reading,
        attacks=True,
        tell=tell,
        progress=progress,
        note=data.name,
    )
    return drafted.with_attacks((*seen.describe_attacks(), *seen.refused))


@command(rich_help_panel=Panel.START)
def plan(
    policy: PolicyFile,
    rows: Annotated[
        int | None, typer.Option(help="How many rows the table has, or about how many.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The table's file; only its name is used, to say what [reading] lacks."),
    ] = None,
    audience: Audience = None,
    as_json: AsJson = False,
) -> None:
    """Say what a policy promises, how accurate a release will be and how long it takes.

    No data is read.
    """
    import json

    from shoal.pipeline import forecast, planning

    planned = planning.plan(policy, rows=rows, audience=audience, data=data)
    say(json.dumps(forecast.plan_facts(planned), indent=2) if as_json else planned)


@command(rich_help_panel=Panel.START)
@spell_out
def inspect(
    *,
    data: Data,
    policy: PolicyFile,
    public: Annotated[
        bool,
        typer.Option(
            "--public",
            help="State that the file is public or a sample, so the inspection is not recorded.",
        ),
    ] = False,
    attacks: Annotated[
        bool,
        typer.Option(
            "--attacks",
            help="Attack a release of four in five persons, which is thrown away, and the others.",
        ),
    ] = False,
    population: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of everybody whom an attacker could match, for k-map; by default the "
            "policy's.",
        ),
    ] = None,
    as_json: AsJson = False,
    reading: "ReadingOptions",
    budget: "BudgetOptions",
) -> None:
    """Say what a policy cannot read of a table, who is rare in it, and what becomes constant.

    This inspects the table, and what it prints is confidential.
    """
    import json

    from shoal.evaluation import inspect_table

    with running() as progress:
        inspection = inspect_table.inspect(
            data,
            budget.apply_to(policy),
            public=public,
            attacks=attacks,
            population=population,
            reading=reading,
            tell=tell,
            progress=progress,
            note=data.name,
        )
    say(json.dumps(inspection.facts(), indent=2) if as_json else inspection)


@command(rich_help_panel=Panel.MORE)
def closeness(
    t: Annotated[
        float | None,
        typer.Option("--t", help="t of t-closeness with the ratio distance, at least 1."),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Epsilon of one record, instead of t.")
    ] = None,
    k: Annotated[int, typer.Option("--k", help="Smallest size of an equivalence class.")] = 2,
    rows: Annotated[
        int | None, typer.Option(help="Number of rows of the table; by default, any.")
    ] = None,
    columns: Annotated[int, typer.Option(help="Number of confidential columns.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Convert the t of t-closeness to epsilon and back; no data is read."""
    import json

    from shoal.report import terminal

    facts = terminal.closeness(t=t, epsilon=epsilon, k=k, rows=rows, columns=columns)
    say(json.dumps(facts) if as_json else terminal.closeness_text(facts, columns=columns))
