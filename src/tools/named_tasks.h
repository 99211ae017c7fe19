// Tasks of a database that a command line names (--task).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "record/database.h"

namespace tensorsmith::tools {

// Returns the keys of the tasks of which a text is the key or the beginning of the name. kNotFound for a text
// that fits no task.
Result<std::set<std::string>> named_tasks(const std::vector<record::TaskInfo>& tasks,
                                          const std::vector<std::string>& texts);

}  // namespace tensorsmith::tools
