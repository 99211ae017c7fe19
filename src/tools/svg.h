// What our pictures share.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace tensorsmith::tools {

// Okabe and Ito's palette, which people with any colour vision tell apart.
inline constexpr std::array kSvgColours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                           "#E69F00", "#56B4E9", "#000000"};

// The comment by which a plot of ours is known. XML allows no "--" in it.
inline constexpr const char* kPlotMark = "<!-- plot by tensorsmith -->";

// About as wide as the text can get at 13 pixels, so that a legend has room for it.
constexpr double svg_text_width(size_t characters) { return 8.0 * static_cast<double>(characters); }

// The text as content of an element, valid in XML whatever its bytes: what cannot be shown is written out, as
// printable() does.
std::string svg_text(std::string_view text);

}  // namespace tensorsmith::tools
