// The interface of a writer: a source of schedules for one task with knowledge of its own, such as
// a language model.
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
  // Returns distinct legal candidates, the likeliest first, none of them known; fewer than `count`
  // if no more are found.
  virtual Result<std::vector<space::Candidate>> write(size_t count, const Known& known, Rng& rng) = 0;
  // Likewise, starting from `parents`, which must be legal: each candidate keeps the decisions of a
  // parent up to a random one, and the writer chooses the rest. So the writer's distribution, given
  // the kept decisions, is the prior of a mutation.
  virtual Result<std::vector<space::Candidate>> rewrite(std::span<const space::Candidate> parents,
                                                        size_t count, const Known& known, Rng& rng) = 0;
};

}  // namespace tensorsmith::search
