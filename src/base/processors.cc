#include "base/processors.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

#include "base/cgroup.h"
#include "base/input_file.h"

namespace tensorsmith {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
// More bytes than any file has that is read here: each consists of one line.
constexpr int64_t kMaxProcessorFile = 64 << 10;
// More processors than any system has.
constexpr int kMaxProcessors = 1 << 20;

// Returns an empty string if the file cannot be read.
std::string text_of(const std::string& path) {
  auto text = read_input(path, kMaxProcessorFile);
  return text.ok() ? std::move(text).value() : std::string();
}

// Returns the number at the beginning of the text.
std::optional<int64_t> leading_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// The file contains "0,64" or "0-1". Lists are ascending, so that the first number is the same for
// all siblings.
int core_of(int processor, const ProcessorPaths& paths) {
  const auto first = leading_number(text_of(paths.sys + "/devices/system/cpu/cpu" +
                                            std::to_string(processor) + "/topology/thread_siblings_list"));
  return first && *first >= 0 && *first <= processor ? *first : processor;
}

double ratio(std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return kNoLimit;
  return static_cast<double>(*quota) / *period;
}

// The file contains "150000 100000" or "max 100000", in microseconds.
double quota_of_v2(const std::string& folder) {
  const std::string text = text_of(folder + "/cpu.max");
  const size_t blank = text.find(' ');
  if (blank == std::string::npos) return kNoLimit;
  return ratio(leading_number(text), leading_number(std::string_view(text).substr(blank + 1)));
}

// A quota of -1 means no limit.
double quota_of_v1(const std::string& folder) {
  const auto quota = leading_number(text_of(folder + "/cpu.cfs_quota_us"));
  if (!quota || *quota <= 0) return kNoLimit;
  return ratio(quota, leading_number(text_of(folder + "/cpu.cfs_period_us")));
}

// Formats a number like "2", "2.5" or "0.25".
std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  std::string out = text;
  out.erase(out.find_last_not_of('0') + 1);
  if (out.ends_with('.')) out.pop_back();
  return out;
}

std::string counted(int count, const char* one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

}  // namespace

ProcessorMask::ProcessorMask(int highest) : sets_(highest / CPU_SETSIZE + 1) { assign({}); }

void ProcessorMask::assign(const std::vector<int>& numbers) {
  CPU_ZERO_S(bytes(), data());
  for (const int number : numbers) {
    if (number >= 0 && std::cmp_less(number, 8 * bytes())) CPU_SET_S(number, bytes(), data());
  }
}

std::vector<int> ProcessorMask::numbers() const {
  std::vector<int> out;
  for (size_t number = 0; number < 8 * bytes(); ++number) {
    if (CPU_ISSET_S(number, bytes(), data())) out.push_back(number);
  }
  return out;
}

std::vector<int> allowed_processors() {
  std::vector<int> allowed;
  // EINVAL means that the mask has fewer bits than the system may have processors.
  for (int count = CPU_SETSIZE; count <= kMaxProcessors; count *= 2) {
    ProcessorMask mask(count - 1);
    if (::sched_getaffinity(0, mask.bytes(), mask.data()) == 0) {
      allowed = mask.numbers();
      break;
    }
    if (errno != EINVAL) break;
  }
  if (allowed.empty()) {
    allowed.resize(std::max(1U, std::thread::hardware_concurrency()));
    std::iota(allowed.begin(), allowed.end(), 0);
  }
  return allowed;
}

Processors processors_of(std::vector<int> allowed, const ProcessorPaths& paths) {
  Processors out;
  out.allowed = std::move(allowed);
  for (const int processor : out.allowed) out.cores.push_back(core_of(processor, paths));
  const std::set<int> different(out.cores.begin(), out.cores.end());
  out.physical_cores = std::max<int>(1, different.size());
  out.quota = least_cgroup_limit(paths.proc, paths.sys, "cpu", quota_of_v2, quota_of_v1);
  const int visible = std::max<int>(1, out.allowed.size());
  out.at_once = out.quota < visible ? std::max(1, static_cast<int>(std::floor(out.quota))) : visible;
  out.usable = std::min(out.physical_cores, out.at_once);
  return out;
}

Processors processors(const ProcessorPaths& paths) { return processors_of(allowed_processors(), paths); }

std::string shortage(const Processors& p) {
  const int visible = p.allowed.size();
  if (p.quota < p.physical_cores) {
    return "this process sees " + counted(visible, "processor") +
           ", but a cgroup limits its processor time to that of " + short_number(p.quota) +
           "; the default is " + counted(p.usable, "thread");
  }
  if (p.physical_cores < visible) {
    return "this process sees " + counted(visible, "processor") + ", which are hardware threads of " +
           counted(p.physical_cores, "core") + "; the default is " + counted(p.usable, "thread");
  }
  return "";
}

std::vector<int> spread_over_cores(const Processors& p) {
  // Sorted by the number of preceding processors of the same core.
  std::vector<std::pair<int, size_t>> order;
  for (size_t i = 0; i < p.allowed.size(); ++i) {
    const auto end = p.cores.begin() + i;
    order.emplace_back(static_cast<int>(std::count(p.cores.begin(), end, p.cores[i])), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<int> out;
  for (const auto& entry : order) out.push_back(p.allowed[entry.second]);
  return out;
}

void processors_beside(const Processors& p, int processor, int threads, std::vector<int>& others) {
  others.clear();
  const auto at = std::find(p.allowed.begin(), p.allowed.end(), processor);
  const bool known = at != p.allowed.end();
  const bool enough = known && p.physical_cores >= threads;
  const int core = known ? p.cores[at - p.allowed.begin()] : -1;
  for (size_t i = 0; i < p.allowed.size(); ++i) {
    if (p.allowed[i] != processor && !(enough && p.cores[i] == core)) others.push_back(p.allowed[i]);
  }
}

bool may_use_tiles() {
#if defined(__x86_64__)
  constexpr long kRequestState = 0x1023,
                 kTileData = 18;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h, and the number of the state component
  static const bool granted = ::syscall(SYS_arch_prctl, kRequestState, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}

}  // namespace tensorsmith
