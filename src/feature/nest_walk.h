// A lowered program as a tree of loops with its statements, in the terms that time is estimated by: how often
// a statement runs, what of it remains after unrolling, and which elements it touches while some of its loops
// run. Unlike the per-store features, which follow TVM's text, this looks at the loops that the backend
// compiles: packed layouts as they lie in memory, temporaries as large as they are, branches as often as they
// are taken.
#pragma once

#include <cstdint>
#include <vector>

#include "base/id.h"
#include "ir/stmt.h"

namespace tensorsmith::feature {

struct NestLoop;
using NestLoopId = Id<NestLoop>;  // in NestTree::loops

struct NestLoop {
  double extent = 1;  // the mean, where it depends on loops outside
  ir::ForKind kind = ir::ForKind::kSerial;
  NestLoopId parent;                     // none: the loop is a root
  size_t first_leaf = 0, past_leaf = 0;  // the statements inside: [first, past)
  std::vector<NestLoopId> children;      // loops directly inside
};

// Reads or writes of a buffer that differ in constants only: A[i], A[i + 1].
struct NestAccess {
  struct Term {
    size_t place = 0;        // of the loop in the leaf's path
    double coefficient = 0;  // positive
  };
  struct Dim {
    std::vector<Term> terms;
    double spread = 0;  // between the smallest and the largest constant
    double extent = 1;  // of the buffer
  };
  ir::Buffer buffer;  // shared: the tree outlives the program
  bool write = false;
  double element_bytes = 4;
  double count = 0;  // executions in one run of the statement
  std::vector<Dim> dims;
  // Bit p: by the loop at place p of the path, whose iterations touch other elements or, around the
  // allocation, another buffer.
  uint64_t moved_by = 0;
  double vector_step = 0;  // elements between neighbouring lanes; 0 too where there are no lanes

  bool moves(size_t place) const { return (moved_by >> place & 1U) != 0; }
};

struct NestLeaf {
  std::vector<NestLoopId> path;  // loops around it, outermost first; at most 64
  double share = 1;              // of the iterations of these loops, those that reach it
  // Operations of one run, sides of a select by how often they are chosen. A product in a sum is one
  // operation.
  double multiply_adds = 0, others = 0, divisions = 0, calls = 0;
  double selects = 0;   // whose condition depends on more than unrolled loops
  bool update = false;  // reads what it writes
  bool is_float = true;
  std::vector<NestAccess> accesses;  // the written buffer first
};

struct NestTree {
  IdVector<NestLoopId, NestLoop> loops;  // a loop before those inside it
  std::vector<NestLoopId> roots;         // loops in no other
  std::vector<NestLeaf> leaves;          // in program order
};

// Conditions and extents that depend on loops are averaged over up to 256 evenly spread iterations; the
// iterations of unrolled loops are gone through one by one. No randomness: the same program gives the same
// tree.
NestTree walk_nests(const ir::Program& program);

// What an access touches while the loops of its path from place `from` on run once.
struct Touched {
  double elements = 1;
  double lines = 1;  // of line_bytes
  double run = 1;    // bytes that lie side by side
};
Touched touched_by(const NestAccess& access, const NestLeaf& leaf, const NestTree& tree, size_t from,
                   double line_bytes);

}  // namespace tensorsmith::feature
