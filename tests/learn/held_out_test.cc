// The uncertainty that a model states for devices, numbers of threads and kinds of programs that it
// has not seen.
#include "learn/latency/held_out.h"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "latency_testing.h"
#include "learn/latency/evaluation.h"
#include "learn/latency/kinds.h"
#include "support/quality.h"

namespace tensorsmith::learn::held_out_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MadeStore;
using testing::MadeStoreOptions;

std::unique_ptr<CostModel> train(const std::string& kind, const nlohmann::json& parameters,
                                 const TrainingData& data) {
  auto trainer = product_kinds().make_trainer(kind, parameters);
  EXPECT_TRUE(trainer.ok()) << trainer.error().message();
  auto model = (*trainer)->train(data, {});
  EXPECT_TRUE(model.ok()) << model.error().message();
  return std::move(*model);
}

TrainingData without(const MadeStore& made, const std::vector<std::string>& left_out) {
  TrainingData data = made.data();
  for (auto* part : {&data.train, &data.validation}) {
    std::erase_if(*part, [&](int64_t i) {
      const std::string& name = made.store().devices()[made.store().entry(i).device];
      return std::find(left_out.begin(), left_out.end(), name) != left_out.end();
    });
  }
  return data;
}

TEST(Unseen, DevicesAreKnownByNameAndFigures) {
  ModelCard card;
  const target::Device xeon = target::find_device("xeon-8358").value();
  EXPECT_FALSE(unseen_by(card, xeon).any());  // a model without device information
  card.devices = {"v100", "xeon-8358"};
  card.seen = {seen_device(target::find_device("v100").value()), seen_device(xeon)};
  EXPECT_FALSE(unseen_by(card, xeon).any());
  EXPECT_EQ(unseen_by(card, target::find_device("xeon-8480plus").value()), (Unseen{true, true, false}));
  EXPECT_EQ(unseen_by(card, target::find_device("k80").value()), (Unseen{true, false, false}));
  EXPECT_EQ(unseen_by(card, target::find_device("xeon-8358:threads=4").value()), (Unseen{true, true, false}));
  target::Device edited = xeon;  // a file that keeps the name
  edited.clock_ghz *= 2;
  EXPECT_EQ(unseen_by(card, edited), (Unseen{true, false, false}));
  EXPECT_THAT(describe_unseen(card, unseen_by(card, edited), edited)[0],
              HasSubstr("a device named xeon-8358 with other"));
  const auto lines = describe_unseen(card, {true, true, false}, target::find_device("epyc-7452").value());
  EXPECT_THAT(lines, ElementsAre(HasSubstr("not trained on epyc-7452, only on v100, xeon-8358"),
                                 HasSubstr("error in such cases is unknown")));
  const target::Device four = target::find_device("xeon-8358:threads=4").value();
  EXPECT_THAT(describe_unseen_threads(card, unseen_by(card, four), four),
              AllOf(HasSubstr("is for 4 threads, but the model was trained only on runs with 32 threads"),
                    HasSubstr("A prediction for 32 threads is within")));
  EXPECT_EQ(describe_unseen_threads(card, unseen_by(card, edited), edited), "");
  card.devices = {"znver4-avx2-1t", "znver4-avx2-2t"};
  card.seen.clear();
  EXPECT_THAT(describe_unseen_threads(card, unseen_by(card, four), four),
              AllOf(HasSubstr("runs with 1 or 2 threads"), HasSubstr("A prediction for 2 threads is")));
}

// Older files have only the names of their devices: the registry has their figures, or the name
// gives the number of threads.
TEST(Unseen, NamesTellTheFigures) {
  ModelCard card;
  card.devices = {"xeon-8358", "znver4-avx512-1t"};
  const auto seen = seen_devices(card);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].cores, 32);
  EXPECT_EQ(seen[1].cores, 1);
  EXPECT_EQ(seen[1].cpu, "znver4");
  target::Device zen4 = target::find_device("ryzen-7950x:threads=1").value();
  zen4.name = "znver4-avx512-1t";
  EXPECT_FALSE(unseen_by(card, zen4).any());
  EXPECT_EQ(unseen_by(card, target::find_device("ryzen-7950x:threads=4").value()),
            (Unseen{true, true, false}));
  EXPECT_TRUE(knows_kind(card, target::DeviceKind::kCpu));
  EXPECT_FALSE(knows_kind(card, target::DeviceKind::kGpu));
}

// Ten programs of one device have the same weight as two of another.
TEST(HeldOut, QuantilesByHand) {
  DeviceErrors many{"a", {}, {}, {}}, few{"b", {}, {}, {}};
  many.errors.assign(10, 0.1);
  few.errors = {-1, -2};
  const std::vector<DeviceErrors> both = {many, few};
  const HeldOutError e = held_out_error(both, false, 0.5, "a, b");
  EXPECT_EQ(e.devices, 2);
  EXPECT_EQ(e.records, 12);
  EXPECT_EQ(e.shift, 0);
  EXPECT_EQ(e.log_sigma, 0.5);  // 1, multiplied by the spread
  EXPECT_EQ(e.log_90, 2);
  EXPECT_EQ(e.log_95, 2);
  many.weights.assign(10, 1);
  many.weights[0] = 1;
  few.weights = {9, 1};
  const std::vector<DeviceErrors> weighted = {few};
  EXPECT_EQ(held_out_error(weighted, false, 1, "").log_90, 1);
  const HeldOutError shifted = held_out_error(weighted, true, 1, "");
  EXPECT_EQ(shifted.shift, -1);
  EXPECT_EQ(shifted.log_95, 1);
  EXPECT_FALSE(held_out_error({}, true, 1, "").known());
}

// The intervals for a device that was left out have their nominal coverage, averaged over devices
// whose speeds each differ from their figures by a separate factor.
TEST(HeldOut, IntervalsHoldWhatTheyClaimOnADeviceLeftOut) {
  const std::vector<std::string> names = {"v100", "k80", "mi50", "t4", "p100", "a100"};
  double one = 0, ninety = 0, two = 0, narrow = 0, count = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    const MadeStore made(MadeStoreOptions{.devices = names,
                                          .tasks = 6,
                                          .programs = 20,
                                          .noise = 0.1,
                                          .device_spread = 0.5,
                                          .seed = test::test_seed(seed)});
    const std::string& left_out = names[seed % names.size()];
    const TrainingData data = without(made, {left_out});
    const auto model = train("roofline", nlohmann::json::object(), data);
    const auto records = records_of_devices(made.store(), made.test(), {left_out});
    const auto e = evaluate_records(*model, made.store(), data.devices, records);
    ASSERT_TRUE(e.ok()) << e.error().message();
    EXPECT_EQ(e->without_interval(), 0);
    one += e->coverage().first;
    ninety += e->coverage90();
    two += e->coverage().second;
    ++count;
    // Intervals as if the device had been seen.
    Evaluation as_seen;
    const auto seen = records_of_devices(made.store(), made.test(), {names[(seed + 1) % names.size()]});
    const auto known = predict_records(*model, made.store(), data.devices, seen);
    const auto unknown = predict_records(*model, made.store(), data.devices, records);
    ASSERT_TRUE(known.ok() && unknown.ok());
    EXPECT_FALSE((*known)[0].unseen.any());
    EXPECT_EQ((*unknown)[0].unseen, (Unseen{true, false, false}));
    narrow += (*known)[0].log_sigma < (*unknown)[0].log_sigma ? 1 : 0;
  }
  test::expect_below("68-is", std::abs(one / count - 0.6827), 0.12);   // .023 +- .021
  test::expect_below("90-is", std::abs(ninety / count - 0.90), 0.10);  // .019 +- .009
  test::expect_below("95-is", std::abs(two / count - 0.9545), 0.08);   // .013 +- .011
}

// A device of an unknown architecture may have larger errors, and so may sizes of workloads that
// training did not include; a known device has its own widths.
TEST(HeldOut, WiderForOtherArchitecturesAndSizes) {
  const auto device = [](const char* name) { return target::find_device(name).value(); };
  ModelCard card;
  card.devices = {"v100"};
  card.seen = {seen_device(device("v100"))};
  HeldOutError& error = card.new_device[static_cast<size_t>(target::DeviceKind::kGpu)];
  error.log_sigma = 0.1;
  error.log_90 = 0.2;
  error.log_95 = 0.3;
  error.other_sizes = 2;
  const auto widths = [&](const char* name, bool other_size) {
    Prediction out;
    out.seconds = 1;
    out.log_sigma = 0.01;
    out.unseen.size = other_size;
    UnseenEffects(card).apply(device(name), out);
    EXPECT_EQ(out.seconds, 1);
    return std::pair(out.log_sigma, out.log_90);
  };
  EXPECT_EQ(widths("v100", true).first, 0.01);
  EXPECT_EQ(widths("t4", false), std::pair(0.1, 0.2));
  EXPECT_EQ(widths("t4", true), std::pair(0.2, 0.4));
  EXPECT_NEAR(widths("mi50", false).first, 0.15, 1e-12);
  EXPECT_NEAR(widths("mi50", true).second, 0.6, 1e-12);
  Unseen unseen{.device = true};
  unseen.size = true;
  EXPECT_THAT(describe_unseen(card, unseen, device("t4")),
              ::testing::Contains(HasSubstr("not trained on workloads of this size")));
}

// Our own model and boosted trees determine the widths, too, and files keep them.
TEST(HeldOut, EveryKindFindsItsWidths) {
  const MadeStore made(
      {.devices = {"v100", "k80", "t4", "xeon8358"}, .tasks = 6, .programs = 20, .noise = 0.1});
  const TrainingData data = without(made, {"t4"});
  const auto records = records_of_devices(made.store(), made.test(), {"t4"});
  for (const char* kind : {"roofline", "xgboost", "tensorsmith"}) {
    SCOPED_TRACE(kind);
    nlohmann::json parameters = nlohmann::json::object();
    if (kind != std::string("roofline")) parameters["rounds"] = 40;
    const auto model = train(kind, parameters, data);
    const ModelCard& card = model->card();
    EXPECT_EQ(card.seen.size(), 3u);
    const HeldOutError& gpus = card.new_device[static_cast<size_t>(target::DeviceKind::kGpu)];
    EXPECT_TRUE(gpus.known());
    EXPECT_EQ(gpus.devices, 2);
    EXPECT_LE(gpus.log_sigma, gpus.log_90);
    EXPECT_LE(gpus.log_90, gpus.log_95);
    // There is no other CPU from which to predict the Xeon.
    EXPECT_FALSE(card.new_device[static_cast<size_t>(target::DeviceKind::kCpu)].known());
    EXPECT_TRUE(card.new_kind[static_cast<size_t>(target::DeviceKind::kCpu)].known());
    const std::string path = made.folder().file("model");
    ASSERT_TRUE(model->save(path).ok());
    const auto read = product_kinds().load(path);
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ((*read)->card().seen, card.seen);
    EXPECT_EQ((*read)->card().new_device, card.new_device);
    EXPECT_EQ((*read)->card().new_kind, card.new_kind);
    const auto predicted = predict_records(**read, made.store(), data.devices, records);
    ASSERT_TRUE(predicted.ok()) << predicted.error().message();
    for (const Prediction& p : *predicted) {
      EXPECT_TRUE(p.unseen.device);
      EXPECT_TRUE(p.unseen.kind || p.half90() == gpus.log_90);
    }
  }
}

// For a CPU's programs, a model that knows only GPUs uses the roofline, with the error that the
// roofline had where it could be compared: it predicts too fast by a factor.
TEST(HeldOut, AnotherKindOfDevice) {
  const MadeStore made({.devices = {"v100", "k80", "xeon8358"}, .tasks = 6, .programs = 20});
  const TrainingData data = without(made, {"xeon8358"});
  const auto model = train("tensorsmith", {{"rounds", 40}}, data);
  const auto records = records_of_devices(made.store(), made.test(), {"xeon8358"});
  const auto predicted = predict_records(*model, made.store(), data.devices, records);
  ASSERT_TRUE(predicted.ok()) << predicted.error().message();
  const HeldOutError& roofline = model->card().new_kind[static_cast<size_t>(target::DeviceKind::kGpu)];
  ASSERT_TRUE(roofline.known());
  EXPECT_GT(roofline.shift, 0);
  for (const Prediction& p : *predicted) {
    EXPECT_EQ(p.unseen, (Unseen{true, false, true}));
    EXPECT_EQ(p.log_sigma, roofline.log_sigma);
  }
  const auto lines =
      describe_unseen(model->card(), (*predicted)[0].unseen, target::find_device("xeon8358").value());
  EXPECT_THAT(lines[1], HasSubstr("not trained on programs for CPUs"));
  EXPECT_THAT(lines[2], HasSubstr("k80, v100"));
  // Trees that know only GPUs make no prediction.
  const auto trees = train("xgboost", {{"rounds", 20}}, data);
  const auto nothing = predict_records(*trees, made.store(), data.devices, records);
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ((*nothing)[0].log_sigma, 0);
}

// Records of a device that the model has not seen.
TEST(HeldOut, ErrorsOnRecordsOfAnotherDevice) {
  const MadeStore made({.devices = {"v100", "k80"}, .tasks = 6, .programs = 30});
  const TrainingData data = without(made, {"k80"});
  const auto model = train("tensorsmith", {{"rounds", 40}}, data);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < made.store().size(); ++i) all.push_back(i);
  const auto errors = unseen_device_errors(*model, made.store(), data.devices, all, 10, 0, false);
  ASSERT_TRUE(errors.ok()) << errors.error().message();
  ASSERT_EQ(errors->size(), 1u);
  EXPECT_EQ((*errors)[0].device, "k80");
  EXPECT_EQ((*errors)[0].errors.size(), 60u);
  EXPECT_EQ((*errors)[0].weights[0], 3);
}

}  // namespace
}  // namespace tensorsmith::learn::held_out_test
