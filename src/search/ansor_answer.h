// Writes the decisions of Ansor's records as answers of a language model.
#pragma once

#include <optional>
#include <vector>

#include "learn/lm/answer.h"
#include "search/ansor_context.h"

namespace tensorsmith::search {

// First come the tile lengths. A length must divide what is left of the extent, an innermost length
// must not exceed TVM's limit, and the number of threads must not exceed the device's. Then comes
// the placement, as far as the sketch's remaining placements differ, with its unrolling. A length
// of 1 is always allowed, so there is no dead end.
class AnsorAnswer final : public learn::lm::Answer {
 public:
  // known: a record with the context's sketch, or null. Its decisions are allowed in any case as
  // long as all earlier decisions are its own; records may have lengths that were copied from the
  // split of another tile.
  explicit AnsorAnswer(const AnsorContext& context, const record::AnsorParts* known = nullptr);

  bool done() const override { return done_; }
  int64_t least() const override { return allowed_.front(); }
  int64_t most() const override;
  bool allows(int64_t value) const override;
  bool take(int64_t value) override;
  void describe(learn::lm::Positions& out) const override;
  std::vector<int64_t> examples() const override;

  // Returns the next decision of the known program, or -1 if an earlier decision differs from it.
  int64_t known_value() const;
  // Returns the parts of a complete answer.
  record::AnsorParts parts() const;
  // Returns, for a complete answer, the extent that each step names if it is a split
  // (AnsorRecord::split_extents).
  std::vector<int64_t> split_extents() const;

 private:
  bool in_sketch() const { return slot_ < context_->slots().size(); }
  const AnsorSlot& slot() const { return context_->slots()[slot_]; }
  const AnsorSymbol& symbol() const { return context_->symbols()[left_.front()][depth_]; }
  // Advances to the next decision and determines its allowed values.
  void advance();
  void allow_lengths();

  const AnsorContext* context_;
  const record::AnsorParts* known_;  // null once a decision differs
  size_t known_placement_ = 0;
  std::vector<size_t> first_number_;  // by step of the sketch: index of its first number in known_->numbers

  sched::Trace steps_;  // the sketch with the decisions so far
  size_t slot_ = 0;
  int64_t extent_ = 0;  // of the loop that is being split
  int64_t rest_ = 0;    // part of extent_ that is left for the remaining lengths
  std::vector<int64_t> threads_;
  std::vector<size_t> left_;  // placements that agree with the decisions so far
  size_t depth_ = 0;          // number of their symbols that are decided
  std::vector<int64_t> unrolling_;
  std::vector<int64_t> allowed_;  // in ascending order
  bool done_ = false;
};

// Returns the numbers that an answer for the record's parts writes, in order. Nothing if the
// context has another sketch or does not list the placement, or if a loop of extent 1 is split into
// parts.
std::optional<std::vector<int64_t>> decisions_in_order(const AnsorContext& context,
                                                       const record::AnsorParts& parts);
// The inverse; also accepts decisions that the grammar does not allow. Nothing if they do not fit
// the context.
std::optional<record::AnsorParts> from_decisions(const AnsorContext& context,
                                                 const std::vector<int64_t>& decisions);

}  // namespace tensorsmith::search
