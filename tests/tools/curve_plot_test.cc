#include "tools/curve_plot.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>

namespace tensorsmith::tools {
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
                                     {"title & more", "trials", "speed"});
  EXPECT_EQ(count(svg, "stroke-width=\"2\""), 2u);
  EXPECT_EQ(count(svg, "opacity=\"0.15\""), 1u);
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(svg, HasSubstr("title &amp; more"));
  // Marks at powers of two, and at steps from .2 to 1.
  for (const char* mark : {">1<", ">2<", ">4<", ">8<", ">0.2<", ">0.4<"}) EXPECT_THAT(svg, HasSubstr(mark));
  EXPECT_EQ(count(svg, "<svg "), 1u);
  EXPECT_THAT(svg, HasSubstr("</svg>"));
}

// The left end is at the left, the highest value at the top.
TEST(CurvePlot, PlacesFollowTheValues) {
  const std::string svg = curve_plot({{"one", {1, 4}, {0, 1}, {}, {}}}, {"", "", ""});
  EXPECT_THAT(svg, HasSubstr("M70.0 470.0L690.0 50.0"));
}

TEST(CurvePlot, WhatIsNotFiniteIsLeftOut) {
  const std::string svg =
      curve_plot({{"a", {1, 2, 3}, {INFINITY, 1, NAN}, {}, {}}, {"empty", {}, {}, {}, {}}}, {"", "", ""});
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_THAT(curve_plot({}, {"", "", ""}), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace tensorsmith::tools
