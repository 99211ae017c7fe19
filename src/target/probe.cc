// The machine this process runs on, from CPUID (x86-64) and /sys, /proc (Linux).
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>

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

// "48K", "1M", "512" -> bytes; 0 if absent.
int64_t parse_size(const std::string& text) {
  int64_t value = parse_int(text);
  if (text.ends_with("K")) value <<= 10;
  if (text.ends_with("M")) value <<= 20;
  return value;
}

// The first value of a "key : value" line in /proc/cpuinfo or /proc/meminfo; empty if absent.
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

// Rounded to 0.1 GHz, so that the device key does not follow the jitter of what the kernel reports.
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
  CpuId(uint32_t leaf, uint32_t subleaf) { __get_cpuid_count(leaf, subleaf, &eax, &ebx, &ecx, &edx); }
};

// Extended control register 0: which register states the operating system saves.
uint64_t read_xcr0() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

// LLVM's CPU name where the model is known; the feature list states the truth about each feature, the name
// decides the scheduling model only.
std::string cpu_name(bool amd, bool intel, int family, int model, const Device& d) {
  if (amd) {
    if (family == 0x17) return model >= 0x30 ? "znver2" : "znver1";
    if (family == 0x19) return d.has_feature("avx512f") ? "znver4" : "znver3";
    if (family >= 0x1a) return "znver5";
  }
  if (intel && family == 6) {
    switch (model) {
      case 0x3c:
      case 0x3f:
      case 0x45:
      case 0x46:
        return "haswell";
      case 0x3d:
      case 0x47:
      case 0x4f:
      case 0x56:
        return "broadwell";
      case 0x4e:
      case 0x5e:
      case 0x8e:
      case 0x9e:
      case 0xa5:
      case 0xa6:
        return "skylake";
      case 0x55:
        return d.has_feature("avx512bf16")   ? "cooperlake"
               : d.has_feature("avx512vnni") ? "cascadelake"
                                             : "skylake-avx512";
      case 0x6a:
      case 0x6c:
        return "icelake-server";
      case 0x7d:
      case 0x7e:
        return "icelake-client";
      case 0x8c:
      case 0x8d:
        return "tigerlake";
      case 0x8f:
        return "sapphirerapids";
      case 0xcf:
        return "emeraldrapids";
      case 0xad:
      case 0xae:
        return "graniterapids";
      case 0x97:
      case 0x9a:
      case 0xb7:
      case 0xba:
      case 0xbf:
        return "alderlake";
      default:
        break;
    }
  }
  if (d.has_feature("avx512vl")) return "x86-64-v4";
  if (d.has_feature("avx2")) return "x86-64-v3";
  return d.has_feature("sse4.2") ? "x86-64-v2" : "x86-64";
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
  const CpuId leaf7_1(7, 1);
  const CpuId extended(0x80000001, 0);
  const bool os_saves = (leaf1.ecx >> 27) & 1;
  const uint64_t xcr0 = os_saves ? read_xcr0() : 0;
  const bool avx_state = (xcr0 & 6) == 6;
  const bool avx512_state = (xcr0 & 0xe6) == 0xe6;

  enum State { kAlways, kAvx, kAvx512 };
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
  for (const Feature& f : features) {
    const bool usable = f.state == kAlways || (f.state == kAvx ? avx_state : avx512_state);
    const bool present = usable && ((f.word >> f.bit) & 1);
    d.features.push_back((present ? "+" : "-") + std::string(f.name));
  }

  int family = static_cast<int>((leaf1.eax >> 8) & 15);
  int model = static_cast<int>((leaf1.eax >> 4) & 15);
  if (family == 6 || family == 15) model += static_cast<int>((leaf1.eax >> 16) & 15) << 4;
  if (family == 15) family += static_cast<int>((leaf1.eax >> 20) & 255);
  const bool amd = std::strcmp(vendor, "AuthenticAMD") == 0;
  const bool intel = std::strcmp(vendor, "GenuineIntel") == 0;
  d.cpu = cpu_name(amd, intel, family, model, d);
  if (d.has_feature("avx512vl")) {
    d.vector_bytes = 64;
    d.vector_registers = 32;
  } else if (d.has_feature("avx2")) {
    d.vector_bytes = 32;
  }
  // Two FMA pipes are the rule; Zen 4 splits a 512-bit operation, and client cores with AVX-512 have one
  // 512-bit pipe. Without FMA a multiply and an add take two slots.
  d.fma_per_cycle = 2;
  const bool one_pipe = d.cpu == "znver4" || d.cpu == "icelake-client" || d.cpu == "tigerlake";
  if (d.vector_bytes == 64 && one_pipe) d.fma_per_cycle = 1;
  if (d.cpu == "znver1" || !d.has_feature("fma")) d.fma_per_cycle = 1;
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

// What no file of the operating system says: that of a known device with the same cores.
CoreRates known_rates(const std::string& cpu) {
  for (const Device& known : registry())
    if (known.kind == DeviceKind::kCpu && known.cpu == cpu) return known.rates;
  return {};
}

}  // namespace

Result<Device> probe_local(int threads) {
  Device d;
  d.name = "local";
#if defined(__x86_64__) || defined(__aarch64__)
  probe_isa(d);
#else
  return Error{ErrorCode::kUnsupported, "device local", "only x86-64 and aarch64 machines can be probed"};
#endif
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int first_cpu = 0;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0 && CPU_COUNT(&mask) > 0) {
    d.cores = CPU_COUNT(&mask);
    while (!CPU_ISSET(first_cpu, &mask)) ++first_cpu;
  } else {
    d.cores = static_cast<int>(std::max<long>(1, sysconf(_SC_NPROCESSORS_ONLN)));
  }
  if (threads < 0 || threads > d.cores) {
    return Error{ErrorCode::kInvalidArgument, "device local",
                 std::to_string(threads) + " threads asked for, but this process may use " +
                     std::to_string(d.cores) + " cores"};
  }
  if (threads > 0) d.cores = threads;
  d.description = proc_value("/proc/cpuinfo", "model name");
  probe_caches(d, first_cpu);
  d.clock_ghz = probe_clock_ghz(first_cpu);
  d.rates = known_rates(d.cpu);
  d.memory_gb = std::round(static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                           static_cast<double>(sysconf(_SC_PAGE_SIZE)) / double(1 << 30));
  d.peak_f32_gflops = d.cores * d.clock_ghz * d.fma_per_cycle * 2 * d.vector_bytes / 4;
  return d;
}

}  // namespace tensorsmith::target
