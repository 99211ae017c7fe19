// Plots predicted against measured seconds as an SVG picture.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

namespace tensorsmith::tools {

// A plot with logarithmic axes that counts programs in square bins: denser bins are darker, and
// each group has a colour. Memory grows with the occupied bins, not with the programs.
class ScatterPlot {
 public:
  // Ignores seconds that are not finite or not positive.
  void add(const std::string& group, double measured, double predicted);
  // Returns a complete SVG document, which names `command` as the one that drew it. Correct predictions lie
  // on the diagonal; the dashed lines mark factors of two.
  std::string svg(const std::string& title, std::string_view command) const;

 private:
  std::map<std::tuple<std::string, int, int>, int64_t> counts_;  // group, column, row
};

}  // namespace tensorsmith::tools
