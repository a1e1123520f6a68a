"""Curves on logarithmic axes, three panels side by side, as SVG text."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from pathlib import Path

_WIDE, _TALL, _LEFT, _RIGHT, _TOP, _BOTTOM = 330, 250, 52, 14, 30, 40
_ACROSS = 3
_LEGEND_WIDE, _LEGEND_TALL = 240, 22


@dataclass(frozen=True)
class Curve:
    """Points of one name, in order of x; all above zero."""

    label: str
    points: Sequence[tuple[float, float]]
    colour: str
    dash: str = ""


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    curves: Sequence[Curve]


def chart(path: Path, title: str, panels: Sequence[Panel]) -> None:
    """Write panels over epsilon with one legend below them."""
    down = -(-len(panels) // _ACROSS)
    curves = {curve.label: curve for panel in panels for curve in panel.curves}
    across = _ACROSS * _WIDE // _LEGEND_WIDE
    width = _ACROSS * _WIDE
    height = 30 + down * _TALL + _LEGEND_TALL * -(-len(curves) // across) + 10
    look = 'font-family="sans-serif" font-size="12" role="img"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {look}>',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="20" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    for number, panel in enumerate(panels):
        row, column = divmod(number, _ACROSS)
        parts.append(f'<g transform="translate({column * _WIDE},{30 + row * _TALL})">')
        parts += [*_panel(panel), "</g>"]
    for number, curve in enumerate(curves.values()):
        row, column = divmod(number, across)
        x, y = 20 + column * _LEGEND_WIDE, 44 + down * _TALL + row * _LEGEND_TALL
        parts += [_line([(x, y), (x + 30, y)], curve), _dot(x + 15, y, curve)]
        parts.append(f'<text x="{x + 38}" y="{y + 4}">{escape(curve.label)}</text>')
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


def _panel(panel: Panel) -> list[str]:
    points = [point for curve in panel.curves for point in curve.points]
    xs, ys = ([log10(point[axis]) for point in points] for axis in (0, 1))
    bottom, top = floor(min(ys) * 2) / 2, ceil(max(ys) * 2) / 2
    left, right = min(xs) - 0.1, max(xs) + 0.1
    wide, tall = _WIDE - _LEFT - _RIGHT, _TALL - _TOP - _BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        across = (log10(x) - left) / (right - left)
        up = (log10(y) - bottom) / max(top - bottom, 0.5)
        return _LEFT + across * wide, _TOP + (1 - up) * tall

    middle = _LEFT + wide / 2
    parts = [
        f'<text x="{middle}" y="18" text-anchor="middle">{escape(panel.title)}</text>',
        f'<text x="{middle}" y="{_TALL - 6}" text-anchor="middle" fill="#555555">epsilon</text>',
    ]
    marks = [
        digit * 10.0**power
        for power in range(floor(bottom), ceil(top) + 1)
        for digit in (1, 3)
        if bottom - 1e-9 <= log10(digit * 10.0**power) <= top + 1e-9
    ]
    for mark in marks:
        y = place(points[0][0], mark)[1]
        parts.append(
            f'<path d="M{_LEFT} {y:.1f}H{_LEFT + wide}" stroke="#dddddd" fill="none"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#555555">'
            f"{mark:g}</text>"
        )
    for mark in sorted({x for x, _ in points}):
        x = place(mark, points[0][1])[0]
        parts.append(
            f'<text x="{x:.1f}" y="{_TOP + tall + 16}" text-anchor="middle" fill="#555555">'
            f"{mark:g}</text>"
        )
    for curve in panel.curves:
        places = [place(*point) for point in curve.points]
        parts += [_line(places, curve), *(_dot(x, y, curve) for x, y in places)]
    return parts


def _line(points: Sequence[tuple[float, float]], curve: Curve) -> str:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dash = f' stroke-dasharray="{curve.dash}"' if curve.dash else ""
    return f'<path d="M{path}" stroke="{curve.colour}" stroke-width="2" fill="none"{dash}/>'


def _dot(x: float, y: float, curve: Curve) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{curve.colour}"/>'
