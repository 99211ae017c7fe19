// Plots groups of bars as an SVG picture, such as the speed-ups of several methods on several networks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensorsmith::tools {

struct Bar {
  double value = 0;          // 0 or not finite: no bar is drawn
  double low = 0, high = 0;  // ends of the whisker; equal: none
};

struct BarGroup {
  std::string name;
  std::vector<Bar> bars;  // one for each name of BarAxes
};

struct BarAxes {
  std::string title, y;            // y: label
  std::vector<std::string> names;  // of the bars of a group, for the legend
  double line = 1;                 // a value that gets a line across the plot
};

// Returns a complete SVG document, which names `command` as the one that drew it. The vertical axis begins
// at 0.
std::string bar_plot(const std::vector<BarGroup>& groups, const BarAxes& axes, std::string_view command);

}  // namespace tensorsmith::tools
