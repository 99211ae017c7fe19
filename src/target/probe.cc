// Describes the machine that this process runs on, from CPUID (x86-64) and from /sys and /proc
// (Linux).
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>

#include "base/processors.h"
#include "target/micro_architecture.h"
#include "target/target.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

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
      d.cacheline_bytes = static_cast<int>(line);
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
    if (const int64_t khz = parse_int(first_line(dir + file)); khz > 0)
      return std::round(static_cast<double>(khz) * 1e-5) / 10;
  if (const int64_t mhz = parse_int(proc_value("/proc/cpuinfo", "cpu MHz")); mhz > 0)
    return std::round(static_cast<double>(mhz) * 1e-2) / 10;
  return 0;
}

#if defined(__x86_64__)

struct CpuId {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  CpuId() = default;
  CpuId(uint32_t leaf, uint32_t subleaf) { __get_cpuid_count(leaf, subleaf, &eax, &ebx, &ecx, &edx); }
};

// Reads extended control register 0, which tells which register states the operating system saves.
uint64_t read_xcr0() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

void probe_isa(Device& d) {
  d.arch = "x86-64";
  char vendor[13] = {};
  const CpuId leaf0(0, 0);
  std::memcpy(vendor, &leaf0.ebx, 4);
  std::memcpy(vendor + 4, &leaf0.edx, 4);
  std::memcpy(vendor + 8, &leaf0.ecx, 4);
  const CpuId leaf1(1, 0);
  const CpuId leaf7(7, 0);
  const CpuId leaf7_1 = leaf7.eax >= 1 ? CpuId(7, 1) : CpuId();
  const CpuId extended(0x80000001, 0);
  const bool os_saves = (leaf1.ecx >> 27) & 1;
  const uint64_t xcr0 = os_saves ? read_xcr0() : 0;
  const bool avx_state = (xcr0 & 6) == 6;
  const bool avx512_state = (xcr0 & 0xe6) == 0xe6;

  const bool tile_state = (xcr0 & 0x60000) == 0x60000 && may_use_tiles();

  enum State { kAlways, kAvx, kAvx512, kTiles };
  struct Feature {
    const char* name;
    uint32_t word;
    int bit;
    State state;
  };
  const Feature features[] = {
      {"sse3", leaf1.ecx, 0, kAlways},
      {"ssse3", leaf1.ecx, 9, kAlways},
      {"sse4.1", leaf1.ecx, 19, kAlways},
      {"sse4.2", leaf1.ecx, 20, kAlways},
      {"popcnt", leaf1.ecx, 23, kAlways},
      {"movbe", leaf1.ecx, 22, kAlways},
      {"aes", leaf1.ecx, 25, kAlways},
      {"pclmul", leaf1.ecx, 1, kAlways},
      {"bmi", leaf7.ebx, 3, kAlways},
      {"bmi2", leaf7.ebx, 8, kAlways},
      {"adx", leaf7.ebx, 19, kAlways},
      {"lzcnt", extended.ecx, 5, kAlways},
      {"gfni", leaf7.ecx, 8, kAlways},
      {"avx", leaf1.ecx, 28, kAvx},
      {"avx2", leaf7.ebx, 5, kAvx},
      {"fma", leaf1.ecx, 12, kAvx},
      {"f16c", leaf1.ecx, 29, kAvx},
      {"vaes", leaf7.ecx, 9, kAvx},
      {"vpclmulqdq", leaf7.ecx, 10, kAvx},
      {"avxvnni", leaf7_1.eax, 4, kAvx},
      {"avxifma", leaf7_1.eax, 23, kAvx},
      {"avxvnniint8", leaf7_1.edx, 4, kAvx},
      {"avxneconvert", leaf7_1.edx, 5, kAvx},
      {"avx512f", leaf7.ebx, 16, kAvx512},
      {"avx512dq", leaf7.ebx, 17, kAvx512},
      {"avx512ifma", leaf7.ebx, 21, kAvx512},
      {"avx512cd", leaf7.ebx, 28, kAvx512},
      {"avx512bw", leaf7.ebx, 30, kAvx512},
      {"avx512vl", leaf7.ebx, 31, kAvx512},
      {"avx512vbmi", leaf7.ecx, 1, kAvx512},
      {"avx512vbmi2", leaf7.ecx, 6, kAvx512},
      {"avx512vnni", leaf7.ecx, 11, kAvx512},
      {"avx512bitalg", leaf7.ecx, 12, kAvx512},
      {"avx512vpopcntdq", leaf7.ecx, 14, kAvx512},
      {"avx512vp2intersect", leaf7.edx, 8, kAvx512},
      {"avx512bf16", leaf7_1.eax, 5, kAvx512},
      {"avx512fp16", leaf7.edx, 23, kAvx512},
  };
  // These are listed only if the processor has them, so that the keys of devices without them,
  // under which measurements are stored, do not change.
  const Feature matrix_units[] = {
      {"amx-tile", leaf7.edx, 24, kTiles},
      {"amx-int8", leaf7.edx, 25, kTiles},
      {"amx-bf16", leaf7.edx, 22, kTiles},
  };
  // These features distinguish generations of processors; no kernel uses them.
  const Feature identifying[] = {
      {"clwb", leaf7.ebx, 24, kAlways},
      {"amx-fp16", leaf7_1.eax, 21, kAlways},
      {"prefetchi", leaf7_1.edx, 14, kAlways},
  };
  const auto is_present = [&](const Feature& f) {
    const bool usable[] = {true, avx_state, avx512_state, tile_state};
    return usable[f.state] && ((f.word >> f.bit) & 1);
  };
  ProcessorId id;
  for (const Feature& f : features) {
    const bool present = is_present(f);
    d.features.push_back((present ? "+" : "-") + std::string(f.name));
    if (present) id.features.emplace_back(f.name);
  }
  for (const Feature& f : matrix_units)
    if ((f.word >> f.bit) & 1) d.features.push_back((is_present(f) ? "+" : "-") + std::string(f.name));
  for (const Feature& f : identifying)
    if (is_present(f)) id.features.emplace_back(f.name);

  id.vendor = vendor;
  id.family = static_cast<int>((leaf1.eax >> 8) & 15);
  id.model = static_cast<int>((leaf1.eax >> 4) & 15);
  if (id.family == 6 || id.family == 15) id.model += static_cast<int>((leaf1.eax >> 16) & 15) << 4;
  if (id.family == 15) id.family += static_cast<int>((leaf1.eax >> 20) & 255);
  d.cpu = micro_architecture(id);
  if (d.has_feature("avx512vl")) {
    d.vector_bytes = 64;
    d.vector_registers = 32;
  } else if (d.has_feature("avx2")) {
    d.vector_bytes = 32;
  }
  d.fma_per_cycle = fma_per_cycle(id, d.cpu, d.vector_bytes);
}

#elif defined(__aarch64__)

void probe_isa(Device& d) {
  d.arch = "aarch64";
  d.features = {"+neon"};
  d.vector_registers = 32;
  d.fma_per_cycle = 2;
  const std::string part = proc_value("/proc/cpuinfo", "CPU part");
  if (part == "0xd0c") d.cpu = "neoverse-n1";
  if (part == "0xd40") d.cpu = "neoverse-v1";
  if (part == "0xd49") d.cpu = "neoverse-n2";
  if (part == "0xd4f") d.cpu = "neoverse-v2";
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
  const int most = static_cast<int>(machine.allowed.size());
  if (threads < 0 || threads > most) {
    return Error{ErrorCode::kInvalidArgument, "device local",
                 std::to_string(threads) + " threads were requested, but this process may use " +
                     std::to_string(most) + " processors"};
  }
  d.cores = threads > 0 ? threads : machine.usable;
  d.description = proc_value("/proc/cpuinfo", "model name");
  probe_caches(d, machine.allowed.front());
  d.clock_ghz = probe_clock_ghz(machine.allowed.front());
  d.rates = known_rates(d.cpu);
  d.memory_gb = std::round(static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                           static_cast<double>(sysconf(_SC_PAGE_SIZE)) / double(1 << 30));
  d.peak_f32_gflops = computed_peak_gflops(d);
  return d;
}

}  // namespace tensorsmith::target
