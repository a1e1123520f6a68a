"""The command line: parse, call one function, print.

Heavy imports stand inside the commands, so `shoal --help` is quick. Results go to
stdout; progress and errors to stderr. Exit codes: 0 done; 2 the user's move; 3 a required
promise cannot be kept, a check failed or a release does not verify; 70 our bug.
"""

import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.about import about
from shoal.cli.after import after
from shoal.cli.before import before
from shoal.cli.console import (
    Command,
    Group,
    Panel,
    if_interrupted,
    running,
    say,
    say_published,
    tell,
    telling,
)
from shoal.cli.options import (
    AsJson,
    Audience,
    Data,
    FileFormat,
    OriginalOrNone,
    Page,
    Passphrase,
    PolicyFile,
    PolicyOrNone,
    Quiet,
    ReleaseFolder,
    ReplacePage,
    ReplaceRelease,
    Verbose,
    Version,
    spell_out,
)
from shoal.cli.subcommands import budget, hierarchy, keys

if TYPE_CHECKING:
    from shoal.pipeline.options import BudgetOptions, EvaluationOptions, ReadingOptions

app = typer.Typer(
    cls=Group,
    help="Protect tables of people for publication, and say exactly what the result promises.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(before)
app.add_typer(after)
app.add_typer(about)
app.add_typer(hierarchy, name="hierarchy", rich_help_panel=Panel.PROTECT)
app.add_typer(budget, name="budget", rich_help_panel=Panel.PROTECT)
app.add_typer(keys, name="keys", rich_help_panel=Panel.SHARE)
command = partial(app.command, cls=Command)


def main() -> None:
    """Start the command line.

    Arguments that are not text, such as a file name in another encoding, are refused: reports and
    manifests could not hold them.
    """
    for word in sys.argv[1:]:
        if not word.isascii() and any("\ud800" <= mark <= "\udfff" for mark in word):
            shown = os.fsencode(word).decode(errors="backslashreplace")
            tell(f"Expected UTF-8 text on the command line, found '{shown}'. Rename the file.")
            sys.exit(2)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except SystemExit as end:
        if end.code == 130:
            os._exit(130)  # All is in order; taking the libraries down takes seconds.
        raise
    finally:
        # Nothing is left to clean up: an interrupt may end the process at once.
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@app.callback()
def _whole(
    *,
    version: Version = False,  # noqa: ARG001 (its callback prints and exits)
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Handle the options before a command."""
    telling(quiet=quiet, verbose=verbose)


@command(rich_help_panel=Panel.PROTECT)
@spell_out
def protect(
    *,
    data: Data,
    policy: PolicyFile,
    out: Annotated[Path, typer.Option(help="Folder for what may be published.")],
    file_format: FileFormat = None,
    force: ReplaceRelease = False,
    keep_order: Annotated[
        bool,
        typer.Option("--keep-order", help="Keep the order of the rows (release form row-aligned)."),
    ] = False,
    guard_formulas: Annotated[
        bool | None,
        typer.Option(
            "--guard-formulas/--no-guard-formulas",
            help="Disarm text that a spreadsheet would run; the default for CSV and xlsx.",
        ),
    ] = None,
    reading: "ReadingOptions",
    budget: "BudgetOptions",
    audience: Audience = None,
    evaluation: "EvaluationOptions",
    engine: Annotated[
        str, typer.Option(help="Where to run: local, or spark for tables beyond one machine.")
    ] = "local",
    spark_conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Spark setting, e.g. spark.master=local[8]."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Protect a table as its policy says; write the release, its manifest and reports."""
    from shoal.pipeline import options
    from shoal.publish import protect_file

    with running() as progress:
        published = protect_file.protect(
            data,
            policy,
            out,
            reading=reading,
            output=options.OutputOptions(file_format, force, keep_order, guard_formulas, audience),
            budget=budget,
            evaluation=evaluation,
            engine=options.EngineOptions(engine, _pairs(spark_conf, "--spark-conf KEY=VALUE")),
            progress=progress,
        )
    say_published(published, as_json=as_json)


@command(rich_help_panel=Panel.SHARE)
@spell_out
def report(
    *,
    release: Annotated[Path, typer.Argument(metavar="DIR", help="Public folder of the release.")],
    data: OriginalOrNone = None,
    policy: PolicyOrNone = None,
    evaluation: "EvaluationOptions",
    reading: "ReadingOptions",
) -> None:
    """Make the confidential report of a release anew; this spends no epsilon."""
    from shoal.errors import InputError
    from shoal.io import folders
    from shoal.pipeline import options
    from shoal.publish import confidential_folder

    if data is None or policy is None:
        if data or policy or evaluation != options.EvaluationOptions():
            raise InputError("Expected DATA and --policy together, or DIR alone.")
        confidential_folder.render(release)
    else:
        with running() as progress:
            confidential_folder.report(
                release, data, policy, reading=reading, evaluation=evaluation, progress=progress
            )
    say(f"Confidential: {folders.internal_of(release) / 'report.html'}")


@command(rich_help_panel=Panel.PROTECT)
def finish(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for what may be published.")],
    kept: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder that keeps the release; by default, beside DIR."),
    ] = None,
    force: ReplaceRelease = False,
) -> None:
    """Write a release whose epsilon was spent but whose folder could not be written."""
    from shoal.publish import protect_file

    folder = protect_file.finish(out, kept=kept, force=force)
    say(f"To publish: {folder}  To make its confidential report: shoal report {folder} "
        "DATA --policy POLICY")  # fmt: skip


@command(rich_help_panel=Panel.ASSESS)
@spell_out
def check(
    *,
    released: Data,
    policy: PolicyFile,
    as_json: AsJson = False,
    reading: "ReadingOptions",
) -> None:
    """Recompute what a policy requires on any released table, whoever made it."""
    from shoal import io
    from shoal.engine import check_table
    from shoal.report import terminal

    raw = io.read(released, **vars(reading))
    checks = check_table.check(raw.frame, policy)
    say(terminal.checks_json(checks) if as_json else terminal.checks_text(checks))
    if not all(check.holds for check in checks):
        raise typer.Exit(3)


@command(rich_help_panel=Panel.SHARE)
def verify(
    folder: ReleaseFolder,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Public key of the signer.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify a release, without the original and without the policy file."""
    import json

    from shoal.publish.verify_folder import verify as verify_folder

    verification = verify_folder(folder, key=key)
    say(json.dumps(verification.facts(), indent=2) if as_json else str(verification))
    if not verification.holds:
        raise typer.Exit(3)


@command(rich_help_panel=Panel.SHARE)
def sign(
    folder: ReleaseFolder,
    key: Annotated[Path, typer.Option(metavar="FILE", help="File with the private key.")],
    passphrase: Passphrase = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing signature.")] = False,
) -> None:
    """Verify a release and sign its manifest, which covers every file of the release."""
    from shoal.publish import verify_folder

    verify_folder.sign(folder, key, passphrase=passphrase, force=force)
    say(f"Signed {folder}. Others verify it with: shoal verify {folder} --key KEY.pub")


@command(rich_help_panel=Panel.ASSESS)
@spell_out
def evaluate(
    *,
    original: Annotated[Path, typer.Argument(metavar="ORIGINAL", help="The confidential table.")],
    released: Annotated[
        Path, typer.Argument(metavar="RELEASED", help="Release of that table, made by any tool.")
    ],
    policy: PolicyFile,
    control: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="People of the same population who are not in ORIGINAL."),
    ] = None,
    only: Annotated[str | None, typer.Option(help="Only utility or risk; default: both.")] = None,
    aligned: Annotated[
        bool, typer.Option("--aligned", help="Row i of the release is about row i of the original.")
    ] = False,
    rename: Annotated[
        list[str] | None,
        typer.Option(metavar="THEIRS=OURS", help="A column that the release names differently."),
    ] = None,
    as_json: AsJson = False,
    out: Page = None,
    force: ReplacePage = False,
    seed: Annotated[int, typer.Option(help="Seed of the random samples.")] = 0,
    reading: "ReadingOptions",
    budget: "BudgetOptions",
) -> None:
    """Evaluate the utility and the risk of a release, whoever made it."""
    from shoal.publish import evaluate_files

    with running() as progress:
        result = evaluate_files.evaluate(
            original,
            released,
            policy,
            control=control,
            out=out,
            force=force,
            reading=reading,
            budget=budget,
            only=only,
            aligned=aligned or None,
            rename=_pairs(rename, "--rename THEIRS=OURS", marks=1),
            seed=seed,
            tell=tell,
            progress=progress,
        )
    say(result.to_json() if as_json else str(result))
    if out is not None:
        say(f"Report, confidential: {out}", err=True)


@command(rich_help_panel=Panel.ASSESS)
@spell_out
def compare(
    *,
    data: Data,
    policy: PolicyFile,
    out: Annotated[Path, typer.Option(help="Confidential folder to write, or to continue in.")],
    grid: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML file of methods and parameters to compare."),
    ] = None,
    published: Annotated[
        bool,
        typer.Option("--published", help="Compare the published methods too; not with --grid."),
    ] = False,
    on_sample: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of other people to inspect in place of DATA."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Number of processes at a time; by default, one per core.")
    ] = None,
    private_epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="E", help="Select one method privately with this epsilon; show nothing else."
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option(help="Number of releases per candidate; up to 4 times as many if needed.")
    ] = 3,
    max_risk: Annotated[
        float, typer.Option(help="Largest risk to recommend, by the upper end of its interval.")
    ] = 0.1,
    any_claim: Annotated[
        bool, typer.Option("--any-claim", help="Recommend methods without a proved claim, too.")
    ] = False,
    rows: Annotated[
        int, typer.Option(help="Compare on a random sample of a table with more rows than this.")
    ] = 20_000,
    seed: Annotated[int, typer.Option(help="Seed of who is held out and of the queries.")] = 0,
    axes: Annotated[
        str,
        typer.Option(
            metavar="advantage|alpha-beta",
            help="Compare candidates by the risk of linkage and inference, or by naive Bayes and "
            "counts over all columns.",
        ),
    ] = "advantage",
    as_json: AsJson = False,
    reading: "ReadingOptions",
    budget: "BudgetOptions",
) -> None:
    """Compare methods and parameters on a table, and recommend one; this inspects the table."""
    import json

    from shoal.errors import InputError
    from shoal.publish import evaluate_files

    where: dict[str, Any] = {
        "candidates": grid,
        "published": published,
        "reading": reading,
        "budget": budget,
        "tell": tell,
    }
    if grid is not None and published:
        raise InputError("--published adds methods to the default list; --grid replaces it.")
    if private_epsilon is not None:
        if on_sample is not None:
            raise InputError("Expected --on-sample or --private-epsilon, found both.")
        with running() as progress:
            chosen = evaluate_files.select(
                data, policy, out, epsilon=private_epsilon, progress=progress, **where
            )
        say(json.dumps(chosen.facts(), indent=2) if as_json else str(chosen))
        return
    if_interrupted(
        f"interrupted; finished results are kept in {out}. Run the same command to continue."
    )
    with running() as progress:
        result = evaluate_files.compare(
            data,
            policy,
            out,
            **where,
            on_sample=on_sample,
            jobs=jobs,
            progress=progress,
            repeats=repeats,
            max_risk=max_risk,
            any_claim=any_claim,
            rows=rows,
            seed=seed,
            axes=axes,
        )
    say(result.to_json() if as_json else str(result))
    say(f"Confidential: {out}", err=True)


def _pairs(given: list[str] | None, option: str, *, marks: int | None = None) -> dict[str, str]:
    """Parse options KEY=VALUE, with `marks` equal signs if given, or at least one."""
    from shoal.errors import InputError

    for pair in given or ():
        if "=" not in pair or (marks and pair.count("=") != marks):
            raise InputError(f"Expected {option}, found '{pair}'.")
    return {key: value for key, _, value in (pair.partition("=") for pair in given or ())}


def _print_attacks(asked: bool) -> None:  # noqa: FBT001 (typer hands it over by position)
    if asked:
        from shoal.auditing.audit_program import describe_attacks

        say(describe_attacks())
        raise typer.Exit


@command(rich_help_panel=Panel.ASSESS)
@spell_out
def audit(
    *,
    policy: PolicyFile,
    pair: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="FILE FILE", help="Two tables that differ in one person."),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A table; search for its most different neighbour."),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            help="Runs on each table; by default 20,000, 200 for --level files, 1,200 for --run."
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="Confidence that all lower bounds of epsilon hold together.")
    ] = 0.95,
    level: Annotated[
        str, typer.Option(help="Audit arrays (the method alone) or files (the whole pipeline).")
    ] = "arrays",
    run: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Audit any program instead, as 'python my_program.py {in} {out}'. Of the policy, "
            "only the domains of the columns are used.",
        ),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="What the program declares.")] = None,
    delta: Annotated[float, typer.Option(help="Beside that epsilon.")] = 0.0,
    rho: Annotated[float | None, typer.Option(help="Or a rho that it declares.")] = None,
    mu: Annotated[
        float | None, typer.Option(help="Or a mu (Gaussian DP) that it declares.")
    ] = None,
    neighbours: Annotated[
        str, typer.Option(help="Of what the program declares: add-remove or change-one.")
    ] = "add-remove",
    seconds: Annotated[float, typer.Option(help="That a run of the program may take.")] = 60,
    memory: Annotated[float, typer.Option(help="That it may use, in gibibytes.")] = 4,
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep what each run of the program showed; the same command goes on from it.",
        ),
    ] = None,
    list_attacks: Annotated[  # noqa: ARG001 (its callback prints them)
        bool,
        typer.Option(
            "--list-attacks",
            is_eager=True,
            callback=_print_attacks,
            help="Print the tables and events that an audit of a program tries.",
        ),
    ] = False,
    fail_on_violation: Annotated[
        bool,
        typer.Option(
            "--fail-on-violation",
            help="Exit with code 3 if the runs or a known counterexample refute the claim.",
        ),
    ] = False,
    as_json: AsJson = False,
    out: Page = None,
    force: ReplacePage = False,
    budget: "BudgetOptions",
) -> None:
    """Try to refute the differential privacy that a policy claims, or any program."""
    import json

    from shoal.auditing import audit as auditing
    from shoal.auditing.programs import RunLimits
    from shoal.core.serialise import plain
    from shoal.io.folders import check_text, write_text
    from shoal.report import html

    check_text(out, force=force)
    with running() as progress:
        result = auditing.audit(
            budget.apply_to(policy),
            run=run,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            mu=mu,
            neighbours=neighbours,
            limits=RunLimits(seconds, memory),
            log=log,
            pair=pair,
            table=table,
            trials=trials,
            confidence=confidence,
            level=level,
            tell=tell,
            progress=progress,
        )
    say(json.dumps(plain(result.facts()), indent=2) if as_json else str(result))
    if out is not None:
        write_text(out, html.audit_report(result.facts()), force=force, confidential=True)
        say(f"Report, confidential: {out}", err=True)
    if fail_on_violation and result.fails:
        raise typer.Exit(3)


@command(rich_help_panel=Panel.START)
def demo(
    out: Annotated[Path, typer.Option(help="Folder to write the example into.")] = Path("demo"),
) -> None:
    """Protect the shipped sample of invented people, step by step."""
    from shoal.cli import demo as story

    with running() as progress:
        story.run(out, say=say, progress=progress)


@command(rich_help_panel=Panel.START)
def studio(
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any free port.")] = 8642,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Any other opens the studio to the network.")
    ] = "127.0.0.1",
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Folder for workspaces, releases and history; by default, one of the user's own.",
        ),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address without opening a browser.")
    ] = False,
) -> None:
    """Open a local page in the browser, to protect tables without writing code."""
    from shoal.errors import InputError

    try:
        from shoal.studio import server
        from shoal.studio.settings import default_home
    except ModuleNotFoundError as error:
        if error.name not in {"fastapi", "starlette", "uvicorn", "python_multipart"}:
            raise
        raise InputError(
            "The studio needs the extra 'studio': pip install 'shoal[studio]'."
        ) from None
    home = default_home() if data is None else data
    try:
        warn = lambda text: tell(f"warning: {text}")  # noqa: E731
        server.launch(home=home, host=host, port=port, browser=not no_browser, say=say, warn=warn)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
