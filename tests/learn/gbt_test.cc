#include <gmock/gmock.h>

#include <array>
#include <cmath>

#include "base/rng.h"
#include "learn/gbt/gbt_fit.h"
#include "learn/metrics.h"
#include "learn/online/online.h"
#include "support/quality.h"

namespace tensorsmith::learn::gbt_test {
namespace {

// Trees that learn the relative speeds.
Result<PackSumFit> fit_speeds(std::span<const MeasuredProgram> programs, const GbtOptions& options) {
  return fit_gbt(programs, per_store_rows(), relative_speeds(programs), options);
}

using ::testing::HasSubstr;

// Three tasks, whose programs have 2, 4 and 7 rows. A program's speed is the sum over its rows of a
// function of some columns.
struct Corpus {
  std::vector<feature::FeatureMatrix> features;
  std::unique_ptr<std::array<StoredWorkload, 3>> tasks = std::make_unique<std::array<StoredWorkload, 3>>();
  std::vector<MeasuredProgram> programs;
  std::vector<ProgramQuery> queries() const {
    std::vector<ProgramQuery> out;
    for (const auto& measured : programs) out.push_back(measured.program);
    return out;
  }
};

// Scores of a ranking model: higher is faster.
std::vector<double> scores_of(const CostModel& model, const std::vector<ProgramQuery>& queries) {
  const auto predictions = model.predict(queries);
  EXPECT_TRUE(predictions.ok());
  std::vector<double> out;
  for (const auto& prediction : *predictions) out.push_back(1 / prediction.seconds);
  return out;
}

std::unique_ptr<CostModel> trained(const Corpus& corpus, const GbtOptions& options = GbtOptions::online()) {
  auto model = make_online_xgboost(options);
  const Status updated = model->update(corpus.programs);
  EXPECT_TRUE(updated.ok()) << updated.error().message();
  EXPECT_TRUE(model->ready());
  return model;
}

Corpus make_corpus(uint64_t seed, size_t count, double failures = 0) {
  Corpus corpus;
  Rng rng(seed);
  std::vector<double> seconds;
  for (size_t p = 0; p < count; ++p) {
    feature::FeatureMatrix matrix;
    matrix.rows = p % 3 == 0 ? 2 : p % 3 == 1 ? 4 : 7;
    matrix.values.assign(static_cast<size_t>(matrix.rows) * feature::kPerStoreWidth, 0.0F);
    double speed = 0.5;
    for (int r = 0; r < matrix.rows; ++r) {
      float* row = matrix.values.data() + static_cast<size_t>(r) * feature::kPerStoreWidth;
      for (int c = 0; c < 60; ++c) row[c * 2] = static_cast<float>(rng.uniform() * 10);
      speed += 0.2 * row[2] + (row[10] > 5 ? 1.5 : 0.0) + 0.1 * row[20] * (row[30] > 3 ? 1 : 0);
    }
    corpus.features.push_back(std::move(matrix));
    seconds.push_back(rng.uniform() < failures ? INFINITY : 1e-3 / speed);
  }
  for (size_t p = 0; p < count; ++p)
    corpus.programs.push_back(
        {{&(*corpus.tasks)[p % 3], nullptr, nullptr, nullptr, &corpus.features[p]}, seconds[p]});
  return corpus;
}

std::vector<double> throughput(const Corpus& corpus) {
  std::vector<double> out;
  for (const auto& program : corpus.programs) out.push_back(1 / program.seconds);
  return out;
}

std::vector<double> of_task(const std::vector<double>& values, int task) {
  std::vector<double> out;
  for (size_t p = static_cast<size_t>(task); p < values.size(); p += 3) out.push_back(values[p]);
  return out;
}

TEST(GbtTest, LearnsASyntheticFunction) {
  const Corpus train = make_corpus(test::test_seed(1), 1500), test = make_corpus(test::test_seed(2), 500);
  for (const bool online : {true, false}) {
    GbtOptions options = online ? GbtOptions::online() : GbtOptions();
    if (!online) options.rounds = 60;
    const auto scores = scores_of(*trained(train, options), test.queries());
    Rng rng(3);
    std::vector<double> random;
    for (size_t p = 0; p < scores.size(); ++p) random.push_back(rng.uniform());
    double pairs = 0, peak = 0;
    for (int task = 0; task < 3; ++task) {
      const auto truth = of_task(throughput(test), task);
      pairs += pairwise_accuracy(truth, of_task(scores, task)) / 3;
      peak += peak_at_k(truth, of_task(scores, task), 10) / 3;
      EXPECT_NEAR(pairwise_accuracy(truth, of_task(random, task)), 0.5, 0.08);
    }
    const std::string which = online ? "online" : "offline";
    // Measured, online and offline: .772 +- .010 and .741 +- .013; .945 +- .015 and .932 +- .009.
    test::expect_above("pairs-" + which, pairs, 0.68);
    test::expect_above("peak-" + which, peak, 0.85);
  }
}

TEST(GbtTest, OwnEvaluationEqualsXgboosts) {
  const Corpus train = make_corpus(5, 700, 0.2);
  for (const int bins : {0, 32, 256}) {
    GbtOptions options;
    options.rounds = 40;
    options.max_bins = bins;
    options.max_depth = bins == 32 ? 4 : 10;
    auto fit = fit_speeds(train.programs, options);
    ASSERT_TRUE(fit.ok()) << fit.error().message();
    EXPECT_EQ(fit->forest.tree_count(), 40U);
    size_t row = 0;
    double largest = 0;
    for (const auto& matrix : train.features) {
      std::vector<float> predicted(static_cast<size_t>(matrix.rows));
      fit->forest.predict(matrix.values, predicted);
      for (float value : predicted) {
        ASSERT_NEAR(value, fit->row_predictions[row], 1e-5) << "row " << row << " bins " << bins;
        largest = std::max(largest, std::abs(static_cast<double>(value)));
        ++row;
      }
    }
    EXPECT_EQ(row, fit->row_predictions.size());
    EXPECT_GT(largest, 0.1);
  }
}

// The objective by its definition: with one round, no regularization by gamma and one leaf (depth 0
// is not possible, so features are constant), every row gets -sum(g) / (sum(h) + lambda) * eta.
TEST(GbtTest, FirstStepFollowsThePackSumGradient) {
  Corpus corpus = make_corpus(9, 4);
  for (auto& matrix : corpus.features) std::fill(matrix.values.begin(), matrix.values.end(), 1.0F);
  for (auto& program : corpus.programs) program.program.workload = &corpus.tasks->front();
  double fastest = INFINITY;
  for (const auto& program : corpus.programs) fastest = std::min(fastest, program.seconds);
  for (const bool weighted : {false, true}) {
    GbtOptions options;
    options.rounds = 1;
    options.weight_by_label = weighted;
    auto fit = fit_speeds(corpus.programs, options);
    ASSERT_TRUE(fit.ok()) << fit.error().message();
    double gradient = 0, hessian = 0;
    for (const auto& program : corpus.programs) {
      const double label = fastest / program.seconds, weight = weighted ? label : 1;
      gradient += program.program.rows->rows * weight * (0 - label);
      hessian +=
          program.program.rows->rows * weight * std::max(1.0, program.program.rows->rows * options.eta);
    }
    EXPECT_NEAR(fit->row_predictions[0], options.eta * -gradient / (hessian + 1), 1e-5);
  }
}

TEST(GbtTest, FailedProgramsRankLast) {
  Corpus corpus = make_corpus(test::test_seed(11), 1200);
  // All programs with a large value of column 40 in their first row fail.
  for (auto& program : corpus.programs) {
    if (program.program.rows->row(0)[40] > 7) program.seconds = INFINITY;
  }
  const auto scores = scores_of(*trained(corpus), corpus.queries());
  double good = 0, bad = 0;
  int good_count = 0, bad_count = 0;
  for (size_t p = 0; p < scores.size(); ++p) {
    const bool failed = !std::isfinite(corpus.programs[p].seconds);
    (failed ? bad : good) += scores[p];
    ++(failed ? bad_count : good_count);
  }
  test::expect_above("distance", good / good_count - bad / bad_count, 0.1);  // .378 +- .013
}

TEST(GbtTest, AllFailedOrOneProgramStillTrains) {
  Corpus corpus = make_corpus(12, 30);
  for (auto& program : corpus.programs) program.seconds = INFINITY;
  const auto scores = scores_of(*trained(corpus), corpus.queries());
  // All sums of trees are 0, a speed of 0. Below .02 the logarithm is continued linearly with its
  // slope there.
  for (const double score : scores) EXPECT_NEAR(score, 0.02 * std::exp(-1), 1e-6);
  EXPECT_TRUE(fit_speeds(std::span(corpus.programs).first(1), GbtOptions()).ok());
}

// A search begins without a trained model.
TEST(GbtTest, IsNotReadyBeforeItHasEnough) {
  const Corpus corpus = make_corpus(13, kMinTrainingPrograms);
  auto model = make_online_xgboost();
  EXPECT_FALSE(model->ready());
  EXPECT_TRUE(model->update(std::span(corpus.programs).first(kMinTrainingPrograms - 1)).ok());
  EXPECT_FALSE(model->ready());
  EXPECT_TRUE(model->update(corpus.programs).ok());
  EXPECT_TRUE(model->ready());
}

TEST(GbtTest, DeterministicBySeed) {
  const Corpus corpus = make_corpus(21, 300);
  EXPECT_EQ(scores_of(*trained(corpus), corpus.queries()), scores_of(*trained(corpus), corpus.queries()));
}

TEST(GbtTest, ScoresDoNotDependOnTheBatch) {
  const Corpus corpus = make_corpus(31, 900);
  const auto model = trained(corpus);
  const auto queries = corpus.queries();
  const auto together = scores_of(*model, queries);
  for (size_t p = 0; p < queries.size(); p += 7) EXPECT_EQ(scores_of(*model, {queries[p]})[0], together[p]);
  EXPECT_TRUE(scores_of(*model, {}).empty());
}

TEST(GbtTest, BadTrainingDataIsRefused) {
  auto none = fit_speeds({}, GbtOptions());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kInvalidArgument);
  Corpus corpus = make_corpus(1, 30);
  const auto model = trained(corpus);
  const auto before = scores_of(*model, corpus.queries());
  Corpus damaged = make_corpus(1, 30);
  damaged.features[1].values[3] = NAN;
  const Status bad = model->update(damaged.programs);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(bad.error().message(), HasSubstr("program 1: feature float_divmod is not finite"));
  EXPECT_EQ(scores_of(*model, corpus.queries()), before);
  feature::FeatureMatrix empty;
  EXPECT_FALSE(fit_speeds(std::vector<MeasuredProgram>{{{nullptr, nullptr, nullptr, nullptr, &empty}, 1.0}},
                          GbtOptions())
                   .ok());
}

TEST(ForestTest, RefusesWhatIsNoTree) {
  const Tree good{{1, -1, -1}, {2, -1, -1}, {3, 0, 0}, {0.5F, 0, 0}, {0, 1, 2}};
  EXPECT_TRUE(Forest::create(std::vector<Tree>{good}, 4).ok());
  EXPECT_FALSE(Forest::create(std::vector<Tree>{good}, 3).ok());  // feature 3 of 3
  const auto expect_refused = [&](auto change) {
    Tree tree = good;
    change(tree);
    auto forest = Forest::create(std::vector<Tree>{tree}, 4);
    ASSERT_FALSE(forest.ok());
    EXPECT_EQ(forest.error().code, ErrorCode::kInvalidArgument);
  };
  expect_refused([](Tree& t) { t.right[0] = 0; });                 // a cycle
  expect_refused([](Tree& t) { t.right[0] = 3; });                 // outside
  expect_refused([](Tree& t) { t.left[1] = 2, t.right[1] = 2; });  // two parents
  expect_refused([](Tree& t) { t.threshold[0] = NAN; });
  expect_refused([](Tree& t) { t.value.pop_back(); });
  expect_refused([](Tree& t) { t = Tree(); });
}

// Returns random trees with at most `depth` inner nodes on each path.
std::vector<Tree> random_trees(Rng& rng, int count, int depth, int width) {
  std::vector<Tree> trees;
  for (int t = 0; t < count; ++t) {
    Tree tree;
    const auto grow = [&](auto&& self, int level) -> int {
      const auto id = static_cast<int>(tree.size());
      tree.left.push_back(-1), tree.right.push_back(-1);
      tree.feature.push_back(static_cast<int>(rng.below(static_cast<uint64_t>(width))));
      tree.threshold.push_back(static_cast<float>(rng.below(10)));
      tree.value.push_back(static_cast<float>(rng.below(100)) / 7);
      if (level < depth && rng.bernoulli(level == 0 ? 0.9 : 0.7)) {
        const int right = self(self, level + 1);  // the right child first: the numbering is arbitrary
        tree.right[static_cast<size_t>(id)] = right;
        const int left = self(self, level + 1);
        tree.left[static_cast<size_t>(id)] = left;
      }
      return id;
    };
    grow(grow, 0);
    trees.push_back(std::move(tree));
  }
  return trees;
}

// Compared with plain recursion, bit for bit: deep trees in single steps; trees of up to six
// levels, which a processor with AVX-512 processes for 16 rows at a time; one more level; widths
// and numbers of rows that do not fill a block.
TEST(ForestTest, EqualsRecursion) {
  Rng rng(77);
  for (const int depth : {0, 1, 3, 6, 7, 9}) {
    for (const int width : {1, 5, 16, 37}) {
      SCOPED_TRACE("depth " + std::to_string(depth) + ", width " + std::to_string(width));
      std::vector<Tree> trees = random_trees(rng, 30, depth, width);
      auto forest = Forest::create(trees, width);
      ASSERT_TRUE(forest.ok());
      auto copy = Forest::from_arrays(forest->to_arrays(), width);
      ASSERT_TRUE(copy.ok()) << copy.error().message();
      const std::vector<Tree> more = random_trees(rng, 3, 2, width);
      copy->append(*Forest::create(more, width));
      for (const size_t count : {1, 15, 16, 17, 32, 33, 77}) {
        std::vector<float> rows;
        for (size_t i = 0; i < count * static_cast<size_t>(width); ++i)
          rows.push_back(static_cast<float>(rng.below(10)));
        std::vector<float> out(count), out_of_copy(count);
        forest->predict(rows, out);
        copy->predict(rows, out_of_copy);
        for (size_t r = 0; r < count; ++r) {
          float expected = 0;
          const auto add = [&](const Tree& tree) {
            size_t at = 0;
            while (tree.left[at] >= 0) {
              const size_t value = r * static_cast<size_t>(width) + static_cast<size_t>(tree.feature[at]);
              at = static_cast<size_t>(rows[value] < tree.threshold[at] ? tree.left[at] : tree.right[at]);
            }
            expected += tree.value[at];
          };
          for (const Tree& tree : trees) add(tree);
          ASSERT_EQ(out[r], expected) << "row " << r << " of " << count;
          for (const Tree& tree : more) add(tree);
          ASSERT_EQ(out_of_copy[r], expected) << "row " << r << " of " << count;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tensorsmith::learn::gbt_test
