#include "search/measured_programs.h"

#include <algorithm>
#include <cmath>

#include "record/disturbance.h"

namespace tensorsmith::search {

void MeasuredPrograms::count_failure(const record::MeasureResult& result) {
  ++failures_;
  if (failures_by_outcome_.empty()) first_failure_ = result.reason;
  ++failures_by_outcome_[result.outcome];
}

void MeasuredPrograms::take(const Proposal& proposal, const record::MeasureResult& result, bool verified,
                            std::shared_ptr<const ProgramInputs> inputs) {
  const double seconds = result.best_estimate();
  ++trials_;
  if (!result.ok()) count_failure(result);
  if (is_default(proposal.hash)) {
    default_seconds_ = seconds;
    default_result_ = result;
  }
  if (proposal.candidate) candidates_.push_back({*proposal.candidate, seconds, proposal.reason});
  const bool has_inputs = inputs != nullptr;
  if (has_inputs) rows_.push_back({std::move(inputs), seconds, record::trust(result.disturbance)});
  if (!result.ok()) return;
  ran_.push_back({proposal.hash, proposal.trace, seconds, is_default(proposal.hash), verified,
                  proposal.candidate ? candidates_.size() : 0, has_inputs ? rows_.size() : 0,
                  result.disturbance});
  best_seconds_ = std::min(best_seconds_, seconds);
}

std::vector<RunProgram> MeasuredPrograms::fastest(size_t count) const {
  std::vector<RunProgram> sorted;
  for (const bool verified : {true, false}) {
    for (const RunProgram& program : ran_)
      if (program.verified == verified) sorted.push_back(program);
    if (!sorted.empty()) break;
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const RunProgram& a, const RunProgram& b) { return a.seconds < b.seconds; });
  if (sorted.size() > count) sorted.resize(count);
  return sorted;
}

const RunProgram* MeasuredPrograms::fastest_with_inputs() const {
  const RunProgram* best = nullptr;
  for (const RunProgram& program : ran_)
    if (program.row > 0 && (best == nullptr || program.seconds < best->seconds)) best = &program;
  return best;
}

const MeasuredCandidate* MeasuredPrograms::best_candidate() const {
  const MeasuredCandidate* best = nullptr;
  for (const MeasuredCandidate& m : candidates_)
    if (std::isfinite(m.seconds) && (best == nullptr || m.seconds < best->seconds)) best = &m;
  return best;
}

std::vector<RunProgram> MeasuredPrograms::doubtful_losers(double seconds, size_t count) const {
  const auto least = [](const RunProgram& p) { return record::trust(p.disturbance) * p.seconds; };
  std::vector<RunProgram> losers;
  for (const RunProgram& program : ran_)
    if (record::is_doubtful(program.disturbance) && program.seconds > seconds && least(program) < seconds)
      losers.push_back(program);
  std::stable_sort(losers.begin(), losers.end(),
                   [&](const RunProgram& a, const RunProgram& b) { return least(a) < least(b); });
  if (losers.size() > count) losers.resize(count);
  return losers;
}

std::vector<RunProgram> MeasuredPrograms::doubtful() const {
  const RunProgram *fastest = nullptr, *untuned = nullptr;
  for (const RunProgram& program : ran_) {
    if (fastest == nullptr || program.seconds < fastest->seconds) fastest = &program;
    if (program.is_default) untuned = &program;
  }
  std::vector<RunProgram> list;
  if (untuned != nullptr && !untuned->verified) list.push_back(*untuned);
  if (fastest != nullptr && !fastest->verified && fastest != untuned) list.push_back(*fastest);
  return list;
}

void MeasuredPrograms::verify(uint64_t hash, const record::MeasureResult& result) {
  const auto at =
      std::find_if(ran_.begin(), ran_.end(), [&](const RunProgram& program) { return program.hash == hash; });
  TS_CHECK(at != ran_.end(), "a program was verified that was never measured");
  const double seconds = result.best_estimate();
  if (at->candidate > 0) candidates_[at->candidate - 1].seconds = seconds;
  if (at->row > 0) {
    rows_[at->row - 1].seconds = seconds;
    rows_[at->row - 1].weight = record::trust(result.disturbance);
  }
  if (at->is_default) {
    default_seconds_ = seconds;
    default_result_ = result;
  }
  if (result.ok()) {
    at->seconds = seconds;
    at->disturbance = result.disturbance;
    at->verified = true;
  } else {
    count_failure(result);
    ran_.erase(at);
  }
  best_seconds_ = std::numeric_limits<double>::infinity();
  for (const RunProgram& program : ran_) best_seconds_ = std::min(best_seconds_, program.seconds);
  if (!history_.empty()) history_.back() = best_seconds_;
}

void MeasuredPrograms::drop_doubtful() {
  double best = std::numeric_limits<double>::infinity();
  for (const RunProgram& program : ran_)
    if (program.verified) best = std::min(best, program.seconds);
  std::erase_if(ran_, [&](const RunProgram& p) { return !p.verified && p.seconds < best; });
  best_seconds_ = best;
  if (!history_.empty()) history_.back() = best_seconds_;
}

std::string MeasuredPrograms::failure_counts() const {
  std::string text;
  for (const auto& [outcome, count] : failures_by_outcome_)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(to_string(outcome));
  return text + "; the first: " + first_failure_;
}

}  // namespace tensorsmith::search
