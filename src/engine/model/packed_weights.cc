#include "engine/model/packed_weights.h"

#include <cstring>
#include <optional>
#include <set>

#include "base/thread_pool.h"
#include "ir/structural.h"

namespace tensorsmith::engine {

namespace {

// Copies bytes to an aligned address.
Result<runtime::Mapping> copy_of(std::span<const std::byte> bytes) {
  TS_ASSIGN_OR_RETURN(runtime::Mapping memory, runtime::Mapping::anonymous(bytes.size()));
  if (!bytes.empty()) std::memcpy(memory.data(), bytes.data(), bytes.size());
  return memory;
}

Result<std::pair<runtime::Mapping, size_t>> pack(const graph::Graph& graph, const WantedWeight& wanted) {
  const lower::Tensor& constant = *graph.values[wanted.value].constant;
  if (wanted.prepared == nullptr) {
    TS_ASSIGN_OR_RETURN(runtime::Mapping memory, copy_of(constant.data));
    return std::pair(std::move(memory), constant.data.size());
  }
  lower::Tensor reshaped;
  const lower::Tensor* source = &constant;
  if (wanted.shape != constant.shape) {
    reshaped = constant;
    reshaped.shape = wanted.shape;
    source = &reshaped;
  }
  TS_ASSIGN_OR_RETURN(const lower::Tensor made, lower::prepare(*wanted.prepared, *source));
  TS_ASSIGN_OR_RETURN(runtime::Mapping memory, copy_of(made.data));
  return std::pair(std::move(memory), made.data.size());
}

}  // namespace

std::string WantedWeight::key() const {
  std::string key = std::to_string(value.place());
  if (prepared == nullptr) return key;
  for (const int64_t extent : shape) key += "x" + std::to_string(extent);
  if (prepared->transform) key += ":" + ir::structural_key(*prepared->transform);
  if (prepared->layout) {
    for (const auto& dim : *prepared->layout) {
      key += ":" + std::to_string(dim.dim) + "," + std::to_string(dim.divisor) + "," +
             std::to_string(dim.extent);
    }
  }
  return key;
}

Result<std::vector<std::span<const std::byte>>> PackedWeights::get(const graph::Graph& graph,
                                                                   std::span<const WantedWeight> wanted,
                                                                   int jobs) {
  std::vector<std::string> keys;
  std::vector<size_t> missing;
  {
    const std::lock_guard lock(mutex_);
    std::set<std::string> seen;
    for (size_t i = 0; i < wanted.size(); ++i) {
      keys.push_back(wanted[i].key());
      if (!packed_.contains(keys.back()) && seen.insert(keys.back()).second) missing.push_back(i);
    }
  }
  std::optional<Error> failed;
  for_each_index(missing.size() > 1 ? jobs : 1, missing.size(), [&](size_t m) {
    auto packed = pack(graph, wanted[missing[m]]);
    const std::lock_guard lock(mutex_);
    if (packed.ok()) {
      packed_.emplace(keys[missing[m]], std::move(*packed));
    } else {
      failed = packed.error();
    }
  });
  if (failed) return *failed;
  std::vector<std::span<const std::byte>> out;
  const std::lock_guard lock(mutex_);
  for (const std::string& key : keys) {
    const auto& [memory, bytes] = packed_.at(key);
    out.emplace_back(memory.data(), bytes);
  }
  return out;
}

}  // namespace tensorsmith::engine
