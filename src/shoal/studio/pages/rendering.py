"""Render pages from templates. Every text is escaped, JSON islands included.

No inline script, style or style attribute works under the content security policy: JSON goes into
`<script type="application/json">{{ value | island }}</script>` and is read by a file under /static.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from shoal.report import html, phrases
from shoal.studio.shapes import sparkline

LONGEST_NAME = 80
"""Characters of a name that a page shows; the rest of it is in the policy."""


def page(template: str, **values: Any) -> str:
    """Render a template of the studio."""
    return _environment().get_template(template).render(**values)


def fragments(*parts: tuple[str, Mapping[str, Any]]) -> str:
    """Render several templates as one answer: the target first, then what is swapped with it.

    Without a target, the first is an empty name.
    """
    (first, given), *rest = parts
    texts = [page(first, **given)] if first else []
    texts += [page(name, **{**values, "swap": True}) for name, values in rest]
    return "\n".join(texts)


@cache
def _environment() -> Environment:
    """Make the environment of templates, with our words and filters."""
    made = html.environment("shoal.studio")
    made.filters |= {
        "clipped": clip,
        "code": code,
        "duration": duration,
        "full": full,
        "moment": moment,
        "sentence": sentence,
        "share": share,
        "size": size,
        "span": span,
        "sparkline": sparkline,
    }
    made.globals |= {
        "static": address,
        "roles": phrases.ROLE_WORDS,
        "kinds": tuple(phrases.KIND_WORDS),
        "kind_words": phrases.KIND_WORDS,
        "why_bounds": phrases.WHY_BOUNDS,
        "why_found": phrases.WHY_FOUND,
        "why_categories": phrases.WHY_CATEGORIES,
        "swap": False,
        "alone": False,
        "rail": None,
        "base": "",
    }
    return made


@cache
def address(name: str) -> str:
    """Return the address of a static file with its digest, by which browsers cache it."""
    content = files("shoal.studio").joinpath("static", name).read_bytes()
    return f"/static/{name}?{sha256(content).hexdigest()[:16]}"


def moment(text: str) -> str:
    """Write a time of the history for people.

    >>> moment("2026-01-31T09:05:00+00:00")
    '31 January 2026, 09:05 UTC'
    """
    try:
        return f"{datetime.fromisoformat(text):%-d %B %Y, %H:%M} UTC"
    except ValueError:
        return text


def clip(text: str | None, longest: int = LONGEST_NAME) -> str:
    """Cut a long name.

    >>> clip("abcdef", 4)
    'abc…'
    """
    text = text or ""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def code(text: str) -> Markup:
    """Mark up text between backticks as code.

    >>> code("run `a < b`.")
    Markup('run <code>a &lt; b</code>.')
    """
    outside, inside = Markup("{}"), Markup("<code>{}</code>")
    parts = enumerate(text.split("`"))
    return Markup("").join((inside if at % 2 else outside).format(part) for at, part in parts)


def duration(seconds: float) -> str:
    """Write a time for people.

    >>> duration(3), duration(75), duration(4000)
    ('3 s', '1 min 15 s', '1 h 7 min')
    """
    total = max(0, round(seconds))
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60} s"
    return f"{total // 3600} h {round(total % 3600 / 60)} min"


def size(count: int) -> str:
    """Write a number of bytes for people.

    >>> size(900), size(2_400_000), size(2 << 30)
    ('900 bytes', '2.4 MB', '2.1 GB')
    """
    for unit, bytes_ in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= bytes_:
            return f"{count / bytes_:.1f} {unit}"
    return f"{count} bytes"


def share(count: int, whole: int) -> str:
    """Write a count with its share.

    >>> share(0, 10), share(5, 10)
    ('0', '5 (50%)')
    """
    return f"{count:,} ({count / whole:.0%})" if count and whole else f"{count:,}"


def sentence(text: str) -> str:
    """Capitalise the first letter.

    >>> sentence("reading the file")
    'Reading the file'
    """
    return text[:1].upper() + text[1:]


def full(text: str) -> str:
    """Add a full stop if there is none.

    >>> full("by construction"), full("It holds.")
    ('by construction.', 'It holds.')
    """
    return text if text.endswith(".") else f"{text}."


def span(one: Mapping[str, float]) -> Markup:
    """Write an estimate with its interval below it."""
    return Markup('{:.3f}<div class="small soft">{:.3f} to {:.3f}</div>').format(
        one["value"], one["low"], one["high"]
    )
