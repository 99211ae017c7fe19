// Writes the decisions of a design space as answers of a language model.
#pragma once

#include <optional>
#include <vector>

#include "learn/lm/answer.h"
#include "space/candidate_walk.h"

namespace tensorsmith::search {

// A sketch with the additional knowledge for deciding: the candidate that the estimate ranks first,
// and fast programs of similar tasks, adapted to this one (in-context transfer). Must outlive its
// answers.
struct SketchContext {
  space::SketchGrammar grammar;
  std::vector<space::Candidate> similar;  // of this sketch, most similar first; the first two are used
};

class SpaceAnswer final : public learn::lm::Answer {
 public:
  // known: a legal candidate of the sketch, or null. Its decisions are allowed as long as all
  // earlier decisions are its own.
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
  const space::Candidate* known_;  // null once a decision differs
  space::CandidateWalk walk_;
  bool follows_draft_ = true;
  bool follows_similar_ = true;
};

// Returns the numbers that an answer for the candidate writes, in order.
std::vector<int64_t> decisions_in_order(const space::SketchGrammar& grammar,
                                        const space::Candidate& candidate);
// The inverse. Nothing if the decisions are not a legal candidate of the sketch.
std::optional<space::Candidate> from_decisions(const space::SketchGrammar& grammar,
                                               const std::vector<int64_t>& decisions);

}  // namespace tensorsmith::search
