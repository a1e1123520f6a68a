"""Shapes of which pictures are made, as SVG without script or style."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from shoal.errors import visible

INK, SOFT, SEA, ALARM, PALE = "#1a2330", "#4a5666", "#1f5f80", "#9b1c1c", "#e4eaf0"
WIDE, HIGH = 200, 122
"""Of the picture of a column."""


@dataclass(frozen=True)
class Drawing:
    """A picture, which a notebook shows and `save` writes to a file; `str` is its SVG."""

    svg: str

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<a drawing of {len(self.svg):,} characters>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the SVG to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")


def join_pictures(parts: Sequence[tuple[Markup, int, int]], title: str = "") -> Drawing:
    """Join pictures in rows on a white background, because a notebook may be dark."""
    width = max([2 * WIDE + 220, *(wide for _, wide, _ in parts)])
    x, y, row = 0, 20 if title else 0, 0
    placed = [draw_text(6, 13, title, bold=True)] if title else []
    for svg, wide, high in parts:
        if x and x + wide > width:
            x, y, row = 0, y + row + 8, 0
        placed.append(Markup('<g transform="translate({} {})">{}</g>').format(x, y, svg))
        x, row = x + wide + 8, max(row, high)
    paper = draw_rect("p-paper", "#ffffff", (0, 0, width, y + row))
    words = title or "Distributions of the released columns"
    return Drawing(str(draw_svg(width, y + row, [paper, *placed], words)))


def draw_svg(wide: int, high: int, parts: Iterable[Markup], words: str) -> Markup:
    """Draw a picture of its parts, with words for those who do not see it."""
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" class="picture" viewBox="0 0 {0} {1}" width="{0}" '
        'height="{1}" role="img" aria-label="{2}" font-family="system-ui, sans-serif">{3}</svg>'
    ).format(wide, high, visible(words), Markup("").join(parts))


def draw_text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    size: int = 11,
    bold: bool = False,
    soft: bool = False,
    turn: bool = False,
) -> Markup:
    """Write text; it may be turned by a quarter."""
    more = Markup("") if anchor == "start" else Markup(' text-anchor="{}"').format(anchor)
    more += Markup(' font-weight="600"') if bold else Markup("")
    more += (
        Markup(' transform="rotate(-90 {0} {1})"').format(coord(x), coord(y))
        if turn
        else Markup("")
    )
    return Markup('<text class="{}" fill="{}" font-size="{}" x="{}" y="{}"{}>{}</text>').format(
        "p-soft" if soft else "p-ink", SOFT if soft else INK, size, coord(x),
        coord(y), more, visible(text),
    )  # fmt: skip


def draw_line(
    x0: float, y0: float, x1: float, y1: float, *, width: float = 1.2, faint: bool = False
) -> Markup:
    """Draw a line between two points."""
    return Markup(
        '<line class="p-line" stroke="{}" stroke-width="{}"{} x1="{}" y1="{}" x2="{}" y2="{}"/>'
    ).format(
        INK, width, Markup(' stroke-opacity=".35"') if faint else "",
        *(coord(value) for value in (x0, y0, x1, y1)),
    )  # fmt: skip


def draw_rect(cls: str, colour: str, box: Sequence[float], opacity: float = 1.0) -> Markup:
    """Fill a rectangle: left, top, width and height."""
    return Markup(
        '<rect class="{}" fill="{}" fill-opacity="{}" x="{}" y="{}" width="{}" height="{}"/>'
    ).format(cls, colour, *(coord(value) for value in (opacity, *box)))


def draw_path(points: Sequence[tuple[float, float]], colour: str, dash: str) -> Markup:
    """Draw a line through points."""
    line = "L".join(f"{coord(x)} {coord(y)}" for x, y in points)
    dashes = Markup(' stroke-dasharray="{}"').format(dash) if dash else Markup("")
    return Markup(
        '<path class="p-curve" fill="none" stroke="{}" stroke-width="1.6"{} d="M{}"/>'
    ).format(colour, dashes, line)


def shorten(text: str, longest: int) -> str:
    """Cut a text that is too long."""
    return text if len(text) <= longest else f"{text[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"


def coord(value: float) -> str:
    """Write a coordinate with two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
