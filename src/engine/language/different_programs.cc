#include "engine/language/different_programs.h"

#include <set>

#include "sched/trace_traits.h"

namespace tensorsmith::engine {

Result<std::vector<space::Candidate>> different_programs(const space::DesignSpace& space,
                                                         std::vector<space::Candidate> candidates,
                                                         size_t count) {
  std::vector<space::Candidate> result;
  std::set<uint64_t> programs;
  for (size_t i = 0; i < candidates.size() && result.size() < count; ++i) {
    TS_ASSIGN_OR_RETURN(const sched::Trace trace, space.to_trace(candidates[i]));
    if (programs.insert(sched::hash(trace)).second) result.push_back(std::move(candidates[i]));
  }
  return result;
}

}  // namespace tensorsmith::engine
