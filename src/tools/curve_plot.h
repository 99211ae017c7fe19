// Curves over a logarithmic axis as an SVG picture: how fast the best program is after so many trials.
#pragma once

#include <string>
#include <vector>

namespace tensorsmith::tools {

struct Curve {
  std::string name;
  std::vector<double> x;          // ascending, > 0
  std::vector<double> y;          // one for each x
  std::vector<double> low, high;  // a band around y; empty: none
};

struct CurveAxes {
  std::string title, x, y;  // texts
};

// A whole SVG document. The vertical axis spans the values; values that are not finite are left out.
std::string curve_plot(const std::vector<Curve>& curves, const CurveAxes& axes);

}  // namespace tensorsmith::tools
