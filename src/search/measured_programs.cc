#include "search/measured_programs.h"

#include <algorithm>
#include <cmath>

#include "record/disturbance.h"

namespace tensorsmith::search {

namespace {

// For RunProgram and MeasuredCandidate.
template <class Program>
bool better(const Program& a, const Program& b) {
  return a.cost != b.cost ? a.cost < b.cost : a.seconds < b.seconds;
}

ProgramFigures figures_of(const RunProgram& program) {
  return {program.seconds, program.bytes, program.joules};
}

double joules_of(const record::MeasureResult& result) {
  return result.joules.value_or(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

double MeasuredPrograms::log_cost_of(const RunProgram& program) const {
  return std::isfinite(program.seconds) ? objective_.log_cost(figures_of(program))
                                        : std::numeric_limits<double>::infinity();
}

void MeasuredPrograms::offer(const RunProgram& program) {
  if (!(program.cost < best_cost_ || (program.cost == best_cost_ && program.seconds < best_seconds_))) return;
  best_cost_ = program.cost;
  best_seconds_ = program.seconds;
  best_log_cost_ = log_cost_of(program);
}

void MeasuredPrograms::find_best() {
  best_cost_ = best_log_cost_ = best_seconds_ = std::numeric_limits<double>::infinity();
  for (const RunProgram& program : ran_) offer(program);
}

void MeasuredPrograms::count_failure(const record::MeasureResult& result) {
  ++failures_;
  if (failures_by_outcome_.empty()) first_failure_ = result.reason;
  ++failures_by_outcome_[result.outcome];
}

void MeasuredPrograms::take(const Proposal& proposal, const record::MeasureResult& result, bool verified,
                            std::shared_ptr<const ProgramInputs> inputs, double bytes) {
  const double seconds = result.best_estimate();
  ++trials_;
  if (!result.ok()) count_failure(result);
  if (is_default(proposal.hash)) {
    default_seconds_ = seconds;
    default_result_ = result;
  }
  RunProgram program{proposal.hash, proposal.trace, seconds, is_default(proposal.hash), verified};
  program.bytes = bytes;
  program.joules = joules_of(result);
  program.cost = result.ok() ? objective_.cost(figures_of(program)) : std::numeric_limits<double>::infinity();
  if (program.is_default) default_cost_ = program.cost;
  if (proposal.candidate)
    candidates_.push_back({*proposal.candidate, seconds, proposal.reason, program.cost});
  const bool has_inputs = inputs != nullptr;
  if (has_inputs)
    rows_.push_back({std::move(inputs), seconds, record::trust(result.disturbance), proposal.candidate,
                     log_cost_of(program)});
  if (!result.ok()) return;
  program.disturbance = result.disturbance;
  if (proposal.candidate) program.candidate = candidates_.size();
  if (has_inputs) program.row = rows_.size();
  offer(program);
  ran_.push_back(std::move(program));
}

double MeasuredPrograms::judged_seconds() const {
  if (objective_.is_latency()) return best_seconds_;
  const double factor = best_cost_ / default_cost_;
  return std::isfinite(factor) && factor > 0 && std::isfinite(default_seconds_) ? default_seconds_ * factor
                                                                                : best_seconds_;
}

double MeasuredPrograms::watts() const {
  double joules = 0, seconds = 0;
  for (const RunProgram& program : ran_) {
    if (std::isnan(program.joules)) continue;
    joules += program.joules;
    seconds += program.seconds;
  }
  return seconds > 0 && joules > 0 ? joules / seconds : 1;
}

const RunProgram* MeasuredPrograms::untuned() const {
  for (const RunProgram& program : ran_)
    if (program.is_default) return &program;
  return nullptr;
}

std::vector<RunProgram> MeasuredPrograms::best(size_t count) const {
  std::vector<RunProgram> sorted;
  for (const bool verified : {true, false}) {
    for (const RunProgram& program : ran_)
      if (program.verified == verified) sorted.push_back(program);
    if (!sorted.empty()) break;
  }
  std::stable_sort(sorted.begin(), sorted.end(), better<RunProgram>);
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
    if (std::isfinite(m.seconds) && (best == nullptr || better(m, *best))) best = &m;
  return best;
}

std::vector<RunProgram> MeasuredPrograms::doubtful_losers(double cost, size_t count) const {
  const auto least = [&](const RunProgram& p) {
    const double share = record::trust(p.disturbance);
    return objective_.cost({share * p.seconds, p.bytes, share * p.joules});
  };
  std::vector<RunProgram> losers;
  for (const RunProgram& program : ran_)
    if (record::is_doubtful(program.disturbance) && program.cost > cost && least(program) < cost)
      losers.push_back(program);
  std::stable_sort(losers.begin(), losers.end(),
                   [&](const RunProgram& a, const RunProgram& b) { return least(a) < least(b); });
  if (losers.size() > count) losers.resize(count);
  return losers;
}

std::vector<RunProgram> MeasuredPrograms::doubtful() const {
  const RunProgram *best = nullptr, *untuned = this->untuned();
  for (const RunProgram& program : ran_)
    if (best == nullptr || better(program, *best)) best = &program;
  std::vector<RunProgram> list;
  if (untuned != nullptr && !untuned->verified) list.push_back(*untuned);
  if (best != nullptr && !best->verified && best != untuned) list.push_back(*best);
  return list;
}

void MeasuredPrograms::verify(uint64_t hash, const record::MeasureResult& result) {
  const auto at =
      std::find_if(ran_.begin(), ran_.end(), [&](const RunProgram& program) { return program.hash == hash; });
  TS_CHECK(at != ran_.end(), "a program was verified that was never measured");
  const double seconds = result.best_estimate();
  at->seconds = seconds;
  at->joules = joules_of(result);
  at->cost = result.ok() ? objective_.cost(figures_of(*at)) : std::numeric_limits<double>::infinity();
  if (at->candidate > 0) {
    candidates_[at->candidate - 1].seconds = seconds;
    candidates_[at->candidate - 1].cost = at->cost;
  }
  if (at->row > 0) {
    rows_[at->row - 1].seconds = seconds;
    rows_[at->row - 1].weight = record::trust(result.disturbance);
    rows_[at->row - 1].log_cost = log_cost_of(*at);
  }
  if (at->is_default) {
    default_seconds_ = seconds;
    default_cost_ = at->cost;
    default_result_ = result;
  }
  if (result.ok()) {
    at->disturbance = result.disturbance;
    at->verified = true;
  } else {
    count_failure(result);
    ran_.erase(at);
  }
  find_best();
  if (!history_.empty()) history_.back() = judged_seconds();
}

void MeasuredPrograms::drop_doubtful() {
  std::optional<RunProgram> best;
  for (const RunProgram& program : ran_)
    if (program.verified && (!best || better(program, *best))) best = program;
  std::erase_if(ran_, [&](const RunProgram& p) { return !p.verified && (!best || better(p, *best)); });
  find_best();
  if (!history_.empty()) history_.back() = judged_seconds();
}

std::string MeasuredPrograms::failure_counts() const {
  std::string text;
  for (const auto& [outcome, count] : failures_by_outcome_)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(to_string(outcome));
  return text + "; the first: " + first_failure_;
}

}  // namespace tensorsmith::search
