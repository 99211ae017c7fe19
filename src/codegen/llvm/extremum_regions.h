// Which parts of a program are emitted twice for the sake of minima and maxima, and how these look for NaN.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/linear.h"
#include "ir/stmt.h"

namespace tensorsmith::codegen {

// B[i] = max(B[i], x) or min: the minimum or maximum, else null.
const ir::Binary* extremum_update(const ir::Store& store);
// The same, of f32 or f64.
bool is_float_extremum_update(const ir::Store& store);

// A box of an input: indices from begin on, which outer loops may move, extent of them in each dimension. It may
// lie partly outside of the buffer, where nothing is read.
struct Region {
  ir::Buffer buffer;
  std::vector<ir::LinearSum> begin;
  std::vector<int64_t> extent;
};

struct SpeculativePart {
  // Read before the part, once; empty: values are looked at where they are used. All that can bring a NaN into
  // a minimum or maximum is in them.
  std::vector<Region> regions;
  // Buffers that hold numbers if no NaN was seen so far.
  std::unordered_set<const ir::BufferNode*> numbers;
};

// A part is a statement whose repetition gives the same. Windows overlap: a pool of 3x3 reads each element nine times.
// Then one look at all elements before is cheaper than looks at what is read, as long as they stay
// in L1 meanwhile: the part is a statement inside of loops, with a small region. Otherwise it is the largest.
class SpeculativeParts {
 public:
  explicit SpeculativeParts(const ir::Program& program);

  // The part that is this statement, or null.
  const SpeculativePart* part(const ir::Stmt& s) const;
  // The part that is all iterations which one thread does of this parallel loop, or null.
  const SpeculativePart* range(const ir::For& loop) const;
  // Whether there are parts in the body of this loop: then it is not unrolled.
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
  std::vector<const ir::For*> loops_;  // around the statement under consideration
};

}  // namespace tensorsmith::codegen
