"""Curves of a score against a budget as a picture: a panel a group, a line a policy, bars for 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from wsigym.scoring.intervals import Estimate

__all__ = ["Curve", "curves_picture"]

SCALE = 3
"""Drawn so many times larger and then shrunk, as PIL's lines are not smoothed."""

PANEL, GAP, LEFT, TOP, BOTTOM, RIGHT = (260, 260), 26, 52, 86, 62, 24
"""Pixels: a panel's plot area (width, height), between panels, and around them."""

INK, GREY, FAINT, PAPER = (40, 40, 40), (110, 110, 110), (226, 226, 226), (255, 255, 255)
COLOURS = ((0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (230, 159, 0), (86, 180, 233), (110, 110, 110))
"""Okabe and Ito's palette, which colour-blind readers can tell apart."""

CIRCLE = [(math.cos(turn * math.pi / 12), math.sin(turn * math.pi / 12)) for turn in range(24)]
MARKS = {
    "circle": CIRCLE,
    "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    "diamond": [(0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)],
    "triangle": [(0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
}
"""Outlines around (0, 0)."""

FONT_PX, TITLE_PX, MARK_PX, DODGE_PX = 12, 15, 4.2, 3
TICK_PX, ROUND_TICK_PX, AXIS_STEPS, LEGEND_ROW, LEGEND_MARK = 26, 60, 5, 20, 50
DASH_PX = (6, 4)
"""A dash and the gap after it."""

Style = tuple[tuple[int, int, int], str, bool]
"""Colour and mark of a curve, and whether it is dashed."""

Curve = list[tuple[float, Estimate]]
"""Points (what was spent, the score), from the smallest budget to the largest."""


def curves_picture(
    title: str,
    spent: str,
    panels: Sequence[tuple[str, Mapping[str, Curve]]],
    *,
    size: tuple[int, int] = PANEL,
    scale: float = 1,
    note: str = "bars: 95 % interval over patients",
) -> Image.Image:
    """An RGB picture: for each (label, curves by policy) a panel, the axis of what was spent called `spent`.

    `size` is a panel's plot area in pixels; the other axis shows scores as `scale` times their value. `note` stands
    below the title.
    """
    names = list(dict.fromkeys(name for _, curves in panels for name in curves))
    styles = {
        name: (COLOURS[i % len(COLOURS)], list(MARKS)[i % len(MARKS)], i >= len(COLOURS))
        for i, name in enumerate(names)
    }
    canvas = _Canvas(len(panels), names, spent, size, scale)
    top = _axis_top([mean for _, curves in panels for curve in curves.values() for _, mean in curve])
    canvas.title(title, note)
    for number, (label, curves) in enumerate(panels):
        canvas.panel(number, label, curves, styles, top)
    canvas.legend(styles)
    return canvas.finished()


def _axis_top(means: Sequence[Estimate]) -> float:
    """The axis ends at the highest bar, rounded up to a tenth."""
    highest = max((mean.high or mean.value or 0.0 for mean in means), default=1.0)
    return min(1.0, max(0.1, math.ceil(highest * 10 - 1e-9) / 10))


class _Canvas:
    """A row of panels on paper. Coordinates are pixels of the finished picture."""

    def __init__(self, panels: int, names: Sequence[str], spent: str, size: tuple[int, int], scale: float) -> None:
        self._spent, self._size, self._scale = spent, size, scale
        self.width = LEFT + panels * size[0] + (panels - 1) * GAP + RIGHT
        self._font, self._title_font = (ImageFont.load_default(px * SCALE) for px in (FONT_PX, TITLE_PX))
        self._legend_rows = self._broken([self._text_width(name) + LEGEND_MARK for name in names])
        height = TOP + size[1] + BOTTOM + LEGEND_ROW * len(self._legend_rows)
        self._image = Image.new("RGB", (self.width * SCALE, height * SCALE), PAPER)
        self._draw = ImageDraw.Draw(self._image)

    def finished(self) -> Image.Image:
        return self._image.resize((self._image.width // SCALE, self._image.height // SCALE), Image.Resampling.BOX)

    def title(self, text: str, further: str) -> None:
        self._text(LEFT, 12, text, "lt", title=True)
        self._text(LEFT, 34, further, "lt", GREY)

    def panel(
        self, number: int, label: str, curves: Mapping[str, Curve], styles: Mapping[str, Style], top: float
    ) -> None:
        wide, high_px = self._size
        left, base = LEFT + number * (wide + GAP), TOP + high_px
        spent = {name: [allowed for allowed, _ in curve] for name, curve in curves.items()}
        low, high, ticks = _axis(list(spent.values()), wide)

        def place(allowed: float, value: float) -> tuple[float, float]:
            return left + (allowed - low) / (high - low) * wide, base - value / top * high_px

        self._text(left + wide / 2, TOP - 10, label, "ms")
        for step in range(AXIS_STEPS + 1):
            value = top * step / AXIS_STEPS
            height = place(low, value)[1]
            self._line([(left, height), (left + wide, height)], INK if step == 0 else FAINT, 1)
            if number == 0:
                self._text(left - 8, height, f"{value * self._scale:.2f}".rstrip("0").rstrip("."), "rm")
        for allowed in ticks:
            x = place(allowed, 0)[0]
            self._line([(x, base), (x, base + 4)], INK, 1)
            self._text(x, base + 8, f"{round(allowed, 1):g}", "mt")
        self._text(left + wide / 2, base + 26, self._spent, "mt", GREY)
        for name, curve in curves.items():
            colour, mark, dashed = styles[name]
            # Curves of the same budgets stand side by side, so that their bars don't hide one another.
            beside = [other for other in curves if spent[other] == spent[name]]
            aside = (beside.index(name) - (len(beside) - 1) / 2) * DODGE_PX
            points = [(x + aside, y) for x, y in (place(allowed, mean.value or 0) for allowed, mean in curve)]
            for (x, _), (_, mean) in zip(points, curve, strict=True):
                if mean.low is not None and mean.high is not None:
                    self._line([(x, place(low, mean.low)[1]), (x, place(low, mean.high)[1])], colour, 1.3)
            for piece in _dashes(points) if dashed else [points]:
                self._line(piece, colour, 1.8)
            for x, y in points:
                self._mark(x, y, mark, colour)

    def legend(self, styles: Mapping[str, Style]) -> None:
        names = list(styles)
        for number, row in enumerate(self._legend_rows):
            x, y = float(LEFT), TOP + self._size[1] + BOTTOM - 6 + LEGEND_ROW * number
            for name in (names[i] for i in row):
                colour, mark, dashed = styles[name]
                stroke = [(x, y), (x + 24, y)]
                for piece in _dashes(stroke) if dashed else [stroke]:
                    self._line(piece, colour, 1.8)
                self._mark(x + 12, y, mark, colour)
                self._text(x + 30, y, name, "lm")
                x += self._text_width(name) + LEGEND_MARK

    def _broken(self, widths: Sequence[float]) -> list[list[int]]:
        """Places of the legend's entries, row by row, each row within the picture's width."""
        rows: list[list[int]] = []
        used = 0.0
        for i, width in enumerate(widths):
            if not rows or used + width > self.width - LEFT:
                rows.append([])
                used = 0.0
            rows[-1].append(i)
            used += width
        return rows

    def _text_width(self, text: str) -> float:
        return float(self._font.getlength(text)) / SCALE

    def _text(
        self, x: float, y: float, text: str, anchor: str, colour: tuple[int, int, int] = INK, title: bool = False
    ) -> None:
        font = self._title_font if title else self._font
        self._draw.text((x * SCALE, y * SCALE), text, colour, font, anchor)

    def _line(self, points: Sequence[tuple[float, float]], colour: tuple[int, int, int], width: float) -> None:
        scaled = [(x * SCALE, y * SCALE) for x, y in points]
        self._draw.line(scaled, colour, round(width * SCALE), joint="curve")

    def _mark(self, x: float, y: float, mark: str, colour: tuple[int, int, int]) -> None:
        outline = [((x + dx * MARK_PX) * SCALE, (y + dy * MARK_PX) * SCALE) for dx, dy in MARKS[mark]]
        self._draw.polygon(outline, colour, PAPER, SCALE)


def _axis(spent: Sequence[Sequence[float]], px: int) -> tuple[float, float, list[float]]:
    """Where an axis of `px` pixels begins and ends, and its ticks.

    Where all curves have the same budgets, these are the ticks; else round numbers are, from 0.
    """
    budgets = sorted({allowed for allowed_by in spent for allowed in allowed_by})
    if all(set(allowed_by) == set(budgets) for allowed_by in spent):
        low, high = _padded(budgets)
        return low, high, _thinned(budgets, (high - low) / px * TICK_PX)
    high = 1.04 * budgets[-1]
    step = _round_step(high * ROUND_TICK_PX / px)
    return 0.0, high, [step * number for number in range(math.floor(high / step) + 1)]


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 5, 10, 20 ... (or a tenth of them, and so on) that is no less than `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)


def _dashes(points: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """The dashes of a broken line."""
    pieces = []
    dash, gap = DASH_PX
    for (x, y), (to_x, to_y) in pairwise(points):
        length = math.hypot(to_x - x, to_y - y)
        for start in np.arange(0, length, dash + gap):
            ends = (start / length, min(start + dash, length) / length)
            pieces.append([(x + (to_x - x) * end, y + (to_y - y) * end) for end in ends])
    return pieces


def _padded(ticks: Sequence[float]) -> tuple[float, float]:
    """The axis from the smallest to the largest budget, with room at both ends."""
    if not ticks:
        return 0.0, 1.0
    room = 0.12 * (ticks[-1] - ticks[0]) or 1.0
    return ticks[0] - room, ticks[-1] + room


def _thinned(ticks: Sequence[float], apart: float) -> list[float]:
    """Only ticks that are at least `apart` from the last one kept, so that their labels don't touch."""
    kept: list[float] = []
    for tick in ticks:
        if not kept or tick - kept[-1] >= apart:
            kept.append(tick)
    return kept
