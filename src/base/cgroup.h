// Limits that the system sets to a group of processes and the groups around it.
#pragma once

#include <string>
#include <string_view>

namespace tensorsmith {

// Reads a limit in a cgroup's folder; infinity where there is none.
using CgroupLimit = double (*)(const std::string& folder);

// The least limit of this process' cgroup and of all around it: each limits what is in it. Of version 2 and of the
// version 1 controller ("cpu", "memory"); a system may have both. proc, sys: where these file systems are.
double least_cgroup_limit(const std::string& proc, const std::string& sys, std::string_view controller,
                          CgroupLimit version2, CgroupLimit version1);

}  // namespace tensorsmith
