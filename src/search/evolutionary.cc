// Evolutionary search as in Ansor (OSDI 2020, section 5.1) and MetaSchedule: a population of random
// and of the best measured candidates is varied by mutation and crossover over a few generations,
// which the cost model scores. The batch takes the candidates with the largest expected improvement,
// or those with the best scores if the programs' features are not known. A small part of it is random
// (epsilon-greedy). A draft filters candidates before the cost model (Pruner, ASPLOS 2025): each
// generation makes many more children than are fully scored, and the draft chooses among them.
//
// Coordinate descent adds changes of single decisions of the fastest measured programs. Evolution finds
// these only by chance, and they give the last percents. They compete with the other candidates, and a part
// of each batch, larger towards the end, is reserved for them, in the order of the cost model.
//
// If there is a writer (a language model), it writes the first programs. Later it rewrites fast
// measured programs from a random decision on, and the results compete with the other candidates.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "search/best_written.h"
#include "search/strategies.h"

namespace tensorsmith::search {

namespace {

constexpr int kGenerations = 4;
constexpr double kMeasuredShare = 0.25;  // share of the first population
constexpr double kImmigrants = 0.1;      // share of random candidates in later generations
constexpr double kMutation = 0.85;       // probability; otherwise crossover
constexpr size_t kDraftFactor = 6;       // drafted candidates for each fully scored one
constexpr size_t kParents = 24;          // measured candidates that produce children
// Share of a batch that is reserved for steps from the fastest measured programs at the end of the search,
// and at its start if only scores are known.
constexpr double kDescentLast = 0.625, kDescentFirst = 0.125;
constexpr size_t kDescents = 3;  // programs to step from
// Until this many programs of the writer are measured, only its programs and the random share are
// proposed.
constexpr size_t kWrittenFirst = 12;
// Number of rewritten programs for each candidate of a batch.
constexpr size_t kRewritten = 2;
// Most places of a batch for untried structures if the expected improvement chooses the others.
constexpr size_t kUntriedInBatch = 1;
// A structure whose best candidate has a draft score (logarithm) lower by this much gets no place
// of its own.
constexpr double kHopelessDraft = 3;

class EvolutionaryStrategy final : public Strategy {
 public:
  explicit EvolutionaryStrategy(const EvolutionExtensions& extensions) : extensions_(extensions) {}

  std::vector<ProposedCandidate> propose(const StrategyView& view, size_t count, Rng& rng) override {
    if (auto first = first_written(view, count, rng); !first.empty()) return first;
    const size_t population_size = std::max(count * 2, view.score_budget / kGenerations);
    std::unordered_set<uint64_t> scored_hashes;
    std::vector<ScoredCandidate> pool;        // all scored, buildable candidates, for the final choice
    std::vector<ScoredCandidate> population;  // parents of the next generation
    std::vector<space::Candidate> best = fastest_measured(view, kParents);
    std::unordered_set<uint64_t> by_writer;
    for (auto& scored : rewritten(view, best, count, rng)) {
      by_writer.insert(scored.candidate.hash());
      scored_hashes.insert(scored.candidate.hash());
      pool.push_back(std::move(scored));
    }

    for (int generation = 0; generation < kGenerations; ++generation) {
      std::vector<space::Candidate> children;
      std::unordered_set<uint64_t> made;
      const size_t wanted = population_size * (extensions_.draft ? kDraftFactor : 1);
      const auto offer = [&](space::Candidate c) {
        const uint64_t h = c.hash();
        if (scored_hashes.count(h) > 0 || !made.insert(h).second || view.known(c)) return;
        children.push_back(std::move(c));
      };
      std::vector<double> weights;
      for (const auto& p : population) weights.push_back(selection_weight(p, population));
      for (size_t attempt = 0; children.size() < wanted && attempt < 2 * wanted; ++attempt) {
        if (generation == 0 || population.empty()) {
          if (!best.empty() && rng.bernoulli(kMeasuredShare)) {
            // Children of fast measured programs, more often of the fastest ones.
            const double x = rng.uniform();
            space::Candidate c = best[static_cast<size_t>(x * x * static_cast<double>(best.size()))];
            const int changes = 1 + rng.below(3);
            for (int i = 0; i < changes; ++i) c = view.space->mutate(c, rng);
            offer(std::move(c));
          } else {
            offer(view.space->sample(rng));
          }
          continue;
        }
        // Random immigrants, because mutation never changes the structure (the sketch).
        if (rng.bernoulli(kImmigrants)) {
          offer(view.space->sample(rng));
          continue;
        }
        const auto& parent = population[rng.weighted(weights)].candidate;
        if (rng.bernoulli(kMutation)) {
          offer(view.space->mutate(parent, rng));
        } else {
          offer(view.space->crossover(parent, population[rng.weighted(weights)].candidate, rng));
        }
      }
      choose_by_draft(view, children, population_size, rng);
      const auto scores = view.score(children);
      for (size_t i = 0; i < children.size(); ++i) {
        scored_hashes.insert(children[i].hash());
        if (std::isfinite(scores[i])) pool.push_back({std::move(children[i]), scores[i]});
      }
      std::stable_sort(pool.begin(), pool.end(),
                       [](const auto& a, const auto& b) { return a.score > b.score; });
      population.assign(pool.begin(), pool.begin() + std::min(pool.size(), population_size));
    }
    std::vector<ProposedCandidate> result;
    if (extensions_.descent) result = descend(view, best, count, pool);
    choose(view, pool, by_writer, count, rng, result);
    return result;
  }

 private:
  // Returns unknown neighbours of the fastest programs: those of the fastest program first, each
  // program's ordered by score. Adds the remaining neighbours to `pool` if they can be compared with it.
  static std::vector<ProposedCandidate> descend(const StrategyView& view,
                                                const std::vector<space::Candidate>& best, size_t count,
                                                std::vector<ScoredCandidate>& pool) {
    const double first = view.choose ? 0 : kDescentFirst;
    const double share = first + (kDescentLast - first) * view.progress;
    const size_t wanted = std::lround(share * static_cast<double>(count));
    std::vector<ProposedCandidate> result;
    std::unordered_set<uint64_t> taken;
    for (size_t b = 0; b < std::min(best.size(), kDescents) && (view.choose || result.size() < wanted); ++b) {
      std::vector<space::Candidate> steps;
      for (auto& c : view.space->neighbours(best[b]))
        if (!view.known(c) && taken.insert(c.hash()).second) steps.push_back(std::move(c));
      const auto scores = view.score(steps);
      std::vector<size_t> order;
      for (size_t i = 0; i < steps.size(); ++i)
        if (std::isfinite(scores[i])) order.push_back(i);
      std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return scores[i] > scores[j]; });
      for (size_t i : order) {
        if (result.size() < wanted) {
          result.push_back({std::move(steps[i]), record::Reason::kNeighbour});
        } else if (view.choose) {
          pool.push_back({std::move(steps[i]), scores[i]});
        }
      }
    }
    return result;
  }

  // Returns a batch of the writer's first programs; empty if there is no writer, enough of its programs are
  // measured, or it has no more.
  static std::vector<ProposedCandidate> first_written(const StrategyView& view, size_t count, Rng& rng) {
    if (view.writer == nullptr) return {};
    const auto measured = std::count_if(view.measured.begin(), view.measured.end(),
                                        [](const auto& m) { return m.reason == record::Reason::kWritten; });
    if (std::cmp_greater_equal(measured, kWrittenFirst)) return {};
    auto result = best_written(view, count - random_share(view.epsilon, count, rng), rng);
    if (!result.empty()) append_random(view, count, rng, result);
    return result;
  }

  // Lets the view's writer rewrite the fastest measured programs, and scores the results.
  static std::vector<ScoredCandidate> rewritten(const StrategyView& view,
                                                const std::vector<space::Candidate>& best, size_t count,
                                                Rng& rng) {
    std::vector<ScoredCandidate> result;
    if (view.writer == nullptr || best.empty()) return result;
    auto candidates = view.writer->rewrite(best, kRewritten * count, view.known, rng);
    if (!candidates.ok()) {
      view.failed(candidates.error());
      return result;
    }
    const auto scores = view.score(*candidates);
    for (size_t i = 0; i < candidates->size(); ++i)
      if (std::isfinite(scores[i])) result.push_back({std::move((*candidates)[i]), scores[i]});
    return result;
  }

  // The weight increases with the score, from the worst to the best of the population.
  static double selection_weight(const ScoredCandidate& c, const std::vector<ScoredCandidate>& population) {
    const float low = population.back().score, high = population.front().score;
    if (high <= low) return 1;
    const double x = (c.score - low) / (high - low);
    return 0.05 + x * x;
  }

  // Keeps `keep` children: the best by draft and a part at random, which may include some that the
  // draft misjudges. The best of each structure comes first.
  static void choose_by_draft(const StrategyView& view, std::vector<space::Candidate>& children, size_t keep,
                              Rng& rng) {
    if (children.size() <= keep) return;
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < children.size(); ++i) order.emplace_back(-view.draft(children[i]), i);
    std::sort(order.begin(), order.end());
    std::unordered_set<int> structures;
    std::vector<std::pair<double, size_t>> first, rest;
    for (const auto& entry : order)
      (structures.insert(children[entry.second].sketch).second ? first : rest).push_back(entry);
    std::copy(rest.begin(), rest.end(), std::copy(first.begin(), first.end(), order.begin()));
    const size_t by_draft = keep * 3 / 4;
    std::vector<space::Candidate> chosen;
    for (size_t i = 0; i < by_draft; ++i) chosen.push_back(std::move(children[order[i].second]));
    for (size_t i = by_draft; i < keep; ++i) {
      const size_t j = i + rng.below(order.size() - i);
      std::swap(order[i], order[j]);
      chosen.push_back(std::move(children[order[i].second]));
    }
    children = std::move(chosen);
  }

  // Fills `result` up to `count`.
  void choose(const StrategyView& view, std::vector<ScoredCandidate>& pool,
              const std::unordered_set<uint64_t>& by_writer, size_t count, Rng& rng,
              std::vector<ProposedCandidate>& result) const {
    std::unordered_set<uint64_t> taken;
    for (const auto& c : result) taken.insert(c.candidate.hash());
    const auto take = [&](const space::Candidate& c, record::Reason reason) {
      if (!taken.insert(c.hash()).second) return;
      result.push_back({c, by_writer.count(c.hash()) > 0 ? record::Reason::kWritten : reason});
    };
    const size_t random = random_share(view.epsilon, count, rng);
    // The best candidate of a structure without measurements gets a place of its own: the draft may
    // misjudge the whole structure, and a measurement corrects it.
    std::unordered_set<int> tried;
    for (const auto& m : view.measured) tried.insert(m.candidate.sketch);
    size_t untried = extensions_.untried_structures ? count / 4 : 0;
    if (view.choose) untried = std::min(untried, kUntriedInBatch);
    const double hopeless = pool.empty() ? 0 : view.draft(pool.front().candidate) - kHopelessDraft;
    for (const auto& scored : pool) {
      if (untried == 0 || result.size() + random >= count) break;
      // The draft comes last, because by some objectives it takes as long as a schedule.
      const int sketch = scored.candidate.sketch;
      if (tried.count(sketch) > 0 || view.draft(scored.candidate) < hopeless) continue;
      tried.insert(sketch);
      take(scored.candidate, record::Reason::kUncertain);
      --untried;
    }
    if (view.choose) {
      std::erase_if(pool, [&](const ScoredCandidate& c) { return taken.count(c.candidate.hash()) > 0; });
      const size_t wanted = count - std::min(count, result.size() + random);
      for (const size_t i : view.choose(pool, wanted)) take(pool[i].candidate, record::Reason::kPredicted);
    }
    for (const auto& scored : pool) {
      if (result.size() + random >= count) break;
      take(scored.candidate, record::Reason::kPredicted);
    }
    append_random(view, count, rng, result);
  }

  EvolutionExtensions extensions_;
};

}  // namespace

std::unique_ptr<Strategy> make_evolutionary_strategy(const EvolutionExtensions& extensions) {
  return std::make_unique<EvolutionaryStrategy>(extensions);
}

}  // namespace tensorsmith::search
