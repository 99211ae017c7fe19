#include "tools/named_tasks.h"

namespace tensorsmith::tools {

Result<std::set<std::string>> named_tasks(const std::vector<record::TaskInfo>& tasks,
                                          const std::vector<std::string>& texts) {
  std::set<std::string> keys;
  for (const std::string& text : texts) {
    bool fits = false;
    for (const record::TaskInfo& task : tasks) {
      if (text.empty() || (task.key != text && !task.name.starts_with(text))) continue;
      fits = true;
      keys.insert(task.key);
    }
    if (!fits)
      return Error{ErrorCode::kNotFound, "--task " + text,
                   "there is no task whose name begins with this text or whose key it is"};
  }
  return keys;
}

}  // namespace tensorsmith::tools
