// What writes schedules of one task from knowledge of its own, as a language model does.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "space/design_space.h"

namespace tensorsmith::search {

class ScheduleWriter {
 public:
  using Known = std::function<bool(const space::Candidate&)>;

  virtual ~ScheduleWriter() = default;
  // Different legal candidates, the likeliest first, none of them known; fewer than `count` where no more are found.
  virtual Result<std::vector<space::Candidate>> write(size_t count, const Known& known, Rng& rng) = 0;
  // The same from `parents`, which are legal: each keeps the decisions up to a random one of a parent, and the rest is
  // written. So what is likely, given what is kept, is the prior of a mutation.
  virtual Result<std::vector<space::Candidate>> rewrite(std::span<const space::Candidate> parents,
                                                        size_t count, const Known& known, Rng& rng) = 0;
};

}  // namespace tensorsmith::search
