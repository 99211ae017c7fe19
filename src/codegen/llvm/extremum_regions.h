// Determines which parts of a program are emitted twice for the sake of minima and maxima, and how
// these parts check for NaN.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/linear.h"
#include "ir/stmt.h"

namespace tensorsmith::codegen {

// Matches B[i] = max(B[i], x) or min; returns the minimum or maximum, else null.
const ir::Binary* extremum_update(const ir::Store& store);
// Returns whether the store is such an update of f32 or f64.
bool is_float_extremum_update(const ir::Store& store);

// A box of an input, given by its first index and its extent in each dimension. Variables of outer
// loops may move the first index. The box may lie partly outside of the buffer, where nothing is
// read.
struct Region {
  ir::Buffer buffer;
  std::vector<ir::LinearSum> begin;
  std::vector<int64_t> extent;
};

struct SpeculativePart {
  // Regions that are checked once before the part. They contain everything that can bring a NaN
  // into a minimum or maximum. If empty, values are checked where they are used.
  std::vector<Region> regions;
  // Buffers that contain only numbers if no NaN has been found so far.
  std::unordered_set<const ir::BufferNode*> numbers;
};

// A part is a statement that can be repeated with the same result. Windows overlap: a pool of 3x3
// reads each element nine times. Checking all elements once beforehand is then cheaper than
// checking what is read, as long as the elements stay in L1 meanwhile; the part is then a statement
// inside loops, with a small region. Otherwise it is the largest possible statement.
class SpeculativeParts {
 public:
  explicit SpeculativeParts(const ir::Program& program);

  // Returns the part that consists of this statement, or null.
  const SpeculativePart* part(const ir::Stmt& s) const;
  // Returns the part that consists of all iterations of this parallel loop that one thread
  // executes, or null.
  const SpeculativePart* range(const ir::For& loop) const;
  // Returns whether there are parts in the body of this loop, which is not unrolled then.
  bool is_around(const ir::Stmt& loop) const { return around_.contains(loop.get()); }

 private:
  void consider(const ir::Stmt& s);
  void choose(const ir::Stmt& s, const ir::For* parallel);
  bool look_before(const ir::Stmt& s, double limit);
  bool is_repeatable(const ir::Stmt& s) const;
  bool is_repeatable_in(const ir::For& loop);

  std::unordered_set<const ir::BufferNode*> inputs_, outputs_;
  std::unordered_map<const ir::StmtNode*, SpeculativePart> parts_;
  std::unordered_map<const ir::For*, SpeculativePart> ranges_;
  std::unordered_set<const ir::StmtNode*> around_;
  std::vector<const ir::For*> loops_;  // loops around the statement under consideration
};

}  // namespace tensorsmith::codegen
