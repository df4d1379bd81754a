"""Line charts for the examples: by matplotlib where it is installed, and otherwise as an SVG that this file writes."""
from __future__ import annotations

import argparse
import html
import math
from dataclasses import dataclass

try:
    from matplotlib.figure import Figure
except ImportError:
    Figure = None

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 330, 92, 24, 64, 52  # of a panel, and around what is drawn in it
COLORS = ["#1f77b4", "#d95f02", "#2a9d4a", "#9467bd", "#c2185b", "#8c564b", "#17a2b8", "#7f7f7f"]


@dataclass
class Curve:
    label: str
    x: list[float]
    y: list[float]
    spread: list[float] | None = None  # draws a band from y - spread to y + spread
    dashed: bool = False
    marked: bool = False  # draws a point at each value


@dataclass
class Panel:
    """Panels of a figure stand one above the other. from_zero: the y axis begins at 0."""

    title: str
    x_label: str
    y_label: str
    curves: list[Curve]
    x_ticks: list[float] | None = None
    from_zero: bool = False


def picture_path(path):
    """The type of an option of argparse."""
    if Figure is None and not path.endswith(".svg"):
        raise argparse.ArgumentTypeError(f"{path} does not end with .svg; other formats need matplotlib")
    return path


def draw(path, panels):
    try:
        if Figure is None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(svg(panels))
        else:
            draw_by_matplotlib(path, panels)
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} cannot be written: {error}") from None
    print(f"wrote {path}", flush=True)


def draw_by_matplotlib(path, panels):
    figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100 * len(panels)), layout="tight")
    for place, panel in zip(figure.subplots(len(panels), squeeze=False)[:, 0], panels):
        for curve, color in zip(panel.curves, colors(panel)):
            style, mark = "--" if curve.dashed else "-", "o" if curve.marked else None
            place.plot(curve.x, curve.y, style, color=color, marker=mark, label=curve.label)
            if curve.spread:
                place.fill_between(curve.x, *bounds(curve), color=color, alpha=0.25, linewidth=0)
        place.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
        if panel.x_ticks:
            place.set_xticks(panel.x_ticks)
        if panel.from_zero:
            place.set_ylim(bottom=0)
        place.grid(alpha=0.3)
        place.legend()
    figure.savefig(path)


def colors(panel):
    """Dashed curves are what others are compared with: black. The others differ in color."""
    solid = [curve for curve in panel.curves if not curve.dashed]
    return ["#222222" if c.dashed else COLORS[solid.index(c) % len(COLORS)] for c in panel.curves]


def bounds(curve):
    spread = curve.spread or [0.0] * len(curve.y)
    return [y - s for y, s in zip(curve.y, spread)], [y + s for y, s in zip(curve.y, spread)]


def ticks(low, high):
    """Round numbers, of which the first and the last enclose all values but for a fiftieth of a step."""
    span = (high - low) or abs(high) or 1.0
    unit = 10.0 ** math.floor(math.log10(span / 4))
    step = next(unit * factor for factor in (1, 2, 5, 10) if span / (unit * factor) <= 6)
    first, last = math.floor(low / step + 0.02), math.ceil(high / step - 0.02)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def svg(panels):
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT * len(panels)}" width="{WIDTH}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="13" fill="#222222">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for number, panel in enumerate(panels):
        parts += [f'<g transform="translate(0 {number * HEIGHT})">', *panel_parts(panel), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def panel_parts(panel):
    lows, highs = zip(*((min(low), max(high)) for low, high in map(bounds, panel.curves)))
    y_ticks = ticks(0 if panel.from_zero else min(lows), max(highs))
    all_x = [x for curve in panel.curves for x in curve.x]
    x_ticks = panel.x_ticks or ticks(min(all_x), max(all_x))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def place_x(x):
        return LEFT + (x - x_ticks[0]) / ((x_ticks[-1] - x_ticks[0]) or 1) * (right - LEFT)

    def place_y(y):
        return bottom - (y - y_ticks[0]) / (y_ticks[-1] - y_ticks[0]) * (bottom - TOP)

    def points(xs, ys):
        return " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in zip(xs, ys))

    def text(x, y, words, anchor="middle", more=""):
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{html.escape(words)}</text>'

    middle = (TOP + bottom) / 2
    yield text(LEFT, 24, panel.title, "start", 'font-size="15" font-weight="bold"')
    yield text((LEFT + right) / 2, HEIGHT - 12, panel.x_label)
    yield text(20, middle, panel.y_label, more=f'transform="rotate(-90 20 {middle:.1f})"')
    for tick in y_ticks:
        yield f'<path d="M{LEFT} {place_y(tick):.1f}H{right}" stroke="#dddddd"/>'
        yield text(LEFT - 8, place_y(tick) + 4, f"{tick:.6g}", "end")
    for tick in x_ticks:
        yield f'<path d="M{place_x(tick):.1f} {bottom}v5" stroke="#222222"/>'
        yield text(place_x(tick), bottom + 20, f"{tick:.6g}")
    yield f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#222222"/>'
    legend = LEFT
    for curve, color in zip(panel.curves, colors(panel)):
        dashes = 'stroke-dasharray="7 5"' if curve.dashed else ""
        if curve.spread:
            low, high = bounds(curve)
            outline = points([*curve.x, *reversed(curve.x)], [*high, *reversed(low)])
            yield f'<polygon points="{outline}" fill="{color}" opacity="0.25"/>'
        line = f'fill="none" stroke="{color}" stroke-width="2" {dashes}/>'
        yield f'<polyline points="{points(curve.x, curve.y)}" {line}'
        for x, y in zip(curve.x, curve.y) if curve.marked else ():
            yield f'<circle cx="{place_x(x):.1f}" cy="{place_y(y):.1f}" r="4" fill="{color}"/>'
        yield f'<path d="M{legend} 44h28" {line}'
        yield text(legend + 34, 48, curve.label, "start")
        legend += 58 + 7 * len(curve.label)
