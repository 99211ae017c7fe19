// Plots curves over a logarithmic axis as an SVG picture: the speed of the best program after a
// number of trials, or the scores of a cost model in each round.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensorsmith::tools {

struct Curve {
  std::string name;
  std::vector<double> x;          // ascending, positive
  std::vector<double> y;          // one for each x
  std::vector<double> low, high;  // a band around y; empty: none
};

struct CurveAxes {
  std::string title, x, y;  // labels
};

// Returns a complete SVG document, which names `command` as the one that drew it. The vertical axis spans
// the values; non-finite values are left out.
std::string curve_plot(const std::vector<Curve>& curves, const CurveAxes& axes, std::string_view command);

struct CurvePanel {
  std::vector<Curve> curves;
  CurveAxes axes;
};
// As curve_plot, with several plots below each other in one document.
std::string curve_plots(const std::vector<CurvePanel>& panels, std::string_view command);

}  // namespace tensorsmith::tools
