#include "tools/curve_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/svg.h"

namespace tensorsmith::tools {
namespace {

constexpr double kWidth = 620, kHeight = 420, kLeft = 70, kTop = 50, kLegend = 250, kNameLeft = 32;

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// Returns a tick step of 1, 2 or 5 times a power of ten that gives about five ticks.
double step_for(double span) {
  const double rough = span / 5, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

double width_of_legend(const std::vector<Curve>& curves) {
  double width = kLegend;
  for (const Curve& curve : curves)
    width = std::max(width, kNameLeft + svg_text_width(svg_text(curve.name).size()));
  return width;
}

// Draws the curves, their axes and the legend, without the document around them.
std::string draw_panel(const std::vector<Curve>& curves, const CurveAxes& axes) {
  Range across, up;
  for (const Curve& curve : curves) {
    for (const double x : curve.x) across.take(x);
    for (const auto* values : {&curve.y, &curve.low, &curve.high})
      for (const double y : *values) up.take(y);
  }
  if (!(across.low < across.high)) across = {1, 10};
  if (!(up.low < up.high)) up = {up.low - 0.5, up.high + 0.5};
  if (!std::isfinite(up.low)) up = {0, 1};
  const double first = std::log2(across.low), last = std::log2(across.high);
  const double step = step_for(up.high - up.low);
  const double bottom = std::floor(up.low / step) * step, top = std::ceil(up.high / step) * step;
  const auto x_of = [&](double x) { return kLeft + (std::log2(x) - first) / (last - first) * kWidth; };
  const auto y_of = [&](double y) { return kTop + kHeight - (y - bottom) / (top - bottom) * kHeight; };

  std::string out =
      fmt::format("<text x=\"{:.0f}\" y=\"28\" font-size=\"16\">{}</text>\n", kLeft, svg_text(axes.title));
  for (double power = std::ceil(first); power <= last; ++power) {
    const double x = x_of(std::exp2(power));
    out += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4:g}</text>\n",
        x, kTop, kTop + kHeight, kTop + kHeight + 18, std::exp2(power));
  }
  for (double y = bottom; y <= top + step / 2; y += step) {
    out += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}H{2:.1f}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.4g}</text>\n",
        kLeft, y_of(y), kLeft + kWidth, kLeft - 6, y_of(y) + 4, y);
  }
  size_t number = 0;
  for (const Curve& curve : curves) {
    const char* colour = kSvgColours[number % kSvgColours.size()];
    // Extends the path; it begins with a move to its first finite value.
    const auto go_to = [&](std::string& path, size_t i, const std::vector<double>& values) {
      if (std::isfinite(values[i]))
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_of(curve.x[i]), y_of(values[i]));
    };
    const auto count = [&](const std::vector<double>& values) {
      return std::min(values.size(), curve.x.size());
    };
    std::string band, line;
    for (size_t i = 0; i < count(curve.low); ++i) go_to(band, i, curve.low);
    for (size_t i = count(curve.high); i-- > 0;) go_to(band, i, curve.high);
    for (size_t i = 0; i < count(curve.y); ++i) go_to(line, i, curve.y);
    if (!band.empty()) out += fmt::format("<path d=\"{}Z\" fill=\"{}\" opacity=\"0.15\"/>\n", band, colour);
    out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", line, colour);
    const double y = kTop + 14 + 22 * number;
    out += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n"
        "<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n",
        kLeft + kWidth + 14, y - 11, colour, kLeft + kWidth + kNameLeft, y, svg_text(curve.name));
    ++number;
  }
  out += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" stroke=\"black\"/>\n"
      "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n"
      "<text transform=\"translate(16 {:.0f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      kLeft, kTop, kWidth, kHeight, kLeft + kWidth / 2, kTop + kHeight + 44, svg_text(axes.x),
      kTop + kHeight / 2, svg_text(axes.y));
  return out;
}

}  // namespace

std::string curve_plots(const std::vector<CurvePanel>& panels, std::string_view command) {
  constexpr double kPanelHeight = kTop + kHeight + 60;
  double legend = kLegend;
  for (const CurvePanel& panel : panels) legend = std::max(legend, width_of_legend(panel.curves));
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" font-family=\"sans-serif\" font-size=\"13\">\n"
      "{2}\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kLeft + kWidth + legend, kPanelHeight * panels.size(), plot_mark(command));
  for (size_t p = 0; p < panels.size(); ++p) {
    if (p > 0) out += fmt::format("<g transform=\"translate(0 {:.0f})\">\n", kPanelHeight * p);
    out += draw_panel(panels[p].curves, panels[p].axes);
    if (p > 0) out += "</g>\n";
  }
  return out + "</svg>\n";
}

std::string curve_plot(const std::vector<Curve>& curves, const CurveAxes& axes, std::string_view command) {
  return curve_plots({{curves, axes}}, command);
}

}  // namespace tensorsmith::tools
