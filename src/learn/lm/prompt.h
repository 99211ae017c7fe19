// What a language model is told about a task: the device, the operations with their axes and reads, and the sketch whose
// decisions it writes.
#pragma once

#include <string_view>

#include "ir/workload.h"
#include "learn/lm/vocabulary.h"
#include "target/target.h"

namespace tensorsmith::learn::lm {

struct PromptOptions {
  bool device = true;  // its attributes; false: what a model learns without them (an ablation)
  // Positions at most; what a long workload has beyond is left out, its heaviest operations stay.
  size_t most = 96;
  friend bool operator==(const PromptOptions&, const PromptOptions&) = default;
};

// sketch: the text of the structure (space::DesignSpace::describe), plans separated by "; ". Names of operations are
// words; their numbers ("conv2d_3") are dropped.
Positions make_prompt(const ir::Workload& workload, const target::Device& device, int threads,
                      std::string_view sketch, const PromptOptions& options = {});

// "conv2d_12" -> "conv2d": names of one kind are one word.
std::string_view without_number(std::string_view name);

}  // namespace tensorsmith::learn::lm
