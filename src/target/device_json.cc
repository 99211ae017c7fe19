// Reads and writes devices as JSON files, and checks that their values are consistent.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "target/assumed.h"
#include "target/target.h"

namespace tensorsmith::target {
namespace {

using Json = nlohmann::ordered_json;

// Calls fn(name, member) for every attribute, in the order in which a file lists them.
template <typename D, typename Fn>
void for_each_attribute(D& d, const Fn& fn) {
  fn("name", d.name);
  fn("description", d.description);
  fn("kind", d.kind);
  fn("arch", d.arch);
  fn("cpu", d.cpu);
  fn("features", d.features);
  fn("cores", d.cores);
  fn("clock_ghz", d.clock_ghz);
  fn("base_clock_ghz", d.base_clock_ghz);
  fn("boost_clock_ghz", d.boost_clock_ghz);
  fn("vector_bytes", d.vector_bytes);
  fn("vector_registers", d.vector_registers);
  fn("fma_per_cycle", d.fma_per_cycle);
  fn("l1_bytes", d.l1_bytes);
  fn("l2_bytes", d.l2_bytes);
  fn("l3_bytes", d.l3_bytes);
  fn("cacheline_bytes", d.cacheline_bytes);
  fn("loads_per_cycle", d.rates.loads_per_cycle);
  fn("issue_per_cycle", d.rates.issue_per_cycle);
  fn("fma_latency", d.rates.fma_latency);
  fn("dot2_latency", d.rates.dot2_latency);
  fn("reorder_buffer", d.rates.reorder_buffer);
  fn("l2_bytes_per_cycle", d.rates.l2_bytes_per_cycle);
  fn("l3_bytes_per_cycle", d.rates.l3_bytes_per_cycle);
  fn("l2_ways", d.rates.l2_ways);
  fn("tlb_bytes", d.rates.tlb_bytes);
  fn("parallel_overhead_us", d.rates.parallel_overhead_us);
  fn("memory_bandwidth_gbs", d.memory_bandwidth_gbs);
  fn("memory_gb", d.memory_gb);
  fn("peak_f32_gflops", d.peak_f32_gflops);
  fn("launch_overhead_us", d.launch_overhead_us);
  fn("power_watts", d.power_watts);
  fn("warp_size", d.warp_size);
  fn("max_threads_per_block", d.max_threads_per_block);
  fn("shared_memory_per_block", d.shared_memory_per_block);
  fn("registers_per_block", d.registers_per_block);
  fn("max_vthread_extent", d.max_vthread_extent);
  fn("max_threads_per_core", d.max_threads_per_core);
  fn("max_blocks_per_core", d.max_blocks_per_core);
  fn("shared_memory_per_core", d.shared_memory_per_core);
  fn("registers_per_core", d.registers_per_core);
  fn("sources", d.sources);
}

// The `read` functions return false if the value has another type.
bool read(const Json& value, std::string& out) {
  if (!value.is_string()) return false;
  out = value.get<std::string>();
  return true;
}
bool read(const Json& value, double& out) {
  if (!value.is_number()) return false;
  out = value.get<double>();
  return true;
}
bool read(const Json& value, int64_t& out) {
  if (!value.is_number_integer()) return false;
  out = value.get<int64_t>();
  return true;
}
bool read(const Json& value, int& out) {
  int64_t wide = 0;
  if (!read(value, wide) || wide != static_cast<int>(wide)) return false;
  out = static_cast<int>(wide);
  return true;
}
bool read(const Json& value, DeviceKind& out) {
  out = value == "gpu" ? DeviceKind::kGpu : DeviceKind::kCpu;
  return value == "gpu" || value == "cpu";
}
bool read(const Json& value, std::vector<std::string>& out) {
  if (!value.is_array()) return false;
  out.clear();
  for (const Json& item : value)
    if (!read(item, out.emplace_back())) return false;
  return true;
}

Json written(const DeviceKind& kind) { return kind == DeviceKind::kGpu ? "gpu" : "cpu"; }
template <typename T>
Json written(const T& value) {
  return value;
}
template <typename T>
bool is_empty(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value == 0;
  } else if constexpr (std::is_enum_v<T>) {
    return false;
  } else {
    return value.empty();
  }
}

}  // namespace

std::string to_json(const Device& device) {
  Json out = Json::object();
  for_each_attribute(device, [&](const char* name, const auto& value) {
    if (!is_empty(value)) out[name] = written(value);
  });
  return out.dump(2, ' ', false, Json::error_handler_t::replace);
}

Result<Device> parse_device(std::string_view text, std::string_view place) {
  const auto fail = [&](std::string reason) {
    return Error{ErrorCode::kCorrupt, std::string(place), std::move(reason)};
  };
  Json root = parse_json<Json>(text);
  if (!root.is_object()) return fail("not a JSON object");
  Device d;
  std::string problem;
  for_each_attribute(d, [&](const char* name, auto& member) {
    const auto found = root.find(name);
    if (found == root.end()) return;
    if (problem.empty() && !read(*found, member))
      problem = "attribute '" + std::string(name) + "' has the wrong type";
    root.erase(found);
  });
  if (!root.empty()) return fail("unknown attribute '" + root.items().begin().key() + "'");
  if (!problem.empty()) return fail(problem);
  if (d.name.empty() || d.arch.empty()) return fail("name and arch are required");
  if (d.peak_f32_gflops == 0) d.peak_f32_gflops = computed_peak_gflops(d);
  for (const std::string& f : d.features)
    if (f.size() < 2 || (f[0] != '+' && f[0] != '-'))
      return fail("feature '" + f + "' does not start with + or -");
  if (const Status status = check_device(d); !status.ok()) return fail(status.error().reason);
  return d;
}

Result<std::vector<std::string>> left_out_attributes(std::string_view text) {
  const Json root = parse_json<Json>(text);
  if (!root.is_object()) return Error{ErrorCode::kCorrupt, "", "not a JSON object"};
  std::vector<std::string> out;
  const Device any;
  for_each_attribute(any, [&](const char* name, const auto&) {
    if (!root.contains(name)) out.emplace_back(name);
  });
  return out;
}

Status check_device(const Device& d) {
  const auto fail = [&](std::string reason) {
    return Error{ErrorCode::kInvalidArgument, "device " + d.name, std::move(reason)};
  };
  std::string problem;
  for_each_attribute(d, [&]<typename T>(const char* name, const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      if (problem.empty() && !(static_cast<double>(value) >= 0 && std::isfinite(static_cast<double>(value))))
        problem = "attribute '" + std::string(name) + "' is negative or not finite";
    }
  });
  if (!problem.empty()) return fail(problem);
  if (d.cores < 1 || d.vector_bytes < 4 || d.vector_registers < 1 || d.fma_per_cycle <= 0 || d.l1_bytes < 1 ||
      d.cacheline_bytes < 1) {
    return fail(
        "cores, vector_bytes, vector_registers, fma_per_cycle, l1_bytes and cacheline_bytes must be "
        "positive");
  }
  if (d.l2_bytes < d.l1_bytes) return fail("l2_bytes is less than l1_bytes");
  if (d.l3_bytes != 0 && d.l3_bytes < d.l2_bytes) return fail("l3_bytes is less than l2_bytes");
  if (d.base_clock_ghz > d.clock_ghz || (d.boost_clock_ghz > 0 && d.boost_clock_ghz < d.clock_ghz))
    return fail("clock_ghz is not between base_clock_ghz and boost_clock_ghz");
  const double peak = computed_peak_gflops(d);
  if (std::abs(d.peak_f32_gflops - peak) > 0.01 * peak) {
    return fail("peak_f32_gflops is not cores x clock_ghz x fma_per_cycle x 2 x vector_bytes / 4, which is " +
                std::to_string(peak));
  }
  if (d.kind == DeviceKind::kCpu) return {};
  if (d.warp_size < 1 || d.max_threads_per_block < d.warp_size)
    return fail("a GPU needs a warp_size and at least as many max_threads_per_block");
  if (d.max_threads_per_core < d.max_threads_per_block ||
      d.shared_memory_per_core < d.shared_memory_per_block || d.registers_per_core < d.registers_per_block) {
    return fail("a block's limit of threads, shared memory or registers exceeds its multiprocessor's");
  }
  return {};
}

}  // namespace tensorsmith::target
