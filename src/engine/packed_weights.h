// Constants as the kernels of a model want them: each (value, preparation) is packed once, whatever compilations ask
// for it.
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
  graph::ValueId value = 0;
  const lower::PreparedConstant* prepared = nullptr;  // null where the kernel takes the constant as it is
  std::vector<int64_t> shape;  // the constant's in the kernel that reads it, which the preparation is about

  // The same for all that are the same bytes.
  std::string key() const;
};

// Thread-safe.
class PackedWeights {
 public:
  // In the order of what is wanted: the bytes, at addresses divisible by runtime::kBufferAlignment, for as long as
  // this object lives. Packs with `jobs` threads what is not there yet.
  Result<std::vector<std::span<const std::byte>>> get(const graph::Graph& graph,
                                                      std::span<const WantedWeight> wanted, int jobs);

 private:
  std::mutex mutex_;
  std::map<std::string, std::pair<runtime::Mapping, size_t>> packed_;  // with the bytes that count
};

}  // namespace tensorsmith::engine
