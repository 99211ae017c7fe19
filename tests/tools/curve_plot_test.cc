#include "tools/curve_plot.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "xml_check.h"

namespace tensorsmith::tools::curve_plot_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(CurvePlot, ACurveEachWithItsBand) {
  const std::string svg = curve_plot({{"a < b", {1, 2, 4}, {0.5, 0.75, 1}, {0.4, 0.7, 1}, {0.6, 0.8, 1}},
                                      {"second", {1, 8}, {0.25, 0.5}, {}, {}}},
                                     {"title & more", "trials", "speed"}, "compare");
  EXPECT_EQ(count(svg, "stroke-width=\"2\""), 2u);
  EXPECT_EQ(count(svg, "opacity=\"0.15\""), 1u);
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(svg, HasSubstr("title &amp; more"));
  // Marks at powers of two, and at steps of .2 up to 1.
  for (const char* mark : {">1<", ">2<", ">4<", ">8<", ">0.2<", ">0.4<"}) EXPECT_THAT(svg, HasSubstr(mark));
  EXPECT_EQ(count(svg, "<svg "), 1u);
  EXPECT_THAT(svg, HasSubstr("<!-- plot by tensorsmith compare -->"));
  EXPECT_EQ(testing::xml_problem(svg), "");
}

// Browsers refuse a picture with a "--" in a comment, bytes that are not UTF-8 or characters that
// XML forbids.
TEST(CurvePlot, IsXmlWhateverTheNames) {
  const std::string hostile = "a--b <\"&'> ]]> \x01\x1b[2J \xff \xc3\x28 \xEF\xBF\xBE\n";
  const std::string svg =
      curve_plot({{hostile, {1, 2}, {0, 1}, {0, 1}, {0, 1}}}, {hostile, hostile, hostile}, "compare");
  EXPECT_EQ(testing::xml_problem(svg), "");
  EXPECT_THAT(svg, HasSubstr("a--b &lt;\"&amp;'&gt; ]]&gt; \\x01\\x1b[2J \\xff"));
}

// The first point is at the left, the highest value at the top.
TEST(CurvePlot, PlacesFollowTheValues) {
  const std::string svg = curve_plot({{"one", {1, 4}, {0, 1}, {}, {}}}, {"", "", ""}, "compare");
  EXPECT_THAT(svg, HasSubstr("M70.0 470.0L690.0 50.0"));
}

// Both plots have the same places of their own, and the second is moved by the height of the first.
TEST(CurvePlot, PanelsAreBelowEachOther) {
  const std::vector<Curve> curves = {{"one", {1, 4}, {0, 1}, {}, {}}};
  const std::string one = curve_plot(curves, {"first title", "", ""}, "eval");
  const std::string two =
      curve_plots({{curves, {"first title", "", ""}}, {curves, {"second title", "", ""}}}, "eval");
  EXPECT_EQ(testing::xml_problem(two), "");
  EXPECT_EQ(count(two, "M70.0 470.0L690.0 50.0"), 2u);
  EXPECT_THAT(two, HasSubstr("second title"));
  EXPECT_EQ(count(one, "<g "), 0u);
  EXPECT_EQ(count(two, "<g transform=\"translate(0 530)\">"), 1u);
  EXPECT_THAT(one, HasSubstr("height=\"530\""));
  EXPECT_THAT(two, HasSubstr("height=\"1060\""));
  EXPECT_EQ(count(two, "<svg "), 1u);
}

TEST(CurvePlot, WhatIsNotFiniteIsLeftOut) {
  const std::string svg = curve_plot(
      {{"a", {1, 2, 3}, {INFINITY, 1, NAN}, {}, {}}, {"empty", {}, {}, {}, {}}}, {"", "", ""}, "compare");
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_EQ(testing::xml_problem(svg), "");
  EXPECT_EQ(testing::xml_problem(curve_plot({}, {"", "", ""}, "compare")), "");
  // A band begins at its first value that can be drawn, on either side.
  const std::string half =
      curve_plot({{"a", {1, 2}, {1, 2}, {INFINITY, NAN}, {1, 3}}, {"b", {1}, {1}, {NAN}, {NAN}}},
                 {"", "", ""}, "compare");
  EXPECT_EQ(count(half, "opacity=\"0.15\""), 1u);
  EXPECT_THAT(half, Not(HasSubstr("d=\"L")));
  EXPECT_THAT(half, Not(HasSubstr("d=\"Z")));
}

}  // namespace
}  // namespace tensorsmith::tools::curve_plot_test
