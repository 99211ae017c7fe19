#include "measure/energy.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

namespace tensorsmith::measure {

namespace {

namespace fs = std::filesystem;

// Reads the text at the beginning of an open file, without allocating memory beyond a short string.
std::string text_of(const FileDescriptor& file) {
  char text[64];
  const ssize_t got = file.valid() ? ::pread(file.get(), text, sizeof text, 0) : 0;
  std::string out(text, got > 0 ? static_cast<size_t>(got) : 0);
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::optional<int64_t> microjoules(const FileDescriptor& file) {
  const std::string text = text_of(file);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

FileDescriptor open_counter(const fs::path& path) {
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// Returns whether the name is that of a package, "intel-rapl:N". Parts of a package have a second number.
bool is_package(const std::string& name) {
  constexpr std::string_view kPrefix = "intel-rapl:";
  return name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
         std::all_of(name.begin() + kPrefix.size(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Result<EnergyMeter> EnergyMeter::open(const std::string& folder) {
  std::vector<std::string> zones;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    // The platform as a whole, "psys", includes its packages.
    if (is_package(name) && text_of(open_counter(at->path() / "name")).starts_with("package"))
      zones.push_back(name);
  }
  std::sort(zones.begin(), zones.end());
  if (zones.empty())
    return Error{ErrorCode::kUnsupported, folder,
                 "this machine shows no energy counters of its processor (intel-rapl:*); choose an objective "
                 "without energy"};
  EnergyMeter meter;
  for (const std::string& zone : zones) {
    const fs::path path = fs::path(folder) / zone;
    Counter counter;
    counter.file = open_counter(path / "energy_uj");
    const auto now = microjoules(counter.file);
    const auto range = microjoules(open_counter(path / "max_energy_range_uj"));
    if (!now || !range)
      return Error{
          ErrorCode::kUnsupported, (path / "energy_uj").string(),
          "the energy counter of the processor cannot be read; run as root, let this user read it, or "
          "choose an objective without energy"};
    counter.last = *now;
    counter.range = *range;
    meter.counters_.push_back(std::move(counter));
  }
  return meter;
}

double EnergyMeter::joules() {
  for (Counter& counter : counters_) {
    const auto now = microjoules(counter.file);
    if (!now) continue;
    int64_t used = *now - counter.last;
    if (used < 0) used += counter.range;
    joules_ += 1e-6 * static_cast<double>(used);
    counter.last = *now;
  }
  return joules_;
}

std::vector<int> EnergyMeter::descriptors() const {
  std::vector<int> out;
  for (const Counter& counter : counters_) out.push_back(counter.file.get());
  return out;
}

}  // namespace tensorsmith::measure
