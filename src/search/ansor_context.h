// What an answer may be that completes a sketch of an Ansor record.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "record/ansor/ansor_parts.h"
#include "sched/schedule.h"
#include "target/target.h"

namespace tensorsmith::search {

// The longest innermost loop that TVM's auto-scheduler samples (max_innermost_split_factor).
inline constexpr int64_t kMostInnermost = 64;

// A number that completes a step of the sketch.
struct AnsorSlot {
  size_t step = 0;
  int part = 0, parts = 0;   // of a split's lengths, outer to inner; unrolling has no parts
  int64_t extent = 0;        // of the loop that is split; 0: it depends on what was decided before
  std::string stage, axis;   // names
  std::vector<int> threads;  // of the context's `threads`: those that this length is a factor of
};

// A part of a step of the placement, as a number.
struct AnsorSymbol {
  int64_t value = 0;
  std::string_view what;  // "next step", or a field of it
  int stage = -1;         // that the step is about
  bool open = false;      // a limit of unrolling: the placement leaves it open
  friend bool operator==(const AnsorSymbol&, const AnsorSymbol&) = default;
};

// A sketch with its placements. Immutable; outlives its answers.
class AnsorContext {
 public:
  // fresh: Schedule::create of the workload. Placements that do not replay are left out; kNotFound where none is left.
  // Errors of the sketch's own steps.
  static Result<std::shared_ptr<const AnsorContext>> create(sched::Schedule fresh, sched::Trace sketch,
                                                            const std::vector<sched::Trace>& placements,
                                                            const target::Device& device);

  const sched::Trace& sketch() const { return sketch_; }
  const std::vector<sched::Trace>& placements() const { return placements_; }
  const std::vector<std::vector<AnsorSymbol>>& symbols() const { return symbols_; }
  // In the order of the answer: a split's innermost length first. Loops of extent 1 have none.
  const std::vector<AnsorSlot>& slots() const { return slots_; }
  const std::string& stage_name(int stage) const;  // behind the sketch
  // Products of lengths (constant times those of the slots that name it) that are the threads of a block.
  const std::vector<int64_t>& threads() const { return threads_; }
  int64_t most_threads() const { return most_threads_; }
  // The limits of unrolling that TVM's auto-scheduler chooses from.
  const std::vector<int64_t>& unrolling() const { return unrolling_; }
  // The sketch for a prompt: a plan for each step (learn/lm/prompt.h).
  const std::string& text() const { return text_; }

  // The extent of the loop that step `step` splits, after the steps before it; `steps` are the sketch with what is decided.
  int64_t extent_of(const sched::Trace& steps, size_t step) const;

 private:
  Status read_sketch();
  Status read_placements(const std::vector<sched::Trace>& placements);
  void find_threads();

  sched::Schedule fresh_;
  sched::Trace sketch_;
  std::vector<sched::Trace> placements_;
  std::vector<std::vector<AnsorSymbol>> symbols_;
  std::vector<AnsorSlot> slots_;
  std::vector<std::string> stages_;
  std::vector<int64_t> threads_;
  int64_t most_threads_ = 0;
  std::vector<int64_t> unrolling_;
  std::string text_;
};

}  // namespace tensorsmith::search
