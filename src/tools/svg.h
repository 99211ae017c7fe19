// What our pictures share.
#pragma once

#include <array>
#include <string>

namespace tensorsmith::tools {

// Okabe and Ito's palette, which people with any colour vision tell apart.
inline constexpr std::array kSvgColours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                           "#E69F00", "#56B4E9", "#000000"};

// As the text of an element; control characters are left out.
std::string svg_text(const std::string& text);

}  // namespace tensorsmith::tools
