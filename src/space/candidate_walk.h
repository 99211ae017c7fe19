// Candidates of a sketch, one decision after the other: which values can follow those taken, so that the candidate becomes
// a legal one (constrained decoding). No walk ends where nothing can follow.
#pragma once

#include <memory>
#include <vector>

#include "space/design_space.h"

namespace tensorsmith::space {

// What all walks over a sketch share. Immutable; any number of threads may walk.
class SketchGrammar {
 public:
  // kNotFound: no legal candidate of the sketch was found, so that it has no walks.
  static Result<SketchGrammar> create(const DesignSpace& space, int sketch);

  // One number of a candidate: a length of a tile or a category.
  struct Decision {
    size_t slot = 0;
    size_t part = 0;   // of a tile: 0 is the innermost length, which is decided first
    size_t place = 0;  // in Candidate::decisions
  };
  // In the order in which they are decided.
  const std::vector<Decision>& decisions() const { return decisions_; }
  const DecisionSlot& slot(const Decision& decision) const;
  int sketch() const { return sketch_; }
  const DesignSpace& space() const { return space_; }
  // The candidate of the sketch that the estimate likes best, of those that were looked at.
  const Candidate& draft() const { return examples_.front(); }

 private:
  friend class CandidateWalk;
  SketchGrammar(DesignSpace space, int sketch) : space_(std::move(space)), sketch_(sketch) {}

  DesignSpace space_;
  int sketch_;
  std::vector<Decision> decisions_;
  std::vector<Candidate> examples_;  // legal, different, fastest first by the estimate
};

// A position in a candidate that is being decided. It keeps a legal candidate that begins as decided, the proof that there
// is one. Invariant: DesignSpace::check(candidate()) is ok.
class CandidateWalk {
 public:
  explicit CandidateWalk(const SketchGrammar& grammar);

  bool done() const { return at_ == grammar_->decisions_.size(); }
  size_t taken() const { return at_; }
  // What is decided next. Not when done().
  const SketchGrammar::Decision& next() const { return grammar_->decisions_[at_]; }
  // The values that its slot alone leaves: least() .. most(). A tile's length is at most the extent over the product of
  // the lengths inside it.
  int64_t least() const;
  int64_t most() const;
  // Whether a legal candidate with this value next is known. It is found by example: from the walk's own candidate, from
  // others of the sketch, then from a few random ones, always the same for the same decisions. So what is allowed is
  // legal, and hardly anything that is legal is not allowed (tests/space/candidate_walk_test.cc counts).
  bool allows(int64_t value) const;
  // Decides. False, and nothing is changed: the value is not allowed.
  bool take(int64_t value);
  // Decides what a legal candidate of this sketch has, all of it being known to be legal.
  void follow(const Candidate& legal);
  // Begins as decided; legal. When done(), what was decided.
  const Candidate& candidate() const { return example_; }

 private:
  // A legal candidate with this value next, into `out`. False: none was found.
  bool complete(int64_t value, Candidate& out) const;

  const SketchGrammar* grammar_;
  size_t at_ = 0;
  Candidate example_;
};

}  // namespace tensorsmith::space
