// What a task's fastest and a typical program keep busy, and which counters explain the time, as an SVG picture.
#pragma once

#include <string>

#include "engine/explain.h"

namespace tensorsmith::tools {

// A whole SVG document.
std::string explain_plot(const engine::Explanation& explanation);

}  // namespace tensorsmith::tools
