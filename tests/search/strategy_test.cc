// Strategies on synthetic landscapes, where the optimum is known and measuring is free.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "lab/strategies/strategies.h"
#include "search_testing.h"
#include "support/standard_workloads.h"

namespace tensorsmith::search::strategy_test {
namespace {

using namespace tensorsmith::test::standard;

// Distance of a candidate from a hidden one, in octaves of each decision.
struct Landscape {
  space::Candidate best;
  double seconds(const space::Candidate& c) const {
    double distance = c.sketch == best.sketch ? 0 : 4;
    for (size_t i = 0; i < std::min(c.decisions.size(), best.decisions.size()); ++i)
      distance += std::abs(std::log2((static_cast<double>(c.decisions[i]) + 1) /
                                     (static_cast<double>(best.decisions[i]) + 1)));
    return 1 + distance;
  }
};

struct Outcome {
  double best = 1e30;
  size_t measured = 0;
};

std::unique_ptr<Strategy> make(std::string_view name) { return lab::find_strategy(name).value()->make(); }

Outcome run(std::string_view name, const space::DesignSpace& space, const Landscape& landscape, uint64_t seed,
            int rounds, size_t batch) {
  Rng rng(seed);
  auto strategy = make(name);
  std::vector<MeasuredCandidate> measured;
  std::unordered_map<uint64_t, int> seen;
  StrategyView view;
  const DesignedSpace designed(space);
  view.space = &designed;
  // The draft knows nothing here; the model is right up to noise that depends on the candidate.
  view.draft = [](const space::Candidate& c) { return static_cast<double>(c.hash() % 1000); };
  view.score = [&](std::span<const space::Candidate> candidates) {
    std::vector<float> scores;
    for (const auto& c : candidates)
      scores.push_back(
          static_cast<float>(-landscape.seconds(c) * (1 + 0.1 * static_cast<double>(c.hash() % 100) / 100)));
    return scores;
  };
  view.known = [&](const space::Candidate& c) { return seen.count(c.hash()) > 0; };
  view.score_budget = 256;
  Outcome outcome;
  for (int r = 0; r < rounds; ++r) {
    view.measured = measured;
    const auto batch_candidates = strategy->propose(view, batch, rng);
    EXPECT_LE(batch_candidates.size(), batch);
    for (const auto& [c, reason] : batch_candidates) {
      EXPECT_NE(reason, record::Reason::kUnstated);
      EXPECT_EQ(seen[c.hash()]++, 0) << "proposed twice";
      EXPECT_TRUE(space.check(c).ok());
      measured.push_back({c, landscape.seconds(c)});
      outcome.best = std::min(outcome.best, landscape.seconds(c));
    }
  }
  outcome.measured = measured.size();
  return outcome;
}

TEST(Strategy, ModelGuidedSearchBeatsRandomSearch) {
  const auto space = space::DesignSpace::build(matmul(60, 64, 48), test::device(), {});
  ASSERT_TRUE(space.ok());
  int evolutionary_wins = 0, annealing_wins = 0;
  const int seeds = 5;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed * 77);
    // The optimum is hidden in the largest sketch, where chance alone does not find it.
    int largest = 0;
    for (size_t k = 0; k < space->num_sketches(); ++k)
      if (space->size(static_cast<int>(k)) > space->size(largest)) largest = static_cast<int>(k);
    Landscape landscape;
    do {
      landscape.best = space->sample(rng);
    } while (landscape.best.sketch != largest);
    const auto random = run("random", *space, landscape, seed, 4, 16);
    const auto evolutionary = run("evolutionary", *space, landscape, seed, 4, 16);
    const auto annealing = run("annealing", *space, landscape, seed, 4, 16);
    EXPECT_EQ(evolutionary.measured, 64U);
    evolutionary_wins += evolutionary.best < random.best ? 1 : 0;
    annealing_wins += annealing.best < random.best ? 1 : 0;
  }
  EXPECT_GE(evolutionary_wins, seeds - 1);
  EXPECT_GE(annealing_wins, seeds - 1);
}

TEST(Strategy, DescentFindsWhatStepsLeadTo) {
  const auto space = space::DesignSpace::build(matmul(60, 64, 48), test::device(), {});
  ASSERT_TRUE(space.ok());
  int wins = 0;
  const int seeds = 5;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed * 91);
    const Landscape landscape{space->sample(rng)};
    wins += run("descent", *space, landscape, seed, 6, 16).best <
            run("random", *space, landscape, seed, 6, 16).best;
  }
  EXPECT_GE(wins, seeds - 1);
}

// Compares a small space with brute force: each candidate is proposed once, those with the best
// draft first.
TEST(Strategy, ExhaustiveProposesEachCandidateOnce) {
  const auto space = space::DesignSpace::build(matmul(2, 3, 2), test::device(), {});
  ASSERT_TRUE(space.ok());
  std::set<uint64_t> all;
  for (size_t k = 0; k < space->num_sketches(); ++k) {
    ASSERT_LT(space->size(static_cast<int>(k)), 50'000);
    for (const auto& c : space->enumerate(static_cast<int>(k), 50'000))
      if (space->check(c).ok()) all.insert(c.hash());
  }
  std::set<uint64_t> seen;
  StrategyView view;
  const DesignedSpace designed(*space);
  view.space = &designed;
  view.draft = [](const space::Candidate& c) { return static_cast<double>(c.hash() % 1000); };
  view.known = [&](const space::Candidate& c) { return seen.count(c.hash()) > 0; };
  const auto strategy = make("exhaustive");
  Rng rng(1);
  double last = 1e9;
  for (size_t round = 0; round <= all.size() / 7 + 1; ++round) {
    for (const auto& [candidate, reason] : strategy->propose(view, 7, rng)) {
      EXPECT_EQ(reason, record::Reason::kEnumerated);
      EXPECT_LE(view.draft(candidate), last);
      last = view.draft(candidate);
      EXPECT_TRUE(seen.insert(candidate.hash()).second);
    }
  }
  EXPECT_EQ(seen, all);
  EXPECT_TRUE(strategy->propose(view, 7, rng).empty());
}

// There is a chain for each program of a batch, and the temperature has the scale of the scores: scores in
// another unit lead to the same proposals.
TEST(Strategy, AnnealingFollowsTheBatchAndTheScores) {
  const auto space = space::DesignSpace::build(matmul(60, 64, 48), test::device(), {});
  ASSERT_TRUE(space.ok());
  Rng hidden(3);
  const Landscape landscape{space->sample(hidden)};
  const DesignedSpace designed(*space);
  for (const size_t batch : {size_t{1}, size_t{4}, size_t{32}}) {
    std::vector<std::vector<uint64_t>> proposed;
    for (const double unit : {1.0, 1024.0}) {
      std::vector<size_t> calls;  // candidates scored by each call
      StrategyView view;
      view.space = &designed;
      view.score = [&](std::span<const space::Candidate> candidates) {
        calls.push_back(candidates.size());
        std::vector<float> scores;
        for (const auto& c : candidates) scores.push_back(static_cast<float>(-unit * landscape.seconds(c)));
        return scores;
      };
      view.known = [](const space::Candidate&) { return false; };
      view.score_budget = 256;
      Rng rng(8);
      auto& hashes = proposed.emplace_back();
      for (const auto& [candidate, reason] : make("annealing")->propose(view, batch, rng))
        hashes.push_back(candidate.hash());
      ASSERT_FALSE(calls.empty());
      for (const size_t chains : calls) EXPECT_EQ(chains, batch);
      EXPECT_EQ(hashes.size(), batch);
    }
    EXPECT_EQ(proposed[0], proposed[1]) << "a batch of " << batch;
  }
}

// Epsilon is the random share of a batch: none at 0, all at 1.
TEST(Strategy, EpsilonIsTheRandomShare) {
  const auto space = space::DesignSpace::build(matmul(60, 64, 48), test::device(), {});
  ASSERT_TRUE(space.ok());
  for (const std::string_view name : {"evolutionary", "annealing"}) {
    for (const double epsilon : {0.0, 1.0}) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(epsilon));
      StrategyView view;
      const DesignedSpace designed(*space);
      view.space = &designed;
      view.draft = [](const space::Candidate& c) { return static_cast<double>(c.hash() % 1000); };
      view.score = [](std::span<const space::Candidate> candidates) {
        return std::vector<float>(candidates.size(), 1.0F);
      };
      view.known = [](const space::Candidate&) { return false; };
      view.epsilon = epsilon;
      Rng rng(7);
      const auto proposed = make(name)->propose(view, 32, rng);
      const auto random = std::count_if(proposed.begin(), proposed.end(),
                                        [](const auto& c) { return c.reason == record::Reason::kRandom; });
      EXPECT_EQ(proposed.size(), 32U);
      EXPECT_EQ(random, epsilon == 0 ? 0 : 32);
    }
  }
}

// Near the end, mostly neighbours of the fastest program are measured.
TEST(Strategy, TheEndIsACoordinateDescent) {
  const auto space = space::DesignSpace::build(matmul(60, 64, 48), test::device(), {});
  ASSERT_TRUE(space.ok());
  Rng rng(5);
  const space::Candidate best = space->sample(rng);
  std::vector<MeasuredCandidate> measured{{best, 1e-3}};
  for (int i = 0; i < 10; ++i) measured.push_back({space->sample(rng), 1e-2});
  const auto neighbours = space->neighbours(best);
  StrategyView view;
  const DesignedSpace designed(*space);
  view.space = &designed;
  view.draft = [](const space::Candidate& c) { return static_cast<double>(c.hash() % 1000) * 1e-3; };
  // The scores are random: only the descent knows the neighbours.
  view.score = [](std::span<const space::Candidate> candidates) {
    std::vector<float> scores;
    for (const auto& c : candidates) scores.push_back(static_cast<float>(c.hash() % 1000));
    return scores;
  };
  view.measured = measured;
  view.known = [&](const space::Candidate& c) {
    return std::any_of(measured.begin(), measured.end(), [&](const auto& m) { return m.candidate == c; });
  };
  view.score_budget = 64;
  const auto steps = [&](double progress) {
    view.progress = progress;
    const auto proposed = make("evolutionary")->propose(view, 16, rng);
    EXPECT_EQ(proposed.size(), 16U);
    return std::count_if(proposed.begin(), proposed.end(), [&](const auto& c) {
      const bool is_neighbour =
          std::find(neighbours.begin(), neighbours.end(), c.candidate) != neighbours.end();
      EXPECT_TRUE(is_neighbour || c.reason != record::Reason::kNeighbour);
      return is_neighbour;
    });
  };
  const auto early = steps(0), late = steps(1);
  EXPECT_GE(early, 2);
  EXPECT_GE(late, 10);
  EXPECT_GT(late, early);
}

// A draft that favours a wrong structure does not prevent others from being tried.
TEST(Strategy, EveryPromisingStructureIsTried) {
  const auto space = space::DesignSpace::build(matmul(60, 64, 48), test::device(), {});
  ASSERT_TRUE(space.ok());
  ASSERT_GT(space->num_sketches(), 2U);
  Rng rng(5);
  StrategyView view;
  const DesignedSpace designed(*space);
  view.space = &designed;
  view.draft = [](const space::Candidate& c) { return c.sketch == 0 ? 1.0 : 0.0; };
  view.score = [&](std::span<const space::Candidate> candidates) {
    std::vector<float> scores;
    for (const auto& c : candidates) scores.push_back(static_cast<float>(view.draft(c)));
    return scores;
  };
  view.known = [](const space::Candidate&) { return false; };
  std::set<int> tried, uncertain;
  for (const auto& [c, reason] : make("evolutionary")->propose(view, 16, rng)) {
    tried.insert(c.sketch);
    if (reason != record::Reason::kUncertain) continue;
    EXPECT_TRUE(uncertain.insert(c.sketch).second) << "a structure was measured twice for its own sake";
  }
  EXPECT_GE(uncertain.size(), 2U);
  // The last sketch, plain loops, is hardly ever drawn.
  EXPECT_GE(tried.size(), space->num_sketches() - 1);
}

// Writes candidates at random and marks them; rewriting gives neighbours of the parents.
class RandomWriter final : public ScheduleWriter {
 public:
  explicit RandomWriter(const space::DesignSpace& space) : space_(space) {}
  Result<std::vector<space::Candidate>> write(size_t count, const Known& known, Rng& rng) override {
    std::vector<space::Candidate> result;
    for (size_t attempt = 0; attempt < 10 * count && result.size() < count; ++attempt) {
      auto candidate = space_.sample(rng);
      if (!known(candidate) && made_.insert(candidate.hash()).second) result.push_back(std::move(candidate));
    }
    return result;
  }
  Result<std::vector<space::Candidate>> rewrite(std::span<const space::Candidate> parents, size_t count,
                                                const Known& known, Rng&) override {
    std::vector<space::Candidate> result;
    for (const auto& parent : parents)
      for (auto& candidate : space_.neighbours(parent))
        if (result.size() < count && !known(candidate) && made_.insert(candidate.hash()).second)
          result.push_back(std::move(candidate));
    rewritten_ += result.size();
    return result;
  }
  bool wrote(const space::Candidate& candidate) const { return made_.count(candidate.hash()) > 0; }
  size_t rewritten() const { return rewritten_; }

 private:
  const space::DesignSpace& space_;
  std::set<uint64_t> made_;
  size_t rewritten_ = 0;
};

TEST(Strategy, AsksAWriterAndSaysWhatItWrote) {
  const auto space = space::DesignSpace::build(matmul(60, 64, 48), test::device(), {});
  ASSERT_TRUE(space.ok());
  for (const char* kind : {"evolutionary", "lm"}) {
    Rng rng(5);
    const Landscape landscape{space->sample(rng)};
    RandomWriter writer(*space);
    std::vector<MeasuredCandidate> measured;
    StrategyView view;
    const DesignedSpace designed(*space);
    view.space = &designed;
    view.draft = [&](const space::Candidate& c) { return -landscape.seconds(c); };
    view.score = [&](std::span<const space::Candidate> candidates) {
      std::vector<float> scores;
      for (const auto& c : candidates) scores.push_back(static_cast<float>(-landscape.seconds(c)));
      return scores;
    };
    view.known = [&](const space::Candidate& c) {
      return std::any_of(measured.begin(), measured.end(), [&](const auto& m) { return m.candidate == c; });
    };
    view.failed = [](const Error& error) { FAIL() << error.message(); };
    view.writer = &writer;
    const auto strategy = make(kind);
    for (int round = 0; round < 3; ++round) {
      view.measured = measured;
      const auto proposed = strategy->propose(view, 16, rng);
      ASSERT_EQ(proposed.size(), 16U) << kind;
      int64_t written = 0;
      for (const auto& [candidate, reason] : proposed) {
        EXPECT_FALSE(view.known(candidate)) << "what was measured is not proposed again";
        // A candidate that the descent proposes as a neighbour may also be one that the writer
        // wrote.
        if (reason == record::Reason::kWritten) {
          EXPECT_TRUE(writer.wrote(candidate));
          ++written;
        }
      }
      if (std::string_view(kind) == "lm") {
        EXPECT_EQ(written, 16);
      } else {
        // Except for the random share, the first batch is written; most of a later one is not.
        if (round == 0) {
          EXPECT_GE(written, 12);
        } else {
          EXPECT_LT(written, 12);
        }
        EXPECT_EQ(writer.rewritten() > 0, round > 0) << "fast measured programs are rewritten";
      }
      for (const auto& p : proposed)
        measured.push_back({p.candidate, landscape.seconds(p.candidate), p.reason});
    }
  }
}

TEST(Strategy, AWriterThatFailsIsReported) {
  class Failing final : public ScheduleWriter {
   public:
    Result<std::vector<space::Candidate>> write(size_t, const Known&, Rng&) override {
      return Error{ErrorCode::kIo, "writer", "is broken"};
    }
    Result<std::vector<space::Candidate>> rewrite(std::span<const space::Candidate>, size_t, const Known&,
                                                  Rng&) override {
      return Error{ErrorCode::kIo, "writer", "is broken"};
    }
  };
  const auto space = space::DesignSpace::build(matmul(60, 64, 48), test::device(), {});
  ASSERT_TRUE(space.ok());
  for (const char* kind : {"evolutionary", "lm"}) {
    Failing writer;
    StrategyView view;
    const DesignedSpace designed(*space);
    view.space = &designed;
    view.draft = [](const space::Candidate&) { return 0.0; };
    view.score = [](std::span<const space::Candidate> c) { return std::vector<float>(c.size(), 0.0F); };
    view.known = [](const space::Candidate&) { return false; };
    view.writer = &writer;
    int failures = 0;
    view.failed = [&](const Error& error) {
      EXPECT_EQ(error.reason, "is broken");
      ++failures;
    };
    Rng rng(5);
    make(kind)->propose(view, 4, rng);
    EXPECT_EQ(failures, 1) << kind;
  }
}

TEST(Strategy, SameSeedSameProposals) {
  const auto space = space::DesignSpace::build(matmul(20, 24, 8), test::device(), {});
  ASSERT_TRUE(space.ok());
  Rng rng(5);
  const Landscape landscape{space->sample(rng)};
  for (const char* kind : {"evolutionary", "annealing", "random", "mixed"}) {
    const auto a = run(kind, *space, landscape, 9, 2, 8);
    const auto b = run(kind, *space, landscape, 9, 2, 8);
    EXPECT_EQ(a.best, b.best);
  }
}

TEST(Strategy, ExhaustsATinySpaceAndStops) {
  const auto space = space::DesignSpace::build(elementwise_chain(3), test::device(), {});
  ASSERT_TRUE(space.ok());
  size_t legal = 0;
  for (size_t k = 0; k < space->num_sketches(); ++k)
    for (const auto& c : space->enumerate(static_cast<int>(k), 100000)) legal += space->check(c).ok() ? 1 : 0;
  Rng rng(5);
  const Landscape landscape{space->sample(rng)};
  for (const char* kind : {"evolutionary", "annealing", "random", "mixed"}) {
    const auto all = run(kind, *space, landscape, 3, static_cast<int>(legal), 4);
    EXPECT_EQ(all.measured, legal);
    EXPECT_EQ(all.best, 1);
  }
}

TEST(Strategy, IsFoundByName) {
  for (const auto* kind : lab::kStrategies) {
    EXPECT_EQ(lab::find_strategy(kind->name).value(), kind);
    EXPECT_NE(kind->make(), nullptr);
  }
  const auto bad = lab::find_strategy("genetic");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(bad.error().reason, "'genetic' is not one of " + lab::strategy_names());
}

// Two strategies are not offered for tuning, since there is another way to each of them.
TEST(Strategy, OneWayOfTuningLeadsToEach) {
  EXPECT_EQ(lab::tuning_strategy_names(),
            "evolutionary, random, exhaustive, annealing, descent, mixed, ansor");
  EXPECT_EQ(lab::find_tuning_strategy("descent").value(), &lab::kDescentStrategy);
  EXPECT_EQ(lab::find_tuning_strategy("genetic").error().reason,
            "'genetic' is not one of " + lab::tuning_strategy_names());
  const auto transfer = lab::find_tuning_strategy("transfer").error();
  EXPECT_EQ(transfer.place, "--strategy transfer");
  EXPECT_NE(transfer.reason.find("`tensorsmith transfer MODEL --from FILE`"), std::string::npos);
  const auto written = lab::find_tuning_strategy("lm").error();
  EXPECT_EQ(written.place, "--strategy lm");
  EXPECT_NE(written.reason.find("--lm"), std::string::npos);
}

}  // namespace
}  // namespace tensorsmith::search::strategy_test
