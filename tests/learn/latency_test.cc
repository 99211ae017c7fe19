// Latency models that need no training, the registry, and records as queries.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "latency_testing.h"
#include "learn/latency/model_file.h"
#include "learn/latency/roofline.h"

namespace tensorsmith::learn {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MadeProgram;
using testing::MadeStore;
using testing::MadeStoreOptions;
using testing::make_leaves;

std::unique_ptr<LatencyTrainer> trainer(const std::string& kind) {
  auto made = make_latency_trainer(kind, nlohmann::json::object());
  EXPECT_TRUE(made.ok()) << made.error().message();
  return std::move(*made);
}

// By hand. Xeon 8358: 5324.8 GFLOP/s, 204.8 GB/s, 32 cores, 16 lanes.
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
  program.leaves = 3;  // each reads them again
  EXPECT_NEAR(seconds(program) / (1e9 / 204.8e9), 3, 1e-4);
}

// V100: 15667.2 GFLOP/s, 80 multiprocessors of 64 lanes and 2048 threads, 5 us a launch.
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
  EXPECT_NEAR(ratio(32, 80), 2, 1e-3);               // one warp feeds half of the lanes
}

TEST(Roofline, CalibratesEachKindOfDevice) {
  const MadeStore made(MadeStoreOptions{.noise = 0.05, .failures = 0.1});
  const auto model = trainer("roofline")->train(made.data(), {});
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_THAT((*model)->card().devices, ElementsAre("v100", "xeon-8358"));
  EXPECT_EQ((*model)->card().workloads.size(), 12u);
  const auto test = made.test();
  const LatencyData data = made.data();
  const auto predicted = predict_records(**model, made.store(), data.devices, test);
  ASSERT_TRUE(predicted.ok()) << predicted.error().message();
  ASSERT_EQ(predicted->size(), test.size());
  // As many above as below, on each device.
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
  // Going on with one device leaves the other's calibration.
  LatencyData gpu = data;
  gpu.train = records_of_devices(made.store(), data.train, {"v100"});
  EXPECT_EQ(gpu.train.size() * 2, data.train.size());
  const auto again = trainer("roofline")->fine_tune(**model, gpu, {});
  ASSERT_TRUE(again.ok());
  const auto second = predict_records(**again, made.store(), data.devices, test);
  for (size_t i = 0; i < test.size(); ++i) EXPECT_DOUBLE_EQ((*second)[i].seconds, (*predicted)[i].seconds);
}

TEST(LatencyModels, KeepTheirPredictionsInFiles) {
  const MadeStore made;
  const LatencyData data = made.data();
  for (const std::string& kind : latency_model_kinds()) {
    SCOPED_TRACE(kind);
    TrainingControl control;
    control.seed = 5;
    control.command = "tensorsmith train";
    const auto model = trainer(kind)->train(data, control);
    ASSERT_TRUE(model.ok()) << model.error().message();
    const std::string path = made.folder().file(kind), again = made.folder().file(kind + "2");
    ASSERT_TRUE((*model)->save(path).ok());
    const auto loaded = load_latency_model(path);
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
    // The same seed, the same file.
    const auto repeated = trainer(kind)->train(data, control);
    ASSERT_TRUE(repeated.ok() && (*repeated)->save(again).ok());
    EXPECT_EQ(record::testing::read_file(path), record::testing::read_file(again));
  }
}

TEST(LatencyModels, UnknownKindsAndParameters) {
  EXPECT_THAT(latency_model_kinds(), Contains("roofline"));
  EXPECT_THAT(make_latency_trainer("oracle", nlohmann::json::object()).error().message(),
              HasSubstr("known are random, roofline"));
  EXPECT_THAT(make_latency_trainer("roofline", {{"x", 1}}).error().message(),
              HasSubstr("this model has no parameters"));
  const record::testing::TempDir folder;
  ModelFile file;
  file.card.kind = "oracle";
  file.card.feature_version = feature::kPerStoreVersion;
  file.card.parameters = file.card.metrics = "{}";
  ASSERT_TRUE(write_model_file(file, folder.file("model")).ok());
  EXPECT_EQ(load_latency_model(folder.file("model")).error().code, ErrorCode::kMismatch);
  file.card.kind = "roofline";
  ASSERT_TRUE(write_model_file(file, folder.file("model")).ok());
  EXPECT_EQ(load_latency_model(folder.file("model")).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(load_latency_model(folder.file("none")).error().code, ErrorCode::kNotFound);
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
  QueryBatch batch(**store, pointers, true);
  const int64_t records[] = {0};
  EXPECT_THAT(batch.make(records).error().message(), HasSubstr("has no features"));
}

}  // namespace
}  // namespace tensorsmith::learn
