// Limits that the system imposes on a cgroup and on the cgroups around it.
#pragma once

#include <string>
#include <string_view>

namespace tensorsmith {

// Reads a limit in a cgroup's directory; returns infinity if there is none.
using CgroupLimit = double (*)(const std::string& folder);

// Returns the smallest limit of this process' cgroup and all enclosing ones, since each limits
// everything in it. Reads both version 2 and the version 1 controller ("cpu", "memory"); a system
// may have both. `proc` and `sys` are the mount points of these file systems.
double least_cgroup_limit(const std::string& proc, const std::string& sys, std::string_view controller,
                          CgroupLimit version2, CgroupLimit version1);

}  // namespace tensorsmith
