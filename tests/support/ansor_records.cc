#include "support/ansor_records.h"

#include <cstdio>
#include <memory>

namespace tensorsmith::test {

using namespace sched;  // NOLINT: the steps by their names

namespace {

ir::MemoryScope scope_of(const std::string& name) {
  return name == "shared"  ? ir::MemoryScope::kShared
         : name == "local" ? ir::MemoryScope::kLocal
                           : ir::MemoryScope::kGlobal;
}

}  // namespace

sched::Step ansor_step(const nlohmann::json& s) {
  const std::string kind = s[0];
  if (kind == "SP")
    return Split{s[1], s[2], s[4].get<std::vector<int64_t>>(), s[5] != 0, TailPolicy::kPredicate};
  if (kind == "FSP") return FollowSplit{s[1], s[2], s[3], s[4]};
  if (kind == "FFSP") return FollowFusedSplit{s[1], s[2], s[3].get<std::vector<int>>(), s[4], s[5] != 0};
  if (kind == "RE") return Reorder{s[1], s[2].get<std::vector<int>>()};
  if (kind == "FU") return Fuse{s[1], s[2].get<std::vector<int>>()};
  if (kind == "AN") return Annotate{s[1], s[2], static_cast<Annotation>(s[3].get<int>())};
  if (kind == "PR") {
    const std::string pragma = s[3];
    return Unroll{s[1], std::stoll(pragma.substr(pragma.find('$') + 1))};
  }
  if (kind == "CA") return ComputeAt{s[1], s[2], s[3]};
  if (kind == "CI") return ComputeInline{s[1]};
  if (kind == "CR") return ComputeRoot{s[1]};
  if (kind == "CHR") return CacheRead{s[1], scope_of(s[2]), s[3].get<std::vector<int>>()};
  if (kind == "CHW") return CacheWrite{s[1], scope_of(s[2])};
  if (kind == "RF") return Rfactor{s[1], s[2], s[3]};
  return StorageAlign{s[1], s[2], s[3], s[4]};
}

std::vector<std::string> zst_lines(const std::string& path, size_t every) {
  std::vector<std::string> lines;
  const std::string command = "zstd -dcq '" + path + "' 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string line;
  size_t number = 0;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    if (number++ % every == 0) lines.push_back(line);
    line.clear();
  }
  return lines;
}

}  // namespace tensorsmith::test
