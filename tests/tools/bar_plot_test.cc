#include "tools/bar_plot.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>

#include "xml_check.h"

namespace tensorsmith::tools::bar_plot_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// The axis ends at 4: a value of 4 has the whole height of 380, a value of 1 a quarter.
TEST(BarPlot, HeightsFollowTheValues) {
  const std::string svg =
      bar_plot({{"net", {{4, 4, 4}, {1, 1, 1}}}}, {"title", "speed-up", {"one", "two"}}, "compare");
  EXPECT_EQ(count(svg, "class=\"bar\""), 2u);
  EXPECT_THAT(svg, HasSubstr("y=\"50.0\" width=\"14.0\" height=\"380.0\""));
  EXPECT_THAT(svg, HasSubstr("y=\"335.0\" width=\"14.0\" height=\"95.0\""));
  EXPECT_EQ(testing::xml_problem(svg), "");
}

// A method without a run has no bar, but keeps its place; whiskers only where seeds differ.
TEST(BarPlot, WhatIsMissingIsLeftOut) {
  const BarAxes axes{"", "", {"a", "b", "c"}};
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const std::string svg = bar_plot(
      {{"x", {{2, 1, 3}, {0, 0, 0}, {1, 1, 1}}}, {"y", {{nan, 0, 0}, {inf, 0, inf}}}}, axes, "compare");
  EXPECT_EQ(count(svg, "class=\"bar\""), 2u);
  EXPECT_EQ(count(svg, "stroke=\"black\"/>"), 1u);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_EQ(testing::xml_problem(svg), "");
  EXPECT_EQ(testing::xml_problem(bar_plot({}, {"", "", {}}, "compare")), "");
}

TEST(BarPlot, IsXmlWhateverTheNames) {
  const std::string hostile = "a--b <\"&'> ]]> \x01\x1b[2J \xff\n";
  EXPECT_EQ(
      testing::xml_problem(bar_plot({{hostile, {{1, 1, 1}}}}, {hostile, hostile, {hostile}}, "compare")), "");
}

// More bars than colours can be told apart.
TEST(BarPlot, EveryBarHasAColourOfItsOwn) {
  BarAxes axes{"", "", {}};
  for (int b = 0; b < 10; ++b) axes.names.push_back(std::to_string(b));
  const std::string svg = bar_plot({}, axes, "compare");
  EXPECT_EQ(count(svg, "fill=\"#0072B2\" fill-opacity=\"1\""), 1u);
  EXPECT_EQ(count(svg, "fill=\"#0072B2\" fill-opacity=\"0.45\""), 1u);
}

}  // namespace
}  // namespace tensorsmith::tools::bar_plot_test
