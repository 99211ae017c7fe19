// Predicted against measured seconds as an SVG picture.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace tensorsmith::tools {

// Logarithmic axes, a square for each place that has programs, denser where there are more; one colour a
// group. Memory goes with the occupied places, not with the programs.
class ScatterPlot {
 public:
  // Seconds that are not finite or not positive are left out.
  void add(const std::string& group, double measured, double predicted);
  // A whole SVG document. The diagonal is where predictions are right; dashed: twice and half.
  std::string svg(const std::string& title) const;

 private:
  std::map<std::tuple<std::string, int, int>, int64_t> counts_;  // group, column, row
};

}  // namespace tensorsmith::tools
