#include <gmock/gmock.h>

#include <cmath>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "lab/kinds/draft_model.h"
#include "lab/kinds/kinds.h"
#include "learn/cost_model.h"
#include "learn/metrics.h"
#include "record/line_reader.h"
#include "support/program_features.h"
#include "support/quality.h"

namespace tensorsmith::lab::draft_test {
namespace {

using ir::DType;
using ir::Expr;
using ir::ForKind;
using ir::Stmt;
using ir::Var;

target::Device device() {
  auto found = target::find_device("xeon-8358");
  EXPECT_TRUE(found.ok());
  return std::move(found).value();
}

// Spearman's rank correlation; equal values share their mean rank.
double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const auto rank = [](const std::vector<double>& values, double of) {
    double sum = 0.5;
    for (const double v : values) sum += v < of ? 1 : v == of ? 0.5 : 0;
    return sum;
  };
  const double mean = 0.5 * static_cast<double>(a.size() + 1);
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = rank(a, a[i]) - mean, y = rank(b, b[i]) - mean;
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

struct Loop {
  Var var;
  int64_t extent;
  ForKind kind = ForKind::kSerial;
};

Stmt nest(const std::vector<Loop>& loops, Stmt body, int64_t unroll_step = 0) {
  for (size_t l = loops.size(); l-- > 0;)
    body = ir::make_for(
        {loops[l].var, Expr(loops[l].extent), loops[l].kind, ir::ThreadAxis::kNone, unroll_step, body});
  return body;
}

// C += A * B over n^3 with the given loops; i, j, k are expressions of their variables.
double matmul_seconds(int64_t n, const std::vector<Loop>& loops, const Expr& i, const Expr& j, const Expr& k,
                      int64_t unroll_step = 0, int threads = 32) {
  const auto a = ir::make_buffer("A", DType::kF32, {n, n});
  const auto b = ir::make_buffer("B", DType::kF32, {n, n});
  const auto c = ir::make_buffer("C", DType::kF32, {n, n});
  const Stmt body =
      ir::make_store(c, {i, j}, ir::load(c, {i, j}) + ir::load(a, {i, k}) * ir::load(b, {k, j}));
  const auto features = feature::extract_per_store({"m", {a, b}, {c}, nest(loops, body, unroll_step)}, {});
  return draft_seconds(features, device(), threads);
}

TEST(DraftModelTest, RanksMatmulSchedules) {
  const int64_t n = 512;
  const Var i("i"), j("j"), k("k"), jo("jo"), ji("ji"), io("io"), ii("ii");
  const double naive = matmul_seconds(n, {{i, n}, {j, n}, {k, n}}, i, j, k);
  const double interchanged = matmul_seconds(n, {{i, n}, {k, n}, {j, n}}, i, j, k);
  const Expr jj = jo * 16 + ji;
  const double vectorized =
      matmul_seconds(n, {{i, n}, {k, n}, {jo, n / 16}, {ji, 16, ForKind::kVectorized}}, i, jj, k);
  const double gathered =
      matmul_seconds(n, {{k, n}, {jo, n}, {io, n / 16}, {ii, 16, ForKind::kVectorized}}, io * 16 + ii, jo, k);
  const double parallel = matmul_seconds(
      n, {{i, n, ForKind::kParallel}, {k, n}, {jo, n / 16}, {ji, 16, ForKind::kVectorized}}, i, jj, k);
  const Expr tiled_i = io * 8 + ii;
  const std::vector<Loop> tile = {
      {io, n / 8, ForKind::kParallel}, {jo, n / 16}, {k, n}, {ii, 8}, {ji, 16, ForKind::kVectorized}};
  const double register_tile = matmul_seconds(n, tile, tiled_i, jj, k, 64);
  const double rolled_tile = matmul_seconds(n, tile, tiled_i, jj, k, 0);
  EXPECT_LT(vectorized, naive);
  EXPECT_LT(vectorized, interchanged);
  EXPECT_LT(vectorized, gathered);
  EXPECT_LT(parallel, vectorized / 8);
  EXPECT_LT(register_tile, parallel);
  EXPECT_LT(register_tile, rolled_tile);
  // No faster than the machine's limit: 2 n^3 operations at 5.3 Tflop/s.
  EXPECT_GT(register_tile, 2.0 * static_cast<double>(n * n * n) / 5.4e12);
  // A single thread does not profit from a parallel loop.
  const std::vector<Loop> loops = {
      {i, n, ForKind::kParallel}, {k, n}, {jo, n / 16}, {ji, 16, ForKind::kVectorized}};
  EXPECT_GT(matmul_seconds(n, loops, i, jj, k, 0, 1), 10 * matmul_seconds(n, loops, i, jj, k, 0, 32));
}

TEST(DraftModelTest, RanksElementwiseSchedules) {
  const auto in = ir::make_buffer("in", DType::kF32, {4096, 1024});
  const auto out = ir::make_buffer("out", DType::kF32, {4096, 1024});
  const auto seconds = [&](const std::vector<Loop>& loops, const Expr& i, const Expr& j) {
    const Stmt body = ir::make_store(out, {i, j}, ir::call(ir::Intrinsic::kExp, {ir::load(in, {i, j})}));
    return draft_seconds(feature::extract_per_store({"e", {in}, {out}, nest(loops, body)}, {}), device(), 32);
  };
  const Var i("i"), j("j"), jo("jo"), ji("ji");
  const double serial = seconds({{i, 4096}, {j, 1024}}, i, j);
  const double vectorized = seconds({{i, 4096}, {jo, 64}, {ji, 16, ForKind::kVectorized}}, i, jo * 16 + ji);
  const double parallel = seconds({{i, 4096, ForKind::kParallel}, {j, 1024}}, i, j);
  const double both =
      seconds({{i, 4096, ForKind::kParallel}, {jo, 64}, {ji, 16, ForKind::kVectorized}}, i, jo * 16 + ji);
  const double transposed = seconds({{j, 1024}, {i, 4096}}, i, j);
  EXPECT_LT(vectorized, serial);
  EXPECT_LT(parallel, serial);
  EXPECT_LT(both, vectorized);
  EXPECT_LT(both, parallel);
  EXPECT_LT(serial, transposed);
}

TEST(DraftModelTest, ScoresAreFiniteWhateverTheFeatures) {
  Rng rng(1);
  std::vector<feature::FeatureMatrix> matrices(200);
  const target::Device xeon = device();
  std::vector<learn::ProgramQuery> queries;
  for (auto& matrix : matrices) {
    matrix.rows = static_cast<int>(rng.below(4));
    for (int v = 0; v < matrix.rows * feature::kPerStoreWidth; ++v)
      matrix.values.push_back(static_cast<float>(rng.below(3) == 0 ? rng.uniform() * 60 : rng.below(2)));
    queries.push_back({nullptr, nullptr, nullptr, &xeon, &matrix});
  }
  const auto predictions = cost_model_kinds().make_untrained("draft", {}).value()->predict(queries).value();
  ASSERT_EQ(predictions.size(), 200U);
  for (const auto& p : predictions) ASSERT_TRUE(std::isfinite(p.seconds) && p.seconds > 0);
}

// TVM's own features of measured programs on the device: predictions must correlate with the times
// of each workload.
TEST(DraftModelTest, OrdersMeasuredProgramsOfTheXeon) {
  auto reader = record::LineReader::open(TENSORSMITH_SOURCE_DIR "/tests/data/ansor/features.golden.jsonl.zst",
                                         size_t{1} << 24);
  ASSERT_TRUE(reader.ok()) << reader.error().message();
  struct Task {
    std::vector<double> seconds, scores;
  };
  std::map<std::string, Task> tasks;
  const target::Device xeon = device();
  ASSERT_EQ(xeon.cpu().cores, 32);
  const auto model = cost_model_kinds().make_untrained("draft", {}).value();
  record::LineReader::Line line;
  while (*(*reader)->next(line)) {
    const auto json = nlohmann::json::parse(line.text);
    if (json["device"] != "xeon8358" || json["record"]["r"][1] != 0) continue;
    feature::FeatureMatrix features;
    for (const auto& row : json["features"]) {
      ++features.rows;
      for (const auto& value : row) features.values.push_back(value.get<float>());
    }
    std::vector<double> costs = json["record"]["r"][0];
    std::nth_element(costs.begin(), costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2),
                     costs.end());
    Task& task = tasks[json["record"]["i"][0][0]];
    task.seconds.push_back(costs[costs.size() / 2]);
    const learn::ProgramQuery query{nullptr, nullptr, nullptr, &xeon, &features};
    task.scores.push_back(std::log(model->predict(std::span(&query, 1)).value()[0].seconds));
  }
  double correlation = 0, pairs = 0, count = 0, log_ratio = 0, clear = 0, clear_right = 0;
  for (const auto& [key, task] : tasks) {
    if (task.seconds.size() < 3) continue;
    correlation += spearman(task.seconds, task.scores);
    pairs += learn::pairwise_accuracy(task.seconds, task.scores);
    for (size_t i = 0; i < task.seconds.size(); ++i) {
      log_ratio += std::log(task.seconds[i]) - task.scores[i];
      for (size_t j = 0; j < task.seconds.size(); ++j) {
        if (task.seconds[i] < 1.5 * task.seconds[j]) continue;
        clear += 1;
        clear_right += task.scores[i] > task.scores[j] ? 1 : 0;
      }
    }
    if (std::getenv("TENSORSMITH_VERBOSE") != nullptr) {
      std::cout << key << " rho " << spearman(task.seconds, task.scores) << "\n";
      for (size_t i = 0; i < task.seconds.size(); ++i)
        std::cout << "   " << task.seconds[i] << " predicted " << std::exp(task.scores[i]) << "\n";
    }
    count += 1;
  }
  std::cout << "mean over " << count << " workloads: Spearman " << correlation / count << ", pairs ordered "
            << pairs / count << ", of the " << clear << " pairs at least a factor 1.5 apart "
            << clear_right / clear << ", measured / predicted " << std::exp(log_ratio / count / 8) << "\n";
  EXPECT_GT(count, 30);
  // Most of these programs are among a tuner's best, and their times differ by less than the noise.
  test::expect_above("spearman", correlation / count, 0.3);      // .355; deterministic, without a seed
  test::expect_above("clear-pairs", clear_right / clear, 0.75);  // .846
}

}  // namespace
}  // namespace tensorsmith::lab::draft_test
