// The 164 features per store of Ansor and TenSet (TVM's per_store_feature).
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

inline constexpr int kPerStoreWidth = kPerStoreColumns.size();
inline constexpr int kPerStoreVersion = 1;
const Schema& per_store_schema();

// One row per written buffer, in program order of the first store. If several statements store to a
// buffer, the operation counts are summed, and the other features are those of the statement that
// runs most often (the last one among equals). Thus an update overwrites its init, and a peeled
// tail does not hide its main loop.
struct FeatureMatrix {
  int rows = 0;
  std::vector<float> values;  // rows * kPerStoreWidth, row-major
  std::span<const float> row(int r) const {
    return {values.data() + static_cast<size_t>(r) * kPerStoreWidth, kPerStoreWidth};
  }
};

struct PerStoreOptions {
  int cacheline_bytes = 64;
  bool gpu = false;  // set automatically for programs with thread loops
};
// Computes what TVM v0.16 computes (src/auto_scheduler/feature.cc) from a schedule, without lowering it.
// Conditions of branches are ignored, and both sides count. Loops count with their largest extent.
// A data-dependent index may touch its whole dimension. A select between a read and a constant
// counts as a math function, like TVM's if_then_else. Temporaries are indexed as whole tensors, so that
// the result is comparable to features that TVM extracted (TenSet). Every value is finite. Errors are those
// of sched::infer_bounds.
Result<FeatureMatrix> extract_per_store(const sched::Schedule& schedule, const PerStoreOptions& options);
// The stores of a program one by one, in program order. They are the leaves of the syntax tree (CDMPP's
// compact AST); an init and its update are two leaves.
struct LeafFeatures {
  FeatureMatrix vectors;  // one row per leaf
  // For each leaf, the row of extract_per_store() that describes this leaf (both then have the same
  // numbers), or -1.
  std::vector<int> row_numbers;
  // For each leaf, its index in the list that a walk through the tree writes: each node when the walk
  // enters it, and a mark when the walk leaves it. The index tells where in the tree the leaf is. Nodes
  // are the root, attributes, loops, allocations and stores.
  std::vector<int> positions;
  int tree_nodes = 0;

  FeatureMatrix per_store() const;  // the rows as extract_per_store() returns them
};
// Computes the leaves from a schedule without lowering it. Errors are those of sched::infer_bounds.
Result<LeafFeatures> extract_leaves(const sched::Schedule& schedule, const PerStoreOptions& options);

// Computes what extract_per_store() and extract_leaves() return, for many schedules. It reuses its memory,
// and what it has found out about an operation serves all schedules that contain the operation. Only one
// thread at a time may use it.
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
