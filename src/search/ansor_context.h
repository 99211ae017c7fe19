// The possible answers that complete a sketch from an Ansor record.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "record/ansor/ansor_parts.h"
#include "sched/schedule.h"
#include "target/target.h"

namespace tensorsmith::search {

// TVM's limit for the innermost loop of a split (max_innermost_split_factor).
inline constexpr int64_t kMostInnermost = 64;

// A number that a step of the sketch lacks.
struct AnsorSlot {
  size_t step = 0;
  int part = 0, parts = 0;   // of a split's lengths, from outer to inner; unrolling has no parts
  int64_t extent = 0;        // of the split loop; 0: depends on earlier decisions
  std::string stage, axis;   // names
  std::vector<int> threads;  // indices in the context's `threads` of which this length is a factor
};

// A number that encodes a part of a placement step.
struct AnsorSymbol {
  int64_t value = 0;
  std::string_view what;  // "next step", or the name of a field
  int stage = -1;         // the stage that the step refers to
  bool open = false;      // a limit of unrolling, which the placement does not fix
  friend bool operator==(const AnsorSymbol&, const AnsorSymbol&) = default;
};

// A sketch with its placements. Immutable; must outlive its answers.
class AnsorContext {
 public:
  // fresh: Schedule::create of the workload. Placements that do not replay are left out; kNotFound
  // if none is left. Returns the errors of the sketch's own steps.
  static Result<std::shared_ptr<const AnsorContext>> create(sched::Schedule fresh, sched::Trace sketch,
                                                            const std::vector<sched::Trace>& placements,
                                                            const target::Device& device);

  const sched::Trace& sketch() const { return sketch_; }
  const std::vector<sched::Trace>& placements() const { return placements_; }
  const std::vector<std::vector<AnsorSymbol>>& symbols() const { return symbols_; }
  // The slots in the order of the answer: innermost length of a split first. Loops of extent 1 have
  // no slots.
  const std::vector<AnsorSlot>& slots() const { return slots_; }
  const std::string& stage_name(int stage) const;  // name after the sketch is applied
  // The thread counts of a block: each is a product of the constant given here and the lengths of
  // the slots that refer to it (AnsorSlot::threads).
  const std::vector<int64_t>& threads() const { return threads_; }
  int64_t most_threads() const { return most_threads_; }
  // The limits of unrolling that TVM's auto-scheduler chooses from.
  const std::vector<int64_t>& unrolling() const { return unrolling_; }
  // The sketch in the form for a prompt, with a plan for each step (learn/lm/prompt.h).
  const std::string& text() const { return text_; }

  // Returns the extent of the loop that step `step` splits, after the earlier steps. steps: the
  // sketch with the decisions so far.
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
