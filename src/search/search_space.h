// The interface of the set of programs that a task may have: a search can draw and vary points, and
// query what is known about each without measuring. There are two kinds: the design space of a
// workload, and a set of programs that were already measured (recorded_space.h).
#pragma once

#include <memory>
#include <vector>

#include "search/pipeline.h"
#include "space/design_space.h"

namespace tensorsmith::search {

class SearchSpace {
 public:
  virtual ~SearchSpace() = default;

  virtual const ir::Workload& workload() const = 0;
  virtual size_t num_sketches() const = 0;
  // The untuned program, which is measured first, and the fallback if it fails.
  virtual space::Candidate default_candidate() const = 0;
  virtual space::Candidate plain_candidate() const = 0;
  virtual space::Candidate sample(Rng& rng) const = 0;
  // Like the functions of space::DesignSpace with these names.
  virtual space::Candidate mutate(const space::Candidate& candidate, Rng& rng) const = 0;
  virtual std::vector<space::Candidate> neighbours(const space::Candidate& candidate) const = 0;
  virtual space::Candidate crossover(const space::Candidate& a, const space::Candidate& b,
                                     Rng& rng) const = 0;
  // Returns all legal candidates of the sketches with at most `limit` points each.
  virtual std::vector<space::Candidate> listed(size_t limit) const = 0;
  virtual Status check(const space::Candidate& candidate) const = 0;
  // Returns the draft's estimate in seconds; +inf for a candidate that cannot be built. A space
  // without a draft returns the same value for all.
  virtual double estimate(const space::Candidate& candidate) const = 0;
  virtual Result<sched::Trace> to_trace(const space::Candidate& candidate) const = 0;
  // Returns sched::temporary_bytes of the candidate's program.
  virtual Result<int64_t> temporary_bytes(const space::Candidate& candidate,
                                          const target::Device& device) const = 0;
  // Returns the candidate nearest to one of another task of the same kernel class.
  virtual Result<space::Candidate> rescale(const SearchSpace& source,
                                           const space::Candidate& candidate) const = 0;
  // Makes an object that computes inputs of candidates; each thread needs its own.
  virtual std::unique_ptr<InputsOfCandidates> make_extractor(std::shared_ptr<const QueriedTask> task,
                                                             const learn::ModelInputs& wanted) const = 0;
};

// All programs of a design space.
class DesignedSpace final : public SearchSpace {
 public:
  explicit DesignedSpace(space::DesignSpace space) : space_(std::move(space)) {}

  const space::DesignSpace& design() const { return space_; }

  const ir::Workload& workload() const override { return space_.workload(); }
  size_t num_sketches() const override { return space_.num_sketches(); }
  space::Candidate default_candidate() const override { return space_.default_candidate(); }
  space::Candidate plain_candidate() const override { return space_.plain_candidate(); }
  space::Candidate sample(Rng& rng) const override { return space_.sample(rng); }
  space::Candidate mutate(const space::Candidate& candidate, Rng& rng) const override {
    return space_.mutate(candidate, rng);
  }
  std::vector<space::Candidate> neighbours(const space::Candidate& candidate) const override {
    return space_.neighbours(candidate);
  }
  space::Candidate crossover(const space::Candidate& a, const space::Candidate& b, Rng& rng) const override {
    return space_.crossover(a, b, rng);
  }
  std::vector<space::Candidate> listed(size_t limit) const override;
  Status check(const space::Candidate& candidate) const override { return space_.check(candidate); }
  double estimate(const space::Candidate& candidate) const override { return space_.estimate(candidate); }
  Result<sched::Trace> to_trace(const space::Candidate& candidate) const override {
    return space_.to_trace(candidate);
  }
  Result<int64_t> temporary_bytes(const space::Candidate& candidate,
                                  const target::Device& device) const override;
  // kUnsupported if the source is another kind of space.
  Result<space::Candidate> rescale(const SearchSpace& source,
                                   const space::Candidate& candidate) const override;
  std::unique_ptr<InputsOfCandidates> make_extractor(std::shared_ptr<const QueriedTask> task,
                                                     const learn::ModelInputs& wanted) const override {
    return std::make_unique<CandidateFeatures>(space_, std::move(task), wanted);
  }

 private:
  space::DesignSpace space_;
};

}  // namespace tensorsmith::search
