// A lowered program as a tree of loops and statements, in the terms in which time is estimated: how
// often a statement runs, what remains of it after unrolling, and which elements it touches while
// some of its loops run. Per-store features follow TVM's program text. This tree follows the loops
// that the backend compiles: packed layouts as they are in memory, temporaries at their actual
// size, branches as often as they are taken.
#pragma once

#include <cstdint>
#include <vector>

#include "base/id.h"
#include "ir/stmt.h"

namespace tensorsmith::feature {

struct NestLoop;
using NestLoopId = Id<NestLoop>;  // index into NestTree::loops

struct NestLoop {
  double extent = 1;  // the mean extent if it depends on outer loops
  ir::ForKind kind = ir::ForKind::kSerial;
  NestLoopId parent;                     // none: the loop is a root
  size_t first_leaf = 0, past_leaf = 0;  // the statements inside: [first_leaf, past_leaf)
  std::vector<NestLoopId> children;      // loops directly inside
};

// Reads or writes of a buffer that only differ in constants: A[i], A[i + 1].
struct NestAccess {
  struct Term {
    size_t place = 0;        // index of the loop in the leaf's path
    double coefficient = 0;  // positive
  };
  struct Dim {
    std::vector<Term> terms;
    double spread = 0;  // largest minus smallest constant
    double extent = 1;  // of the buffer's dimension
  };
  ir::Buffer buffer;  // shared ownership: the tree outlives the program
  bool write = false;
  double element_bytes = 4;
  double count = 0;  // executions per run of the statement
  std::vector<Dim> dims;
  // Bit p is set if the loop at place p of the path moves the access: its iterations touch other
  // elements or, if the loop is around the allocation, another buffer.
  uint64_t moved_by = 0;
  double vector_step = 0;  // elements between adjacent lanes; 0 also without lanes

  bool moves(size_t place) const { return (moved_by >> place & 1U) != 0; }
};

struct NestLeaf {
  std::vector<NestLoopId> path;  // loops around it, outermost first; at most 64
  double share = 1;              // share of the iterations of these loops that reach the statement
  // Operations of one run; the sides of a select are weighted by how often they are chosen. A
  // product in a sum is one operation.
  double multiply_adds = 0, others = 0, divisions = 0, calls = 0;
  double selects = 0;   // selects whose condition depends on more than unrolled loops
  bool update = false;  // reads what it writes
  bool is_float = true;
  std::vector<NestAccess> accesses;  // the written buffer first
};

struct NestTree {
  IdVector<NestLoopId, NestLoop> loops;  // each loop before the loops inside it
  std::vector<NestLoopId> roots;         // loops that are inside no other loop
  std::vector<NestLeaf> leaves;          // in program order
};

// Builds the tree. Conditions and extents that depend on loops are averaged over up to 256 evenly
// spread iterations; the iterations of unrolled loops are visited one by one. The result is
// deterministic.
NestTree walk_nests(const ir::Program& program);

// The elements that an access touches while the loops of its path from place `from` on run once.
struct Touched {
  double elements = 1;
  double lines = 1;  // cache lines of line_bytes
  double run = 1;    // contiguous bytes
};
Touched touched_by(const NestAccess& access, const NestLeaf& leaf, const NestTree& tree, size_t from,
                   double line_bytes);

}  // namespace tensorsmith::feature
