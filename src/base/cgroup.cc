#include "base/cgroup.h"

#include <algorithm>
#include <limits>

#include "base/input_file.h"

namespace tensorsmith {
namespace {

// Larger than any of these files, which have a line for each of a dozen cgroup hierarchies.
constexpr int64_t kMaxCgroupFile = 64 << 10;

// A container may see its own cgroup as the root of the mount, although the path is the one
// outside; then only the limit at the root is found.
double least_of(const std::string& mount, std::string_view path, CgroupLimit limit_of) {
  double least = limit_of(mount);
  // A path that leaves the root of the cgroup namespace.
  if (!path.starts_with("/") || path.find("/..") != std::string_view::npos) return least;
  for (; path.size() > 1; path = path.substr(0, path.rfind('/')))
    least = std::min(least, limit_of(mount + std::string(path)));
  return least;
}

bool names(std::string_view controllers, std::string_view controller) {
  while (true) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == controller) return true;
    if (comma == std::string_view::npos) return false;
    controllers.remove_prefix(comma + 1);
  }
}

}  // namespace

double least_cgroup_limit(const std::string& proc, const std::string& sys, std::string_view controller,
                          CgroupLimit version2, CgroupLimit version1) {
  // The lines have the form "0::/path" (version 2) and "4:cpu,cpuacct:/path" (version 1).
  const auto text = read_input(proc + "/self/cgroup", kMaxCgroupFile);
  const std::string root = sys + "/fs/cgroup";
  double least = std::numeric_limits<double>::infinity();
  if (!text.ok()) return least;
  for (std::string_view rest = *text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, least_of(root, path, version2));
    } else if (names(controllers, controller)) {
      // The mount is named after all of its controllers, or after this one.
      const std::string together = root + "/" + std::string(controllers);
      least = std::min(least, least_of(together, path, version1));
      if (controllers != controller)
        least = std::min(least, least_of(root + "/" + std::string(controller), path, version1));
    }
  }
  return least;
}

}  // namespace tensorsmith
