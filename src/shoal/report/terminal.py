"""Text and JSON of the command line: checks and methods."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, cast

from pydantic.fields import FieldInfo

from shoal.core import (
    Check,
    Column,
    KAnonymity,
    KeptRule,
    Kind,
    Release,
    ReleaseForm,
    Role,
    Schema,
    figure,
)
from shoal.core.serialise import plain
from shoal.errors import InputError, count_noun
from shoal.io.text_files import check_options
from shoal.methods import NAMES, REGISTRY, TO_START_WITH, Method, Setting, find, title_of
from shoal.methods.papers import PAPERS, cite_shortly, named_in_papers, papers_of
from shoal.privacy_models import epsilon_for_t, epsilon_from_t, t_for_epsilon
from shoal.privacy_models.stochastic_t_closeness import least_t
from shoal.report.papers import describe_paper
from shoal.report.phrases import REMARK_WORDS, group_size, list_names

MOST_NAMED = 12
"""So many columns are named in a line on the terminal."""


def release_text(release: Release, notes: Iterable[str]) -> str:
    """Write what a release promises, line by line, and what to know about it."""
    text = "\n".join([release.summary(), *(f"  note  {note}" for note in notes)])
    return _shorten(text, list(release.manifest.columns))


def _shorten(text: str, names: Sequence[str]) -> str:
    """Shorten lists of many columns to the first three; the report has all of them."""
    if len(names) <= MOST_NAMED:
        return text
    name = f"(?:{'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})"
    first = rf"(?P<first>{name}(?P<mark>, | \+ ){name}(?P=mark){name})"
    more = rf"(?P<more>(?:(?P=mark){name}){{{MOST_NAMED - 3},}})"
    return re.sub(
        first + more,
        lambda run: f"{run['first']} and {run['more'].count(run['mark'])} others",
        text,
    )


def checks_text(checks: Iterable[Check]) -> str:
    """Write one paragraph per check, with the row numbers of the deciding group."""
    lines = []
    for check in checks:
        verdict = "holds" if check.holds else "FAILS"
        lines.append(f"{verdict}: {check.guarantee}")
        if isinstance(check.guarantee, KeptRule):
            decide = check.remarks["rows_that_decide"]
            broken = count_noun(check.witness["size"], "row breaks", "rows break")
            undecided = "not decided: no row has single values in its columns"
            outcome = f"{broken} it, of {decide:,}{_name_rows(check)}" if decide else undecided
            lines.append(f"  {outcome}")
            continue
        if not isinstance(check.guarantee, KAnonymity):
            lines.append(f"  achieved: {figure(check.achieved)}")
        size = check.witness["size"]
        group = "smallest" if isinstance(check.guarantee, KAnonymity) else "deciding"
        lines.append(f"  {group} group: {group_size(size, check.remarks)}{_name_rows(check)}")
        for name, value in check.remarks.items():
            text = value if isinstance(value, str) else f"{value:,}"
            words = REMARK_WORDS.get(name, name.replace("_", " "))
            lines.append(f"  {words[:1].lower()}{words[1:]}: {text}")
    return "\n".join(lines)


def _name_rows(check: Check) -> str:
    """Name some rows of the deciding group, if they are known."""
    rows = check.witness.get("rows", [])
    noun = "row" if len(rows) == 1 else "rows"
    return f", for example {noun} {', '.join(map(str, rows))}" if rows else ""


def checks_json(checks: Iterable[Check]) -> str:
    """Write checks as JSON, in the shape of the manifest."""
    written = [plain(check) for check in checks]
    verdict = {"holds": all(check["holds"] for check in written), "checks": written}
    return json.dumps(verdict, indent=2)


def write_published_json(published: Any) -> str:
    """Write what was published and what it promises, as JSON; for `protect_file.Published`."""
    release = published.release
    facts = {
        "public": str(published.folder),
        "confidential": str(published.internal),
        "method": release.manifest.method,
        "rows": release.manifest.rows,
        "columns": list(release.manifest.columns),
        "claims": [plain(claim) for claim in release.claims],
        "not_claimed": list(release.manifest.not_claimed),
        "checks": [plain(check) for check in release.checks],
        "notes": list(published.notes),
    }
    return json.dumps(facts, indent=2)


def methods_text() -> str:
    """List every registered method in one line: those to start with, then what is published."""
    width = max(map(len, REGISTRY))
    lines = ["To start with:"]
    for name, method in REGISTRY.items():
        if name == NAMES[len(TO_START_WITH)]:
            lines += ["", "Published methods, to repeat and compare:"]
        where = papers_of(name)
        cited = where[0].short if where else cite_shortly(method.reference)
        source = "" if name in TO_START_WITH else f" {cited}."
        lines.append(f"  {name:<{width}}  {method.summary}{source}")
    more = (
        "`shoal methods NAME` shows one with its parameters and claims; `shoal papers`, the papers."
    )
    return "\n".join([*lines, "", more])


def method_text(name: str) -> str:
    """Describe one method: what it claims in each release form, why, and on what assumptions.

    It may be named as one of the papers names it. The key of a paper describes the paper.
    """
    if name in PAPERS:
        return describe_paper(name)
    named = None if name in REGISTRY else named_in_papers(name)
    method = find(name if named is None else named[1])
    lines = [_paragraph(method), "", "  claims in full, for the same example:"]
    for form in method.forms.offered:
        for claim in method.promises.claims(_example(method, form)):
            lines.append(f"  {form}: {claim.guarantee} ({claim.status})")
            lines += [f"    assumes {text}" for text in claim.assumes]
            lines.append(f"    because: {claim.basis}")
            if claim.instead:
                lines.append(f"    instead: {claim.instead}")
    setting = _example(method, method.forms.offered[0])
    if not method.promises.claims(setting):
        lines.append(f"  none, because: {method.promises.not_claimed(setting)[0]}")
    return "\n".join(lines)


def methods_facts(name: str | None = None) -> list[dict[str, Any]]:
    """Return methods as plain values: all, or the one of this name."""
    chosen = REGISTRY.values() if name is None else [find(name)]
    return [_facts(method) for method in chosen]


def _facts(method: Method[Any]) -> dict[str, Any]:
    fields = method.parameters.model_fields
    return {
        "name": method.name,
        "title": title_of(method.name),
        "summary": method.summary,
        "parameters": {
            name: {
                "description": field.description,
                "required": field.is_required(),
                "default": None
                if field.is_required()
                else plain(field.get_default(call_default_factory=True)),
            }
            for name, field in fields.items()
        },
        "example": plain(dict(method.example.parameters)),
        "release_forms": {
            form.value: [plain(claim) for claim in method.promises.claims(_example(method, form))]
            for form in method.forms.offered
        },
        "not_claimed": _not_claimed(method),
        "reference": method.reference,
    }  # fmt: skip


def _paragraph(method: Method[Any]) -> str:
    lines = [f"{method.name}: {title_of(method.name)}", f"  {method.summary}"]
    for name, field in method.parameters.model_fields.items():
        lines.append(f"  {name}: {field.description} ({_default(field)})")
    lines.append(f"  release forms: {', '.join(method.forms.offered)}")
    lines += [f"  {line}" for line in _promises(method)]
    lines.append(f"  reference: {method.reference}")
    for paper in papers_of(method.name):
        names = ", ".join(paper.methods[method.name])
        lines.append(f"  in {paper.short} ({paper.key}){names and f': {names}'}")
    return "\n".join(lines)


def _default(field: FieldInfo) -> str:
    """Write the default of a parameter as a policy would."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value in ({}, []):
        return "optional"
    return f"default {str(value).lower() if isinstance(value, bool) else value}"


def closeness(
    *, t: float | None, epsilon: float | None, k: int, rows: int | None = None, columns: int = 1
) -> dict[str, float]:
    """Convert between t and epsilon; one of them is given.

    For classes of k or more among so many rows (none: of any number), and so many confidential
    columns; see `shoal.privacy_models.stochastic_t_closeness`.

    Returns:
        t: of all columns jointly; t_of_a_column: of each by itself; epsilon: of a record;
        epsilon_of_a_column: of one of its columns; epsilon_of_a_view: what plain t-closeness by
        ratio gives a view, or for a given epsilon t_for_a_view: the t that is needed for it.

    Raises:
        InputError: both are given, or neither, or one that has no meaning.
    """
    if (t is None) is (epsilon is None):
        given = "neither" if t is None else "both"
        raise InputError(f"Expected either --t or --epsilon, found {given}.")
    check_options(t=t, epsilon=epsilon, k=k, rows=rows, columns=columns)
    if rows is not None and rows < 2 * k:
        raise InputError(
            f"Expected rows for two classes of k, found k = {k} and rows = {rows}. A single class "
            "is the whole table, and t = 1 for any epsilon."
        )
    if t is not None:
        view = {"epsilon_of_a_view": epsilon_from_t(t)}
        epsilon = math.log(t) if rows is None else epsilon_for_t(t, [k, rows - k])
    else:
        epsilon = cast("float", epsilon)
        view = {"t_for_a_view": t_for_epsilon(epsilon)}
    return {
        "t": least_t(epsilon, k, rows),
        "t_of_a_column": least_t(epsilon / columns, k, rows),
        "epsilon": epsilon,
        "epsilon_of_a_column": epsilon / columns,
        **view,
    }


def closeness_text(facts: Mapping[str, float], *, columns: int) -> str:
    """Describe the conversion in sentences; rounding never strengthens a promise."""
    t, epsilon = _digits(facts["t"], ROUND_CEILING), _digits(facts["epsilon"], ROUND_FLOOR)
    first = (
        f"kanon-dp: epsilon {epsilon} per record gives stochastic t-closeness with t = {t} of the "
        "confidential columns jointly."
    )
    lines = [first]
    if columns > 1:
        one_column = _digits(facts["epsilon_of_a_column"], ROUND_FLOOR)
        close = _digits(facts["t_of_a_column"], ROUND_CEILING)
        lines.append(
            f"  Each of the {columns} columns by itself has epsilon {one_column} and t = {close}."
        )
    if "t_for_a_view" in facts:
        t, factor = _digits(facts["t_for_a_view"], ROUND_FLOOR), epsilon
    else:
        factor = _digits(facts["epsilon_of_a_view"], ROUND_CEILING)
    lines.append(
        f"bucketization: t = {t} bounds what an intruder learns about a person by a factor of "
        f"exp({factor}), if the prior is one public distribution, if all that is seen of a person "
        "is a draw from the class, and if both tables compared are as close. It is not "
        "differential privacy."
    )
    return "\n".join(lines)


def _digits(value: float, rounding: str) -> str:
    """Round to three digits in one direction, ignoring floating-point error."""
    near = Decimal(f"{value:.12g}")
    return f"{Context(prec=3, rounding=rounding).create_decimal(near).normalize():f}"


def _example(method: Method[Any], form: ReleaseForm) -> Setting[Any]:
    """Make a setting with a method's two example columns and a public one."""
    columns = (*method.example.columns, Column("c", Role.OTHER, Kind.NUMERIC, public=True))
    parameters = method.parameters.model_validate(dict(method.example.parameters))
    stated = Schema(columns, one_row_per_person=True)
    return Setting(stated, ("a", "b"), parameters, form)


def _promises(method: Method[Any]) -> list[str]:
    """List what a method claims for its example columns, in each of its release forms."""
    given = ", ".join(f"{name} = {value}" for name, value in method.example.parameters.items())
    lines = [f"promises, for {_describe_columns(method)} beside a public column c, with {given}:"]
    for form in method.forms.offered:
        claims = [
            f"{claim.guarantee} ({claim.status})"
            for claim in method.promises.claims(_example(method, form))
        ]
        lines.append(f"  {form}: {'; '.join(claims)}")
    return [*lines, *(f"  {text}" for text in _not_claimed(method))]


def _not_claimed(method: Method[Any]) -> list[str]:
    return list(method.promises.not_claimed(_example(method, method.forms.offered[-1])))


def _describe_columns(method: Method[Any]) -> str:
    """Describe the example columns in words."""
    if len({column.role for column in method.example.columns}) == 1:
        return "two columns a and b"
    return list_names([f"a {column.role} {column.name}" for column in method.example.columns])
