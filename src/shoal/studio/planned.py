"""What a method would promise, before any data is touched: cards and previews.

Everything here is asked of `shoal.planning`, and what it refuses is shown with its sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from shoal import planning, purposes
from shoal.core import Purpose
from shoal.errors import ShoalError
from shoal.methods import REGISTRY
from shoal.serialise import plain
from shoal.studio import document


@dataclass(frozen=True)
class Preview:
    """What a method with its parameters would promise for a policy.

    Attributes:
        method: by name.
        parameters: as stated, plain values.
        release_form: the form that the rows would have; "" where it was refused.
        claims: plain values, as in a manifest.
        not_claimed: sentences.
        notes: sentences.
        refused: why it cannot be done, in a sentence, or "".
        fits: the purposes for which its claims will do.
    """

    method: str
    parameters: Mapping[str, Any]
    release_form: str = ""
    claims: tuple[Mapping[str, Any], ...] = ()
    not_claimed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    refused: str = ""
    fits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Card:
    """A method, as a steward chooses one.

    Attributes:
        forms: release forms, the default first.
        must_choose_form: there is no default.
        parameters: JSON schema of its parameters.
        example: parameters that work.
        noisy: it spends epsilon.
        preview: what it would promise for the policy, with the parameters of the policy where it
            is the policy's method and with the example's elsewhere.
    """

    name: str
    summary: str
    reference: str
    forms: tuple[str, ...]
    must_choose_form: bool
    parameters: Mapping[str, Any]
    example: Mapping[str, Any]
    noisy: bool
    preview: Preview | None


def preview(text: str, protect: Mapping[str, Any] | None, *, folder: Path) -> Preview:
    """Plan a policy with another `[protect]`, and say what it would promise.

    Args:
        text: the policy, TOML.
        protect: method, parameters, columns and release_form, as `[protect]` states them; none
            for the policy's own.
        folder: of the files that the policy names.
    """
    changed = text if protect is None else document.with_fields(text, {"protect": protect})
    stated = document.parsed(changed).get("protect", {})
    own = ("method", "columns", "release_form")
    method = str(stated.get("method", ""))
    parameters = document.shown({k: v for k, v in stated.items() if k not in own})
    try:
        policy = document.judged(changed, folder=folder)
        planned = planning.plan(replace(policy, purpose=None))
    except ShoalError as error:
        return Preview(method, parameters, refused=str(error))
    claims = tuple(plain(claim) for claim in planned.claims)
    return Preview(
        method=method,
        parameters=parameters,
        release_form=planned.setting.release_form.value,
        claims=claims,
        not_claimed=planned.not_claimed,
        notes=planned.notes,
        fits=tuple(
            one.value
            for one in Purpose
            if not purposes.objection(replace(policy, purpose=one), planned.claims)
        ),
    )


def purpose_of(text: str) -> Purpose:
    """Who will get the release, by the policy; anybody, where it does not say.

    Args:
        text: the policy, TOML, or "".
    """
    stated = document.parsed(text).get("release", {}) if text else {}
    return purposes.named(stated.get("purpose", Purpose.OPEN))


def cards(text: str, *, folder: Path) -> tuple[Card, ...]:
    """Every method, with what it would promise for a policy; without one, what it is.

    The latest few are kept, because planning all methods takes some tenths of a second.

    Args:
        text: the policy, TOML, or "".
        folder: of the files that the policy names.
    """
    stamps = tuple(sorted((path.name, path.stat().st_mtime_ns) for path in folder.iterdir()))
    return _cards(text, folder, stamps)


@lru_cache(maxsize=16)
def _cards(text: str, folder: Path, _stamps: tuple[tuple[str, int], ...]) -> tuple[Card, ...]:
    own = document.parsed(text).get("protect", {}) if text else {}
    found = []
    for method in REGISTRY.values():
        stated: dict[str, Any] = {"method": method.name, **method.example}
        if method.must_choose_form:
            stated["release_form"] = method.forms[0].value
        if own.get("method") == method.name:
            stated = own
        found.append(
            Card(
                name=method.name,
                summary=method.summary,
                reference=method.reference,
                forms=tuple(form.value for form in method.forms),
                must_choose_form=method.must_choose_form,
                parameters=method.parameters.model_json_schema(mode="validation"),
                example=plain(dict(method.example)),
                noisy=method.noisy,
                preview=preview(text, stated, folder=folder) if text else None,
            )
        )
    return tuple(found)
