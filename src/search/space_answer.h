// Decisions of a design space as answers of a language model.
#pragma once

#include <optional>
#include <vector>

#include "learn/lm/answer.h"
#include "space/candidate_walk.h"

namespace tensorsmith::search {

// A sketch with what a model may know when it decides: what the estimate likes best, and fast programs of similar tasks,
// made to fit (in-context transfer). Outlives its answers.
struct SketchContext {
  space::SketchGrammar grammar;
  std::vector<space::Candidate> similar;  // of this sketch, the most similar first; two are looked at
};

class SpaceAnswer final : public learn::lm::Answer {
 public:
  // known: a legal candidate of the sketch, whose decisions are allowed as long as they are followed; null: none.
  explicit SpaceAnswer(const SketchContext& context, const space::Candidate* known = nullptr)
      : context_(&context), known_(known), walk_(context.grammar) {}

  bool done() const override { return walk_.done(); }
  int64_t least() const override { return walk_.least(); }
  int64_t most() const override { return walk_.most(); }
  bool allows(int64_t value) const override { return is_known(value) || walk_.allows(value); }
  bool take(int64_t value) override;
  void describe(learn::lm::Positions& out) const override;
  std::vector<int64_t> examples() const override;

  const space::Candidate& candidate() const { return walk_.candidate(); }

 private:
  bool is_known(int64_t value) const {
    return known_ != nullptr && known_->decisions[walk_.next().place] == value;
  }

  const SketchContext* context_;
  const space::Candidate* known_;  // null once it is not followed
  space::CandidateWalk walk_;
  bool follows_draft_ = true;
  bool follows_similar_ = true;
};

// The numbers that the answer of a candidate writes, in order.
std::vector<int64_t> decisions_in_order(const space::SketchGrammar& grammar,
                                        const space::Candidate& candidate);
// The inverse. Nothing: they are no legal candidate of the sketch.
std::optional<space::Candidate> from_decisions(const space::SketchGrammar& grammar,
                                               const std::vector<int64_t>& decisions);

}  // namespace tensorsmith::search
