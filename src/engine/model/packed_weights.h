// Constants in the layouts that a model's kernels need. Each pair of value and preparation is
// packed once and shared by all compilations.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "lower/lower.h"
#include "runtime/file_io.h"

namespace tensorsmith::engine {

// A constant that a kernel reads.
struct WantedWeight {
  graph::ValueId value;
  const lower::PreparedConstant* prepared = nullptr;  // null if the kernel reads the constant unchanged
  // Shape of the constant in the kernel that reads it; the preparation applies to this shape.
  std::vector<int64_t> shape;

  // Equal for constants with the same packed bytes.
  std::string key() const;
};

// Thread-safe.
class PackedWeights {
 public:
  // Returns the bytes of each wanted constant in order, at addresses divisible by
  // runtime::kBufferAlignment. They stay valid as long as this object. Missing constants are packed
  // on `jobs` threads.
  Result<std::vector<std::span<const std::byte>>> get(const graph::Graph& graph,
                                                      std::span<const WantedWeight> wanted, int jobs);

 private:
  std::mutex mutex_;
  // Mapping and number of its bytes that are used.
  std::map<std::string, std::pair<runtime::Mapping, size_t>> packed_;
};

}  // namespace tensorsmith::engine
