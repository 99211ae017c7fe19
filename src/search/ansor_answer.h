// Decisions of Ansor's records as answers of a language model.
#pragma once

#include <optional>
#include <vector>

#include "learn/lm/answer.h"
#include "search/ansor_context.h"

namespace tensorsmith::search {

// Lengths divide what is left of the extent, the innermost one is no longer than TVM samples, threads are no more than
// the device has; then the placement, where those of the sketch that are left differ, and its unrolling. A length of 1 is
// always allowed, so there is no dead end.
class AnsorAnswer final : public learn::lm::Answer {
 public:
  // known: parts of the context's sketch, whose decisions are allowed as long as they are followed (records have copies of
  // tiles that were split for another tile); null: none.
  explicit AnsorAnswer(const AnsorContext& context, const record::AnsorParts* known = nullptr);

  bool done() const override { return done_; }
  int64_t least() const override { return allowed_.front(); }
  int64_t most() const override;
  bool allows(int64_t value) const override;
  bool take(int64_t value) override;
  void describe(learn::lm::Positions& out) const override;
  std::vector<int64_t> examples() const override;

  // What the known program has next; -1: it is not followed.
  int64_t known_value() const;
  // Of a whole answer.
  record::AnsorParts parts() const;
  // Of a whole answer: by step, the extent that a split names (AnsorRecord::split_extents).
  std::vector<int64_t> split_extents() const;

 private:
  bool in_sketch() const { return slot_ < context_->slots().size(); }
  const AnsorSlot& slot() const { return context_->slots()[slot_]; }
  const AnsorSymbol& symbol() const { return context_->symbols()[left_.front()][depth_]; }
  // Finds the next decision and what it may be.
  void advance();
  void allow_lengths();

  const AnsorContext* context_;
  const record::AnsorParts* known_;  // null once it is not followed
  size_t known_placement_ = 0;
  std::vector<size_t> first_number_;  // by step of the sketch, its first number in known_->numbers

  sched::Trace steps_;  // the sketch with what is decided
  size_t slot_ = 0;
  int64_t extent_ = 0;  // of the loop that is split
  int64_t rest_ = 0;    // of that, for the lengths that are left
  std::vector<int64_t> threads_;
  std::vector<size_t> left_;  // placements that begin as decided
  size_t depth_ = 0;          // symbols of these that are decided
  std::vector<int64_t> unrolling_;
  std::vector<int64_t> allowed_;  // ascending
  bool done_ = false;
};

// The numbers that the answer of a record's parts writes, in order. Nothing: the context is of another sketch, or does not
// list the placement, or a loop of extent 1 is split into parts.
std::optional<std::vector<int64_t>> decisions_in_order(const AnsorContext& context,
                                                       const record::AnsorParts& parts);
// The inverse, also for decisions that no free answer could have. Nothing: they are none of the context.
std::optional<record::AnsorParts> from_decisions(const AnsorContext& context,
                                                 const std::vector<int64_t>& decisions);

}  // namespace tensorsmith::search
