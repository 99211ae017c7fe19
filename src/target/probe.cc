// Describes the machine that this process runs on, from CPUID (x86-64) and from /sys and /proc
// (Linux).
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>

#include "base/cpu_features.h"
#include "base/processors.h"
#include "target/isa.h"
#include "target/micro_architecture.h"
#include "target/target.h"

namespace tensorsmith::target {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

int64_t parse_int(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Converts "48K", "1M" or "512" to bytes; 0 if absent.
int64_t parse_size(const std::string& text) {
  int64_t value = parse_int(text);
  if (text.ends_with("K")) value <<= 10;
  if (text.ends_with("M")) value <<= 20;
  return value;
}

// Returns the value of the first "key : value" line in /proc/cpuinfo or /proc/meminfo; empty if
// absent.
std::string proc_value(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

void probe_caches(Device& d, int cpu) {
  int64_t l1 = 0;
  int64_t l2 = 0;
  int64_t l3 = 0;
  const std::string base = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index";
  for (int i = 0; i < 8; ++i) {
    const std::string dir = base + std::to_string(i) + "/";
    const std::string type = first_line(dir + "type");
    if (type.empty()) break;
    if (type == "Instruction") continue;
    const int64_t level = parse_int(first_line(dir + "level"));
    const int64_t size = parse_size(first_line(dir + "size"));
    if (level == 1) l1 = size;
    if (level == 2) l2 = size;
    if (level == 3) l3 = size;
    if (const int64_t line = parse_int(first_line(dir + "coherency_line_size")); line > 0)
      d.cacheline_bytes = line;
  }
  const auto or_sysconf = [](int64_t value, int name) {
    return value > 0 ? value : std::max<int64_t>(0, sysconf(name));
  };
  l1 = or_sysconf(l1, _SC_LEVEL1_DCACHE_SIZE);
  l2 = or_sysconf(l2, _SC_LEVEL2_CACHE_SIZE);
  l3 = or_sysconf(l3, _SC_LEVEL3_CACHE_SIZE);
  if (l1 > 0) d.l1_bytes = l1;
  if (l2 > 0) d.l2_bytes = l2;
  d.l3_bytes = l3;
}

// The clock is rounded to 0.1 GHz, so that fluctuations of the reported value do not change the
// device key.
double probe_clock_ghz(int cpu) {
  const std::string dir = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/";
  for (const char* file : {"base_frequency", "cpuinfo_max_freq"})
    if (const int64_t khz = parse_int(first_line(dir + file)); khz > 0) return std::round(khz * 1e-5) / 10;
  if (const int64_t mhz = parse_int(proc_value("/proc/cpuinfo", "cpu MHz")); mhz > 0)
    return std::round(mhz * 1e-2) / 10;
  return 0;
}

#if defined(__x86_64__)

void probe_isa(Device& d) {
  d.arch = "x86-64";
  char vendor[13] = {};
  const CpuidRegisters leaf0 = cpuid(0, 0), leaf1 = cpuid(1, 0);
  std::memcpy(vendor, &leaf0.ebx, 4);
  std::memcpy(vendor + 4, &leaf0.edx, 4);
  std::memcpy(vendor + 8, &leaf0.ecx, 4);
  ProcessorId id;
  for (const CpuFeature& f : cpu_features()) {
    // Matrix units are listed only if the processor has them, so that the keys of devices without
    // them, under which measurements are stored, do not change.
    if (f.use == CpuFeatureUse::kCode || (f.use == CpuFeatureUse::kMatrixUnits && f.reported))
      d.features.push_back((f.usable() ? "+" : "-") + std::string(f.name));
    if ((f.use == CpuFeatureUse::kCode || f.use == CpuFeatureUse::kIdentifies) && f.usable())
      id.features.emplace_back(f.name);
  }

  id.vendor = vendor;
  id.family = (leaf1.eax >> 8) & 15;
  id.model = (leaf1.eax >> 4) & 15;
  if (id.family == 6 || id.family == 15) id.model += static_cast<int>((leaf1.eax >> 16) & 15) << 4;
  if (id.family == 15) id.family += static_cast<int>((leaf1.eax >> 20) & 255);
  d.processor = micro_architecture(id);
  if (const IsaLevel* level = isa_level(d)) {
    d.cpu().vector_bytes = level->vector_bytes;
    d.cpu().vector_registers = level->vector_registers;
  }
  d.cpu().fma_per_cycle = fma_per_cycle(id, d.processor, d.cpu().vector_bytes);
}

#elif defined(__aarch64__)

void probe_isa(Device& d) {
  d.arch = "aarch64";
  d.features = {"+neon"};
  d.cpu().vector_registers = 32;
  d.cpu().fma_per_cycle = 2;
  const std::string part = proc_value("/proc/cpuinfo", "CPU part");
  if (part == "0xd0c") d.processor = "neoverse-n1";
  if (part == "0xd40") d.processor = "neoverse-v1";
  if (part == "0xd49") d.processor = "neoverse-n2";
  if (part == "0xd4f") d.processor = "neoverse-v2";
}

#endif

}  // namespace

Result<Device> probe_local(int threads) {
  Device d;
  d.name = "local";
#if defined(__x86_64__) || defined(__aarch64__)
  probe_isa(d);
#else
  return Error{ErrorCode::kUnsupported, "device local", "only x86-64 and aarch64 machines can be probed"};
#endif
  const Processors machine = processors();
  const int most = machine.allowed.size();
  if (threads < 0 || threads > most) {
    return Error{ErrorCode::kInvalidArgument, "device local",
                 std::to_string(threads) + " threads were requested, but this process may use " +
                     std::to_string(most) + " processors"};
  }
  d.cpu().cores = threads > 0 ? threads : machine.usable;
  d.description = proc_value("/proc/cpuinfo", "model name");
  probe_caches(d, machine.allowed.front());
  d.clock_ghz = probe_clock_ghz(machine.allowed.front());
  d.cpu().rates = known_rates(d.processor);
  d.memory_gb = std::round(static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                           static_cast<double>(sysconf(_SC_PAGE_SIZE)) / double(1 << 30));
  d.peak_f32_gflops = computed_peak_gflops(d);
  return d;
}

}  // namespace tensorsmith::target
