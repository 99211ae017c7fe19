// A search space of programs of a task that were already measured. A search in it needs no machine,
// and its best program is known. The programs may come from Tensorsmith's databases or from Ansor's
// and TenSet's records.
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
  std::shared_ptr<const ProgramInputs> inputs;  // null: could not be created
  record::MeasureResult result;
  double estimate = 0;  // seconds by the estimate of the design space that the program belongs to; 0: none
};

// A candidate consists of a structure (steps and the positions that they name) and the number of a
// program. The distance of two programs is the difference of the numbers in their steps (lengths,
// unrolling) in octaves. Mutation mostly steps to one of the nearest programs of the same
// structure. If the design space's estimate is known for all programs that ran, it is their draft;
// otherwise the estimate is the same for all programs.
class RecordedSpace final : public SearchSpace {
 public:
  // Keeps only the first of programs with equal traces. The untuned program is the one with the least
  // estimate, or the first that ran if there are no estimates. kInvalidArgument if none ran.
  static Result<std::shared_ptr<const RecordedSpace>> create(ir::Workload workload,
                                                             std::vector<RecordedProgram> programs);

  size_t size() const { return programs_.size(); }
  // Seconds of the fastest program.
  double best_seconds() const { return best_seconds_; }
  // Returns null for a trace that was not recorded.
  const record::MeasureResult* result_of(const sched::Trace& trace) const;

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
  double estimate(const space::Candidate& candidate) const override {
    return has_estimates_ ? programs_[number_of(candidate)].estimate : kNoEstimate;
  }
  Result<sched::Trace> to_trace(const space::Candidate& candidate) const override;
  Result<int64_t> temporary_bytes(const space::Candidate& candidate,
                                  const target::Device& device) const override;
  // kUnsupported if the source is another kind of space, kNotFound if no program here has the
  // structure.
  Result<space::Candidate> rescale(const SearchSpace& source,
                                   const space::Candidate& candidate) const override;
  std::unique_ptr<InputsOfCandidates> make_extractor(std::shared_ptr<const QueriedTask> task,
                                                     const learn::ModelInputs& wanted) const override;

 private:
  // Seconds without a draft; less than any program takes, so that it bounds nothing.
  static constexpr double kNoEstimate = 1e-9;

  RecordedSpace() = default;
  size_t number_of(const space::Candidate& candidate) const { return candidate.decisions.front(); }
  space::Candidate candidate(size_t number) const;
  void find_neighbours();
  // Returns the program of the structure that is nearest to the coordinates, except those in
  // `left_out`.
  std::optional<size_t> nearest(size_t structure, const std::vector<float>& coordinates,
                                std::span<const size_t> left_out) const;

  ir::Workload workload_;
  std::vector<RecordedProgram> programs_;
  std::unordered_map<uint64_t, size_t> by_hash_;  // of the trace
  std::vector<size_t> structure_of_;              // by program
  std::vector<std::vector<float>> coordinates_;   // by program
  std::vector<std::vector<size_t>> near_;         // by program: its neighbours, nearest first
  std::vector<std::string> structures_;           // texts of the structures
  std::vector<std::vector<size_t>> members_;      // by structure
  size_t default_ = 0;
  double best_seconds_ = 0;
  bool has_estimates_ = false;
};

}  // namespace tensorsmith::search
