"""Curves over two axes that are linear or logarithmic, as SVG text; for privacy against utility."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from _common import COLOURS

_WIDTH, _HEIGHT, _WIDE, _TALL = 430, 320, 760, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 16, 34, 48


@dataclass(frozen=True)
class Curve:
    """Points that belong together.

    Attributes:
        mark: circle, square, triangle, diamond, or empty for none.
        spread: half the height of a bar at each point.
        texts: words beside a point, by its number.
    """

    label: str
    points: Sequence[tuple[float, float]]
    colour: str
    mark: str = "circle"
    dash: str = ""
    spread: Sequence[float] = ()
    texts: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Axes:
    """One pair of axes with its curves. Marks on a logarithmic axis may be stated."""

    title: str
    curves: Sequence[Curve]
    x_label: str
    y_label: str
    x_log: bool = False
    x_marks: Sequence[float] = ()


def write(path: Path, title: str, panels: Sequence[Axes], *, across: int = 2) -> None:
    """Write panels, so many side by side, with one legend below; one alone is wide."""
    wide, tall = (_WIDTH, _HEIGHT) if across > 1 else (_WIDE, _TALL)
    down = -(-len(panels) // across)
    names = list({curve.label: curve for panel in panels for curve in panel.curves}.values())
    fit = max(1, across * wide // 215)
    width, height = across * wide, down * tall + 22 * (-(-len(names) // fit)) + 14
    box = f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for number, panel in enumerate(panels):
        row, column = divmod(number, across)
        parts.append(f'<g transform="translate({column * wide},{row * tall})">')
        parts += _panel(panel, wide, tall)
        parts.append("</g>")
    for number, curve in enumerate(names):
        row, column = divmod(number, fit)
        x, y = 20 + column * (width - 20) // fit, down * tall + 14 + 22 * row
        parts.append(_stroke([(x, y), (x + 34, y)], curve))
        parts.append(_shape(x + 17, y, curve))
        parts.append(f'<text x="{x + 42}" y="{y + 4}">{escape(curve.label)}</text>')
    parts.append("</svg>")
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")


def _panel(panel: Axes, wide: int, tall: int) -> list[str]:
    points = [point for curve in panel.curves for point in curve.points]
    spreads = [s for curve in panel.curves for s in (curve.spread or [0.0] * len(curve.points))]
    low = min(y - s for (_, y), s in zip(points, spreads, strict=True))
    high = max(y + s for (_, y), s in zip(points, spreads, strict=True))
    low, high = min(low, 0.0), max(high, 0.0)
    room = 0.05 * ((high - low) or 1.0)
    y_low, y_high = (low - room if low < 0 else low), high + room
    y_ticks = [value for value in _ticks(y_low, y_high) if y_low <= value <= y_high]
    seen = [x for x, _ in points]
    bend = math.log10 if panel.x_log else float
    x_low, x_high = bend(min(seen)), bend(max(seen))
    margin = 0.03 * ((x_high - x_low) or 1.0)
    x_low, x_high = x_low - margin, x_high + margin
    across, up = wide - _LEFT - _RIGHT, tall - _TOP - _BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        right = (bend(x) - x_low) / (x_high - x_low)
        top = (y - y_low) / (y_high - y_low)
        return round(_LEFT + across * right, 1), round(_TOP + up * (1 - top), 1)

    base = _TOP + up
    parts = [f'<text x="{_LEFT}" y="20" font-weight="bold">{escape(panel.title)}</text>']
    for value in y_ticks:
        _, y = place(seen[0], value)
        shade = "#888888" if value == 0 else "#dddddd"
        parts.append(_rule(_LEFT, y, _LEFT + across, y, shade))
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{value:g}</text>')
    for value in panel.x_marks or _marks(min(seen), max(seen), log=panel.x_log):
        x, _ = place(value, 0)
        parts.append(_rule(x, _TOP, x, base + 5, "#eeeeee"))
        parts.append(f'<text x="{x}" y="{base + 19}" text-anchor="middle">{value:g}</text>')
    parts.append(f'<rect x="{_LEFT}" y="{_TOP}" width="{across}" height="{up}" fill="none" '
                 'stroke="#444444"/>')  # fmt: skip
    parts.append(f'<text x="{_LEFT + across / 2}" y="{base + 38}" text-anchor="middle">'
                 f"{escape(panel.x_label)}</text>")  # fmt: skip
    parts.append(f'<text transform="translate(15,{_TOP + up / 2}) rotate(-90)" '
                 f'text-anchor="middle">{escape(panel.y_label)}</text>')  # fmt: skip
    for curve in panel.curves:
        placed = [place(x, y) for x, y in curve.points]
        parts.append(_stroke(placed, curve))
        for (x, y), spread in zip(curve.points, curve.spread, strict=False):
            (at, top), (_, bottom) = place(x, y + spread), place(x, y - spread)
            parts.append(_rule(at, top, at, bottom, COLOURS[curve.colour]))
        parts += [_shape(x, y, curve) for x, y in placed]
    for curve in panel.curves:
        for number, text in curve.texts.items():
            x, y = place(*curve.points[number])
            end = x > _LEFT + 0.8 * across
            parts.append(
                f'<text x="{x + (-7 if end else 7)}" y="{y - 5}" font-size="10" '
                f'fill="{COLOURS[curve.colour]}" text-anchor="{"end" if end else "start"}" '
                'stroke="#ffffff" stroke-width="3" paint-order="stroke">'
                f"{escape(text)}</text>"
            )
    return parts


def _stroke(points: Sequence[tuple[float, float]], curve: Curve) -> str:
    path = " ".join(f"{x},{y}" for x, y in points)
    dash = f' stroke-dasharray="{curve.dash}"' if curve.dash else ""
    colour = COLOURS[curve.colour]
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>'


def _shape(x: float, y: float, curve: Curve) -> str:
    fill = f'fill="{COLOURS[curve.colour]}"'
    if curve.mark == "circle":
        return f'<circle cx="{x}" cy="{y}" r="3" {fill}/>'
    corners = {
        "square": [(-3, -3), (3, -3), (3, 3), (-3, 3)],
        "triangle": [(0, -4), (4, 3), (-4, 3)],
        "diamond": [(0, -4), (4, 0), (0, 4), (-4, 0)],
    }.get(curve.mark)
    if corners is None:
        return ""
    path = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{path}" {fill}/>'


def _rule(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}"/>'


def _ticks(low: float, high: float) -> list[float]:
    """Some five round numbers between two."""
    span = (high - low) or 1.0
    rough = span / 5
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(f * scale for f in (1, 2, 2.5, 5, 10) if f * scale >= rough)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * number, 10) for number in range(first, last + 1)]


def _marks(low: float, high: float, *, log: bool) -> list[float]:
    if not log:
        return [value for value in _ticks(low, high) if low <= value <= high]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if high > 10 * low else (1, 1.5, 2, 3, 4, 5, 7)
    values = [factor * 10.0**decade for decade in decades for factor in factors]
    return [value for value in values if low * 0.999 <= value <= high * 1.001]
