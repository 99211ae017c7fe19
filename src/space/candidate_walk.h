// Builds candidates of a sketch one decision at a time: finds the values that can follow those
// already taken so that the candidate becomes legal (constrained decoding). No walk reaches a dead
// end.
#pragma once

#include <memory>
#include <vector>

#include "space/design_space.h"

namespace tensorsmith::space {

// The data that all walks over a sketch share. Immutable; any number of threads may walk.
class SketchGrammar {
 public:
  // kNotFound: no legal candidate of the sketch was found, so there are no walks.
  static Result<SketchGrammar> create(const DesignSpace& space, int sketch);

  // One number of a candidate: a length of a tile, or a category.
  struct Decision {
    size_t slot = 0;
    size_t part = 0;   // of a tile: 0 is the innermost length, which is decided first
    size_t place = 0;  // index in Candidate::decisions
  };
  // The decisions in the order in which they are taken.
  const std::vector<Decision>& decisions() const { return decisions_; }
  const DecisionSlot& slot(const Decision& decision) const;
  int sketch() const { return sketch_; }
  const DesignSpace& space() const { return space_; }
  // The candidate with the best estimate among those of the sketch that were examined.
  const Candidate& draft() const { return examples_.front(); }

 private:
  friend class CandidateWalk;
  SketchGrammar(DesignSpace space, int sketch) : space_(std::move(space)), sketch_(sketch) {}

  DesignSpace space_;
  int sketch_;
  std::vector<Decision> decisions_;
  std::vector<Candidate> examples_;  // legal and distinct, sorted by estimate, fastest first
};

// A position in a candidate that is being decided. It keeps a legal candidate that starts with the
// decisions taken, as the proof that one exists. Invariant: DesignSpace::check(candidate()) is ok.
class CandidateWalk {
 public:
  explicit CandidateWalk(const SketchGrammar& grammar);

  bool done() const { return at_ == grammar_->decisions_.size(); }
  size_t taken() const { return at_; }
  // The next decision. Must not be called when done().
  const SketchGrammar::Decision& next() const { return grammar_->decisions_[at_]; }
  // Bounds of the next value by its slot alone. A tile's length is at most the extent divided by
  // the product of the lengths inside it.
  int64_t least() const;
  int64_t most() const;
  // Returns whether a legal candidate with this value next is known. It is looked for in examples:
  // the walk's own candidate, others of the sketch, then a few random ones, which are always the
  // same for the same decisions. So allowed values are legal, and hardly any legal value is not
  // allowed (tests/space/candidate_walk_test.cc counts them).
  bool allows(int64_t value) const;
  // Takes the next decision. Returns false and changes nothing if the value is not allowed.
  bool take(int64_t value);
  // Takes the next decision of a candidate of this sketch that is known to be legal.
  void follow(const Candidate& legal);
  // A legal candidate that starts with the decisions taken; when done(), the result.
  const Candidate& candidate() const { return example_; }

 private:
  // Finds a legal candidate with this value next and stores it in `out`. Returns false if none was
  // found.
  bool complete(int64_t value, Candidate& out) const;

  const SketchGrammar* grammar_;
  size_t at_ = 0;
  Candidate example_;
};

}  // namespace tensorsmith::space
