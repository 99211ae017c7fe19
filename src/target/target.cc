#include "target/target.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "base/hash.h"

namespace tensorsmith::target {

// Name, description and memory size do not change how long a program runs. Features are sorted: their order
// means nothing.
std::string Device::key() const {
  std::vector<std::string> sorted = features;
  std::sort(sorted.begin(), sorted.end());
  Hasher h;
  h.add("tensorsmith device 1").add(static_cast<uint64_t>(kind)).add(arch).add(cpu);
  h.add(sorted.size());
  for (const std::string& f : sorted) h.add(f);
  for (int64_t v : {static_cast<int64_t>(cores), static_cast<int64_t>(vector_bytes),
                    static_cast<int64_t>(vector_registers), l1_bytes, l2_bytes, l3_bytes,
                    static_cast<int64_t>(cacheline_bytes), static_cast<int64_t>(warp_size),
                    static_cast<int64_t>(max_threads_per_block), shared_memory_per_block, registers_per_block,
                    static_cast<int64_t>(max_vthread_extent)}) {
    h.add(static_cast<uint64_t>(v));
  }
  for (double v : {clock_ghz, fma_per_cycle, memory_bandwidth_gbs, peak_f32_gflops})
    h.add(std::bit_cast<uint64_t>(v));
  return h.hex128();
}

bool Device::has_feature(std::string_view feature) const {
  return std::any_of(features.begin(), features.end(), [&](const std::string& f) {
    return f.size() == feature.size() + 1 && f[0] == '+' && f.compare(1, std::string::npos, feature) == 0;
  });
}

namespace {

Result<Device> with_threads(Device device, std::string_view count) {
  int threads = 0;
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), threads);
  if (error != std::errc() || end != count.data() + count.size() || threads < 1) {
    return Error{ErrorCode::kInvalidArgument, "device option threads",
                 "'" + std::string(count) + "' is not a positive number"};
  }
  if (device.kind != DeviceKind::kCpu) {
    return Error{ErrorCode::kInvalidArgument, "device option threads",
                 "applies to CPUs only, not to " + device.name};
  }
  if (threads > device.cores) {
    return Error{ErrorCode::kInvalidArgument, "device option threads",
                 device.name + " has " + std::to_string(device.cores) + " cores, not " + std::string(count)};
  }
  device.peak_f32_gflops *= static_cast<double>(threads) / device.cores;
  device.cores = threads;
  return device;
}

}  // namespace

Result<Device> find_device(std::string_view spec) {
  const auto next_part = [&] {
    const size_t colon = spec.find(':');
    std::string_view part = spec.substr(0, colon);
    spec = colon == std::string_view::npos ? std::string_view() : spec.substr(colon + 1);
    return part;
  };
  const std::string_view name = next_part();
  Device device;
  if (name == "local") {
    TS_ASSIGN_OR_RETURN(device, probe_local());
  } else {
    const std::vector<Device>& known = registry();
    const auto it = std::find_if(known.begin(), known.end(), [&](const Device& d) { return d.name == name; });
    if (it == known.end()) {
      std::string names = "local";
      for (const Device& d : known) names += ", " + d.name;
      return Error{ErrorCode::kNotFound, "device '" + std::string(name) + "'",
                   "no such device; known are " + names};
    }
    device = *it;
  }
  while (!spec.empty()) {
    const std::string_view option = next_part();
    if (option.starts_with("isa=")) {
      TS_ASSIGN_OR_RETURN(device, with_isa(device, option.substr(4)));
    } else if (option.starts_with("threads=")) {
      TS_ASSIGN_OR_RETURN(device, with_threads(std::move(device), option.substr(8)));
    } else {
      return Error{ErrorCode::kInvalidArgument, "device option '" + std::string(option) + "'",
                   "unknown; options are isa=native|avx512|avx2|sse4.2 and threads=N"};
    }
  }
  return device;
}

}  // namespace tensorsmith::target
