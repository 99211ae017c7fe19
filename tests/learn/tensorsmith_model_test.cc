// Our own latency model: its factors, training, and files.
#include "learn/latency/tensorsmith_model.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/rng.h"
#include "latency_testing.h"
#include "learn/gbt/relative_loss.h"
#include "learn/latency/evaluation.h"
#include "learn/latency/kinds.h"
#include "learn/latency/resource_fit.h"
#include "support/quality.h"

namespace tensorsmith::learn::tensorsmith_model_test {
namespace {

using ::testing::HasSubstr;
using testing::MadeStore;
using testing::MadeStoreOptions;
using Json = nlohmann::json;

Result<std::unique_ptr<CostModel>> train(const TrainingData& data, const Json& parameters,
                                         const TrainingControl& control = {}) {
  auto trainer = product_kinds().make_trainer("tensorsmith", parameters);
  EXPECT_TRUE(trainer.ok()) << trainer.error().message();
  return (*trainer)->train(data, control);
}

Json quick(Json more = Json::object()) {
  Json out = {{"members", 1}, {"rounds", 120}, {"min_child_weight", 2}, {"node_column_share", 1.0}};
  out.update(more);
  return out;
}

Scores score(const CostModel& model, const MadeStore& made, const std::vector<int64_t>& records) {
  const auto devices = pointers_to(made.devices());
  const auto evaluation = evaluate_records(model, made.store(), devices, records);
  EXPECT_TRUE(evaluation.ok()) << evaluation.error().message();
  return evaluation->total();
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The loss is 0 at the right answer and has the sign of the error; its slope is that of |exp(e) -
// 1| within the bounds.
TEST(RelativeLoss, SlopeOfTheRelativeError) {
  EXPECT_EQ(RelativeLoss(0).gradient, 0);
  EXPECT_GT(RelativeLoss(0).hessian, 0);
  for (const double e : {-1.2, -0.7, 0.6, 1.0}) {
    const double h = 1e-6;
    const double slope = (std::abs(std::expm1(e + h)) - std::abs(std::expm1(e - h))) / (2 * h);
    EXPECT_NEAR(RelativeLoss(e).gradient / slope, 1, 0.02) << e;  // the rounded corner
  }
  EXPECT_NEAR(RelativeLoss(50).gradient, 3, 1e-3);
  EXPECT_NEAR(RelativeLoss(-50).gradient, -0.25, 1e-3);
}

TEST(ResourceFit, FindsTheFactorsThroughOutliers) {
  const uint64_t seed = 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  const std::vector<double> truth = {2, 0, 0.5, 1};
  std::vector<double> rows, weights;
  for (int i = 0; i < 3000; ++i) {
    std::vector<double> row;
    double seconds = 0;
    for (const double factor : truth) {
      row.push_back(std::exp(3 * rng.normal()));
      seconds += factor * row.back();
    }
    seconds *= i % 10 == 0 ? 30 : std::exp(0.02 * rng.normal());  // a tenth is far too slow
    for (const double x : row) rows.push_back(x / seconds);
    weights.push_back(1);
  }
  const std::vector<double> factors = fit_factors(rows, weights, 4);
  ASSERT_EQ(factors.size(), truth.size());
  for (size_t j = 0; j < truth.size(); ++j) EXPECT_NEAR(factors[j], truth[j], 0.05 * (truth[j] + 0.2)) << j;
  EXPECT_TRUE(fit_factors({}, {}, 4).empty());
}

// Two rows cannot determine the costs of four resources: the prior does, depending on the strength
// of the ridge.
TEST(ResourceFit, FallsBackOnThePrior) {
  const std::vector<double> prior = {1, 0.5, 0, 2}, weights = {1, 1};
  const std::vector<double> rows = {0.1, 0.2, 0.3, 0.05, 0.15, 0.1, 0.3, 0.05};
  // Computed by hand: .1 + .1 + .1 = .3 and .15 + .05 + .1 = .3.
  const double scale = factor_scale(rows, prior);
  EXPECT_NEAR(scale, 1 / 0.3, 1e-12);
  std::vector<double> scaled;
  for (const double x : prior) scaled.push_back(x * scale);
  // The scaled prior is already right for both rows, so nothing changes it, however weak the ridge
  // is.
  for (const double ridge : {0.001, 1.0, 100.0}) {
    const auto factors = fit_factors(rows, weights, 4, scaled, ridge);
    for (size_t j = 0; j < 4; ++j) EXPECT_NEAR(factors[j], scaled[j], 1e-6) << ridge;
  }
  // A ridge towards 0 of the same strength leaves nothing.
  EXPECT_LT(fit_factors(rows, weights, 4, {}, 1e6)[3], 1e-3);
  EXPECT_EQ(factor_scale({}, prior), 1);
  EXPECT_EQ(factor_scale(rows, std::vector<double>{0, 0, 0, 0}), 1);
}

TEST(TensorsmithModel, LearnsWhatFollowsFromTheProgram) {
  const MadeStore made({.tasks = 16, .programs = 60, .seed = test::test_seed(1)});
  auto whole = train(made.data(), quick());
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  test::expect_below("error", score(**whole, made, made.test()).mape, 0.15);  // .038 +- .003
  EXPECT_TRUE((*whole)->inputs().trace);
  // The sum of resources alone is already close; the roofline alone is not.
  auto resources = train(made.data(), quick({{"members", 0}}));
  auto roofline = train(made.data(), quick({{"members", 0}, {"base", "roofline"}}));
  ASSERT_TRUE(resources.ok() && roofline.ok());
  // .255 +- .027
  test::expect_below("resources-of-roofline",
                     score(**resources, made, made.test()).mape / score(**roofline, made, made.test()).mape,
                     0.8);
}

TEST(TensorsmithModel, EveryPartCanBeSwitchedOff) {
  const MadeStore made({.tasks = 8, .programs = 40});
  for (const Json& part : {Json{{"base", "roofline"}}, Json{{"base", "none"}}, Json{{"loss", "squared"}},
                           Json{{"device_columns", false}}, Json{{"calibrate", false}},
                           Json{{"rank_members", 0}}, Json{{"rank_weight", 1}}}) {
    const auto model = train(made.data(), quick(part));
    ASSERT_TRUE(model.ok()) << part << model.error().message();
    EXPECT_LT(score(**model, made, made.test()).mape, 1) << part;
  }
  const auto wrong = product_kinds().make_trainer("tensorsmith", {{"base", "wishes"}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message(), HasSubstr("base"));
}

// Trees do not see the sizes if the base does; without a base, no other part would see them.
TEST(TensorsmithModel, TreesSeeSizesOnlyWithoutABase) {
  for (const auto kind : kAllProgramKinds) {
    feature::ProgramSummary program;
    program.kind = kind;
    const feature::SummarySchema& schema = feature::summary_schema(kind);
    program.roofline_seconds = 1e-5;
    program.resources.assign(schema.resources.columns.size(), 1e-5);
    program.columns.assign(schema.columns.columns.size(), 3.0F);
    for (const auto base : {BaseFormula::kResources, BaseFormula::kRoofline, BaseFormula::kNone}) {
      const TensorsmithModel model({.base = base});
      std::vector<float> row;
      model.kinds[kind].correction.columns.append_row(program, 1e-4, row);
      ASSERT_EQ(row.size(), tree_row_width(kind));
      size_t sizes = 0;
      for (size_t c = 0; c < schema.columns.columns.size(); ++c) {
        const bool of_size = schema.columns.columns[c].of_size;
        sizes += of_size ? 1 : 0;
        EXPECT_EQ(row[schema.resources.columns.size() + c],
                  of_size && base != BaseFormula::kNone ? 0.0F : 3.0F)
            << schema.columns.columns[c].name();
      }
      EXPECT_GT(sizes, 3U);
    }
  }
}

// Seconds are predicted by the members alone; the ranking value is between them and the rank
// members, according to rank_weight.
TEST(TensorsmithModel, RanksByAMixtureThatSecondsHaveNoPartIn) {
  const MadeStore made({.tasks = 8, .programs = 40});
  const auto devices = pointers_to(made.devices());
  const auto records = made.test();
  std::vector<std::vector<Prediction>> predicted;
  for (const double weight : {0.0, 0.25, 1.0}) {
    const auto model = train(made.data(), quick({{"rank_weight", weight}}));
    ASSERT_TRUE(model.ok()) << model.error().message();
    auto of_model = predict_records(**model, made.store(), devices, records);
    ASSERT_TRUE(of_model.ok());
    predicted.push_back(std::move(*of_model));
  }
  bool differ = false;
  for (size_t i = 0; i < records.size(); ++i) {
    const Prediction &none = predicted[0][i], &quarter = predicted[1][i], &all = predicted[2][i];
    EXPECT_EQ(none.seconds, quarter.seconds);
    EXPECT_EQ(none.seconds, all.seconds);
    EXPECT_NEAR(none.ranked() / none.seconds, 1, 1e-6);
    EXPECT_NEAR(std::log(quarter.ranked()), 0.75 * std::log(none.ranked()) + 0.25 * std::log(all.ranked()),
                1e-6);
    differ |= std::abs(std::log(all.ranked() / none.ranked())) > 1e-3;
  }
  EXPECT_TRUE(differ);
}

TEST(TensorsmithModel, FilesKeepEveryPrediction) {
  const MadeStore made;
  const std::string path = made.folder().file("model"), again = made.folder().file("again");
  auto model = train(made.data(), quick());
  ASSERT_TRUE(model.ok()) << model.error().message();
  ASSERT_TRUE((*model)->save(path).ok());
  const auto loaded = product_kinds().load(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  ASSERT_TRUE((*loaded)->save(again).ok());
  EXPECT_EQ(bytes_of(path), bytes_of(again));
  const auto devices = pointers_to(made.devices());
  const auto records = made.test();
  const auto before = predict_records(**model, made.store(), devices, records);
  const auto after = predict_records(**loaded, made.store(), devices, records);
  ASSERT_TRUE(before.ok() && after.ok());
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ((*before)[i].seconds, (*after)[i].seconds);
    EXPECT_EQ((*before)[i].ranking_seconds, (*after)[i].ranking_seconds);
    EXPECT_GT((*after)[i].log_sigma, 0);
    EXPECT_EQ((*before)[i].log_sigma, (*after)[i].log_sigma);
  }
}

TEST(TensorsmithModel, GoesOnAfterAKillToTheSameBytes) {
  const MadeStore made;
  const std::string path = made.folder().file("model"), again = made.folder().file("again");
  const std::string checkpoint = made.folder().file("checkpoint");
  TrainingData data = made.data();
  data.validation.clear();  // folds are used for calibration
  TrainingControl control;
  control.seed = 3;
  auto model = train(data, quick(), control);
  ASSERT_TRUE(model.ok()) << model.error().message();
  ASSERT_TRUE((*model)->save(path).ok());
  control.checkpoint = checkpoint;
  int asked = 0;
  control.stop = [&] { return ++asked > 300; };
  auto stopped = train(data, quick(), control);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(std::filesystem::exists(checkpoint));
  int rounds = 0;
  control.stop = nullptr;
  control.progress = [&](const TrainingProgress&) { ++rounds; };
  auto resumed = train(data, quick(), control);
  ASSERT_TRUE(resumed.ok()) << resumed.error().message();
  ASSERT_TRUE((*resumed)->save(again).ok());
  EXPECT_EQ(bytes_of(path), bytes_of(again));
  EXPECT_LT(rounds, 120 * 20);  // two kinds of programs, ten forests each: some existed already
}

// Each member has its own curve from its first step, and the validation loss does not influence
// training.
TEST(TensorsmithModel, MembersHaveCurvesOfTheirOwn) {
  const MadeStore made({.noise = 0.1});
  const std::string path = made.folder().file("model"), again = made.folder().file("again");
  const Json parameters = quick({{"members", 2}, {"rank_members", 1}, {"folds", 2}, {"rounds", 60}});
  TrainingControl control;
  control.seed = 3;
  auto plain = train(made.data(), parameters, control);
  ASSERT_TRUE(plain.ok()) << plain.error().message();
  ASSERT_TRUE((*plain)->save(path).ok());
  std::map<std::string, std::vector<TrainingProgress>> curves;
  control.progress = [&](const TrainingProgress& p) { curves[p.member].push_back(p); };
  control.validation_curves = true;
  auto watched = train(made.data(), parameters, control);
  ASSERT_TRUE(watched.ok()) << watched.error().message();
  ASSERT_TRUE((*watched)->save(again).ok());
  EXPECT_EQ(bytes_of(path), bytes_of(again)) << "what is only looked at changes nothing";
  for (const char* member :
       {"gpu-flat-member-1", "gpu-flat-member-2", "gpu-flat-rank-1", "gpu-flat-device-v100"})
    ASSERT_TRUE(curves.contains(member)) << member;
  for (const auto& [member, points] : curves) {
    EXPECT_NE(member, "");
    for (size_t i = 0; i < points.size(); ++i) {
      EXPECT_EQ(points[i].member_step, static_cast<int>(i) + 1) << member;
      EXPECT_TRUE(std::isfinite(points[i].validation_loss)) << member;
    }
    EXPECT_LT(points.back().train_loss, points.front().train_loss) << member;
  }
  // Programs that no tree was fitted to are predicted worse than others, but better than without
  // trees.
  const auto& curve = curves["gpu-flat-member-1"];
  EXPECT_GT(curve.back().validation_loss, curve.back().train_loss);
  EXPECT_LT(curve.back().validation_loss, curve.front().validation_loss);
  // The validation loss is computed only on request.
  control.validation_curves = false;
  control.progress = [&](const TrainingProgress& p) { EXPECT_TRUE(std::isnan(p.validation_loss)); };
  EXPECT_TRUE(train(made.data(), parameters, control).ok());
}

// For a model trained on the V100, a quarter of the K80's programs suffices to predict the K80
// well.
TEST(TensorsmithModel, FewProgramsOfAnotherDeviceAreEnough) {
  const MadeStore made({.devices = {"v100", "k80"}, .tasks = 12, .programs = 60, .seed = test::test_seed(1)});
  TrainingData first = made.data(), second = first;
  const auto of_device = [&](std::vector<int64_t>& records, uint32_t device) {
    std::erase_if(records, [&](int64_t i) { return made.store().entry(i).device != device; });
  };
  for (auto* part : {&first.train, &first.validation}) of_device(*part, 0);
  for (auto* part : {&second.train, &second.validation}) of_device(*part, 1);
  std::vector<int64_t> test = made.test();
  of_device(test, 1);
  std::vector<int64_t> few;
  for (size_t i = 0; i < second.train.size(); i += 4) few.push_back(second.train[i]);
  second.train = few;
  auto trainer = product_kinds().make_trainer("tensorsmith", quick({{"new_rounds", 90}}));
  ASSERT_TRUE(trainer.ok());
  auto model = (*trainer)->train(first, {});
  ASSERT_TRUE(model.ok()) << model.error().message();
  const auto tuned = (*trainer)->fine_tune(**model, second, {});
  ASSERT_TRUE(tuned.ok()) << tuned.error().message();
  const double before = score(**model, made, test).mape, after = score(**tuned, made, test).mape;
  test::expect_below("of-before", after / before, 0.5);  // .312 +- .025
  test::expect_below("after", after, 0.3);               // .122 +- .013
  EXPECT_THAT((*tuned)->card().devices, ::testing::ElementsAre("k80", "v100"));
}

feature::ProgramSummary summary_of(feature::ProgramKind kind, feature::WorkloadStructure structure,
                                   double seconds) {
  feature::ProgramSummary out;
  out.kind = kind;
  out.structure = structure;
  out.roofline_seconds = 1e-3;
  out.resources.assign(feature::summary_schema(kind).resources.columns.size(), 0);
  out.resources[0] = seconds;
  return out;
}

// A structure that the new device lacks gets the other devices' factors, multiplied by the ratio of
// the device's other structures; one that no device has gets the roofline.
TEST(TensorsmithModel, StructuresThatADeviceNeverShowed) {
  using feature::WorkloadStructure;
  const MadeStore made({.devices = {"v100", "k80"}, .tasks = 2, .programs = 30});
  constexpr auto kKind = feature::ProgramKind::kGpuFlat;
  const size_t width = feature::summary_schema(kKind).resources.columns.size();
  std::vector<double> ones(width, 0), threes(width, 0);
  ones[0] = 1;
  threes[0] = 3;
  TensorsmithBase base;
  base.set(WorkloadStructure::kElementwise, "v100", ones);
  base.set(WorkloadStructure::kPooling, "v100", threes);
  // Elementwise programs of the K80 take four times as long as with the V100's factors.
  KindData data;
  data.kind = kKind;
  data.resources = width;
  for (int i = 0; i < 40; ++i) {
    data.values.push_back(1e-3F * static_cast<float>(1 + i));
    data.values.insert(data.values.end(), width - 1, 0.0F);
    data.seconds.push_back(4e-3 * (1 + i));
    data.roofline.push_back(1e-3);
    data.trust.push_back(1);
    data.workload.push_back(0);
    data.device.push_back(1);
    data.structure.push_back(WorkloadStructure::kElementwise);
  }
  const std::vector<size_t> all = all_programs(data);
  const DeviceScales scales = base.fit({data, all}, made.data(), 0, true);
  base.complete(scales, scales, made.data());
  const auto seconds = [&](WorkloadStructure structure, const char* device) {
    return base.seconds(summary_of(kKind, structure, 1e-2), device);
  };
  EXPECT_NEAR(seconds(WorkloadStructure::kElementwise, "k80"), 4e-2, 1e-4);
  EXPECT_NEAR(seconds(WorkloadStructure::kPooling, "k80"), 4 * 3e-2, 1e-3);
  EXPECT_NEAR(seconds(WorkloadStructure::kPooling, "v100"), 3e-2, 1e-9);
  EXPECT_EQ(seconds(WorkloadStructure::kReduction, "k80"), 1e-3);
}

// Corrections learned on a device apply to another one as far as they are similar: little for
// another architecture, most for the same generation, and never completely.
TEST(TensorsmithModel, NewDevicesResembleKnownOnes) {
  const auto traits = [](const char* name) { return traits_of(target::find_device(name).value()); };
  const std::vector<DeviceTraits> known = {traits("v100"), traits("k80"), traits("mi50")};
  const std::vector<double> turing = similarity_weights(traits("rtx2080ti"), known);
  EXPECT_NEAR(turing[0] + turing[1] + turing[2], 1, 1e-12);
  EXPECT_GT(turing[0], 2 * turing[1]);
  EXPECT_LT(turing[2], 0.1);
  const std::vector<double> mi60 = similarity_weights(traits("mi60"), known);
  EXPECT_GT(mi60[2], 0.9);
  EXPECT_TRUE(similarity_weights(traits("mi60"), {}).empty());
}

// A model trained on two devices predicts a third one by the factors of both, whatever its name is,
// and a known one by its own factors.
TEST(TensorsmithModel, PredictsADeviceThatNobodyMeasured) {
  MadeStoreOptions options;
  options.devices = {"v100", "k80"};
  const MadeStore made(options);
  const auto model = train(made.data(), quick());
  ASSERT_TRUE(model.ok()) << model.error().message();
  const auto* ours = dynamic_cast<const TensorsmithModel*>(model->get());
  ASSERT_NE(ours, nullptr);
  bool any = false;
  for (const TensorsmithParts& kind : ours->kinds) {
    if (kind.base.to_json().empty()) continue;
    any = true;
    EXPECT_EQ(kind.adaptation.forests.size(), 2u);
    EXPECT_TRUE(kind.adaptation.covers(kind.base, "rtx2080ti"));
    EXPECT_FALSE(kind.adaptation.covers(kind.base, "v100"));
  }
  EXPECT_TRUE(any);
}

// Two tasks, of four records and of one. A record of the first was measured while others used half of the
// machine.
TEST(TensorsmithModel, DisturbedRecordsWeighLess) {
  KindData data;
  data.seconds = {1, 1, 1, 1, 1};
  data.workload = {0, 0, 0, 0, 1};
  data.device = {0, 0, 0, 0, 0};
  data.trust = {1, 0.25, 1, 1, 1};
  const std::vector<double> weights = task_weights({data, all_programs(data)});
  const double scale = 5 / (3 * 0.5 + 0.125 + 1);
  const double expected[] = {0.5, 0.125, 0.5, 0.5, 1};
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(weights[i], scale * expected[i], 1e-12) << i;
}

// No fold leaves out all workloads of a structure that has several, and no fold is empty.
TEST(TensorsmithModel, FoldsShareOutEachStructure) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    KindData data;
    const std::vector<int> workloads = {9, 2, 4, 1};  // of structure 0, 1, 2, 3
    uint32_t workload = 0;
    for (size_t s = 0; s < workloads.size(); ++s) {
      for (int w = 0; w < workloads[s]; ++w, ++workload) {
        for (int program = 0; program < 3; ++program) {
          data.seconds.push_back(1);
          data.workload.push_back(workload);
          data.structure.push_back(static_cast<feature::WorkloadStructure>(s));
        }
      }
    }
    const std::vector<int> folds = fold_numbers(data, 4, seed);
    ASSERT_EQ(folds.size(), data.size());
    std::map<uint32_t, int> fold_of;
    std::map<feature::WorkloadStructure, std::map<int, std::set<uint32_t>>> by_structure;
    std::set<int> used;
    for (size_t i = 0; i < folds.size(); ++i) {
      EXPECT_EQ(fold_of.emplace(data.workload[i], folds[i]).first->second, folds[i]);
      by_structure[data.structure[i]][folds[i]].insert(data.workload[i]);
      used.insert(folds[i]);
    }
    EXPECT_EQ(used, (std::set<int>{0, 1, 2, 3}));
    for (const auto& [structure, in_folds] : by_structure) {
      const auto n = static_cast<size_t>(workloads[static_cast<size_t>(structure)]);
      for (const auto& [fold, present] : in_folds) EXPECT_LE(present.size(), (n + 3) / 4);
    }
  }
}

// A model that was trained further on another device states its uncertainty there.
TEST(TensorsmithModel, CalibratesTheNewDevice) {
  const MadeStore made(
      {.devices = {"v100", "k80"}, .tasks = 24, .programs = 40, .noise = 0.2, .seed = test::test_seed(1)});
  TrainingData first = made.data(), second = first;
  first.train.clear();
  second.train.clear();
  first.validation.clear();
  second.validation.clear();
  std::vector<int64_t> test;
  for (int64_t i = 0; i < made.store().size(); ++i) {
    const Store::Entry entry = made.store().entry(i);
    (entry.device == 0 ? first.train : entry.workload < 16 ? second.train : test).push_back(i);
  }
  auto trainer = product_kinds().make_trainer("tensorsmith", quick({{"new_rounds", 30}}));
  ASSERT_TRUE(trainer.ok());
  auto model = (*trainer)->train(first, {});
  ASSERT_TRUE(model.ok()) << model.error().message();
  const auto tuned = (*trainer)->fine_tune(**model, second, {});
  ASSERT_TRUE(tuned.ok()) << tuned.error().message();
  const auto predicted = predict_records(**tuned, made.store(), pointers_to(made.devices()), test);
  ASSERT_TRUE(predicted.ok());
  double inside = 0;
  for (size_t i = 0; i < test.size(); ++i) {
    const double e = std::log((*predicted)[i].seconds / made.store().entry(test[i]).mean_seconds);
    inside += std::abs(e) < (*predicted)[i].log_sigma;
  }
  // .680 +- .022
  test::expect_above("inside", inside / static_cast<double>(test.size()), 0.5);
  test::expect_below("inside", inside / static_cast<double>(test.size()), 0.85);
}

// A device with n measured workloads gets (n + 1) / (n + 3) of its own prediction and the rest from
// the common one, also after loading from a file; a device of the first training uses only its own.
TEST(TensorsmithModel, FewWorkloadsCountBesideWhatAllDevicesHaveInCommon) {
  const MadeStore made({.devices = {"v100", "k80"}, .tasks = 8, .programs = 40, .seed = test::test_seed(1)});
  TrainingData first = made.data(), second = made.data();
  first.train.clear();
  second.train.clear();
  first.validation.clear();
  second.validation.clear();
  constexpr uint32_t kShown = 3;
  for (int64_t i = 0; i < made.store().size(); ++i) {
    const Store::Entry entry = made.store().entry(i);
    if (entry.device == 0) first.train.push_back(i);
    if (entry.device == 1 && entry.workload < kShown) second.train.push_back(i);
  }
  auto trainer = product_kinds().make_trainer("tensorsmith", quick({{"new_rounds", 10}}));
  ASSERT_TRUE(trainer.ok());
  const auto before = (*trainer)->train(first, {});
  ASSERT_TRUE(before.ok()) << before.error().message();
  const auto tuned = (*trainer)->fine_tune(**before, second, {});
  ASSERT_TRUE(tuned.ok()) << tuned.error().message();
  record::testing::TempDir folder;
  ASSERT_TRUE((*tuned)->save(folder.file("model")).ok());
  const auto read = product_kinds().load(folder.file("model"));
  ASSERT_TRUE(read.ok()) << read.error().message();
  const auto& model = dynamic_cast<const TensorsmithModel&>(**read);
  TensorsmithModel own = model;
  for (TensorsmithParts& kind : own.kinds) kind.adaptation.shown.clear();
  const auto devices = pointers_to(made.devices());
  const auto gathered = gather_summaries(made.data(), made.test());
  ASSERT_TRUE(gathered.ok());
  int compared = 0;
  for (const KindData& data : *gathered) {
    const TensorsmithParts &parts = model.kinds[data.kind], &own_parts = own.kinds[data.kind];
    for (size_t i = 0; i < data.size(); ++i) {
      const target::Device& device = *devices[data.device[i]];
      const std::vector<feature::ProgramSummary> program = {data.program(i)};
      std::vector<double> mixed(1), alone(1), common(1);
      parts.log_seconds(device, program, mixed);
      own_parts.log_seconds(device, program, alone);
      if (data.device[i] == 0) {
        EXPECT_EQ(mixed, alone);
        continue;
      }
      const auto& shown = parts.adaptation.shown.at(device.name).at(data.structure[i]);
      EXPECT_EQ(shown.workloads, static_cast<int>(kShown));
      parts.adaptation.log_seconds(parts.base, device, program, common);
      EXPECT_NEAR(mixed[0], 4.0 / 6 * alone[0] + 2.0 / 6 * (common[0] + shown.shift), 1e-9);
      ++compared;
    }
  }
  EXPECT_GT(compared, 10);
}

TEST(TensorsmithModel, ProgramsWithoutTracesAreRefused) {
  const MadeStore made;
  auto model = train(made.data(), quick());
  ASSERT_TRUE(model.ok()) << model.error().message();
  const auto devices = pointers_to(made.devices());
  QueryBatch batch(made.store(), devices, {.leaves = true});
  const std::vector<int64_t> records = {0};
  const auto queries = batch.make(records);
  ASSERT_TRUE(queries.ok());
  const auto predicted = (*model)->predict(*queries);
  ASSERT_FALSE(predicted.ok());
  EXPECT_THAT(predicted.error().message(), HasSubstr("trace"));
}

// A file names the columns that its trees use.
TEST(TensorsmithModel, OtherColumnsAreRefused) {
  const MadeStore made({.tasks = 4, .programs = 20});
  const std::string path = made.folder().file("model");
  auto model = train(made.data(), quick({{"rounds", 5}}));
  ASSERT_TRUE(model.ok()) << model.error().message();
  ASSERT_TRUE((*model)->save(path).ok());
  for (const std::string name : {"\"strided\"", "\"threads_second\""}) {
    auto file = read_model_file(path);
    ASSERT_TRUE(file.ok()) << file.error().message();
    for (ModelTensor& tensor : file->tensors) {
      if (tensor.name != "physics.json") continue;
      std::string text(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
      const size_t at = text.find(name);
      ASSERT_NE(at, std::string::npos);
      tensor.data[at + 1] = std::byte{'W'};
    }
    const std::string other = made.folder().file("other");
    ASSERT_TRUE(write_model_file(*file, other).ok());
    const auto loaded = product_kinds().load(other);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, ErrorCode::kMismatch);
    EXPECT_NE(loaded.error().reason.find("other columns"), std::string::npos);
  }
}

TEST(TensorsmithModel, DamagedFilesAreRefused) {
  const MadeStore made({.tasks = 4, .programs = 20});
  const std::string path = made.folder().file("model"), bad = made.folder().file("bad");
  auto model = train(made.data(), quick({{"rounds", 5}}));
  ASSERT_TRUE(model.ok()) << model.error().message();
  ASSERT_TRUE((*model)->save(path).ok());
  const std::string good = bytes_of(path);
  const uint64_t seed = 11;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  for (int i = 0; i < 60; ++i) {
    std::string damaged = good;
    if (i % 2 == 0) {
      damaged.resize(rng.below(good.size()));
    } else {
      damaged[rng.below(good.size())] ^= static_cast<char>(1 << rng.below(8));
    }
    std::ofstream(bad, std::ios::binary) << damaged;
    const auto loaded = product_kinds().load(bad);
    EXPECT_EQ(loaded.ok(), damaged == good) << i;
  }
}

}  // namespace
}  // namespace tensorsmith::learn::tensorsmith_model_test
