// Reads and writes devices as JSON files, and checks that their values are consistent.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "target/assumed.h"
#include "target/attributes.h"
#include "target/target.h"

namespace tensorsmith::target {
namespace {

using Json = nlohmann::ordered_json;

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
  out = wide;
  return true;
}
bool read(const Json& value, std::vector<std::string>& out) {
  if (!value.is_array()) return false;
  out.clear();
  for (const Json& item : value)
    if (!read(item, out.emplace_back())) return false;
  return true;
}

// Returns whether the value is 0 or empty.
template <typename T>
bool is_empty(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value == 0;
  } else {
    return value.empty();
  }
}

}  // namespace

std::string to_json(const Device& device) {
  Json out = Json::object();
  for (const Attribute& a : attributes()) {
    if (a.place == nullptr) out[a.name] = device.kind() == DeviceKind::kGpu ? "gpu" : "cpu";
    visit_value(a, device, [&](const auto& value) {
      if (!is_empty(value)) out[a.name] = value;
    });
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace);
}

Result<Device> parse_device(std::string_view text, std::string_view place) {
  const auto fail = [&](std::string reason) {
    return Error{ErrorCode::kCorrupt, std::string(place), std::move(reason)};
  };
  const auto of_wrong_type = [](std::string_view name) {
    return "attribute '" + std::string(name) + "' has the wrong type";
  };
  Json root = parse_json<Json>(text);
  if (!root.is_object()) return fail("not a JSON object");
  Device d;
  if (const auto kind = root.find("kind"); kind != root.end()) {
    if (*kind == "gpu") {
      d.figures = GpuFigures{};
    } else if (*kind != "cpu") {
      return fail(of_wrong_type("kind"));
    }
  }
  std::string problem;
  for (const Attribute& a : attributes()) {
    const auto found = root.find(a.name);
    if (found == root.end()) continue;
    const bool has = visit_value(a, d, [&](auto& member) {
      if (!read(*found, member) && problem.empty()) problem = of_wrong_type(a.name);
    });
    if (!has && problem.empty())
      problem = "attribute '" + std::string(a.name) + "' does not apply to " +
                (d.kind() == DeviceKind::kGpu ? "GPUs" : "CPUs");
    root.erase(found);
  }
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
  for (const Attribute& a : attributes())
    if (!root.contains(a.name)) out.emplace_back(a.name);
  return out;
}

Status check_device(const Device& d) {
  const auto fail = [&](std::string reason) {
    return Error{ErrorCode::kInvalidArgument, "device " + d.name, std::move(reason)};
  };
  std::string problem;
  for (const Attribute& a : attributes()) {
    visit_value(a, d, [&]<typename T>(const T& value) {
      if constexpr (std::is_arithmetic_v<T>) {
        if (problem.empty() && !(value >= 0 && std::isfinite(static_cast<double>(value))))
          problem = "attribute '" + std::string(a.name) + "' is negative or not finite";
      }
    });
  }
  if (!problem.empty()) return fail(problem);
  if (d.compute_units() < 1 || d.register_bytes() < 4 || d.register_count() < 1 || d.fma_per_cycle() <= 0 ||
      d.l1_bytes < 1 || d.cacheline_bytes < 1) {
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
  if (d.kind() == DeviceKind::kCpu) return {};
  const GpuFigures& gpu = d.gpu();
  if (gpu.warp_size < 1 || gpu.max_threads_per_block < gpu.warp_size)
    return fail("a GPU needs a warp_size and at least as many max_threads_per_block");
  if (gpu.max_threads_per_core < gpu.max_threads_per_block ||
      gpu.shared_memory_per_core < gpu.shared_memory_per_block ||
      gpu.registers_per_core < gpu.registers_per_block) {
    return fail("a block's limit of threads, shared memory or registers exceeds its multiprocessor's");
  }
  return {};
}

}  // namespace tensorsmith::target
