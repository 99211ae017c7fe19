#include "search/task_state.h"

#include <limits>

#include "base/hash.h"
#include "sched/storage.h"
#include "sched/trace_traits.h"

namespace tensorsmith::search {

namespace {

// Most attempts to find unknown programs; each costs one proposal of the strategy.
constexpr int kMaxAttempts = 16;

}  // namespace

record::CandidateOrigin recorded(const Proposal& proposal) {
  record::CandidateOrigin candidate;
  candidate.reason = proposal.reason;
  candidate.strategy = proposal.strategy;
  if (proposal.candidate) candidate.point = to_point(*proposal.candidate);
  return candidate;
}

TaskState::TaskState(const TuneTask& task, const TaskOptions& options)
    : tuned_(task),
      kind_(options.strategy),
      strategy_(options.strategy.make()),
      rng_(Hasher().add(options.seed).add(std::string_view(task.task->key())).digest64()),
      scorer_(*task.task, options.strategy.uses_draft, options.inputs, options.objective),
      programs_(sched::hash(task.task->untuned_trace()), options.objective) {}

Proposal TaskState::default_proposal() const {
  Proposal proposal;
  proposal.trace = task().untuned_trace();
  proposal.hash = sched::hash(proposal.trace);
  proposal.reason = record::Reason::kDefault;
  // The default candidate was found by the draft, so a search without a draft does not start from
  // it.
  if (kind_.uses_draft) proposal.candidate = task().untuned();
  return proposal;
}

Proposal TaskState::plain_proposal() const {
  Proposal proposal;
  proposal.candidate = task().space().plain_candidate();
  proposal.trace = task().plain_trace();
  proposal.hash = sched::hash(proposal.trace);
  proposal.reason = record::Reason::kFallback;
  return proposal;
}

std::vector<Proposal> TaskState::propose(const ProposalRequest& request, ThreadPool& pool) {
  const size_t count = request.count;
  StrategyView view;
  view.space = &task().space();
  const double watts = programs_.watts();
  view.draft = [this, watts](const space::Candidate& c) { return scorer_.draft(c, watts); };
  view.score = [&](std::span<const space::Candidate> c) { return score(c, request.scoring, pool); };
  if (scorer_.knows_features())
    view.choose = [&](std::span<const ScoredCandidate> scored, size_t n) {
      return scorer_.choose(scored, n, request.scoring, programs_, pool);
    };
  view.measured = programs_.candidates();
  view.known = [this](const space::Candidate& c) { return known_candidates_.count(c.hash()) > 0; };
  view.score_budget = request.score_budget;
  view.progress = request.progress;
  view.epsilon = request.epsilon;
  view.writer = tuned_.writer.get();
  writer_error_.reset();
  view.failed = [this](const Error& error) { writer_error_ = error; };

  std::vector<Proposal> result;
  std::unordered_set<uint64_t> taken;
  const auto take_candidate = [&](const ProposedCandidate& proposed, std::string_view strategy) {
    const space::Candidate& c = proposed.candidate;
    known_candidates_.insert(c.hash());
    auto trace = task().space().to_trace(c);
    if (!trace.ok()) return;
    Proposal proposal;
    proposal.trace = std::move(*trace);
    proposal.hash = sched::hash(proposal.trace);
    if (is_known(proposal.hash) || !taken.insert(proposal.hash).second) return;
    proposal.inputs = scorer_.inputs_of_scored(c);
    proposal.reason = proposed.reason;
    proposal.strategy = strategy;
    proposal.candidate = c;
    result.push_back(std::move(proposal));
  };
  scorer_.begin_proposal();
  for (const auto& c : request.wanted)
    if (result.size() < count && !view.known(c.candidate)) take_candidate(c, {});
  // Different candidates can give the same program; further attempts fill the gaps. Each attempt
  // adds its candidates to the known ones, so in a space with nothing new, a proposal is finally
  // empty.
  bool nothing_left = false;
  for (int attempt = 0; attempt < kMaxAttempts && result.size() < count; ++attempt) {
    scorer_.forget_inputs();
    const auto candidates = strategy_->propose(view, count - result.size(), rng_);
    nothing_left = candidates.empty();
    if (nothing_left) break;
    for (const auto& c : candidates) take_candidate(c, kind_.name);
  }
  scorer_.forget_inputs();
  if (result.empty() && nothing_left) exhausted_ = true;
  return result;
}

void TaskState::take(const Proposal& proposal, const record::MeasureResult& result, bool from_database) {
  known_traces_.insert(proposal.hash);
  if (proposal.candidate) {
    known_candidates_.insert(proposal.candidate->hash());
    scorer_.take(*proposal.candidate, result);
  }
  auto inputs = proposal.inputs;
  if (inputs == nullptr) {
    if (auto made = scorer_.make_inputs(proposal); made.ok()) inputs = std::move(*made);
  }
  double bytes = 0;
  if (programs_.objective().uses_memory() && result.ok()) {
    const auto known = sched::temporary_bytes(task().workload(), proposal.trace, task().device());
    bytes = known.ok() ? static_cast<double>(*known) : std::numeric_limits<double>::infinity();
  }
  programs_.take(proposal, result, /*verified=*/!from_database, std::move(inputs), bytes);
}

void TaskState::take_record(const record::Record& record, sched::Trace trace) {
  Proposal proposal;
  proposal.hash = sched::hash(trace);
  if (is_known(proposal.hash)) return;
  if (programs_.is_default(proposal.hash)) {
    proposal = default_proposal();
  } else {
    proposal.trace = std::move(trace);
    if (record.candidate.point) {
      // The candidate is used only if it still gives this trace.
      auto candidate = from_point(*record.candidate.point);
      const auto again = task().space().to_trace(candidate);
      if (again.ok() && *again == proposal.trace) proposal.candidate = std::move(candidate);
    }
  }
  take(proposal, record.result, /*from_database=*/true);
}

}  // namespace tensorsmith::search
