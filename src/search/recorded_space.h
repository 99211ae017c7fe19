// Programs of a task that were measured once, as a space of their own: a search over it needs no machine, and its best
// program is known. Of any origin: our databases, Ansor's and TenSet's records.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "record/record.h"
#include "search/search_space.h"

namespace tensorsmith::search {

struct RecordedProgram {
  sched::Trace trace;
  std::shared_ptr<const ProgramInputs> inputs;  // null: it was never made
  record::MeasureResult result;
};

// A candidate is a structure (the steps and the places that they name) and the program's number. Programs lie as near
// to each other as the numbers of their steps (lengths, unrolling) in octaves; steps of a walk go to the
// nearest programs of the same structure. There is no draft: the estimate is the same for all.
class RecordedSpace final : public SearchSpace {
 public:
  // Of programs with equal traces the first counts. The untuned program is the first that ran. kInvalidArgument
  // where none did.
  static Result<std::shared_ptr<const RecordedSpace>> create(ir::Workload workload,
                                                             std::vector<RecordedProgram> programs);

  size_t size() const { return programs_.size(); }
  // Of the fastest program.
  double best_seconds() const { return best_seconds_; }
  // Null for a trace that was not recorded.
  const record::MeasureResult* result_of(const std::string& trace_text) const;

  const ir::Workload& workload() const override { return workload_; }
  size_t num_sketches() const override { return structures_.size(); }
  space::Candidate default_candidate() const override { return candidate(default_); }
  space::Candidate plain_candidate() const override { return candidate(default_); }
  space::Candidate sample(Rng& rng) const override { return candidate(rng.below(programs_.size())); }
  space::Candidate mutate(const space::Candidate& candidate, Rng& rng) const override;
  std::vector<space::Candidate> neighbours(const space::Candidate& candidate) const override;
  space::Candidate crossover(const space::Candidate& a, const space::Candidate& b, Rng& rng) const override;
  std::vector<space::Candidate> listed(size_t limit) const override;
  Status check(const space::Candidate& candidate) const override;
  double estimate(const space::Candidate&) const override { return kNoEstimate; }
  Result<sched::Trace> to_trace(const space::Candidate& candidate) const override;
  // kUnsupported where the source is of another kind, kNotFound where no program here has the structure.
  Result<space::Candidate> rescale(const SearchSpace& source,
                                   const space::Candidate& candidate) const override;
  std::unique_ptr<InputsOfCandidates> make_extractor(const feature::PerStoreOptions& options,
                                                     const learn::ModelInputs& wanted) const override;

 private:
  static constexpr double kNoEstimate = 1e-9;  // seconds; below what programs take, so that it bounds nothing

  RecordedSpace() = default;
  size_t number_of(const space::Candidate& candidate) const {
    return static_cast<size_t>(candidate.decisions.front());
  }
  space::Candidate candidate(size_t number) const;
  void find_neighbours();
  // Of the structure, the program nearest to the coordinates that is none of those left out.
  std::optional<size_t> nearest(size_t structure, const std::vector<float>& coordinates,
                                std::span<const size_t> left_out) const;

  ir::Workload workload_;
  std::vector<RecordedProgram> programs_;
  std::unordered_map<std::string, size_t> by_text_;
  std::vector<size_t> structure_of_;             // by program
  std::vector<std::vector<float>> coordinates_;  // by program
  std::vector<std::vector<size_t>> near_;        // by program, nearest first
  std::vector<std::string> structures_;          // their texts
  std::vector<std::vector<size_t>> members_;     // by structure
  size_t default_ = 0;
  double best_seconds_ = 0;
};

}  // namespace tensorsmith::search
