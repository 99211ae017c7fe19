#include "base/memory.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/cgroup.h"
#include "base/input_file.h"

namespace tensorsmith {
namespace {

// Larger than any of these files.
constexpr int64_t kMaxMemoryFile = 4096;

// "max" and unreadable files mean that there is no limit.
double number_in(const std::string& path) {
  const auto text = read_input(path, kMaxMemoryFile);
  if (!text.ok()) return std::numeric_limits<double>::infinity();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc() && value > 0 ? value : std::numeric_limits<double>::infinity();
}

double limit_of_v2(const std::string& folder) { return number_in(folder + "/memory.max"); }
double limit_of_v1(const std::string& folder) { return number_in(folder + "/memory.limit_in_bytes"); }

}  // namespace

int64_t memory_limit(const std::string& proc, const std::string& sys) {
  const double machine =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return static_cast<int64_t>(
      std::min(machine, least_cgroup_limit(proc, sys, "memory", limit_of_v2, limit_of_v1)));
}

int64_t resident_bytes() {
  // The file begins with "total resident shared ...", in pages.
  const auto text = read_input("/proc/self/statm", kMaxMemoryFile);
  if (!text.ok()) return 0;
  const size_t blank = text->find(' ');
  if (blank == std::string::npos) return 0;
  int64_t pages = 0;
  std::from_chars(text->data() + blank + 1, text->data() + text->size(), pages);
  return pages * ::sysconf(_SC_PAGESIZE);
}

}  // namespace tensorsmith
