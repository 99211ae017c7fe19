#include "tools/scatter_plot.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "xml_check.h"

namespace tensorsmith::tools::scatter_plot_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(ScatterPlot, OneSquareForAnyNumberOfPrograms) {
  ScatterPlot plot;
  for (int i = 0; i < 1000; ++i) plot.add("v100", 1.5e-3, 2e-3);
  plot.add("v100", 1e-4, 1e-4);
  plot.add("k80", 2e-2, 1e-2);
  const std::string svg = plot.svg("a < b & c", "eval");
  EXPECT_EQ(count(svg, "opacity="), 3u);
  EXPECT_THAT(svg, HasSubstr("v100 (1001)"));
  EXPECT_THAT(svg, HasSubstr("k80 (1)"));
  EXPECT_THAT(svg, HasSubstr("<!-- plot by tensorsmith eval -->"));
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
  // Whole decades around 0.1 ms ... 20 ms.
  EXPECT_THAT(svg, HasSubstr(">100 us<"));
  EXPECT_THAT(svg, HasSubstr(">100 ms<"));
  EXPECT_THAT(svg, Not(HasSubstr(">10 us<")));
  EXPECT_EQ(count(svg, "<g "), count(svg, "</g>"));
  EXPECT_EQ(testing::xml_problem(svg), "");
}

TEST(ScatterPlot, IsXmlWhateverTheNames) {
  ScatterPlot plot;
  plot.add("v100 -- <\x02\xff\xEF\xBF\xBF>", 1e-3, 1e-3);
  EXPECT_EQ(testing::xml_problem(plot.svg("a -- b --> & \x7f \xed\xa0\x80", "eval")), "");
  EXPECT_EQ(testing::xml_problem(ScatterPlot().svg("", "eval")), "");
}

// plots_test.py measures it in a browser.
TEST(ScatterPlot, LongNamesGetTheirRoom) {
  ScatterPlot plot, wider;
  plot.add("v100", 1e-3, 1e-3);
  wider.add("emeraldrapids-avx512-of-another-machine-1t", 1e-3, 1e-3);
  EXPECT_THAT(plot.svg("", "eval"), HasSubstr("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"810\""));
  EXPECT_THAT(wider.svg("", "eval"), Not(HasSubstr("width=\"810\"")));
}

TEST(ScatterPlot, WhatHasNoPlaceIsLeftOut) {
  ScatterPlot plot;
  plot.add("v100", INFINITY, 1);
  plot.add("v100", 1, 0);
  plot.add("v100", NAN, 1);
  EXPECT_EQ(count(plot.svg("none", "eval"), "opacity="), 0u);
}

}  // namespace
}  // namespace tensorsmith::tools::scatter_plot_test
