// The sketches of a task as a language model sees them.
#pragma once

#include <memory>
#include <vector>

#include "engine/tune/warm_start.h"
#include "search/space_answer.h"

namespace tensorsmith::engine {

// Returns the sketches of a task, by sketch, with the similar programs that a model may see; null:
// no legal candidate of the sketch is known. The similar programs are the programs of other tasks
// in `known`.
std::vector<std::shared_ptr<const search::SketchContext>> sketch_contexts(const search::PreparedTask& task,
                                                                          const WarmStart& known);

}  // namespace tensorsmith::engine
