// The input of a language model about a task: the device, the operations with their axes and reads,
// and the sketch whose decisions the model writes.
#pragma once

#include <string_view>

#include "ir/workload.h"
#include "learn/lm/vocabulary.h"
#include "target/target.h"

namespace tensorsmith::learn::lm {

struct PromptOptions {
  bool device = true;  // whether device attributes are included (false: ablation)
  // Most positions of a prompt. A longer workload is shortened; its operations with the most work
  // are kept.
  size_t most = 96;
  friend bool operator==(const PromptOptions&, const PromptOptions&) = default;
};

// sketch: the text of the structure (space::DesignSpace::describe), plans separated by "; ". Names
// of operations become words without their numbers ("conv2d_3").
Positions make_prompt(const ir::Workload& workload, const target::Device& device, std::string_view sketch,
                      const PromptOptions& options = {});

// Maps "conv2d_12" to "conv2d", so that names of the same kind are one word.
std::string_view without_number(std::string_view name);

}  // namespace tensorsmith::learn::lm
