#include "search/search_space.h"

#include "sched/regions.h"
#include "sched/storage.h"

namespace tensorsmith::search {

std::vector<space::Candidate> DesignedSpace::listed(size_t limit) const {
  std::vector<space::Candidate> all;
  for (size_t k = 0; k < space_.num_sketches(); ++k) {
    const int sketch = k;
    if (space_.size(sketch) > limit) continue;
    for (auto& candidate : space_.enumerate(sketch, limit))
      if (space_.check(candidate).ok()) all.push_back(std::move(candidate));
  }
  return all;
}

Result<int64_t> DesignedSpace::temporary_bytes(const space::Candidate& candidate,
                                               const target::Device& device) const {
  sched::Schedule schedule;
  TS_RETURN_IF_ERROR(space_.to_schedule(candidate, schedule));
  sched::RegionInference regions;
  TS_RETURN_IF_ERROR(regions.run(schedule));
  return sched::temporary_bytes(schedule, regions, device);
}

Result<space::Candidate> DesignedSpace::rescale(const SearchSpace& source,
                                                const space::Candidate& candidate) const {
  const auto* other = dynamic_cast<const DesignedSpace*>(&source);
  if (other == nullptr) return Error{ErrorCode::kUnsupported, "", "the source is not a design space"};
  return space_.rescale(other->space_, candidate);
}

}  // namespace tensorsmith::search
