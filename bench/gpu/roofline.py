# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The roofline as a picture: each kernel by its operations a byte and TFLOP/s, under the line of the measured read
bandwidth. A panel for each model, both axes logarithmic."""

import math
from xml.sax.saxutils import escape

WIDTH, PLOT_LEFT, PLOT_RIGHT, PLOT_HEIGHT = 1100, 70, 620, 460
MARGIN, LINE = 60, 16  # Around a plot; of a line of the legend.
LEGEND = PLOT_RIGHT + 30
COLOURS = {"prompt": "#c2410c", "step": "#1d4ed8"}
LONGEST_NAME = 46


def svg(results):
    """The picture, or None where there is nothing to draw."""
    read = results.get("bandwidth", {}).get("read_gb_s")
    shapes = {}
    for row in results.get("kernels", []):
        if row["bytes"] > 0 and row["operations"] > 0 and row["us"] > 0:
            shapes.setdefault(row["shape"], []).append(row)
    if not read or not shapes:
        return None
    parts, top = [], 0
    for shape, rows in shapes.items():
        height = max(PLOT_HEIGHT, LINE * len(rows)) + 2 * MARGIN
        parts += panel(shape, rows, read, best_product(results, shape), top)
        top += height
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}" '
    head += 'font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{top}" fill="white"/>', *parts, "</svg>"]) + "\n"


def best_product(results, shape):
    """TFLOP/s of cuBLAS's fastest product, where it was measured."""
    rows = [row for row in results.get("peers", []) if row["command"] == "products" and row["shape"] == shape]
    speeds = [product["tflops"] for row in rows for product in row["products"].values()]
    return max(speeds, default=None)


class Scale:
    """The scale of a logarithmic axis, in whole decades around `values`."""

    def __init__(self, values, begin, end):
        self.low = math.floor(math.log10(min(values)))
        self.high = max(math.ceil(math.log10(max(values))), self.low + 1)
        self.begin, self.end = begin, end

    def at(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def decades(self):
        return [10.0**power for power in range(self.low, self.high + 1)]


def text(x, y, words, anchor="start", colour="black", size=12, turned=False):
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    style = f'text-anchor="{anchor}" fill="{colour}" font-size="{size}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}{turn}>{escape(str(words))}</text>'


def line(x1, y1, x2, y2, colour, width=1.0, dashes=""):
    dashes = f' stroke-dasharray="{dashes}"' if dashes else ""
    place = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {place} stroke="{colour}" stroke-width="{width}"{dashes}/>'


def panel(shape, rows, read, product, top):
    bottom = top + MARGIN + PLOT_HEIGHT
    points = [(row["operations"] / row["bytes"], row["operations"] / row["us"] / 1e6) for row in rows]
    speeds = [speed for _, speed in points] + [product or points[0][1]]
    x = Scale([intensity for intensity, _ in points], PLOT_LEFT, PLOT_RIGHT)
    y = Scale(speeds, bottom, top + MARGIN)
    parts = [text(PLOT_LEFT, top + 28, f"{shape}: kernels under a read bandwidth of {read:g} GB/s", size=16)]
    parts += axes(x, y)
    parts += roofs(x, y, read, product)
    return parts + kernels(rows, points, x, y, top + MARGIN, read)


def axes(x, y):
    parts = [text((x.begin + x.end) / 2, y.begin + 40, "operations per byte", "middle")]
    parts += [text(x.begin - 48, (y.begin + y.end) / 2, "TFLOP/s", "middle", turned=True)]
    for value in x.decades():
        parts += [line(x.at(value), y.begin, x.at(value), y.end, "#ddd")]
        parts += [text(x.at(value), y.begin + 18, f"{value:g}", "middle")]
    for value in y.decades():
        parts += [line(x.begin, y.at(value), x.end, y.at(value), "#ddd")]
        parts += [text(x.begin - 8, y.at(value) + 4, f"{value:g}", "end")]
    return parts


def roofs(x, y, read, product):
    """The bandwidth's slope, cut at the plot's edges, and the speed of products."""
    low, high = 10.0**x.low, 10.0**x.high
    low, high = max(low, 10.0**y.low * 1e3 / read), min(high, 10.0**y.high * 1e3 / read)
    parts = [line(x.at(low), y.at(read * low / 1e3), x.at(high), y.at(read * high / 1e3), "black", 1.5)]
    if product:
        parts += [line(x.begin, y.at(product), x.end, y.at(product), "black", 1, "6 4")]
        parts += [text(x.begin + 6, y.at(product) - 6, f"cuBLAS's best product: {product:.0f} TFLOP/s")]
    return parts


def kernels(rows, points, x, y, top, read):
    """Numbered points, and the legend of the numbers."""
    parts = []
    places = [(x.at(intensity), y.at(speed)) for intensity, speed in points]
    taken = [(px - 5, py - 5, px + 5, py + 5) for px, py in places]
    parts += [text(LEGEND, top - 18, "of a prompt", colour=COLOURS["prompt"])]
    parts += [text(LEGEND + 90, top - 18, "of a step", colour=COLOURS["step"])]
    parts += [text(LEGEND + 170, top - 18, "time of a launch, share of the bandwidth")]
    for i, (row, (px, py)) in enumerate(zip(rows, places), 1):
        colour = COLOURS[row["part"]]
        lx, ly = label_place(px, py, taken)
        if math.hypot(lx - px, ly - py) > 16:
            parts += [line(px, py, lx, ly, colour, 0.5)]
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="4" fill="{colour}"/>']
        parts += [text(lx, ly + 4, i, "middle", colour, 11)]
        name = row["kernel"] if len(row["kernel"]) <= LONGEST_NAME else row["kernel"][: LONGEST_NAME - 1] + "…"
        share = row["bytes"] / row["us"] / 1e3 / read
        words = f"{i}  {name}: {row['us']:.1f} us, {100 * share:.0f} %"
        parts += [text(LEGEND, top + LINE * (i - 0.3), words, colour=colour)]
    return parts


def label_place(px, py, taken):
    """The centre of a free place for a number near a point, nearest first; it is taken then."""
    for radius in range(12, 80, 6):
        for turn in range(12):
            angle = math.pi * (turn / 6 - 0.25)
            cx, cy = px + radius * math.cos(angle), py + radius * math.sin(angle)
            box = (cx - 8, cy - 6, cx + 8, cy + 6)
            if not any(overlap(box, other) for other in taken):
                taken.append(box)
                return cx, cy
    return px + 12, py


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
