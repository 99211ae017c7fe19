// The 164 numbers per store of Ansor/TenSet (TVM's per_store_feature), from a lowered program.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "feature/per_store_schema.h"
#include "ir/stmt.h"
#include "sched/schedule.h"

namespace tensorsmith::feature {

inline constexpr int kPerStoreWidth = static_cast<int>(kPerStoreColumns.size());
inline constexpr int kPerStoreVersion = 1;
const Schema& per_store_schema();

// Rows in program order (of the first store), one per written buffer. An update overwrites its init: where a
// buffer is stored to by several statements the features are those of the one that runs most often (of the
// last among equals; so a peeled tail does not hide its main loop), the op counts are summed.
struct FeatureMatrix {
  int rows = 0;
  std::vector<float> values;  // rows * kPerStoreWidth, row-major
  std::span<const float> row(int r) const {
    return {values.data() + static_cast<size_t>(r) * kPerStoreWidth, static_cast<size_t>(kPerStoreWidth)};
  }
};

struct PerStoreOptions {
  int cacheline_bytes = 64;
  bool gpu = false;  // also true for programs with thread loops
};
// Every value is finite. What TVM v0.16 computes (src/auto_scheduler/feature.cc), on our loop programs:
// conditions of branches are not looked at, both sides count; loop extents count with their largest value; a
// data-dependent index may touch its whole dimension. Select between a read and a constant counts as a math
// function, as TVM's if_then_else does.
FeatureMatrix extract_per_store(const ir::Program& program, const PerStoreOptions& options);
// The same from a schedule, without lowering it, and as TVM sees it: temporaries are indexed as whole
// tensors. Comparable with features that TVM extracted (TenSet); not with those of the lowered program.
// Errors are those of sched::infer_bounds.
Result<FeatureMatrix> extract_per_store(const sched::Schedule& schedule, const PerStoreOptions& options);
// The stores of a program one by one, in program order: an init and its update are two leaves of the syntax
// tree (CDMPP's compact AST).
struct LeafFeatures {
  FeatureMatrix vectors;  // one row a leaf
  // By leaf: the row of extract_per_store() that it is (then it has that row's numbers), or -1.
  std::vector<int> row_numbers;
  // By leaf: where its id stands in the tree written in pre-order with a mark after the children of each node
  // (nodes: root, attributes, loops, allocations, stores), so that it tells the leaf's place in the tree.
  std::vector<int> positions;
  int tree_nodes = 0;

  FeatureMatrix per_store() const;  // the rows, as extract_per_store() returns them
};
Result<LeafFeatures> extract_leaves(const sched::Schedule& schedule, const PerStoreOptions& options);

// Both for many schedules: their memory is used again, and what is found out about an operation serves all
// schedules that hold it. For one thread at a time.
class ScheduleFeatures {
 public:
  explicit ScheduleFeatures(const PerStoreOptions& options);
  ~ScheduleFeatures();

  Result<FeatureMatrix> per_store(const sched::Schedule& schedule);
  Result<LeafFeatures> leaves(const sched::Schedule& schedule);

 private:
  class Walker;
  std::unique_ptr<Walker> walker_;
};

}  // namespace tensorsmith::feature
