"""What a method would promise, before any data is touched: cards and previews.

Everything here is asked of `shoal.pipeline.planning`, and what it refuses is shown with its
sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.core import Audience, Policy
from shoal.core.serialise import plain
from shoal.errors import ShoalError
from shoal.methods import REGISTRY, Method, find
from shoal.pipeline import audiences, planning
from shoal.policy.load import shown
from shoal.studio import policy_document


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
        fits: the audiences for which its claims will do.
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
            is the policy's method; see `shoal.pipeline.planning.offer`.
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
    """Say what a policy would promise, or with another `[protect]` than its own."""
    changed = text if protect is None else policy_document.with_fields(text, {"protect": protect})
    try:
        policy = policy_document.judged(changed, folder=folder)
        return _preview(policy, find(policy.method))
    except ShoalError as error:
        stated = shown(policy_document.parsed(changed).get("protect", {}))
        method = str(stated.pop("method", ""))
        return Preview(method, stated, refused=str(error))


def cards(text: str, *, folder: Path) -> tuple[Card, ...]:
    """Every method, with what it would promise for a policy; without one, what it is."""
    policy = policy_document.judged(text, folder=folder) if text else None
    return tuple(
        Card(
            name=method.name,
            summary=method.summary,
            reference=method.reference,
            forms=tuple(form.value for form in method.forms.offered),
            must_choose_form=method.forms.must_choose,
            parameters=method.parameters.model_json_schema(mode="validation"),
            example=plain(dict(method.example.parameters)),
            noisy=method.noisy,
            preview=_preview(policy, method) if policy else None,
        )
        for method in REGISTRY.values()
    )


def _preview(policy: Policy, method: Method[Any]) -> Preview:
    offer = planning.offer(replace(policy, audience=None), method)
    parameters = shown(dict(offer.parameters))
    if offer.plan is None or offer.unmet:
        return Preview(method.name, parameters, refused=offer.refused or offer.unmet)
    return Preview(
        method=method.name,
        parameters=parameters,
        release_form=offer.plan.setting.release_form.value,
        claims=tuple(plain(claim) for claim in offer.claims),
        not_claimed=offer.not_claimed,
        notes=offer.plan.notes,
        fits=tuple(
            one.value
            for one in Audience
            if not audiences.objection(replace(policy, audience=one), offer.claims)
        ),
    )


def audience_of(text: str) -> Audience:
    """Who will get the release, by the policy; anybody, where it does not say or is not there."""
    stated = policy_document.parsed(text).get("release", {}) if text else {}
    return audiences.named(stated.get("audience", Audience.PUBLIC_USE))
