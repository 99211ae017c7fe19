// Helpers shared by all SVG pictures.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace tensorsmith::tools {

// Okabe and Ito's palette, which is distinguishable with any colour vision.
inline constexpr std::array kSvgColours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                           "#E69F00", "#56B4E9", "#000000"};

// The beginning of the comment that identifies our plots.
inline constexpr const char* kPlotMark = "<!-- plot by tensorsmith";
// Returns the comment, which names the command that draws. XML does not allow "--" inside it.
std::string plot_mark(std::string_view command);

// Upper bound of the width of a text at 13 pixels, for the layout of legends.
constexpr double svg_text_width(size_t characters) { return 8.0 * characters; }

// Escapes a text as element content that is valid XML whatever its bytes; unprintable characters
// are escaped as by printable().
std::string svg_text(std::string_view text);

}  // namespace tensorsmith::tools
