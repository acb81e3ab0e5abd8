"""Bus bandwidth over message size as one SVG file that needs nothing beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from argosy.steps.bench_comm.collectives import Row, size_text

_COLOURS = ("#2563eb", "#d97706", "#059669", "#9333ea")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _RIGHT = 760, 420, 64, 48, 48, 24


def svg(rows: Sequence[Row], title: str) -> str:
    """A line for each collective; sizes by their logarithm."""
    sizes = sorted({each.bytes for each in rows})
    most = _round_up(max((each.busbw for each in rows), default=1.0))
    low, high = math.log2(sizes[0]), math.log2(sizes[-1])

    def x(size: int) -> float:
        share = 0.5 if high == low else (math.log2(size) - low) / (high - low)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(value: float) -> float:
        return round(_HEIGHT - _BOTTOM - value / most * (_HEIGHT - _BOTTOM - _TOP), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12" role="img">',
        f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{_LEFT}" y="20" font-size="14" font-weight="bold">{escape(title)}</text>',
        f'<text x="12" y="{_TOP - 12}" fill="#555">bus bandwidth, GB/s</text>',
    ]
    for number in range(5):
        value = most * number / 4
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value)}" y2="{y(value)}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y(value) + 4}" text-anchor="end" fill="#555">{value:g}</text>')
    for size in sizes[:: max(1, math.ceil(len(sizes) / 10))]:
        label = size_text(size)
        parts.append(
            f'<text x="{x(size)}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle" fill="#555">{label}</text>'
        )
    for number, op in enumerate(dict.fromkeys(each.op for each in rows)):
        own, colour = [each for each in rows if each.op == op], _COLOURS[number % len(_COLOURS)]
        points = " ".join(f"{x(each.bytes)},{y(each.busbw)}" for each in own)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for each in own:
            told = f"<title>{op}, {size_text(each.bytes)}: {each.busbw:.3g} GB/s</title>"
            parts.append(f'<circle cx="{x(each.bytes)}" cy="{y(each.busbw)}" r="3" fill="{colour}">{told}</circle>')
        parts.append(f'<text x="{_LEFT + 110 * number}" y="{_HEIGHT - 8}" fill="{colour}">{op}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _round_up(value: float) -> float:
    """To 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(each * power for each in (1, 2, 5, 10) if each * power >= value)
