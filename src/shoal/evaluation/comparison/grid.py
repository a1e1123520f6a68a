"""The grid of candidate methods and parameters, by default or from a file."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain, product
from math import isfinite, prod
from pathlib import Path
from typing import Any

from shoal import policy as policies
from shoal.core import Policy, ReleaseForm
from shoal.core.serialise import plain
from shoal.errors import InputError
from shoal.io import text_files
from shoal.methods import NAMES, REGISTRY, TO_START_WITH, Method, find
from shoal.pipeline.planning import suggest_parameters

GROUP_SIZES = (5, 15, 50)
"""Of the methods that make groups: usual, cautious, and coarse."""
EPSILONS = (Decimal("0.5"), Decimal(2))
"""Of the methods that add noise."""
NOISY_GROUP = 25
"""Group size of the methods that add noise to groups; larger ones need less of it."""
MOST_CANDIDATES = 1_000
"""The most of one grid: each is released and evaluated several times."""
_OWN_KEYS = ("method", "columns", "release_form", "require")


@dataclass(frozen=True)
class Candidate:
    """A method with its parameters, as `[protect]` would state them.

    Attributes:
        require: what `[require]` would state; it is added to the policy's, or replaces it where
            both name a promise. A release that does not keep it counts as failed.
    """

    method: str
    parameters: Mapping[str, Any]
    columns: tuple[str, ...] | None = None
    release_form: ReleaseForm | None = None
    require: Mapping[str, Any] | None = None

    @property
    def label(self) -> str:
        """The candidate in one line.

        >>> Candidate("mdav", {"k": 5}).label
        'mdav k=5'
        """
        stated = [f"{name}={_write_value(value)}" for name, value in self.parameters.items()]
        if self.columns is not None:
            stated.append(f"columns={'+'.join(self.columns)}")
        if self.release_form is not None:
            stated.append(f"form={self.release_form.value}")
        stated += [f"{name}={_write_value(value)}" for name, value in (self.require or {}).items()]
        return " ".join([self.method, *stated])

    def apply(self, policy: Policy) -> Policy:
        """Return the policy with this candidate under `[protect]`, and without a budget file.

        Candidate releases are experiments: they are never published and never booked.
        """
        stated: dict[str, Any] = {"method": self.method}
        if self.columns is not None:
            stated["columns"] = list(self.columns)
        if self.release_form is not None:
            stated["release_form"] = self.release_form.value
        requirements = policies.requirements(self.require or {}, policy.schema, where=self.label)
        named = {guarantee.name for guarantee in requirements}
        document = {**policy.document, "protect": plain({**stated, **self.parameters})}
        if self.require:
            document["require"] = {**policy.document.get("require", {}), **plain(self.require)}
        text = json.dumps(document, sort_keys=True, ensure_ascii=False)
        return replace(
            policy,
            method=self.method,
            parameters=dict(self.parameters),
            columns=self.columns,
            release_form=self.release_form,
            required=(*(g for g in policy.required if g.name not in named), *requirements),
            budget=None,
            audience=None,
            document=document,
            digest=hashlib.sha256(text.encode()).hexdigest(),
        )


def default(policy: Policy, *, published: bool = False) -> tuple[Candidate, ...]:
    """List the policy's own choice, then the methods to start with, each at a few k or epsilons.

    With `published`, the published methods follow, which are there to repeat and compare.

    Whether a method fits the schema is left to the plan, so one that does not is listed
    with the reason.
    """
    current = Candidate(policy.method, dict(policy.parameters), policy.columns, policy.release_form)
    grid = [current]
    for method in (REGISTRY[name] for name in (NAMES if published else TO_START_WITH)):
        form = method.forms.offered[0] if method.forms.must_choose else None
        if policy.release_form in method.forms.offered and method.name == policy.method:
            form = policy.release_form
        columns = policy.columns if method.name == policy.method else None
        for parameters in _ladder(method, policy):
            candidate = Candidate(method.name, parameters, columns, form)
            if candidate not in grid:
                grid.append(candidate)
    return tuple(grid)


def _ladder(method: Method[Any], policy: Policy) -> Iterator[dict[str, Any]]:
    """List the group sizes or epsilons to try for a method; other parameters as in its example."""
    example = suggest_parameters(method, policy)
    steps: dict[str, Sequence[Any]] = {}
    if "epsilon" in example:
        steps["epsilon"] = EPSILONS
    if "k" in example:
        steps["k"] = (NOISY_GROUP,) if "epsilon" in example else GROUP_SIZES
    for values in product(*steps.values()):
        yield {**example, **dict(zip(steps, values, strict=True))}


def read(path: Path) -> tuple[Candidate, ...]:
    """Read a grid from a TOML file.

    Each `[[candidate]]` states what `[protect]` would state, and under `require` what `[require]`
    would. A list always means alternatives, and alternatives are combined; a parameter that is
    itself a list stands in one.

    Raises:
        InputError: the file has another shape, or names an unknown method.
    """
    text = text_files.read_text(path, f"the grid '{path}'")
    return of(text_files.parse_toml(text, f"The grid '{path.name}'"), where=path.name)


def of(content: Mapping[str, Any], *, where: str = "grid") -> tuple[Candidate, ...]:
    """Parse the candidates of a grid; see `read`."""
    rows = content.get("candidate")
    if set(content) != {"candidate"} or not isinstance(rows, list) or not rows:
        raise InputError(f"{where}: expected a list of [[candidate]] tables and nothing else.")
    candidates: list[Candidate] = []
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping) or not isinstance(row.get("method"), str):
            raise InputError(f"{where}, candidate {number}: expected the name of a method.")
        find(row["method"])
        alternatives = [value if isinstance(value, list) else [value] for value in row.values()]
        if not all(alternatives):
            raise InputError(f"{where}, candidate {number}: expected at least one alternative.")
        if prod(map(len, alternatives)) + len(candidates) > MOST_CANDIDATES:
            raise InputError(
                f"{where}, candidate {number}: expected at most {MOST_CANDIDATES:,} candidates."
            )
        if any(map(_is_odd, chain.from_iterable(alternatives))):
            raise InputError(f"{where}, candidate {number}: expected finite numbers, found others.")
        for values in product(*alternatives):
            candidate = _candidate(dict(zip(row, values, strict=True)), where, number)
            if candidate not in candidates:
                candidates.append(candidate)
    return tuple(candidates)


def _is_odd(value: Any) -> bool:
    """Whether a number is NaN or infinite, which would make equal candidates differ."""
    if isinstance(value, list | Mapping):
        return any(map(_is_odd, value.values() if isinstance(value, Mapping) else value))
    return isinstance(value, Decimal | float) and not isfinite(value)


def _candidate(stated: dict[str, Any], where: str, number: int) -> Candidate:
    columns, form = stated.get("columns"), stated.get("release_form")
    if columns is not None and not isinstance(columns, list):
        raise InputError(
            f"{where}, candidate {number}: a list means alternatives; write columns as "
            '[["age", "sex"]].'
        )
    require = stated.get("require")
    if require is not None and not isinstance(require, Mapping):
        raise InputError(f"{where}, candidate {number}: expected require in the form of [require].")
    if form is not None and form not in set(ReleaseForm):
        raise InputError(f"{where}, candidate {number}: no release form '{form}'.")
    return Candidate(
        stated["method"],
        {name: value for name, value in stated.items() if name not in _OWN_KEYS},
        None if columns is None else tuple(columns),
        None if form is None else ReleaseForm(form),
        require or None,
    )


def _write_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ",".join(map(_write_value, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}={_write_value(item)}" for name, item in value.items()) + "}"
    return str(value)


def without_requirements(policy: Policy) -> Policy:
    """Return the policy with an empty `[require]`."""
    return replace(policy, required=())
