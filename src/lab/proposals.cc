#include "lab/proposals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/hash.h"
#include "base/rng.h"
#include "engine/language/different_programs.h"
#include "engine/tune/candidate_times.h"
#include "lab/kinds/kinds.h"
#include "learn/search_model.h"
#include "search/strategies.h"

namespace tensorsmith::lab {

namespace {

constexpr size_t kSamples = 100'000;
// Number of candidates whose features are extracted and judged together.
constexpr size_t kJudged = 4096;
// Candidates kept per requested program, since several may be the same program.
constexpr size_t kCandidatesPerProgram = 4;

struct Ranked {
  double log_seconds = 0;
  space::Candidate candidate;
};

// Sorts and keeps the best `count`.
void keep_best(std::vector<Ranked>& ranked, size_t count) {
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) { return a.log_seconds < b.log_seconds; });
  if (ranked.size() > count) ranked.resize(count);
}

Result<std::vector<search::Seed>> ranked_seeds(const space::DesignSpace& space, std::vector<Ranked> ranked,
                                               size_t count) {
  std::vector<space::Candidate> candidates;
  for (Ranked& one : ranked) candidates.push_back(std::move(one.candidate));
  TS_ASSIGN_OR_RETURN(auto programs, engine::different_programs(space, std::move(candidates), count));
  std::vector<search::Seed> seeds;
  for (auto& program : programs) seeds.push_back({std::move(program), record::Reason::kPredicted});
  return seeds;
}

double log_estimate(const space::DesignSpace& space, const space::Candidate& candidate) {
  const double seconds = space.estimate(candidate);
  return std::isfinite(seconds) && seconds > 0 ? std::log(seconds) : std::numeric_limits<double>::infinity();
}

// Returns the best candidates of an evolutionary search that uses the estimate as its only score.
Result<std::vector<search::Seed>> estimate_favourites(const search::PreparedTask& task, size_t count,
                                                      Rng& rng) {
  search::StrategyView view;
  const space::DesignSpace& space = task.design();
  const space::Candidate& untuned = task.untuned();
  view.space = &task.space();
  view.draft = [&](const space::Candidate& c) { return -log_estimate(space, c); };
  view.score = [&](std::span<const space::Candidate> candidates) {
    std::vector<float> scores;
    for (const auto& c : candidates) scores.push_back(static_cast<float>(-log_estimate(space, c)));
    return scores;
  };
  view.known = [&](const space::Candidate& c) { return c == untuned; };
  view.epsilon = 0;
  const std::vector<search::MeasuredCandidate> start{{untuned, 1}};
  view.measured = start;
  std::vector<Ranked> ranked;
  const auto strategy = search::kDefaultStrategy.make();
  for (auto& proposal : strategy->propose(view, kCandidatesPerProgram * count, rng))
    ranked.push_back({log_estimate(space, proposal.candidate), std::move(proposal.candidate)});
  keep_best(ranked, ranked.size());
  return ranked_seeds(space, std::move(ranked), count);
}

Result<std::vector<search::Seed>> best_samples(engine::CandidateTimes& times,
                                               const search::PreparedTask& task, size_t count, Rng& rng) {
  const space::DesignSpace& space = task.design();
  std::set<uint64_t> seen{task.untuned().hash()};
  std::vector<Ranked> best;
  for (size_t drawn = 0; drawn < kSamples;) {
    std::vector<space::Candidate> batch;
    for (; drawn < kSamples && batch.size() < kJudged; ++drawn) {
      space::Candidate candidate = space.sample(rng);
      if (seen.insert(candidate.hash()).second) batch.push_back(std::move(candidate));
    }
    const auto seconds = times.log_seconds(batch);
    if (times.failed()) return *times.failed();
    for (size_t i = 0; i < batch.size(); ++i)
      if (std::isfinite(seconds[i])) best.push_back({seconds[i], std::move(batch[i])});
    keep_best(best, kCandidatesPerProgram * count);
  }
  return ranked_seeds(space, std::move(best), count);
}

}  // namespace

bool proposes(std::string_view method) {
  return method == kWrittenProposals || method == kEstimateProposals || method == kCostModelProposals;
}

Status Proposers::load(const ProposalRequest& request, int threads) {
  if (request.method == kWrittenProposals && writers_.count(request.language_model) == 0) {
    TS_ASSIGN_OR_RETURN(const auto model, learn::lm::read_language_model(request.language_model));
    TS_ASSIGN_OR_RETURN(writers_[request.language_model], engine::LanguageWriter::create(model, threads));
  }
  if (request.method == kEstimateProposals) return {};
  if (request.cost_model == "none") {
    if (request.method == kCostModelProposals)
      return Error{ErrorCode::kInvalidArgument, request.method, "needs a cost model; name its file"};
    return {};
  }
  if (models_.count(request.cost_model) == 0) {
    TS_ASSIGN_OR_RETURN(models_[request.cost_model], cost_model_kinds().load(request.cost_model));
  }
  return {};
}

Result<std::vector<search::Seed>> Proposers::propose(const ProposalRequest& request,
                                                     const search::PreparedTask& task,
                                                     const engine::WarmStart& known, size_t count,
                                                     uint64_t seed) {
  Rng rng(Hasher().add(request.method).add(seed).add(task.key()).digest64());
  if (request.method == kEstimateProposals) return estimate_favourites(task, count, rng);
  const learn::CostModel* model =
      request.cost_model == "none" ? nullptr : models_.at(request.cost_model).get();
  if (request.method == kCostModelProposals) {
    engine::CandidateTimes times(task, model);
    return best_samples(times, task, count, rng);
  }
  engine::WriterOptions options;
  options.count = count;
  options.seed = seed;
  options.known = [&untuned = task.untuned()](const space::Candidate& c) { return c == untuned; };
  options.cost_model = model;
  TS_ASSIGN_OR_RETURN(auto candidates, writers_.at(request.language_model)->write(task, known, options));
  std::vector<search::Seed> seeds;
  for (auto& candidate : candidates) seeds.push_back({std::move(candidate), record::Reason::kWritten});
  return seeds;
}

engine::DecodingReport Proposers::decoding() const {
  engine::DecodingReport all;
  for (const auto& [file, writer] : writers_) all += writer->report();
  return all;
}

}  // namespace tensorsmith::lab
