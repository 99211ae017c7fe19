#include "tools/explain_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/report.h"
#include "tools/svg.h"

namespace tensorsmith::tools {
namespace {

constexpr double kBarsLeft = 190, kBarsWidth = 420, kBarsRow = 34, kBarsBar = 12, kBarsTop = 70,
                 kBarsRight = 90;

std::string bar(double y, double share, const char* colour, const std::string& label) {
  const double width = std::isfinite(share) ? kBarsWidth * std::clamp(share, 0.0, 1.0) : 0;
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" fill=\"{}\"/>\n"
      "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"11\">{}</text>\n",
      kBarsLeft, y, width, kBarsBar, colour, kBarsLeft + width + 5, y + kBarsBar - 2, svg_text(label));
}

std::string row_name(double y, const std::string& name) {
  return fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kBarsLeft - 8, y,
                     svg_text(name));
}

std::string legend(double x, const char* colour, const std::string& text) {
  return fmt::format(
      "<rect x=\"{0:.0f}\" y=\"44\" width=\"12\" height=\"12\" fill=\"{1}\"/>\n<text x=\"{2:.0f}\" "
      "y=\"55\">{3}</text>\n",
      x, colour, x + 18, svg_text(text));
}

}  // namespace

std::string explain_plot(const lab::Explanation& e) {
  const double rows = e.best.size() + 1 + e.counters.size();
  const double width = kBarsLeft + kBarsWidth + kBarsRight, height = kBarsTop + rows * kBarsRow + 60;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n{2}\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"white\"/>\n"
      "<text x=\"20\" y=\"28\" font-size=\"16\">{3}</text>\n",
      width, height, plot_mark("explain"), svg_text(e.task));
  out += legend(20, kSvgColours[0], "fastest, " + format_seconds(e.best_seconds));
  out += legend(250, kSvgColours[1], "typical, " + format_seconds(e.typical_seconds));
  out +=
      fmt::format("<text x=\"{:.0f}\" y=\"55\">busy share of its time</text>\n", kBarsLeft + kBarsWidth - 60);
  double y = kBarsTop;
  const auto add_shares = [&](const std::string& name, double best, double typical) {
    out += row_name(y + kBarsBar + 4, name);
    out += bar(y, best, kSvgColours[0], fmt::format("{:.0f} %", 100 * best));
    out += bar(y + kBarsBar + 1, typical, kSvgColours[1], fmt::format("{:.0f} %", 100 * typical));
    y += kBarsRow;
  };
  for (size_t d = 0; d < e.best.size(); ++d)
    add_shares(e.best[d].part, e.best[d].busy_share(e.best_seconds),
               e.typical[d].busy_share(e.typical_seconds));
  add_shares("unexplained", lab::unexplained_seconds(e.best, e.best_seconds) / e.best_seconds,
             lab::unexplained_seconds(e.typical, e.typical_seconds) / e.typical_seconds);
  y += 26;
  if (!e.counters.empty())
    out +=
        fmt::format("<text x=\"20\" y=\"{:.0f}\">counters that explain the time of all {} programs</text>\n",
                    y, e.programs);
  y += 14;
  const double most = e.counters.empty() ? 1 : e.counters.front().importance;
  for (const lab::CounterChange& counter : e.counters) {
    out += row_name(y + kBarsBar, counter.name);
    out += bar(y + 2, counter.importance / most, kSvgColours[2], fmt::format("{:.2f}", counter.importance));
    y += kBarsRow;
  }
  return out + "</svg>\n";
}

}  // namespace tensorsmith::tools
