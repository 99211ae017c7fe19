#include "candidate_text.h"

namespace tensorsmith::bench {

std::string candidate_text(const space::DesignSpace& space, const space::Candidate& candidate,
                           std::string_view separator) {
  std::string text = space.describe(candidate.sketch);
  size_t at = 0;
  for (const auto& slot : space.slots(candidate.sketch)) {
    text += separator;
    text += slot.name + "=";
    const size_t width = slot.kind == space::DecisionKind::kTileLengths ? slot.parts : 1;
    for (size_t i = 0; i < width; ++i) text += (i > 0 ? "," : "") + std::to_string(candidate.decisions[at++]);
  }
  return text;
}

}  // namespace tensorsmith::bench
