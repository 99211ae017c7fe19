// Components of the neural models: statistics, sequences, layers and losses, compared with
// straightforward code.
#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "base/rng.h"
#include "learn/latency_testing.h"
#include "learn/net/losses.h"
#include "learn/net/records.h"

namespace tensorsmith::learn::net::parts_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::MadeStore;
using testing::MadeStoreOptions;

TEST(ColumnStatistics, AgreeWithTheirDefinitions) {
  ColumnStatistics statistics(3);
  const std::vector<float> rows = {1, 7, -4, 3, 7, 0, 8, 7, 1};
  statistics.add(std::span(rows).first(3));
  statistics.add(std::span(rows).subspan(3));
  EXPECT_EQ(statistics.rows(), 3);
  const ColumnScaling most = statistics.scaling(ScalingKind::kMax);
  EXPECT_THAT(most.shift, Each(0));
  EXPECT_FLOAT_EQ(most.scale[0], 1.0F / 8);
  EXPECT_EQ(most.scale[1], 0);  // constant
  EXPECT_FLOAT_EQ(most.scale[2], 1.0F / 4);
  const ColumnScaling range = statistics.scaling(ScalingKind::kMinMax);
  EXPECT_THAT(range.shift, ElementsAre(1, 7, -4));
  EXPECT_FLOAT_EQ(range.scale[0], 1.0F / 7);
  EXPECT_FLOAT_EQ(range.scale[2], 1.0F / 5);
  const ColumnScaling standard = statistics.scaling(ScalingKind::kStandard);
  EXPECT_FLOAT_EQ(standard.shift[0], 4);
  EXPECT_FLOAT_EQ(standard.scale[0], static_cast<float>(1 / std::sqrt((9 + 1 + 16) / 3.0)));
}

TEST(LabelTransform, LogIsTheStandardizedLogarithm) {
  const std::vector<double> r = {-3, -5, -10};
  const LabelTransform transform = LabelTransform::fit("log", r);
  EXPECT_NEAR(transform.encode(-6), 0, 1e-12);
  EXPECT_NEAR(transform.encode(-3), 3 / std::sqrt((9 + 1 + 16) / 3.0), 1e-12);
  EXPECT_NEAR(transform.decode(transform.encode(-7.5)), -7.5, 1e-12);
}

// Squares of normal numbers become normal with lambda = 1/2, exponentials with 0; the unit of the
// labels has no effect.
TEST(LabelTransform, BoxCoxFindsTheRoot) {
  for (const double unit : {1.0, 1e-6}) {
    Rng rng(7);
    std::vector<double> squares, exponentials;
    for (int i = 0; i < 20'000; ++i) {
      const double x = 5 + rng.normal();
      squares.push_back(std::log(x * x * unit));
      exponentials.push_back(x + std::log(unit));
    }
    EXPECT_NEAR(LabelTransform::fit("box-cox", exponentials).lambda, 0, 0.02);
    const LabelTransform transform = LabelTransform::fit("box-cox", squares);
    EXPECT_NEAR(transform.lambda, 0.5, 0.05);
    double mean = 0, variance = 0;
    for (const double r : squares) {
      const double z = transform.encode(r);
      mean += z / 20'000;
      variance += z * z / 20'000;
      EXPECT_NEAR(transform.decode(z), r, 1e-9);
    }
    EXPECT_NEAR(mean, 0, 1e-9);
    EXPECT_NEAR(variance, 1, 1e-9);
    EXPECT_TRUE(std::isfinite(transform.decode(-100)));
    const Tensor z = torch::tensor({-100.0, -1.0, 0.0, 2.5}, torch::kFloat64);
    const Tensor decoded = decode(z, transform);
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_NEAR(decoded[i].item<double>(), transform.decode(z[i].item<double>()), 1e-9);
  }
}

TEST(StepSequence, HasTypesAndNumbersInOrder) {
  const sched::Trace trace = {{sched::Split{2, 5, {8, 16}, true, sched::TailPolicy::kPredicate},
                               sched::Reorder{1, {0, 3, 2, 1}},
                               sched::Annotate{1, 4, sched::Annotation::kParallel}, sched::Unroll{3, 64}}};
  StepOptions options = {.max_steps = 3, .numbers = 5, .log_numbers = false};
  std::vector<float> out;
  ASSERT_EQ(encode_steps(trace, options, out), 3);
  ASSERT_EQ(out.size(), static_cast<size_t>(3 * options.width()));
  const auto step = [&](size_t i) {
    const auto width = static_cast<size_t>(options.width());
    EXPECT_EQ(out[i * width + trace.steps[i].index()], 1);
    for (size_t t = 0; t < static_cast<size_t>(kStepTypes); ++t)
      EXPECT_EQ(out[i * width + t], t == trace.steps[i].index() ? 1 : 0);
    return std::vector<float>(out.begin() + static_cast<ptrdiff_t>(i * width) + kStepTypes,
                              out.begin() + static_cast<ptrdiff_t>((i + 1) * width));
  };
  EXPECT_THAT(step(0), ElementsAre(2, 5, 1, 0, 8));  // cropped to five
  EXPECT_THAT(step(1), ElementsAre(1, 0, 3, 2, 1));
  EXPECT_THAT(step(2), ElementsAre(1, 4, 3, 0, 0));
  out.clear();
  options.log_numbers = true;
  ASSERT_EQ(encode_steps(trace, options, out), 3);
  EXPECT_FLOAT_EQ(step(0)[4], std::log2(9.0F));
  out.clear();
  EXPECT_EQ(encode_steps({}, options, out), 1);
  EXPECT_THAT(out, Each(0));
}

// The numbers of the steps must not change, because trained models have been trained with them.
TEST(StepSequence, StepsKeepTheirNumbers) {
  const std::pair<const char*, std::vector<float>> steps[] = {
      {"split stage=2 iter=5 lengths=[8,16] inner=false tail=peel", {2, 5, 0, 1, 8, 16, 0, 0, 0}},
      {"follow_split stage=1 iter=2 source=3 n_split=4", {1, 2, 3, 4, 0, 0, 0, 0, 0}},
      {"follow_fused_split stage=1 iter=2 sources=[3,4] level=5 factor=false", {1, 2, 5, 0, 3, 4, 0, 0, 0}},
      {"fuse stage=1 iters=[2,3]", {1, 2, 3, 0, 0, 0, 0, 0, 0}},
      {"reorder stage=1 order=[3,2,1,0]", {1, 3, 2, 1, 0, 0, 0, 0, 0}},
      {"annotate stage=1 iter=2 as=parallel", {1, 2, 3, 0, 0, 0, 0, 0, 0}},
      {"unroll stage=1 max_step=512", {1, 512, 0, 0, 0, 0, 0, 0, 0}},
      {"compute_at stage=1 target=2 iter=3", {1, 2, 3, 0, 0, 0, 0, 0, 0}},
      {"reverse_compute_at stage=1 producer=2 iter=3", {1, 2, 3, 0, 0, 0, 0, 0, 0}},
      {"compute_inline stage=1", {1, 0, 0, 0, 0, 0, 0, 0, 0}},
      {"compute_root stage=2", {2, 0, 0, 0, 0, 0, 0, 0, 0}},
      {"cache_read stage=1 scope=shared readers=[2,3]", {1, 1, 2, 3, 0, 0, 0, 0, 0}},
      {"cache_write stage=1 scope=local", {1, 2, 0, 0, 0, 0, 0, 0, 0}},
      {"rfactor stage=1 iter=2 axis=3", {1, 2, 3, 0, 0, 0, 0, 0, 0}},
      {"decompose_reduction stage=1 iter=2", {1, 2, 0, 0, 0, 0, 0, 0, 0}},
      {"storage_align stage=1 iter=2 factor=32 offset=-8", {1, 2, 32, -8, 0, 0, 0, 0, 0}},
      {"pack_layout stage=1 layout=[0/16%4,1/1%300]", {1, 0, 16, 4, 1, 1, 300, 0, 0}},
      {"winograd stage=1 m=6", {1, 6, 0, 0, 0, 0, 0, 0, 0}},
      {"dot stage=1 iter=2", {1, 2, 0, 0, 0, 0, 0, 0, 0}},
      {"dot16 stage=1 iter=2", {1, 2, 0, 0, 0, 0, 0, 0, 0}},
  };
  ASSERT_EQ(std::size(steps), static_cast<size_t>(kStepTypes));
  const StepOptions options = {.max_steps = 1, .numbers = 9, .log_numbers = false};
  for (const auto& [text, numbers] : steps) {
    const auto trace = sched::parse_trace(text);
    ASSERT_TRUE(trace.ok()) << trace.error().message();
    std::vector<float> out;
    ASSERT_EQ(encode_steps(*trace, options, out), 1);
    EXPECT_EQ(std::vector<float>(out.begin() + kStepTypes, out.end()), numbers) << text;
  }
}

// --- layers

Ragged ragged_of(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> begin = {0};
  for (const int64_t n : lengths) begin.push_back(begin.back() + n);
  return Ragged::create(begin, torch::kCPU);
}

TEST(Ragged, PadsSumsAndReturns) {
  torch::manual_seed(3);
  const Ragged ragged = ragged_of({2, 5, 1});
  const Tensor rows = torch::randn({8, 3}, torch::kFloat64).set_requires_grad(true);
  const Tensor padded = pad(rows, ragged);
  EXPECT_EQ(padded.sizes(), (std::vector<int64_t>{3, 5, 3}));
  EXPECT_TRUE(torch::equal(padded[1][4], rows[6]));
  EXPECT_EQ(padded[0][2].abs().sum().item<double>(), 0);
  EXPECT_TRUE(torch::equal(unpad(padded, ragged), rows));
  const Tensor sums = sum_by_program(rows, ragged);
  EXPECT_TRUE(torch::allclose(sums[1], rows.slice(0, 2, 7).sum(0)));
  // The gradients of a weighted sum are the weights of the row's program.
  const Tensor weights = torch::randn({3, 3}, torch::kFloat64);
  (sums * weights).sum().backward();
  EXPECT_TRUE(torch::allclose(rows.grad(), weights.index_select(0, ragged.owner)));
  rows.mutable_grad().reset();
  const Tensor by_row = torch::randn({8, 3}, torch::kFloat64);
  (unpad(pad(rows, ragged), ragged) * by_row).sum().backward();
  EXPECT_TRUE(torch::allclose(rows.grad(), by_row));
}

// One program, one head, one row at a time, as in the formula.
TEST(Attention, AgreesWithEachProgramByItself) {
  constexpr int64_t kWidth = 12, kHeads = 3, kPart = kWidth / kHeads;
  Attention attention(kWidth, kHeads);
  initialize(*attention, 5);
  attention->to(torch::kFloat64);
  const Ragged ragged = ragged_of({1, 4, 2, 7});
  torch::manual_seed(4);
  const Tensor rows = torch::randn({14, kWidth}, torch::kFloat64);
  const Tensor actual = attention(rows, ragged);
  const auto parameters = attention->named_parameters();
  const Tensor qkv = torch::linear(rows, parameters["qkv.weight"], parameters["qkv.bias"]);
  Tensor mixed = torch::zeros({14, kWidth}, torch::kFloat64);
  for (int64_t program = 0, first = 0; program < 4; ++program) {
    const int64_t last = first + std::vector<int64_t>{1, 4, 2, 7}[static_cast<size_t>(program)];
    for (int64_t i = first; i < last; ++i) {
      for (int64_t h = 0; h < kHeads; ++h) {
        const Tensor query = qkv[i].slice(0, h * kPart, (h + 1) * kPart);
        double total = 0;
        Tensor sum = torch::zeros({kPart}, torch::kFloat64);
        for (int64_t j = first; j < last; ++j) {
          const Tensor key = qkv[j].slice(0, kWidth + h * kPart, kWidth + (h + 1) * kPart);
          const Tensor value = qkv[j].slice(0, 2 * kWidth + h * kPart, 2 * kWidth + (h + 1) * kPart);
          const double weight = std::exp((query * key).sum().item<double>() / std::sqrt(double{kPart}));
          total += weight;
          sum = sum + value * weight;
        }
        mixed[i].slice(0, h * kPart, (h + 1) * kPart).copy_((sum / total).detach());
      }
    }
    first = last;
  }
  const Tensor expected = torch::linear(mixed, parameters["out.weight"], parameters["out.bias"]);
  EXPECT_TRUE(torch::allclose(actual, expected, 1e-9, 1e-12));
}

TEST(AttentionPool, IsAMeanWeightedByTheScores) {
  AttentionPool pool(4, 2);
  initialize(*pool, 6);
  pool->to(torch::kFloat64);
  torch::manual_seed(5);
  const Tensor rows = torch::randn({5, 4}, torch::kFloat64);
  const Tensor actual = pool(rows, ragged_of({3, 2}));
  const auto parameters = pool->named_parameters();
  const Tensor score = torch::linear(rows, parameters["score.weight"], parameters["score.bias"]).exp();
  for (int64_t column = 0; column < 4; ++column) {
    const Tensor weight = score.select(1, column / 2), value = rows.select(1, column);
    const auto mean = [&](int64_t a, int64_t b) {
      return ((weight * value).slice(0, a, b).sum() / weight.slice(0, a, b).sum()).item<double>();
    };
    EXPECT_NEAR(actual[0][column].item<double>(), mean(0, 3), 1e-12);
    EXPECT_NEAR(actual[1][column].item<double>(), mean(3, 5), 1e-12);
  }
}

TEST(PositionEncoding, IsSinesAndCosines) {
  const Tensor encoded = position_encoding(torch::tensor({int64_t{0}, int64_t{9}}), 5);
  ASSERT_EQ(encoded.sizes(), (std::vector<int64_t>{2, 5}));
  EXPECT_FLOAT_EQ(encoded[0][0].item<float>(), 0);
  EXPECT_FLOAT_EQ(encoded[0][1].item<float>(), 1);
  EXPECT_NEAR(encoded[1][2].item<float>(), std::sin(9 / std::pow(10000, 2 / 5.0)), 1e-5);
  EXPECT_NEAR(encoded[1][3].item<float>(), std::cos(9 / std::pow(10000, 2 / 5.0)), 1e-5);
}

TEST(Initialize, DependsOnTheSeedOnly) {
  torch::nn::Sequential a = make_mlp({3, 8, 2}, false), b = make_mlp({3, 8, 2}, false),
                        c = make_mlp({3, 8, 2}, false);
  initialize(*a, 1);
  torch::manual_seed(99);
  initialize(*b, 1);
  initialize(*c, 2);
  EXPECT_TRUE(torch::equal(a->parameters()[0], b->parameters()[0]));
  EXPECT_FALSE(torch::equal(a->parameters()[0], c->parameters()[0]));
}

// --- losses

double brute_force_lambda_rank(const std::vector<double>& p, const std::vector<double>& y) {
  const size_t n = p.size();
  const auto rank_in = [n](const std::vector<double>& values, size_t i) {
    int rank = 1;
    for (size_t j = 0; j < n; ++j) rank += values[j] > values[i] ? 1 : 0;
    return rank;
  };
  double most = 0, loss = 0;
  for (size_t i = 0; i < n; ++i) most += (std::exp2(y[i]) - 1) / std::log2(1.0 + rank_in(y, i));
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      if (y[i] <= y[j]) continue;
      const double d = std::abs(1 / std::log2(1.0 + rank_in(p, i)) - 1 / std::log2(1.0 + rank_in(p, j)));
      const double g = std::abs(std::exp2(y[i]) - std::exp2(y[j])) / most;
      loss -= d * g * std::log2(1 / (1 + std::exp(p[j] - p[i])));
    }
  }
  return loss;
}

TEST(LambdaRank, AgreesWithItsFormula) {
  Rng rng(11);
  std::vector<std::vector<double>> p, y;
  std::vector<double> all_p, all_y;
  std::vector<int64_t> task;
  for (const size_t size : {5, 1, 12, 3}) {
    p.emplace_back();
    y.emplace_back();
    for (size_t i = 0; i < size; ++i) {
      p.back().push_back(rng.normal());
      y.back().push_back(i == 0 && size > 3 ? 0 : rng.uniform());  // a failed one
      task.push_back(static_cast<int64_t>(p.size()));
    }
    all_p.insert(all_p.end(), p.back().begin(), p.back().end());
    all_y.insert(all_y.end(), y.back().begin(), y.back().end());
  }
  double expected = 0;
  for (size_t list = 0; list < p.size(); ++list) expected += brute_force_lambda_rank(p[list], y[list]) / 4;
  const Tensor scores = torch::tensor(all_p, torch::kFloat64).set_requires_grad(true);
  const Tensor loss = lambda_rank(scores, torch::tensor(all_y, torch::kFloat64), task);
  EXPECT_NEAR(loss.item<double>(), expected, 1e-9);
  // Only differences within a list matter: adding a constant to all scores of one task changes
  // nothing.
  Tensor shifted = scores.detach().clone();
  shifted.slice(0, 0, 5).add_(3);
  EXPECT_NEAR(lambda_rank(shifted, torch::tensor(all_y, torch::kFloat64), task).item<double>(), expected,
              1e-9);
  loss.backward();
  EXPECT_TRUE(torch::isfinite(scores.grad()).all().item<bool>());
  EXPECT_EQ(scores.grad()[5].item<double>(), 0);  // alone in its list
}

TEST(Cmd, AgreesWithItsDefinition) {
  torch::manual_seed(8);
  const Tensor x = torch::rand({40, 6}, torch::kFloat64), y = torch::rand({25, 6}, torch::kFloat64).square();
  double expected = 0;
  const auto moment = [](const Tensor& t, int64_t column, int k) {
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < t.size(0); ++i)
      mean += t[i][column].item<double>() / static_cast<double>(t.size(0));
    if (k == 1) return mean;
    for (int64_t i = 0; i < t.size(0); ++i)
      sum += std::pow(t[i][column].item<double>() - mean, k) / static_cast<double>(t.size(0));
    return sum;
  };
  for (int k = 1; k <= 5; ++k) {
    double squares = 0;
    for (int64_t c = 0; c < 6; ++c) squares += std::pow(moment(x, c, k) - moment(y, c, k), 2);
    expected += std::sqrt(squares);
  }
  EXPECT_NEAR(central_moment_discrepancy(x, y).item<double>(), expected, 1e-6);
  EXPECT_NEAR(central_moment_discrepancy(x, x).item<double>(), 0, 1e-5);
}

TEST(Hybrid, AgreesWithItsFormula) {
  const Tensor z = torch::tensor({1.5, -1.0, 0.2}, torch::kFloat64);
  const Tensor y = torch::tensor({1.0, -2.0, 0.01}, torch::kFloat64);
  const double squares = (0.25 + 1 + 0.19 * 0.19) / 3, relative = (0.5 + 0.5 + 0.19 / kLeastLabel) / 3;
  EXPECT_NEAR(hybrid_loss(z, y).item<double>(), 1000 * squares + relative, 1e-9);
}

// A program of weight 1/2 counts half as much.
TEST(Losses, WeighPrograms) {
  const Tensor z = torch::tensor({1.5, -1.0}, torch::kFloat64),
               y = torch::tensor({1.0, -2.0}, torch::kFloat64);
  const Tensor weight = torch::tensor({1.0, 0.5}, torch::kFloat64);
  const double squares = (0.25 + 0.5 * 1) / 1.5, relative = (0.5 + 0.5 * 0.5) / 1.5;
  EXPECT_NEAR(hybrid_loss(z, y, weight).item<double>(), 1000 * squares + relative, 1e-9);
  const auto one = [&](int64_t i) {
    return relative_loss(z.slice(0, i, i + 1), y.slice(0, i, i + 1)).item<double>();
  };
  EXPECT_NEAR(relative_loss(z, y, weight).item<double>(), (one(0) + 0.5 * one(1)) / 1.5, 1e-12);
}

TEST(RelativeLoss, IsThePercentageErrorAndStaysFinite) {
  const auto loss = [](double d) {
    const Tensor predicted = torch::tensor({d}, torch::kFloat64).set_requires_grad(true);
    const Tensor value = relative_loss(predicted, torch::zeros({1}, torch::kFloat64));
    value.backward();
    return std::pair(value.item<double>(), predicted.grad().item<double>());
  };
  EXPECT_NEAR(loss(std::log(1.5)).first, 0.5, kSmooth);
  EXPECT_NEAR(loss(std::log(0.6)).first, 0.4, kSmooth);
  EXPECT_EQ(loss(0).first, 0);
  EXPECT_NEAR(loss(50).second, std::numbers::e, 0.01);
  EXPECT_NEAR(loss(-50).second, -1 / std::numbers::e, 0.01);
}

// --- records

TEST(Records, ListsAreOfOneTaskAndEveryRecordComesOnce) {
  const MadeStore store({.tasks = 5, .programs = 30, .failures = 0.2});
  const TrainingData data = store.data();
  BatchOptions options;
  const auto records = Records::create(data, options, true);
  ASSERT_TRUE(records.ok()) << records.error().message();
  const auto task = [&](int64_t i) {
    const Store::Entry entry = store.store().entry(i);
    return std::pair(entry.workload, entry.device);
  };
  constexpr int kList = 7;
  const std::vector<int64_t> order = (*records)->order(3, 1, kList);
  EXPECT_EQ(order, (*records)->order(3, 1, kList));
  EXPECT_NE(order, (*records)->order(3, 2, kList));
  EXPECT_NE(order, (*records)->order(4, 1, kList));
  EXPECT_THAT(std::set<int64_t>(order.begin(), order.end()),
              ::testing::ContainerEq(std::set<int64_t>(data.train.begin(), data.train.end())));
  EXPECT_EQ(order.size(), data.train.size());
  size_t runs = 1;
  for (size_t i = 1; i < order.size(); ++i) runs += task(order[i]) != task(order[i - 1]) ? 1 : 0;
  // 24 records of each of ten tasks: four lists each; consecutive lists may be of the same task.
  EXPECT_LE(runs, 40u);
  EXPECT_GE(runs, 20u);

  const auto without = Records::create(data, options, false);
  ASSERT_TRUE(without.ok());
  EXPECT_LT((*without)->train_size(), (*records)->train_size());
  for (const int64_t i : (*records)->validation()) EXPECT_FALSE(store.store().entry(i).failed());
  EXPECT_NE((*without)->order(3, 1, 0), (*without)->order(3, 2, 0));
}

TEST(Records, LabelsAreThoseOfTheStore) {
  const MadeStore store({.tasks = 3, .programs = 20, .failures = 0.3});
  const TrainingData data = store.data();
  BatchOptions options;
  options.devices = {"xeon-8358"};
  const auto records = Records::create(data, options, true);
  ASSERT_TRUE(records.ok());
  std::map<std::pair<uint32_t, uint32_t>, double> least;
  for (const int64_t i : data.train) {
    const Store::Entry entry = store.store().entry(i);
    auto& best = least.emplace(std::pair(entry.workload, entry.device), INFINITY).first->second;
    if (!entry.failed()) best = std::min(best, entry.mean_seconds);
  }
  Batch batch;
  ASSERT_TRUE((*records)->read(data.train, batch).ok());
  ASSERT_EQ(batch.programs, static_cast<int64_t>(data.train.size()));
  for (size_t p = 0; p < data.train.size(); ++p) {
    const Store::Entry entry = store.store().entry(data.train[p]);
    EXPECT_EQ(batch.row_begin[p + 1] - batch.row_begin[p], entry.leaves);
    EXPECT_EQ(batch.device[p], store.store().devices()[entry.device] == "v100" ? -1 : 0);
    if (entry.failed()) {
      EXPECT_TRUE(std::isinf(batch.log_seconds[p]));
      EXPECT_EQ(batch.score[p], 0);
    } else {
      EXPECT_DOUBLE_EQ(batch.log_seconds[p], std::log(entry.mean_seconds));
      EXPECT_FLOAT_EQ(batch.score[p],
                      static_cast<float>(least[{entry.workload, entry.device}] / entry.mean_seconds));
    }
  }
}

}  // namespace
}  // namespace tensorsmith::learn::net::parts_test
