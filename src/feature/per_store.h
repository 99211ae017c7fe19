// The 164 numbers per store of Ansor/TenSet (TVM's per_store_feature), from a lowered program. Schema
// "per-store", v1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/stmt.h"

namespace tensorsmith::feature {

inline constexpr int kPerStoreWidth = 164;
inline constexpr int kPerStoreVersion = 1;

// Rows in program order, one per written buffer (an update overwrites its init).
struct FeatureMatrix {
  int rows = 0;
  std::vector<float> values;  // rows * kPerStoreWidth, row-major
  std::span<const float> row(int r) const {
    return {values.data() + static_cast<size_t>(r) * kPerStoreWidth, static_cast<size_t>(kPerStoreWidth)};
  }
};

struct PerStoreOptions {
  int cacheline_bytes = 64;
  bool gpu = false;
};
FeatureMatrix extract_per_store(const ir::Program& program, const PerStoreOptions& options);
// "float_addsub", "B0.bytes", ...: name of column i.
const char* per_store_column_name(int column);

}  // namespace tensorsmith::feature
