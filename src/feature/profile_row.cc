#include <algorithm>
#include <cmath>

#include "feature/profile_schema.h"
#include "feature/profile_schema_gpu.h"

namespace tensorsmith::feature {
namespace {

constexpr double kMillion = 1e6;

double scaled(const Column& column, double x) {
  switch (column.scale) {
    case Scale::kPlain:
      return x;
    case Scale::kLog2:
      return std::log2(x);
    case Scale::kSignedLog2:
      return std::copysign(std::log2(std::abs(x) + 1), x);
  }
  return x;
}

// Looks up counters by name and remembers the first one that is missing.
class Counters {
 public:
  explicit Counters(const std::map<std::string, double>& counters) : counters_(counters) {}
  double operator[](const std::string& name) {
    const auto at = counters_.find(name);
    if (at != counters_.end()) return at->second;
    if (missing_.empty()) missing_ = name;
    return 0;
  }
  const std::string& missing() const { return missing_; }

 private:
  const std::map<std::string, double>& counters_;
  std::string missing_;
};

// Returns part / whole, or 0 if the whole is 0.
double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

Schema cpu_profile_schema() {
  return {"profile-cpu",
          "Counters of a simulation of one run of a program on one core of a CPU; its data are in the caches "
          "as a previous run left them",
          kCpuProfileColumns};
}

Result<std::vector<float>> cpu_profile_row(const std::map<std::string, double>& counters, double operations) {
  Counters of(counters);
  if (!(operations > 0)) operations = std::max(of["buffer_bytes"] / 4, 1.0);
  std::array<double, kCpuProfileColumns.size()> values{};
  for (size_t i = 0; i < kCpuProfileCounts.size(); ++i)
    values[i] = of[kCpuProfileCounts[i].name()] / operations * kMillion;
  Quantities<kCpuProfileRatios> ratios;
  const double vectors = of["fma"] + of["arithmetic"];
  const double spills = of["spills"] + of["reloads"];
  const double operands = of["loads"] + of["broadcasts"] + of["stores"] + spills;
  ratios.set("vector_bytes", share(of["arithmetic_bytes"], vectors));
  ratios.set("float_share", share(vectors, of["instructions"]));
  ratios.set("memory_share", share(operands, vectors));
  ratios.set("spill_share", share(spills, operands));
  ratios.set("chain_share", share(of["chain"], vectors));
  ratios.set("l1.miss_share", share(of["l1.misses"], of["accesses"]));
  ratios.set("l2.miss_share", share(of["l2.misses"], of["l1.misses"]));
  ratios.set("l3.miss_share", share(of["l3.misses"], of["l2.misses"]));
  ratios.set("l1.in_order_share", share(of["l1.misses_in_order"], of["l1.misses"]));
  ratios.set("l2.in_order_share", share(of["l2.misses_in_order"], of["l2.misses"]));
  ratios.set("hot_code", of["hot_code"]);
  ratios.set("workspace_bytes", of["workspace_bytes"]);
  std::copy(ratios.values().begin(), ratios.values().end(), values.begin() + kCpuProfileCounts.size());
  if (!of.missing().empty())
    return Error{ErrorCode::kInvalidArgument, "profile", "has no counter \"" + of.missing() + "\""};
  std::vector<float> row;
  for (size_t i = 0; i < values.size(); ++i)
    row.push_back(static_cast<float>(scaled(kCpuProfileColumns[i], values[i])));
  return row;
}

Schema gpu_profile_schema() {
  return {"profile-gpu", "Counters of Nsight Compute for the launches of a program", kGpuProfileColumns};
}

Result<std::vector<float>> gpu_profile_row(const std::map<std::string, double>& counters, double operations) {
  Counters of(counters);
  double limit = of["launch__occupancy_limit_blocks"];
  for (const char* name : {"registers", "shared_mem", "warps"})
    limit = std::min(limit, of[std::string("launch__occupancy_limit_") + name]);
  Quantities<kGpuProfileLaunch> launch;
  launch.set("occupancy_limit", limit);
  launch.set("blocks_per_multiprocessor",
             share(of["launch__grid_size"], of["device__attribute_multiprocessor_count"]));
  launch.set("block_share", of["launch__block_size"] / 256);
  launch.set("launch__waves_per_multiprocessor", of["launch__waves_per_multiprocessor"]);
  if (!of.missing().empty())
    return Error{ErrorCode::kInvalidArgument, "profile", "has no counter \"" + of.missing() + "\""};
  std::vector<float> row;
  for (const Column& column : kGpuProfileCounts) {
    const auto at = counters.find(column.name());
    const double count = at == counters.end() ? 0 : at->second;
    row.push_back(static_cast<float>(scaled(column, count / std::max(operations, 1.0) * kMillion)));
  }
  for (size_t i = 0; i < kGpuProfileLaunch.size(); ++i)
    row.push_back(static_cast<float>(scaled(kGpuProfileLaunch[i], launch.values()[i])));
  return row;
}

}  // namespace tensorsmith::feature
