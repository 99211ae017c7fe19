"""Draws figures of a result file as a bar chart (SVG) that is readable on light and dark pages.

A chart is described in its result file (see scripts/make_results):

    file      name of the SVG beside the result file
    title     what is compared
    subtitle  optional: machine, threads, and other things that the reader must know
    label     column with the names of the rows
    series    names of the bars of a row, each with its column
    rows      optional: names of the rows to draw, in this order; default: all rows of the file
    short     optional: shorter names for rows
    mean      optional: true adds the geometric mean of the rows that have a figure
    scale     "ratio": bars start at 1 on a logarithmic axis; "amount": bars start at 0
    unit      optional: suffix of ticks and figures; default for ratios: a multiplication sign
    overview  optional: see scripts/make_results
"""
import math
import re
import textwrap
from xml.sax.saxutils import escape

NUMBER = r"-?\d*\.?\d+"
CELL = re.compile(rf"^\s*({NUMBER})(?:\s*%)?(?:\s*\(({NUMBER}) \.\. ({NUMBER})\))?(?:\s*(?:±|\+-)\s*({NUMBER}))?")
RATIO_TICKS = [0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 10]
SPREAD = {
    "ratio": "Thin lines: from the 10th to the 90th percentile of the rounds.",
    "amount": "Thin lines: the spread over splits or seeds.",
}
REQUIRED = {"file", "title", "label", "series", "scale"}
OPTIONAL = {"subtitle", "rows", "short", "mean", "unit", "overview"}

# The chart is narrow, so that letters have a readable size on a phone.
WIDTH, MARGIN, TITLE, FONT, SMALL = 600, 20, 17, 15, 13
BAR, BAR_GAP, ROW_GAP = 12, 3, 13
CHARACTER, BOLD = 0.56, 0.64  # mean width of a character divided by the font size
TICK_GAP = 46                 # minimum distance of two ticks

# The contrast with the card is at least 4.5 : 1 for text and 3 : 1 for bars. The hues also differ in lightness, for
# readers who cannot distinguish them.
STYLE = """
  text { font: 15px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; fill: #1f2430; }
  .title { font-size: 17px; font-weight: 600; }
  .small { font-size: 13px; fill: #5a6170; }
  .strong { font-weight: 600; }
  .card { fill: #ffffff; stroke: #e3e6ec; }
  .grid { stroke: #e8eaef; }
  .base { stroke: #8a91a0; stroke-width: 1.5; }
  .spread { stroke: #1f2430; stroke-opacity: .55; stroke-width: 1.5; }
  .s0 { fill: #2f6fde; } .s1 { fill: #d07d0c; } .s2 { fill: #23877a; } .s3 { fill: #a35bb5; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e9ef; }
    .small { fill: #a4abb9; }
    .card { fill: #1b1e27; stroke: #323744; }
    .grid { stroke: #2d323e; }
    .base { stroke: #7d8595; }
    .spread { stroke: #ffffff; stroke-opacity: .6; }
    .s0 { fill: #5b93f5; } .s1 { fill: #f0b04a; } .s2 { fill: #4db5a6; } .s3 { fill: #c48ad4; }
  }
"""


def figure(cell):
    """Parses a cell such as "1.29 (1.26 .. 1.30)", "15.5 ± 2.2" or "3" to (value, low, high); None if it has no
    figure."""
    match = CELL.match(cell)
    if not match:
        return None
    value = float(match.group(1))
    if match.group(2):
        return value, float(match.group(2)), float(match.group(3))
    spread = float(match.group(4) or 0)
    return value, value - spread, value + spread


def geometric_mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))


def problems(chart, result):
    keys = set(chart)
    for key in sorted(REQUIRED - keys):
        yield f"has no '{key}'"
    for key in sorted(keys - REQUIRED - OPTIONAL):
        yield f"'{key}' is no field of a chart"
    if REQUIRED - keys:
        return
    for column in [chart["label"], *chart["series"].values()]:
        if column not in result["columns"]:
            yield f"names '{column}', which is no column"
            return
    names = [row[result["columns"].index(chart["label"])] for row in result["rows"]]
    for name in [*chart.get("rows", []), *chart.get("short", {})]:
        if name not in names:
            yield f"names '{name}', which is no row"
    if chart["scale"] not in ("ratio", "amount"):
        yield f"has the scale '{chart['scale']}', not ratio or amount"


def rows_of(chart, result):
    """Returns (name, is the mean, [figure or text of each series]) of each row to draw."""
    at = result["columns"].index
    label, columns = at(chart["label"]), [at(column) for column in chart["series"].values()]
    by_name = {row[label]: row for row in result["rows"]}
    names = chart.get("rows", [row[label] for row in result["rows"] if row[label] != "geometric mean"])
    out = []
    for name in names:
        cells = [figure(by_name[name][column]) or by_name[name][column] for column in columns]
        out.append((chart.get("short", {}).get(name, name), False, cells))
    if chart.get("mean"):
        means = []
        for i in range(len(columns)):
            value = geometric_mean([cells[i][0] for _, _, cells in out if not isinstance(cells[i], str)])
            means.append((value, value, value))
        out.append(("geometric mean", True, means))
    return out


class Axis:
    """Maps a value to a position between `left` and `right`."""

    def __init__(self, scale, values, left, right):
        self.ratio = scale == "ratio"
        self.base = 1.0 if self.ratio else 0.0
        low, high = min(self.base, *values), max(self.base, *values)
        if self.ratio:
            low = 0.97 * low if low < 1 else 1.0
        self.left, self.right = left, right
        self.low, self.high = self.moved(low), self.moved(1.02 * high)
        self.ticks = self.chosen(low, 1.02 * high)

    def moved(self, value):
        return math.log(value) if self.ratio else value

    def __call__(self, value):
        return self.left + (self.right - self.left) * (self.moved(value) - self.low) / (self.high - self.low)

    def chosen(self, low, high):
        """Returns the ticks nearest to the base that keep their distance from each other."""
        if self.ratio:
            candidates = [tick for tick in RATIO_TICKS if low <= tick <= high]
        else:
            step = next(s * 10**e for e in range(-3, 6) for s in (1, 2, 5) if high / (s * 10**e) <= 6)
            candidates = [i * step for i in range(int(high / step) + 1)]
        kept = [self.base]
        for tick in sorted((t for t in candidates if t != self.base), key=lambda t: abs(self.moved(t) - self.moved(self.base))):
            if all(abs(self(tick) - self(other)) >= TICK_GAP for other in kept):
                kept.append(tick)
        return sorted(kept)


def plain(value):
    return f"{value:.2f}".rstrip("0").rstrip(".")


def draw(chart, result, source):
    """Returns the SVG of `chart`, which must have no problems(); `source` is the name of the result file."""
    rows = rows_of(chart, result)
    unit = chart.get("unit", "×" if chart["scale"] == "ratio" else "")
    series = list(chart["series"])
    figures = [cell for _, _, cells in rows for cell in cells if not isinstance(cell, str)]
    left = MARGIN + CHARACTER * FONT * max(len(name) for name, _, _ in rows) + 10
    axis = Axis(chart["scale"], [v for cell in figures for v in cell], left, WIDTH - MARGIN - 48)
    height_of_row = len(series) * (BAR + BAR_GAP) - BAR_GAP + ROW_GAP

    body = []

    def text(x, y, content, style="", anchor="start"):
        body.append(f'  <text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{escape(content)}</text>')

    y = MARGIN - 6
    for line in textwrap.wrap(chart["title"], int((WIDTH - 2 * MARGIN) / (BOLD * TITLE))):
        y += 22
        text(MARGIN, y, line, "title")
    for line in textwrap.wrap(chart.get("subtitle", ""), int((WIDTH - 2 * MARGIN) / (CHARACTER * SMALL))):
        y += 20
        text(MARGIN, y, line, "small")
    y += 16
    if len(series) > 1:
        y += 14
        x = MARGIN
        for i, name in enumerate(series):
            body.append(f'  <rect x="{x:.1f}" y="{y - 11}" width="12" height="12" rx="2" class="s{i}"/>')
            text(x + 18, y, name)
            x += 18 + CHARACTER * FONT * len(name) + 26
        y += 14
    y += 22
    top = y
    bottom = top + len(rows) * height_of_row + (8 if chart.get("mean") else 0)
    for tick in axis.ticks:
        style = "base" if tick == axis.base else "grid"
        body.append(f'  <line x1="{axis(tick):.1f}" x2="{axis(tick):.1f}" y1="{top - 4}" y2="{bottom}" class="{style}"/>')
        text(axis(tick), top - 10, plain(tick) + unit, "small", "middle")
    y = top + ROW_GAP / 2
    for name, is_mean, cells in rows:
        if is_mean:
            body.append(f'  <line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
            y += 8
        middle = y + (height_of_row - ROW_GAP) / 2
        text(left - 10, middle + 5, name, "strong" if is_mean else "", "end")
        for i, cell in enumerate(cells):
            center = y + BAR / 2
            if isinstance(cell, str):
                text(axis(axis.base) + 8, center + 4.5, cell, "small")
            else:
                value, low, high = cell
                start, end = sorted((axis(axis.base), axis(value)))
                body.append(
                    f'  <rect x="{start:.1f}" y="{y:.1f}" width="{max(end - start, 1):.1f}" height="{BAR}" rx="2" class="s{i}"/>'
                )
                if high > low:
                    body.append(
                        f'  <line x1="{axis(low):.1f}" x2="{axis(high):.1f}" y1="{center:.1f}" y2="{center:.1f}" class="spread"/>'
                    )
                shown = f"{value:.2f}" if chart["scale"] == "ratio" else f"{value:.1f}"
                text(max(axis(high), end) + 6, center + 4.5, shown + unit, "small strong" if is_mean else "small")
            y += BAR + BAR_GAP
        y += ROW_GAP - BAR_GAP
    if any(low < high for _, low, high in figures):
        bottom += 22
        text(MARGIN, bottom, SPREAD[chart["scale"]], "small")
    height = bottom + MARGIN - 6
    label = escape(". ".join([chart["title"], *([chart["subtitle"]] if "subtitle" in chart else [])]), {'"': "&quot;"})
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" '
        f'role="img" aria-label="{label}">',
        f"  <!-- Made by scripts/make_results from {source}. -->",
        f"  <style>{STYLE}  </style>",
        f'  <rect x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="10" class="card"/>',
    ]
    return "\n".join([*head, *body, "</svg>"]) + "\n"
