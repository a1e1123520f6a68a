"""The command `shoal apply`: recode another table as an earlier release recoded its own."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.console import Command, Panel, note, notes_shown, say, showing_progress
from shoal.cli.options import (
    AsJson,
    Audience,
    Data,
    Delimiter,
    Encoding,
    FileFormat,
    HeaderRow,
    ReplaceRelease,
    Sheet,
    Skip,
)

schemes = typer.Typer()
command = partial(schemes.command, cls=Command)


@command(rich_help_panel=Panel.PROTECT)
def apply(
    scheme: Annotated[
        Path, typer.Argument(metavar="SCHEME", help="The scheme.toml of an earlier release.")
    ],
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for what may be published.")],
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A policy that recodes the same way and may ask for another k."
        ),
    ] = None,
    previous: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The earlier release; by default, the folder beside the scheme's."
        ),
    ] = None,
    record_suppression: Annotated[
        float | None,
        typer.Option(help="Largest share of the rows that may be left out, such as 0.01."),
    ] = None,
    coarsen: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Release a column one level higher than the scheme."),
    ] = None,
    file_format: FileFormat = None,
    force: ReplaceRelease = False,
    audience: Audience = None,
    measured: Annotated[
        bool | None,
        typer.Option("--evaluate/--no-evaluate", help="Evaluate the release; see `protect`."),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    header_row: HeaderRow = None,
    skip: Skip = None,
    as_json: AsJson = False,
) -> None:
    """Recode another table as an earlier release was recoded, and check every promise again."""
    from shoal.partition import compile_notice
    from shoal.pipeline import options
    from shoal.publish import apply_scheme
    from shoal.report import terminal

    with showing_progress() as progress, compile_notice(note):
        published = apply_scheme.apply_file(
            scheme,
            data,
            out,
            policy=policy,
            previous=previous,
            record_suppression=record_suppression,
            coarsen=coarsen or (),
            reading=options.ReadingOptions(delimiter, encoding, sheet, header_row, skip),
            output=options.OutputOptions(file_format, force, audience=audience),
            evaluation=options.EvaluationOptions(measured),
            progress=progress,
        )
    if as_json:
        say(terminal.write_published_json(published))
        return
    say(terminal.release_text(published.release, notes_shown(published.notes, published.warnings)))
    say(f"To publish: {published.folder}  Confidential: {published.internal}")
