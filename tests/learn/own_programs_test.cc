// Our own CPU programs, measured on an Emerald Rapids and a Zen 4 (tests/data/estimate):
// predictions for a processor, an instruction set and structures that the model has not seen.
#include <gtest/gtest.h>

#include <cmath>
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
