// Plots how busy a task's fastest and a typical program keep each part of the machine, and which
// counters explain the time, as an SVG picture.
#pragma once

#include <string>

#include "lab/explain.h"

namespace tensorsmith::tools {

// Returns a complete SVG document.
std::string explain_plot(const lab::Explanation& explanation);

}  // namespace tensorsmith::tools
