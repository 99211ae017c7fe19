#!/usr/bin/env python3
"""Checks the charts of scripts/result_chart.py, read as XML: result_chart_test.py SOURCE"""

import math
import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree as ET

SOURCE = pathlib.Path(sys.argv.pop(1))
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "scripts"))
import result_chart  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
RESULT = {
    "columns": ["model", "one & two", "b"],
    "rows": [["x <1>", "2.00 (1.50 .. 4.00)", "0.50"], ["y", "1.25", "does not take it"], ["geometric mean", "1.58", "0.5"]],
}
CHART = {"file": "c.svg", "title": 'Speed "beside" A & B', "label": "model", "series": {"a": "one & two", "b": "b"}, "scale": "ratio", "mean": True}


def drawn(chart, result=RESULT):
    assert not list(result_chart.problems(chart, result))
    return ET.fromstring(result_chart.draw(chart, result, "r.json"))


def bars(svg, series):
    """Returns (left, width) of the bars of a series, without the square key of the legend."""
    found = [rect for rect in svg.iter(f"{SVG}rect") if rect.get("class") == f"s{series}"]
    return [(float(r.get("x")), float(r.get("width"))) for r in found if not (r.get("width") == "12" and r.get("height") == "12")]


def texts(svg):
    return [text.text for text in svg.iter(f"{SVG}text")]


def luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


class Figures(unittest.TestCase):
    def test_cells(self):
        self.assertEqual(result_chart.figure("1.29 (1.26 .. 1.30)"), (1.29, 1.26, 1.30))
        self.assertEqual(result_chart.figure("15.5 ± 2.5"), (15.5, 13.0, 18.0))
        self.assertEqual(result_chart.figure("98.5 ± 0.5 %"), (98.5, 98.0, 99.0))
        self.assertEqual(result_chart.figure(".87"), (0.87, 0.87, 0.87))
        self.assertIsNone(result_chart.figure("outputs differ"))

    def test_a_bar_is_as_long_as_the_logarithm_of_its_ratio(self):
        svg = drawn(CHART)
        (left, two), (_, quarter), _ = bars(svg, 0)
        (half_left, half), _ = bars(svg, 1)
        self.assertAlmostEqual(quarter / two, math.log(1.25) / math.log(2), delta=0.01)
        self.assertAlmostEqual(half, two, delta=0.2)  # on the logarithmic scale, one half is as far from 1 as two
        self.assertAlmostEqual(half_left + half, left, delta=0.2)

    def test_an_amount_begins_at_nothing(self):
        svg = drawn({**CHART, "scale": "amount", "mean": False, "series": {"a": "one & two"}, "rows": ["x <1>", "y"]})
        (left, two), (other, quarter) = bars(svg, 0)
        self.assertAlmostEqual(quarter / two, 1.25 / 2, delta=0.01)
        self.assertEqual(left, other)

    def test_texts(self):
        found = texts(drawn(CHART))
        for text in ('Speed "beside" A & B', "x <1>", "2.00×", "does not take it", "geometric mean", f"{math.sqrt(2 * 1.25):.2f}×", "1×"):
            self.assertIn(text, found)

    def test_a_name_may_be_shorter(self):
        self.assertIn("X", texts(drawn({**CHART, "short": {"x <1>": "X"}})))

    def test_ticks_keep_their_distance(self):
        for high in (1.05, 1.2, 1.5, 3, 9):
            axis = result_chart.Axis("ratio", [1, high], 100, 500)
            places = [axis(tick) for tick in axis.ticks]
            self.assertTrue(all(b - a >= result_chart.TICK_GAP for a, b in zip(places, places[1:])), (high, axis.ticks))
            self.assertGreaterEqual(len(axis.ticks), 2 if high > 1.1 else 1)

    def test_problems(self):
        def found(**changes):
            return list(result_chart.problems({**CHART, **changes}, RESULT))

        self.assertEqual(found(), [])
        self.assertEqual(found(series={"a": "c"}), ["names 'c', which is no column"])
        self.assertEqual(found(rows=["z"]), ["names 'z', which is no row"])
        self.assertEqual(found(scale="log"), ["has the scale 'log', not ratio or amount"])
        self.assertEqual(found(colour="red"), ["'colour' is no field of a chart"])


class Pages(unittest.TestCase):
    def test_charts_of_the_repository(self):
        files = sorted((SOURCE / "docs/results").glob("*.svg"))
        self.assertGreater(len(files), 2)
        for file in files:
            svg = ET.parse(file).getroot()
            width = float(svg.get("viewBox").split()[2])
            self.assertTrue(svg.get("aria-label"), file)
            for text in svg.iter(f"{SVG}text"):
                size = {"title": 17 * 0.64, "small": 13 * 0.56}.get((text.get("class") or "").split(" ")[0], 15 * 0.56)
                length, x = size * len(text.text), float(text.get("x"))
                start = x - length * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor")]
                self.assertGreaterEqual(start, 0, (file.name, text.text))
                self.assertLessEqual(start + length, width, (file.name, text.text))

    def test_contrast(self):
        light, dark = result_chart.STYLE.split("@media (prefers-color-scheme: dark)")
        for style in (light, dark):
            card = re.search(r"\.card \{ fill: (#\w{6})", style)[1]
            for name, least in (("text", 4.5), (".small", 4.5), (".s0", 3), (".s1", 3), (".s2", 3), (".s3", 3)):
                color = re.search(rf"(?<![\w-]){re.escape(name)} \{{[^}}]*?fill: (#\w{{6}})", style)[1]
                self.assertGreaterEqual(contrast(color, card), least, (name, color, card))


if __name__ == "__main__":
    unittest.main()
