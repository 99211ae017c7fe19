// Our own CPU programs, measured on an Emerald Rapids and a Zen 4 (tests/data/estimate):
// predictions for a processor, an instruction set and structures that the model has not seen.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/statistics.h"
#include "learn/dataset/import.h"
#include "learn/latency/kinds.h"
#include "learn/latency/queries.h"
#include "learn/training.h"
#include "record/record_testing.h"
#include "support/estimate_records.h"

namespace tensorsmith::learn::own_programs_test {
namespace {

class OwnPrograms : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = folder_.file("own.db");
    auto database = record::Database::open(path);
    ASSERT_TRUE(database.ok()) << database.error().message();
    for (const char* file : {"measurements.jsonl", "measurements_zen4.jsonl"}) {
      const auto tasks =
          test::read_measurements(std::string(TENSORSMITH_SOURCE_DIR) + "/tests/data/estimate/" + file);
      ASSERT_TRUE(tasks.ok()) << tasks.error().message();
      std::vector<record::Record> records;
      for (const auto& item : test::records_of(*tasks)) {
        if (const auto* device = std::get_if<record::DeviceInfo>(&item)) {
          ASSERT_TRUE((*database)->add_device(*device).ok());
        }
        if (const auto* task = std::get_if<record::TaskInfo>(&item)) {
          ASSERT_TRUE((*database)->add_task(*task).ok());
        }
        if (const auto* record = std::get_if<record::Record>(&item)) records.push_back(*record);
      }
      ASSERT_TRUE((*database)->add(records).ok());
    }
    database->reset();
    const auto report = import_databases({path}, folder_.file("own.store"), {});
    ASSERT_TRUE(report.ok()) << report.error().message();
    ASSERT_EQ(report->corrupt, 0);
    auto store = Store::open(folder_.file("own.store"));
    ASSERT_TRUE(store.ok());
    store_ = std::move(*store);
    devices_ = devices_of(*store_).value();
    pointers_ = pointers_to(devices_);
  }

  // Trains on the records for which `shown` is true; returns absolute logarithms of predicted /
  // measured for those for which `asked` is true.
  template <class Shown, class Asked>
  std::vector<double> errors(const Shown& shown, const Asked& asked) {
    TrainingData data;
    data.store = store_.get();
    data.devices = pointers_;
    std::vector<int64_t> others;
    for (int64_t i = 0; i < store_->size(); ++i) {
      if (shown(store_->entry(i))) data.train.push_back(i);
      if (asked(store_->entry(i))) others.push_back(i);
    }
    EXPECT_FALSE(data.train.empty() || others.empty());
    const nlohmann::json parameters = {{"hold_out", false}, {"calibrate", false}};
    const auto model = product_kinds().make_trainer("tensorsmith", parameters).value()->train(data, {});
    EXPECT_TRUE(model.ok()) << model.error().message();
    QueryBatch batch(*store_, pointers_, (*model)->inputs());
    const auto queries = batch.make(others);
    EXPECT_TRUE(queries.ok());
    const auto predicted = (*model)->predict(*queries);
    EXPECT_TRUE(predicted.ok());
    std::vector<double> out;
    for (size_t i = 0; i < others.size(); ++i) {
      EXPECT_FALSE((*predicted)[i].unseen.kind);
      out.push_back(std::abs(std::log((*predicted)[i].seconds / store_->entry(others[i]).mean_seconds)));
    }
    return out;
  }
  bool is_device(uint32_t number, const char* isa) const {
    return store_->devices()[number].find(isa) != std::string::npos;
  }

  record::testing::TempDir folder_;
  std::unique_ptr<Store> store_;
  std::vector<target::Device> devices_;
  std::vector<const target::Device*> pointers_;
};

// Trees that correct the estimate, learned from half of the 48 tasks, order the programs of the other half. Kendall's
// tau, mean over the tasks, by the estimate and corrected: .617 and .632 on the processors of the training data, .605
// and .616 on a processor that they have not seen. On an instruction set that they have not seen, 24 tasks are too few:
// .528 and .513.
TEST_F(OwnPrograms, TheCorrectionOrdersBetterThanTheEstimate) {
  struct Order {
    double estimated = 0, corrected = 0;
  };
  const auto order = [&](const char* shown, const char* asked) {
    TrainingData data;
    data.store = store_.get();
    data.devices = pointers_;
    std::map<std::pair<uint32_t, uint32_t>, std::vector<int64_t>> tasks;
    for (int64_t i = 0; i < store_->size(); ++i) {
      const Store::Entry entry = store_->entry(i);
      if (entry.workload % 2 == 0 && is_device(entry.device, shown)) data.train.push_back(i);
      if (entry.workload % 2 == 1 && is_device(entry.device, asked))
        tasks[{entry.workload, entry.device}].push_back(i);
    }
    const auto model =
        product_kinds().make_trainer("correction", nlohmann::json::object()).value()->train(data, {});
    EXPECT_TRUE(model.ok()) << model.error().message();
    EXPECT_TRUE((*model)->corrects_estimate());
    QueryBatch batch(*store_, pointers_, (*model)->inputs());
    double corrected = 0, estimated = 0;
    for (const auto& [task, records] : tasks) {
      const auto queries = batch.make(records);
      EXPECT_TRUE(queries.ok());
      const auto predicted = (*model)->predict(*queries);
      EXPECT_TRUE(predicted.ok()) << predicted.error().message();
      std::vector<double> predictions, estimates, seconds;
      for (size_t i = 0; i < records.size(); ++i) {
        // With one processor in training, nothing is known of the errors on others.
        if (std::string(shown) != "emeraldrapids") {
          EXPECT_GT((*predicted)[i].log_sigma, 0);
        }
        predictions.push_back((*predicted)[i].seconds);
        estimates.push_back((*queries)[i].parts->seconds);
        seconds.push_back(store_->entry(records[i]).mean_seconds);
      }
      corrected += test::rank_correlation(predictions, seconds) / static_cast<double>(tasks.size());
      estimated += test::rank_correlation(estimates, seconds) / static_cast<double>(tasks.size());
    }
    EXPECT_GT(tasks.size(), 20U);
    RecordProperty(std::string("correlation_") + shown + "_" + asked,
                   std::to_string(estimated) + " " + std::to_string(corrected));
    return Order{estimated, corrected};
  };
  const Order same = order("1t", "1t"), processor = order("emeraldrapids", "znver4"),
              narrow = order("avx", "sse4.2");
  EXPECT_GT(same.corrected, 0.6);
  EXPECT_GT(same.corrected, same.estimated);
  EXPECT_GT(processor.corrected, 0.58);
  EXPECT_GT(processor.corrected, processor.estimated);
  EXPECT_GT(narrow.corrected, 0.48);
}

TEST_F(OwnPrograms, TheCorrectionNeedsDecisions) {
  TrainingData data;
  data.store = store_.get();
  data.devices = pointers_;
  for (int64_t i = 0; i < 300; ++i) data.train.push_back(i);
  const nlohmann::json few = {{"members", 2}, {"rounds", 5}};
  const auto model = product_kinds().make_trainer("correction", few).value()->train(data, {});
  ASSERT_TRUE(model.ok()) << model.error().message();
  const std::string path = folder_.file("correction.model");
  ASSERT_TRUE((*model)->save(path).ok());
  const auto loaded = product_kinds().load(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  QueryBatch batch(*store_, pointers_, (*model)->inputs());
  const std::vector<int64_t> records = {7, 1500};
  const auto queries = batch.make(records);
  ASSERT_TRUE(queries.ok());
  const auto before = (*model)->predict(*queries), after = (*loaded)->predict(*queries);
  ASSERT_TRUE(before.ok() && after.ok());
  for (size_t i = 0; i < records.size(); ++i) EXPECT_EQ((*before)[i].seconds, (*after)[i].seconds);
  // A file says which estimate it corrects.
  ModelFile other = read_model_file(path).value();
  for (ModelTensor& tensor : other.tensors)
    if (tensor.name == "estimate.json") tensor.data[20] ^= std::byte{1};
  ASSERT_TRUE(write_model_file(other, path).ok());
  EXPECT_EQ(product_kinds().load(path).error().code, ErrorCode::kMismatch);
  ProgramQuery unknown = queries->front();
  unknown.parts = nullptr;
  EXPECT_EQ((*model)->predict(std::span(&unknown, 1)).error().code, ErrorCode::kInvalidArgument);
}

// Predicted from the device's figures and the other processor's records, without labels of this
// one.
TEST_F(OwnPrograms, OfAProcessorThatWasNotSeen) {
  ASSERT_EQ(store_->devices().size(), 6U);
  for (const auto& [shown, asked, most] :
       {std::tuple("emeraldrapids", "znver4", 0.2), std::tuple("znver4", "emeraldrapids", 0.32)}) {
    const auto all = errors([&](const Store::Entry& entry) { return is_device(entry.device, shown); },
                            [&](const Store::Entry& entry) { return is_device(entry.device, asked); });
    EXPECT_GT(all.size(), 2800U);
    RecordProperty(std::string("median_") + asked, std::to_string(median(all)));
    EXPECT_LT(median(all), most) << asked;
  }
}

// Each of three is predicted from the device's figures and the records of the two others on the
// same core.
TEST_F(OwnPrograms, OfAnInstructionSetThatWasNotSeen) {
  for (const char* isa : {"avx512", "avx2", "sse4.2"}) {
    const auto emerald = [&](const Store::Entry& entry) { return is_device(entry.device, "emeraldrapids"); };
    const auto all =
        errors([&](const Store::Entry& entry) { return emerald(entry) && !is_device(entry.device, isa); },
               [&](const Store::Entry& entry) { return emerald(entry) && is_device(entry.device, isa); });
    EXPECT_GT(all.size(), 900U);
    RecordProperty(std::string("median_") + isa, std::to_string(median(all)));
    EXPECT_LT(median(all), 0.3) << isa;
  }
}

// The costs of instructions are learned from other structures: tasks of a new structure do not fall
// back to the roofline.
TEST_F(OwnPrograms, OfAStructureThatWasNotSeen) {
  std::set<uint32_t> pooling;
  for (uint32_t w = 0; w < store_->workloads().size(); ++w) {
    if (store_->workloads()[w].name.find("pool") != std::string::npos) pooling.insert(w);
  }
  ASSERT_GE(pooling.size(), 2U);
  const auto all = errors([&](const Store::Entry& entry) { return !pooling.contains(entry.workload); },
                          [&](const Store::Entry& entry) { return pooling.contains(entry.workload); });
  RecordProperty("median_pooling", std::to_string(median(all)));
  EXPECT_LT(median(all), 0.5);
}

}  // namespace
}  // namespace tensorsmith::learn::own_programs_test
