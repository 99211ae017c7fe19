#include "tools/scatter_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>

#include "tools/svg.h"

namespace tensorsmith::tools {
namespace {

constexpr int kPerDecade = 40;  // number of squares
constexpr double kScatterSide = 560, kScatterLeft = 80, kScatterTop = 50, kScatterLegend = 170,
                 kLegendText = 32;

// Returns the label of 10^decade seconds: "1 us", "100 ms".
std::string decade_label(int decade) {
  constexpr std::array kUnits = {"ns", "us", "ms", "s"};
  constexpr int kFirst = -9;
  const int unit = decade < kFirst ? 0 : std::min((decade - kFirst) / 3, static_cast<int>(kUnits.size()) - 1);
  return fmt::format("{:g} {}", std::pow(10.0, decade - (kFirst + 3 * unit)), kUnits[unit]);
}

int square_of(double seconds) { return static_cast<int>(std::floor(std::log10(seconds) * kPerDecade)); }

}  // namespace

void ScatterPlot::add(const std::string& group, double measured, double predicted) {
  if (!std::isfinite(measured) || !std::isfinite(predicted) || measured <= 0 || predicted <= 0) return;
  ++counts_[{group, square_of(measured), square_of(predicted)}];
}

std::string ScatterPlot::svg(const std::string& title, std::string_view command) const {
  int low = INT_MAX, high = INT_MIN;
  std::map<std::string, int64_t> groups;
  int64_t most = 1;
  for (const auto& [place, count] : counts_) {
    const auto& [group, column, row] = place;
    low = std::min({low, column, row});
    high = std::max({high, column, row});
    groups[group] += count;
    most = std::max(most, count);
  }
  if (counts_.empty()) low = high = 0;
  double legend_width = kScatterLegend;
  for (const auto& [group, programs] : groups)
    legend_width = std::max(legend_width, kLegendText + svg_text_width(svg_text(group).size() +
                                                                       std::to_string(programs).size() + 3));
  // The axes span whole decades.
  const int first = static_cast<int>(std::floor(static_cast<double>(low) / kPerDecade));
  const int last = static_cast<int>(std::floor(static_cast<double>(high) / kPerDecade)) + 1;
  const double unit = kScatterSide / ((last - first) * kPerDecade);
  const auto x_of = [&](double square) { return kScatterLeft + (square - first * kPerDecade) * unit; };
  const auto y_of = [&](double square) {
    return kScatterTop + kScatterSide - (square - first * kPerDecade) * unit;
  };

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" font-family=\"sans-serif\" font-size=\"13\">\n"
      "{4}\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{2:.0f}\" y=\"28\" font-size=\"16\">{3}</text>\n",
      kScatterLeft + kScatterSide + legend_width, kScatterTop + kScatterSide + 60, kScatterLeft,
      svg_text(title), plot_mark(command));
  for (int decade = first; decade <= last; ++decade) {
    const double x = x_of(decade * kPerDecade), y = y_of(decade * kPerDecade);
    const std::string label = decade_label(decade);
    out += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}M{3:.1f} {4:.1f}H{5:.1f}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{6:.1f}\" text-anchor=\"middle\">{7}</text>"
        "<text x=\"{8:.1f}\" y=\"{9:.1f}\" text-anchor=\"end\">{7}</text>\n",
        x, kScatterTop, kScatterTop + kScatterSide, kScatterLeft, y, kScatterLeft + kScatterSide,
        kScatterTop + kScatterSide + 18, label, kScatterLeft - 6, y + 4);
  }
  size_t number = 0;
  for (const auto& [group, programs] : groups) {
    const char* colour = kSvgColours[number % kSvgColours.size()];
    out += fmt::format("<g fill=\"{}\">\n", colour);
    for (auto it = counts_.lower_bound({group, INT_MIN, INT_MIN});
         it != counts_.end() && std::get<0>(it->first) == group; ++it) {
      const auto& [name, column, row] = it->first;
      const double opacity =
          0.25 + 0.75 * std::log1p(static_cast<double>(it->second)) / std::log1p(static_cast<double>(most));
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
          "opacity=\"{:.2f}\"/>\n",
          x_of(column), y_of(row + 1), unit, unit, opacity);
    }
    const double y = kScatterTop + 14 + 22 * number;
    out += fmt::format(
        "<rect x=\"{0:.0f}\" y=\"{1:.0f}\" width=\"12\" height=\"12\"/>\n</g>\n"
        "<text x=\"{2:.0f}\" y=\"{3:.0f}\">{4} ({5})</text>\n",
        kScatterLeft + kScatterSide + 14, y - 11, kScatterLeft + kScatterSide + kLegendText, y,
        svg_text(group), programs);
    ++number;
  }
  const double twice = std::log10(2.0) * kPerDecade;
  const double begin = first * kPerDecade, end = last * kPerDecade;
  out += fmt::format(
      "<path d=\"M{0:.1f} {1:.1f}L{2:.1f} {3:.1f}\" stroke=\"black\" stroke-width=\"0.8\"/>\n"
      "<path d=\"M{0:.1f} {4:.1f}L{5:.1f} {3:.1f}M{6:.1f} {1:.1f}L{2:.1f} {7:.1f}\" stroke=\"black\" "
      "stroke-width=\"0.6\" stroke-dasharray=\"5 4\"/>\n"
      "<rect x=\"{0:.1f}\" y=\"{3:.1f}\" width=\"{8:.1f}\" height=\"{8:.1f}\" fill=\"none\" "
      "stroke=\"black\"/>\n"
      "<text x=\"{9:.0f}\" y=\"{10:.0f}\" text-anchor=\"middle\">measured</text>\n"
      "<text transform=\"translate(16 {11:.0f}) rotate(-90)\" text-anchor=\"middle\">predicted</text>\n"
      "</svg>\n",
      x_of(begin), y_of(begin), x_of(end), y_of(end), y_of(begin + twice), x_of(end - twice),
      x_of(begin + twice), y_of(end - twice), kScatterSide, kScatterLeft + kScatterSide / 2,
      kScatterTop + kScatterSide + 44, kScatterTop + kScatterSide / 2);
  return out;
}

}  // namespace tensorsmith::tools
