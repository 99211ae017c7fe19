// Latency models that need no training, the registry, and records as queries.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "lab/kinds/kinds.h"
#include "latency_testing.h"
#include "learn/latency/evaluation.h"
#include "learn/latency/model_file.h"
#include "learn/latency/roofline.h"
#include "support/quality.h"

namespace tensorsmith::learn::latency_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MadeProgram;
using testing::MadeStore;
using testing::MadeStoreOptions;
using testing::make_leaves;

std::unique_ptr<CostModelTrainer> trainer(const std::string& kind) {
  auto made = lab::cost_model_kinds().make_trainer(kind, nlohmann::json::object());
  EXPECT_TRUE(made.ok()) << made.error().message();
  return std::move(*made);
}

Result<std::unique_ptr<CostModel>> trainer_model(const std::string& kind, const TrainingData& data) {
  return trainer(kind)->train(data, {});
}

// Computed by hand. Xeon 8358: 5324.8 GFLOP/s, 204.8 GB/s, 32 cores, 16 lanes.
TEST(Roofline, CpuByHand) {
  const target::Device xeon = target::find_device("xeon-8358").value();
  const auto seconds = [&](const MadeProgram& p) { return roofline_seconds(make_leaves(p, false), xeon); };
  MadeProgram program{.operations = 1e9, .bytes = 1e6, .vector_length = 16, .chunks = 32};
  const double peak = 1e9 / 5324.8e9;
  EXPECT_NEAR(seconds(program) / peak, 1, 1e-4);
  program.vector_length = 4;
  EXPECT_NEAR(seconds(program) / peak, 4, 1e-3);
  program.vector_length = 1;
  EXPECT_NEAR(seconds(program) / peak, 16, 1e-2);
  program.vector_length = 16;
  program.chunks = 33;  // two rounds, the second with one core
  EXPECT_NEAR(seconds(program) / peak, 2 * 32.0 / 33, 1e-3);
  program.chunks = 1;
  EXPECT_NEAR(seconds(program) / peak, 32, 1e-2);
  program = {.operations = 1e6, .bytes = 1e9, .vector_length = 16, .chunks = 32};
  EXPECT_NEAR(seconds(program) / (1e9 / 204.8e9), 1, 1e-4);
  program.leaves = 3;  // each reads the data again
  EXPECT_NEAR(seconds(program) / (1e9 / 204.8e9), 3, 1e-4);
}

// V100: 15667.2 GFLOP/s, 80 multiprocessors of 64 lanes and 2048 threads, 5 us per launch.
TEST(Roofline, GpuByHand) {
  const target::Device v100 = target::find_device("v100").value();
  const double peak = 1e12 / 15667.2e9;
  const auto ratio = [&](int threads, int blocks) {
    const MadeProgram p{.operations = 1e12, .bytes = 1e3, .vector_length = threads, .chunks = blocks};
    return (roofline_seconds(make_leaves(p, true), v100) - 5e-6) / peak;
  };
  EXPECT_NEAR(ratio(256, 640), 1, 1e-4);             // one full wave of eight blocks each
  EXPECT_NEAR(ratio(256, 80), 1, 1e-4);              // one block each
  EXPECT_NEAR(ratio(256, 40), 2, 1e-3);              // half of them idle
  EXPECT_NEAR(ratio(256, 641), 1280.0 / 641, 1e-3);  // a second wave of one block
  EXPECT_NEAR(ratio(40, 80), 64.0 / 40, 1e-3);       // the second warp is not full
  EXPECT_NEAR(ratio(32, 80), 2, 1e-3);               // one warp uses half of the lanes
}

TEST(Roofline, CalibratesEachKindOfDevice) {
  const MadeStore made(MadeStoreOptions{.noise = 0.05, .failures = 0.1});
  const auto model = trainer("roofline")->train(made.data(), {});
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_THAT((*model)->card().devices, ElementsAre("v100", "xeon-8358"));
  EXPECT_EQ((*model)->card().workloads.size(), 12u);
  const auto test = made.test();
  const TrainingData data = made.data();
  const auto predicted = predict_records(**model, made.store(), data.devices, test);
  ASSERT_TRUE(predicted.ok()) << predicted.error().message();
  ASSERT_EQ(predicted->size(), test.size());
  // On each device, as many programs are above as below.
  int above[2] = {}, all[2] = {};
  for (size_t i = 0; i < test.size(); ++i) {
    const auto entry = made.store().entry(test[i]);
    if (entry.failed()) continue;
    EXPECT_GT((*predicted)[i].log_sigma, 0);
    ++all[entry.device];
    above[entry.device] += (*predicted)[i].seconds > entry.mean_seconds ? 1 : 0;
  }
  for (int d = 0; d < 2; ++d) {
    EXPECT_GT(above[d], 0.25 * all[d]);
    EXPECT_LT(above[d], 0.75 * all[d]);
  }
  // Continuing with one device does not change the other's calibration.
  TrainingData gpu = data;
  gpu.train = records_of_devices(made.store(), data.train, {"v100"});
  EXPECT_EQ(gpu.train.size() * 2, data.train.size());
  const auto again = trainer("roofline")->fine_tune(**model, gpu, {});
  ASSERT_TRUE(again.ok());
  const auto second = predict_records(**again, made.store(), data.devices, test);
  for (size_t i = 0; i < test.size(); ++i) EXPECT_DOUBLE_EQ((*second)[i].seconds, (*predicted)[i].seconds);
}

TEST(LatencyModels, KeepTheirPredictionsInFiles) {
  const MadeStore made;
  const TrainingData data = made.data();
  for (const std::string kind : {"random", "draft", "roofline", "xgboost", "tensorsmith"}) {
    SCOPED_TRACE(kind);
    TrainingControl control;
    control.seed = 5;
    control.command = "tensorsmith train";
    const auto model = trainer(kind)->train(data, control);
    ASSERT_TRUE(model.ok()) << model.error().message();
    const std::string path = made.folder().file(kind), again = made.folder().file(kind + "2");
    ASSERT_TRUE((*model)->save(path).ok());
    const auto loaded = lab::cost_model_kinds().load(path);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    EXPECT_EQ((*loaded)->card().kind, kind);
    EXPECT_EQ((*loaded)->card().seed, 5u);
    EXPECT_EQ((*loaded)->card().store_hash, made.store().content_hash());
    EXPECT_EQ((*loaded)->ranks_only(), (*model)->ranks_only());
    const auto test = made.test();
    const auto a = predict_records(**model, made.store(), data.devices, test);
    const auto b = predict_records(**loaded, made.store(), data.devices, test);
    ASSERT_TRUE(a.ok() && b.ok());
    for (size_t i = 0; i < test.size(); ++i) {
      EXPECT_EQ((*a)[i].seconds, (*b)[i].seconds);
      EXPECT_EQ((*a)[i].log_sigma, (*b)[i].log_sigma);
      EXPECT_GT((*a)[i].seconds, 0);
    }
    // The same seed gives the same file.
    const auto repeated = trainer(kind)->train(data, control);
    ASSERT_TRUE(repeated.ok() && (*repeated)->save(again).ok());
    EXPECT_EQ(record::testing::read_file(path), record::testing::read_file(again));
  }
}

TEST(Xgboost, LearnsWhatTheRooflineDoesNotSay) {
  const MadeStore made(
      MadeStoreOptions{.tasks = 40, .noise = 0.02, .failures = 0.05, .seed = test::test_seed(1)});
  const TrainingData data = made.data();
  const auto analytic = trainer_model("roofline", data);
  const double roofline =
      evaluate_records(**analytic, made.store(), data.devices, made.test())->total().mape_median;
  for (const char* label : {"seconds", "throughput", "rank"}) {
    SCOPED_TRACE(label);
    const auto trainer = lab::cost_model_kinds().make_trainer("xgboost", {{"label", label}, {"rounds", 400}});
    ASSERT_TRUE(trainer.ok());
    const auto model = (*trainer)->train(data, {});
    ASSERT_TRUE(model.ok()) << model.error().message();
    const auto evaluated = evaluate_records(**model, made.store(), data.devices, made.test());
    ASSERT_TRUE(evaluated.ok());
    const Scores scores = evaluated->total();
    // .883 +- .018 for seconds, .894 +- .011 for throughput, .865 +- .018 for ranks
    test::expect_above(std::string("pairs-") + label, scores.pairwise, 0.8);
    EXPECT_EQ((*model)->ranks_only(), std::string(label) == "rank");
    if ((*model)->ranks_only()) continue;
    // For seconds and for throughput: .173 +- .019 and .165 +- .009; .264 +- .022 and .252 +- .022;
    // .029 +- .018 and .023 +- .019.
    test::expect_below(std::string("error-") + label, scores.mape_median, 0.3);
    test::expect_below(std::string("of-roofline-") + label, scores.mape_median / roofline, 0.5);
    test::expect_below(std::string("coverage-") + label, std::abs(evaluated->coverage().first - 0.68), 0.12);
    const auto metrics = nlohmann::json::parse((*model)->card().metrics);
    // .180 +- .011, .164 +- .019
    test::expect_below(std::string("validation-") + label, metrics.at("mape_median"), 0.3);
    const auto by_device = evaluated->by_device();
    ASSERT_EQ(by_device.size(), 2u);
    // V100 .213 +- .028 and .192 +- .018, Xeon .146 +- .028 and .146 +- .010
    for (const auto& [device, s] : by_device) test::expect_below(device + "-" + label, s.mape_median, 0.35);
  }
}

TEST(Xgboost, FurtherTreesLearnAnotherDevice) {
  const MadeStore made(MadeStoreOptions{.devices = {"v100", "k80"}, .tasks = 40, .seed = test::test_seed(1)});
  TrainingData v100 = made.data(), k80 = made.data();
  for (auto* part : {&v100.train, &v100.validation})
    *part = records_of_devices(made.store(), *part, {"v100"});
  for (auto* part : {&k80.train, &k80.validation}) *part = records_of_devices(made.store(), *part, {"k80"});
  const auto trainer = lab::cost_model_kinds().make_trainer("xgboost", {{"rounds", 300}});
  const auto first = (*trainer)->train(v100, {});
  ASSERT_TRUE(first.ok());
  const auto test = records_of_devices(made.store(), made.test(), {"k80"});
  const double before = evaluate_records(**first, made.store(), k80.devices, test)->total().mape_median;
  const auto second = (*trainer)->fine_tune(**first, k80, {});
  ASSERT_TRUE(second.ok()) << second.error().message();
  const double after = evaluate_records(**second, made.store(), k80.devices, test)->total().mape_median;
  test::expect_above("before", before, 0.5);  // .713 +- .016
  test::expect_below("after", after, 0.3);    // .173 +- .037
  EXPECT_THAT((*second)->card().devices, ElementsAre("k80", "v100"));
  EXPECT_EQ((*second)->card().records, static_cast<int64_t>(v100.train.size() + k80.train.size()));
  EXPECT_FALSE((*trainer)->fine_tune(**trainer_model("roofline", v100), k80, {}).ok());
}

// A training that is stopped in the middle and restarted ends with the same bytes as an
// uninterrupted one.
TEST(Xgboost, GoesOnFromACheckpoint) {
  const MadeStore made;
  const TrainingData data = made.data();
  const auto trainer = lab::cost_model_kinds().make_trainer("xgboost", {{"rounds", 120}});
  const std::string whole = made.folder().file("whole"), resumed = made.folder().file("resumed");
  ASSERT_TRUE((*(*trainer)->train(data, {}))->save(whole).ok());

  TrainingControl control;
  control.checkpoint = made.folder().file("checkpoint");
  for (const int stop_at : {1, 37, 70}) {
    int rounds = 0;
    control.progress = [&](const TrainingProgress& p) { rounds = p.step; };
    control.stop = [&] { return rounds >= stop_at; };
    const auto stopped = (*trainer)->train(data, control);
    ASSERT_FALSE(stopped.ok());
    EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
    EXPECT_EQ(rounds, stop_at);
  }
  int first = 0;
  control.progress = [&](const TrainingProgress& p) { first = first == 0 ? p.step : first; };
  control.stop = nullptr;
  const auto model = (*trainer)->train(data, control);
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(first, 71);
  ASSERT_TRUE((*model)->save(resumed).ok());
  EXPECT_EQ(record::testing::read_file(whole), record::testing::read_file(resumed));

  // A checkpoint of another training is rejected.
  control.seed = 1;
  EXPECT_EQ((*trainer)->train(data, control).error().code, ErrorCode::kMismatch);
  EXPECT_FALSE(lab::cost_model_kinds().load(control.checkpoint).ok());
}

// The model does not depend on the times of the other records.
TEST(LatencyModels, LookAtNothingButTheirParts) {
  record::testing::TempDir folder;
  const MadeStore made;
  // The same programs, with new random times for the test records.
  auto writer = StoreWriter::create(folder.file("other"));
  ASSERT_TRUE(writer.ok());
  const TrainingData data = made.data();
  std::vector<char> is_test(static_cast<size_t>(made.store().size()), 0);
  for (const int64_t i : made.test()) is_test[static_cast<size_t>(i)] = 1;
  Rng rng(3);
  for (int64_t i = 0; i < made.store().size(); ++i) {
    const auto entry = made.store().entry(i);
    StoreRecord record;
    record.workload = (*writer)->add_workload(made.store().workloads()[entry.workload]);
    record.device = (*writer)->add_device(made.store().devices()[entry.device]);
    made.store().leaves(i, record.leaves);
    record.trace = made.store().trace(i).value();
    record.mean_seconds = is_test[static_cast<size_t>(i)] != 0 ? rng.uniform() : entry.mean_seconds;
    record.seconds = {record.mean_seconds};
    ASSERT_TRUE((*writer)->add(record).ok());
  }
  ASSERT_TRUE((*writer)->finish().ok());
  const auto other = Store::open(folder.file("other"));
  ASSERT_TRUE(other.ok());
  TrainingData poisoned = data;
  poisoned.store = other->get();
  poisoned.unlabelled = made.test();
  for (const std::string kind : {"random", "draft", "roofline", "xgboost", "tensorsmith"}) {
    SCOPED_TRACE(kind);
    const auto a = trainer(kind)->train(data, {});
    const auto b = trainer(kind)->train(poisoned, {});
    ASSERT_TRUE(a.ok() && b.ok());
    const auto from_a = predict_records(**a, made.store(), data.devices, made.test());
    const auto from_b = predict_records(**b, made.store(), data.devices, made.test());
    for (size_t i = 0; i < from_a->size(); ++i) {
      ASSERT_EQ((*from_a)[i].seconds, (*from_b)[i].seconds);
      ASSERT_EQ((*from_a)[i].log_sigma, (*from_b)[i].log_sigma);
    }
    EXPECT_EQ((*a)->card().metrics, (*b)->card().metrics);
  }
}

TEST(LatencyModels, UnknownKindsAndParameters) {
  EXPECT_THAT(lab::cost_model_kinds().names(), Contains("roofline"));
  EXPECT_THAT(lab::cost_model_kinds().make_trainer("oracle", nlohmann::json::object()).error().message(),
              HasSubstr("the kinds are roofline, xgboost, tensorsmith"));
  EXPECT_THAT(lab::cost_model_kinds().make_trainer("roofline", {{"x", 1}}).error().message(),
              HasSubstr("this model has no parameters"));
  const record::testing::TempDir folder;
  ModelFile file;
  file.card.kind = "oracle";
  file.card.feature_version = feature::kPerStoreVersion;
  file.card.parameters = file.card.metrics = "{}";
  ASSERT_TRUE(write_model_file(file, folder.file("model")).ok());
  EXPECT_EQ(lab::cost_model_kinds().load(folder.file("model")).error().code, ErrorCode::kMismatch);
  file.card.kind = "roofline";
  ASSERT_TRUE(write_model_file(file, folder.file("model")).ok());
  EXPECT_EQ(lab::cost_model_kinds().load(folder.file("model")).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(lab::cost_model_kinds().load(folder.file("none")).error().code, ErrorCode::kNotFound);
}

TEST(Queries, FewerRecordsAreAPartOfMore) {
  const MadeStore made;
  const auto all = made.data().train;
  const auto count = [&](const std::vector<int64_t>& records) {
    std::set<uint32_t> workloads;
    std::map<std::pair<uint32_t, uint32_t>, int> tasks;
    for (const int64_t i : records) {
      const auto entry = made.store().entry(i);
      workloads.insert(entry.workload);
      ++tasks[{entry.workload, entry.device}];
    }
    int most = 0;
    for (const auto& [task, programs] : tasks) most = std::max(most, programs);
    return std::pair{workloads.size(), most};
  };
  std::vector<int64_t> before;
  for (const int n : {2, 5, 9}) {
    const auto some = some_records(made.store(), all, n, 2 * n, 7);
    EXPECT_EQ(count(some), std::pair(static_cast<size_t>(n), 2 * n));
    EXPECT_TRUE(std::includes(all.begin(), all.end(), some.begin(), some.end()));
    EXPECT_TRUE(std::includes(some.begin(), some.end(), before.begin(), before.end()));
    before = some;
  }
  EXPECT_EQ(some_records(made.store(), all, 0, 0, 7), all);
  EXPECT_NE(some_records(made.store(), all, 3, 0, 7), some_records(made.store(), all, 3, 0, 8));
}

TEST(Queries, RecordsWithoutFeaturesAreNamed) {
  const record::testing::TempDir folder;
  auto writer = StoreWriter::create(folder.file("store"));
  ASSERT_TRUE(writer.ok());
  StoreRecord record;
  record.workload = (*writer)->add_workload({"key", "name", "text", 1, {}});
  record.device = (*writer)->add_device("v100");
  record.error_no = 2;
  record.mean_seconds = std::numeric_limits<double>::infinity();
  ASSERT_TRUE((*writer)->add(record).ok() && (*writer)->finish().ok());
  const auto store = Store::open(folder.file("store"));
  ASSERT_TRUE(store.ok());
  const auto devices = devices_of(**store).value();
  const auto pointers = pointers_to(devices);
  QueryBatch batch(**store, pointers, {.leaves = true, .trace = true});
  const int64_t records[] = {0};
  EXPECT_THAT(batch.make(records).error().message(), HasSubstr("has no features"));
}

}  // namespace
}  // namespace tensorsmith::learn::latency_test
