#include "tools/bar_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/svg.h"

namespace tensorsmith::tools {
namespace {

constexpr double kGroupsLeft = 70, kGroupsTop = 50, kGroupsHeight = 380, kBarWidth = 16, kGroupGap = 26,
                 kLegendRow = 22, kLegendBox = 12;

bool is_drawn(const Bar& bar) { return std::isfinite(bar.value) && bar.value > 0; }

// Returns the attributes of a bar's colour. Colours are repeated in a lighter shade.
std::string fill_of(size_t bar) {
  return fmt::format("fill=\"{}\" fill-opacity=\"{}\"", kSvgColours[bar % kSvgColours.size()],
                     bar < kSvgColours.size() ? 1.0 : 0.45);
}

// Returns a step of 1, 2 or 5 times a power of ten, of which about five reach `most`.
double tick_step(double most) {
  const double power = std::pow(10, std::floor(std::log10(most / 5)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= most / 5) return factor * power;
  return 10 * power;
}

}  // namespace

std::string bar_plot(const std::vector<BarGroup>& groups, const BarAxes& axes, std::string_view command) {
  double most = axes.line;
  size_t longest = 0;
  for (const BarGroup& group : groups) {
    longest = std::max(longest, svg_text(group.name).size());
    for (const Bar& bar : group.bars)
      if (is_drawn(bar))
        most = std::max(most, std::isfinite(bar.high) ? std::max(bar.value, bar.high) : bar.value);
  }
  const double step = tick_step(most), top = std::ceil(most / step) * step;
  const double group_width = std::max(kBarWidth * axes.names.size(), 40.0) + kGroupGap;
  const double width = std::max(group_width * groups.size(), 200.0);
  double legend = 0;
  for (const std::string& name : axes.names)
    legend = std::max(legend, 40 + svg_text_width(svg_text(name).size()));
  // Names of groups are slanted, so that long ones do not overlap.
  const double below = 30 + 0.6 * svg_text_width(longest);
  const double bottom = kGroupsTop + kGroupsHeight;
  const auto y_of = [&](double value) { return bottom - std::clamp(value / top, 0.0, 1.0) * kGroupsHeight; };

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" font-family=\"sans-serif\" font-size=\"13\">\n{4}\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{2:.0f}\" y=\"28\" font-size=\"16\">{3}</text>\n",
      kGroupsLeft + width + legend, bottom + below, kGroupsLeft, svg_text(axes.title), plot_mark(command));
  for (double y = 0; y <= top + step / 2; y += step)
    out += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}H{2:.1f}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.4g}</text>\n",
        kGroupsLeft, y_of(y), kGroupsLeft + width, kGroupsLeft - 6, y_of(y) + 4, y);
  double left = kGroupsLeft + kGroupGap / 2;
  for (const BarGroup& group : groups) {
    for (size_t b = 0; b < group.bars.size(); ++b) {
      const Bar& bar = group.bars[b];
      if (!is_drawn(bar)) continue;
      const double x = left + kBarWidth * b;
      out += fmt::format(
          "<rect class=\"bar\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" {}/>\n", x,
          y_of(bar.value), kBarWidth - 2, bottom - y_of(bar.value), fill_of(b));
      if (std::isfinite(bar.low) && std::isfinite(bar.high) && bar.low < bar.high)
        out += fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}\" stroke=\"black\"/>\n", x + kBarWidth / 2 - 1,
                           y_of(bar.low), y_of(bar.high));
    }
    out += fmt::format(
        "<text transform=\"translate({:.1f} {:.1f}) rotate(-35)\" text-anchor=\"end\">{}</text>\n",
        left + (group_width - kGroupGap) / 2, bottom + 16, svg_text(group.name));
    left += group_width;
  }
  out += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"black\" stroke-dasharray=\"4 3\"/>\n",
                     kGroupsLeft, y_of(axes.line), kGroupsLeft + width);
  for (size_t b = 0; b < axes.names.size(); ++b) {
    const double y = kGroupsTop + 14 + kLegendRow * b;
    out += fmt::format(
        "<rect x=\"{0:.0f}\" y=\"{1:.0f}\" width=\"{5:.0f}\" height=\"{5:.0f}\" {2}/>\n"
        "<text x=\"{3:.0f}\" y=\"{4:.0f}\">{6}</text>\n",
        kGroupsLeft + width + 14, y - 11, fill_of(b), kGroupsLeft + width + 32, y, kLegendBox,
        svg_text(axes.names[b]));
  }
  return out + fmt::format(
                   "<text transform=\"translate(16 {:.0f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n"
                   "</svg>\n",
                   kGroupsTop + kGroupsHeight / 2, svg_text(axes.y));
}

}  // namespace tensorsmith::tools
