#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>

#include "base/input_file.h"
#include "base/processors.h"
#include "target/assumed.h"
#include "target/attributes.h"
#include "target/device_files.h"
#include "target/isa.h"
#include "target/target.h"

namespace tensorsmith::target {
namespace {

// Far larger than any device file; a wrong path is thus not read into memory.
constexpr int64_t kMaxFileBytes = 1 << 20;

Result<Device> read_device_file(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const std::string text, read_device_text(path));
  TS_ASSIGN_OR_RETURN(Device device, parse_device(text, path));
  // Without these attributes nothing can be said about the speed of the device.
  TS_ASSIGN_OR_RETURN(const auto left_out, left_out_attributes(text));
  for (const Attribute& a : attributes()) {
    const bool is_needed = a.is(Attribute::kRequired) && a.applies_to(device.kind());
    if (is_needed && std::find(left_out.begin(), left_out.end(), a.name) != left_out.end())
      return Error{ErrorCode::kInvalidArgument, path,
                   "attribute '" + std::string(a.name) + "' is missing; every device file must have it"};
  }
  if (device.clock_ghz <= 0)
    return Error{ErrorCode::kInvalidArgument, path, "attribute 'clock_ghz' must be positive"};
  return device;
}

// Data sets spell names in different ways: "xeon8358", "Xeon_8358".
std::string without_dashes(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '-' && c != '_') out += std::tolower(static_cast<unsigned char>(c));
  }
  return out;
}

Result<Device> find_registered(const std::string& name) {
  const std::vector<Device>& known = registry();
  const auto it = std::find_if(known.begin(), known.end(), [plain = without_dashes(name)](const Device& d) {
    return without_dashes(d.name) == plain;
  });
  if (it != known.end()) return *it;
  std::string names = "local";
  for (const Device& d : known) names += ", " + d.name;
  return Error{ErrorCode::kNotFound, "device '" + name + "'",
               "is not a known device; the known devices are " + names +
                   "; the name of a device file must contain '/' or end in .json"};
}

// `most` can exceed the cores of the device: for this machine it counts all hardware threads that the process
// may use, while by default only one thread per core is used.
Result<Device> with_threads(Device device, std::string_view count, int most) {
  int threads = 0;
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), threads);
  if (error != std::errc() || end != count.data() + count.size() || threads < 1) {
    return Error{ErrorCode::kInvalidArgument, "device option threads",
                 "'" + std::string(count) + "' is not a positive number"};
  }
  if (device.kind() != DeviceKind::kCpu) {
    return Error{ErrorCode::kInvalidArgument, "device option threads",
                 "applies to CPUs only, not to " + device.name};
  }
  if (threads > most) {
    return Error{ErrorCode::kInvalidArgument, "device option threads",
                 device.name + " has " + std::to_string(most) + " cores, not " + std::string(count)};
  }
  device.peak_f32_gflops *= static_cast<double>(threads) / device.cpu().cores;
  device.cpu().cores = threads;
  return device;
}

}  // namespace

bool is_device_file(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".json");
}

Result<std::string> read_device_text(const std::string& path) { return read_input(path, kMaxFileBytes); }

const std::vector<Device>& registry() {
  static const std::vector<Device> devices = [] {
    std::vector<Device> all;
    for (const DeviceFile& file : device_files()) {
      Result<Device> device = parse_device(file.text, file.name);
      TS_CHECK(device.ok(), "compiled-in device file: " + device.error().message());
      all.push_back(std::move(device).value());
    }
    return all;
  }();
  return devices;
}

Result<Device> find_device(std::string_view spec) {
  const auto next_part = [&] {
    const size_t colon = spec.find(':');
    std::string_view part = spec.substr(0, colon);
    spec = colon == std::string_view::npos ? std::string_view() : spec.substr(colon + 1);
    return part;
  };
  const std::string name(next_part());
  Device device;
  if (name == "local") {
    TS_ASSIGN_OR_RETURN(device, probe_local());
  } else if (is_device_file(name)) {
    TS_ASSIGN_OR_RETURN(device, read_device_file(name));
  } else {
    TS_ASSIGN_OR_RETURN(device, find_registered(name));
  }
  const int most = name == "local" ? allowed_processors().size() : device.compute_units();
  while (!spec.empty()) {
    const std::string_view option = next_part();
    if (option.starts_with("isa=")) {
      TS_ASSIGN_OR_RETURN(device, with_isa(device, option.substr(4)));
    } else if (option.starts_with("threads=")) {
      TS_ASSIGN_OR_RETURN(device, with_threads(std::move(device), option.substr(8), most));
    } else {
      return Error{ErrorCode::kInvalidArgument, "device option '" + std::string(option) + "'",
                   "is unknown; the options are isa=native|" + isa_names("|") + " and threads=N"};
    }
  }
  return device;
}

}  // namespace tensorsmith::target
