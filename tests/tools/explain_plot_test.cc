#include "tools/explain_plot.h"

#include <gmock/gmock.h>

#include <cmath>

#include "xml_check.h"

namespace tensorsmith::tools::explain_plot_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ExplainPlot, IsXmlWhateverTheNames) {
  lab::Explanation e;
  e.task = "a < b & \"c\" --> \x01 \xff \xEF\xBF\xBF";
  e.best_seconds = 1e-3;
  e.typical_seconds = 2e-3;
  e.programs = 7;
  e.best = {{"multiply-adds", 5e-4}};
  e.typical = {{"multiply-adds", 5e-4}};
  e.counters.resize(1);
  e.counters[0].name = "L1 <misses>";
  e.counters[0].importance = 0.5;
  const std::string svg = explain_plot(e);
  EXPECT_EQ(testing::xml_problem(svg), "");
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; \"c\" --&gt; \\x01 \\xff"));
  EXPECT_THAT(svg, HasSubstr("L1 &lt;misses&gt;"));
  // Half of the fastest program's time is explained, and a quarter of the typical one's.
  EXPECT_THAT(svg, HasSubstr(">unexplained<"));
  for (const char* share : {">50 %<", ">75 %<"}) EXPECT_THAT(svg, HasSubstr(share));
}

// If all programs take the same time, no counter explains anything.
TEST(ExplainPlot, CountersThatExplainNothingHaveEmptyBars) {
  lab::Explanation e;
  e.best_seconds = e.typical_seconds = 1e-3;
  e.counters.resize(2);
  const std::string svg = explain_plot(e);
  EXPECT_EQ(testing::xml_problem(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace tensorsmith::tools::explain_plot_test
