// Importing foreign records into a store, reading it, and splitting it.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/text.h"
#include "learn/dataset/import.h"
#include "learn/dataset/split.h"
#include "record/ansor_samples.h"
#include "record/database.h"
#include "record/record_testing.h"

namespace tensorsmith::learn::dataset_test {
namespace {

using record::testing::conv_line;
using record::testing::dense_line;
using record::testing::sum_line;
using record::testing::TempDir;
using record::testing::write_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DatasetTest : public ::testing::Test {
 protected:
  DatasetTest() { write_file(workloads_, record::testing::kWorkloads); }

  ImportReport import(const std::vector<std::string>& cpu, const std::vector<std::string>& gpu,
                      int threads = 1) {
    const auto text = [](const std::vector<std::string>& lines) {
      std::string out;
      for (const std::string& line : lines) out += line + "\n";
      return out;
    };
    write_file(folder_.file("cpu.jsonl"), text(cpu));
    write_file(folder_.file("gpu.jsonl"), text(gpu));
    ImportOptions options;
    options.threads = threads;
    auto report = import_ansor({{"cpu", folder_.file("cpu.jsonl")}, {"gpu", folder_.file("gpu.jsonl")}},
                               workloads_, store_, options);
    EXPECT_TRUE(report.ok()) << report.error().message();
    return report.ok() ? *report : ImportReport();
  }
  std::unique_ptr<Store> open() {
    auto store = Store::open(store_);
    EXPECT_TRUE(store.ok()) << store.error().message();
    return store.ok() ? std::move(*store) : nullptr;
  }

  TempDir folder_;
  const std::string workloads_ = folder_.file("workloads.json");
  const std::string store_ = folder_.file("store");
};

TEST_F(DatasetTest, WhatIsImportedIsReadAgain) {
  const auto report = import({dense_line(), dense_line(4), dense_line(6, "[[1e+10],4,0.5,1700000000]")},
                             {conv_line(), sum_line()});
  EXPECT_EQ(report.records, 5);
  EXPECT_EQ(report.failed, 1);
  EXPECT_EQ(report.corrupt, 0);
  const auto store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(store->verify().ok());
  ASSERT_EQ(store->size(), 5);
  EXPECT_THAT(store->devices(), ElementsAre("cpu", "gpu"));
  ASSERT_EQ(store->workloads().size(), 3u);
  EXPECT_EQ(store->workloads()[0].name, "dense");
  EXPECT_THAT(store->workloads()[0].foreign_keys, ElementsAre(R"(["dense", 64, 32, 48])"));

  const auto workloads = record::AnsorWorkloads::load(workloads_);
  ASSERT_TRUE(workloads.ok());
  const std::vector<std::string> lines = {dense_line(), dense_line(4), "", conv_line(), sum_line()};
  for (int64_t i = 0; i < 5; ++i) {
    const auto entry = store->entry(i);
    EXPECT_EQ(entry.device, i < 3 ? 0u : 1u);
    if (i == 2) {
      EXPECT_TRUE(entry.failed());
      EXPECT_TRUE(std::isinf(entry.mean_seconds));
      EXPECT_EQ(entry.error_no, 4);
      continue;
    }
    record::AnsorRecord record;
    ASSERT_TRUE(record::parse_ansor_record(lines[static_cast<size_t>(i)], record).ok());
    EXPECT_FALSE(entry.failed());
    EXPECT_DOUBLE_EQ(entry.mean_seconds, record.mean_seconds());
    EXPECT_EQ(std::vector<double>(entry.seconds.begin(), entry.seconds.end()), record.seconds);
    EXPECT_EQ(*store->trace(i), record.trace);
    const auto replayed = workloads->replay(record);
    ASSERT_TRUE(replayed.ok());
    const auto rows = feature::extract_per_store(replayed->schedule, {});
    const auto leaves = feature::extract_leaves(replayed->schedule, {});
    ASSERT_TRUE(rows.ok() && leaves.ok());
    EXPECT_EQ(store->per_store(i).values, rows->values);
    feature::LeafFeatures read;
    store->leaves(i, read);
    EXPECT_EQ(read.vectors.values, leaves->vectors.values);
    EXPECT_EQ(read.positions, leaves->positions);
    EXPECT_EQ(read.row_numbers, leaves->row_numbers);
    EXPECT_EQ(read.tree_nodes, leaves->tree_nodes);
    EXPECT_EQ(entry.leaves, leaves->vectors.rows);
    EXPECT_EQ(entry.rows, rows->rows);
  }
}

// A matmul tiled by 32 x 8 lanes has an init and an update of C, and the relu: three leaves, two
// rows.
TEST_F(DatasetTest, LeavesOfATiledMatmul) {
  import({dense_line()}, {});
  const auto store = open();
  ASSERT_NE(store, nullptr);
  feature::LeafFeatures leaves;
  store->leaves(0, leaves);
  EXPECT_THAT(leaves.row_numbers, ElementsAre(-1, 0, 1));
  ASSERT_EQ(leaves.positions.size(), 3u);
  EXPECT_LT(leaves.positions[0], leaves.positions[1]);
  EXPECT_LT(leaves.positions[1], leaves.positions[2]);
  const auto rows = store->per_store(0);
  const auto slog = [](double x) { return static_cast<float>(std::log2(x + 1)); };
  const auto column = [](const std::string& name) { return feature::per_store_schema().find(name).value(); };
  EXPECT_FLOAT_EQ(rows.row(0)[column("float_mul")], slog(64.0 * 32 * 48));
  EXPECT_FLOAT_EQ(rows.row(0)[column("float_addsub")], slog(64.0 * 32 * 48));
  EXPECT_FLOAT_EQ(rows.row(0)[column("auto_unroll_max_step")], slog(16));
  EXPECT_FLOAT_EQ(rows.row(0)[column("outer_prod")], slog(64.0 * 32 * 48));
  EXPECT_FLOAT_EQ(rows.row(1)[column("outer_prod")], slog(64.0 * 48));
  EXPECT_FLOAT_EQ(leaves.vectors.row(0)[column("outer_prod")], slog(64.0 * 48));
  EXPECT_FLOAT_EQ(leaves.vectors.row(0)[column("float_mul")], 0);
}

TEST_F(DatasetTest, CorruptLinesAreCountedNamedAndSkipped) {
  std::string wrong = dense_line();
  wrong.replace(wrong.find("[\"SP\",2,0,64"), 12, "[\"SP\",2,0,63");
  const auto report = import({dense_line(), "not json", "", wrong, dense_line(4)}, {conv_line() + "x"});
  EXPECT_EQ(report.records, 2);
  EXPECT_EQ(report.corrupt, 3);
  ASSERT_EQ(report.problems.size(), 3u);
  EXPECT_THAT(report.problems[0].place, HasSubstr("cpu.jsonl:2"));
  EXPECT_THAT(report.problems[1].place, HasSubstr("cpu.jsonl:4"));
  EXPECT_THAT(report.problems[1].reason, HasSubstr("extent 63"));
  EXPECT_THAT(report.problems[2].place, HasSubstr("gpu.jsonl:1"));
}

TEST_F(DatasetTest, ThreadsDoNotChangeTheStore) {
  std::vector<std::string> lines;
  for (int i = 0; i < 5000; ++i) lines.push_back(dense_line(1 + i % 16));
  import(lines, {conv_line()}, 1);
  const std::string one = record::testing::read_file(store_);
  import(lines, {conv_line()}, 3);
  EXPECT_EQ(one, record::testing::read_file(store_));
  const auto store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->size(), 5001);
  EXPECT_EQ(store->entry(4999).program, store->entry(4999 - 16).program);
  EXPECT_NE(store->entry(4999).program, store->entry(4998).program);
}

TEST_F(DatasetTest, DatabasesOfMetaSchedule) {
  const std::string folder = TENSORSMITH_SOURCE_DIR "/tests/data/metaschedule";
  const auto databases = find_metaschedule_databases({{"a100", folder}});
  ASSERT_TRUE(databases.ok()) << databases.error().message();
  ASSERT_EQ(databases->size(), 1u);
  for (const int threads : {1, 3}) {
    ImportOptions options;
    options.threads = threads;
    const auto report = import_metaschedule(*databases, store_, options);
    ASSERT_TRUE(report.ok()) << report.error().message();
    EXPECT_EQ(report->records, 68);
    EXPECT_EQ(report->failed, 12);
    EXPECT_EQ(report->corrupt, 0);
  }
  const auto store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_THAT(store->devices(), ElementsAre("a100"));
  EXPECT_EQ(store->workloads().size(), 14u);
  EXPECT_EQ(store->workloads()[0].name, "conv2d_nchw");
  EXPECT_THAT(store->workloads()[0].foreign_keys, ElementsAre("74459984568761439"));
  int failed = 0;
  for (int64_t i = 0; i < store->size(); ++i) {
    const auto entry = store->entry(i);
    failed += entry.failed() ? 1 : 0;
    EXPECT_EQ(entry.failed(), std::isinf(entry.mean_seconds));
    const auto workload = ir::parse_workload(store->workloads()[entry.workload].text);
    ASSERT_TRUE(workload.ok());
    const auto schedule = sched::replay(*workload, *store->trace(i));
    ASSERT_TRUE(schedule.ok()) << schedule.error().message();
    EXPECT_EQ(store->per_store(i).values, feature::extract_per_store(*schedule, {})->values);
  }
  EXPECT_EQ(failed, 12);
  EXPECT_DOUBLE_EQ(store->entry(0).mean_seconds,
                   (2.159778812720848e-05 + 1.9843601130742046e-05 + 1.9591760989399292e-05) / 3);
  const auto split = make_split(*store, {});
  ASSERT_TRUE(split.ok());
  EXPECT_FALSE(split->records_of(Part::kTest).empty());
}

TEST_F(DatasetTest, HalvesOfDatabasesOfMetaScheduleAreErrors) {
  const std::string folder = TENSORSMITH_SOURCE_DIR "/tests/data/metaschedule/";
  const std::string records = folder + "database_tuning_record.json.zst",
                    workloads = folder + "database_workload.json.zst";
  const auto find = [](const std::vector<ImportFile>& files) {
    const auto found = find_metaschedule_databases(files);
    return found.ok() ? std::to_string(found->size()) : found.error().message();
  };
  EXPECT_EQ(find({{"a100", records}, {"", workloads}}), "1");
  EXPECT_EQ(find({{"", workloads}, {"a100", records}, {"v100", records}}), "2");
  EXPECT_EQ(find({{"cpu", workloads_}, {"gpu", folder_.file("none")}}), "0");
  EXPECT_THAT(find({{"a100", records}}), HasSubstr("give both"));
  EXPECT_THAT(find({{"a100", workloads}}), HasSubstr("give both"));
  EXPECT_THAT(find({{"", records}, {"", workloads}}), HasSubstr("--device"));
  EXPECT_THAT(find({{"a100", records}, {"", workloads_}}), HasSubstr("each kind of records by itself"));
  EXPECT_THAT(find({{"a100", TENSORSMITH_SOURCE_DIR "/tests/data/numpy"}}), HasSubstr("work_dir"));
  const auto unknown = import_metaschedule({{"a1000", workloads, records}}, store_, {});
  EXPECT_THAT(unknown.error().message(), HasSubstr("'a1000'"));
}

// A line that does not replay is named and left out, unless its program failed anyway.
TEST_F(DatasetTest, CorruptRecordsOfMetaScheduleAreNamed) {
  const std::string records = folder_.file("records.json");
  write_file(records, R"([0,[[[["Blockize",["l1"],[1],["b1"]]],[]],[0.001],{},[]]]
[0,[[[["Blockize",["l1"],[1],["b1"]]],[]],[1e10],{},[]]]

[0,[[[],[]],[0.001,0.003],{},[]]]
[20,[[[],[]],[0.001],{},[]]]
)");
  const std::string workloads = TENSORSMITH_SOURCE_DIR "/tests/data/metaschedule/database_workload.json.zst";
  const auto report = import_metaschedule({{"a100", workloads, records}}, store_, {});
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->records, 2);
  EXPECT_EQ(report->failed, 1);
  ASSERT_EQ(report->problems.size(), 2u);
  EXPECT_EQ(report->problems[0].place, records + ":1");
  EXPECT_EQ(report->problems[0].reason, "instruction 0 (Blockize): this instruction is not supported");
  EXPECT_EQ(report->problems[1].place, records + ":5");
  EXPECT_THAT(report->problems[1].reason, HasSubstr("belongs to the records"));
}

TEST_F(DatasetTest, FailedImportsLeaveTheOldStore) {
  import({dense_line()}, {});
  const std::string before = record::testing::read_file(store_);
  EXPECT_FALSE(import_ansor({{"cpu", folder_.file("none")}}, workloads_, store_, {}).ok());
  EXPECT_EQ(record::testing::read_file(store_), before);
  EXPECT_THAT(folder_.names(), ElementsAre("cpu.jsonl", "gpu.jsonl", "store", "workloads.json"));
}

TEST_F(DatasetTest, DamagedStoresAreErrors) {
  import({dense_line(), dense_line(4)}, {conv_line()});
  const std::string good = record::testing::read_file(store_);
  for (size_t length : {size_t{0}, size_t{10}, size_t{64}, good.size() / 2, good.size() - 9}) {
    write_file(store_, good.substr(0, length));
    const auto store = Store::open(store_);
    ASSERT_FALSE(store.ok()) << length;
    EXPECT_EQ(store.error().code, ErrorCode::kCorrupt);
  }
  Rng rng(5);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = good;
    damaged[rng.below(good.size())] ^= static_cast<char>(1 + rng.below(255));
    write_file(store_, damaged);
    const auto store = Store::open(store_);
    if (!store.ok()) continue;
    feature::LeafFeatures leaves;
    for (int64_t r = 0; r < (*store)->size(); ++r) {
      (*store)->entry(r);
      (*store)->leaves(r, leaves);
      (*store)->per_store(r);
      (void)(*store)->trace(r);
    }
  }
  std::string other = good;
  other[8] = 99;
  write_file(store_, other);
  EXPECT_EQ(Store::open(store_).error().code, ErrorCode::kMismatch);
}

// A catalog that names a group a thousand times, although the file is large enough for the sum of
// their sizes.
TEST_F(DatasetTest, GroupsDoNotOverlap) {
  import({dense_line(), dense_line(4)}, {conv_line()});
  const std::string good = record::testing::read_file(store_);
  uint64_t at = 0, bytes = 0;
  std::memcpy(&at, good.data() + 16, 8);
  std::memcpy(&bytes, good.data() + 24, 8);
  const auto with = [&](const std::function<void(nlohmann::json&)>& change) {
    auto catalog = nlohmann::json::parse(good.substr(at, bytes));
    change(catalog);
    const std::string text = catalog.dump();
    std::string out = good.substr(0, at) + text;
    const uint64_t length = text.size();
    std::memcpy(out.data() + 24, &length, 8);
    write_file(store_, out);
    return Store::open(store_);
  };
  EXPECT_TRUE(with([](auto&) {}).ok());
  const auto repeated = with([](auto& c) {
    for (int i = 0; i < 1000; ++i) c["groups"].push_back(c["groups"][0]);
  });
  ASSERT_FALSE(repeated.ok());
  EXPECT_THAT(repeated.error().message(), HasSubstr("overlap"));
  const auto deep = with([](auto& c) {
    for (int i = 0; i < 1000; ++i) c["device_attributes"] = {{"x", c["device_attributes"]}};
  });
  ASSERT_FALSE(deep.ok());
  EXPECT_THAT(deep.error().message(), HasSubstr("damaged catalog"));
}

TEST_F(DatasetTest, SplitsAreDisjointAndFixed) {
  std::vector<std::string> lines;
  for (int i = 0; i < 160; ++i) lines.push_back(dense_line(1 + i % 40));
  import(lines, {conv_line(), sum_line(), conv_line()});
  const auto store = open();
  ASSERT_NE(store, nullptr);
  for (const auto kind : {SplitKind::kWithinTask, SplitKind::kByTask, SplitKind::kByDevice}) {
    SplitOptions options;
    options.kind = kind;
    options.test = options.validation = 0.2;
    options.test_devices = {"gpu"};
    const auto split = make_split(*store, options);
    ASSERT_TRUE(split.ok());
    EXPECT_TRUE(check_split(*store, *split).ok());
    const auto again = make_split(*store, options);
    EXPECT_EQ(split->parts, again->parts);
    ASSERT_TRUE(save_split(*split, folder_.file("split")).ok());
    const auto loaded = load_split(folder_.file("split"));
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    EXPECT_EQ(loaded->parts, split->parts);
    EXPECT_EQ(loaded->store_hash, split->store_hash);
    EXPECT_TRUE(check_split(*store, *loaded).ok());

    std::set<uint64_t> programs[4];
    std::set<uint32_t> workloads[4], devices[4];
    for (int64_t i = 0; i < store->size(); ++i) {
      const auto part = static_cast<size_t>(split->parts[static_cast<size_t>(i)]);
      programs[part].insert(store->entry(i).program);
      workloads[part].insert(store->entry(i).workload);
      devices[part].insert(store->entry(i).device);
    }
    for (size_t a = 0; a < 3; ++a) {
      for (size_t b = a + 1; b < 3; ++b) {
        const auto common = [](const auto& x, const auto& y) {
          return std::any_of(x.begin(), x.end(), [&](const auto& v) { return y.count(v) != 0; });
        };
        EXPECT_FALSE(kind == SplitKind::kWithinTask && common(programs[a], programs[b]));
        EXPECT_FALSE(kind == SplitKind::kByTask && common(workloads[a], workloads[b]));
        EXPECT_FALSE(kind == SplitKind::kByDevice && b == 2 && common(devices[a], devices[b]));
      }
    }
    EXPECT_FALSE(split->records_of(Part::kTrain).empty());
    EXPECT_FALSE(split->records_of(Part::kTest).empty());

    // A single record on the wrong side is detected.
    Split leaking = *split;
    const int64_t moved = kind == SplitKind::kByDevice ? store->size() - 1 : 0;
    Part& part = leaking.parts[static_cast<size_t>(moved)];
    part = part == Part::kTrain ? Part::kTest : Part::kTrain;
    EXPECT_EQ(check_split(*store, leaking).error().code, ErrorCode::kInvalidArgument);
  }
  SplitOptions none;
  none.test = 0.7, none.validation = 0.5;
  EXPECT_FALSE(make_split(*store, none).ok());
  none = {};
  none.kind = SplitKind::kByDevice;
  none.test_devices = {"tpu"};
  EXPECT_EQ(make_split(*store, none).error().code, ErrorCode::kNotFound);
}

// --- our own records

class DatabaseImportTest : public ::testing::Test {
 protected:
  static constexpr const char* kVectorized = "annotate stage=1 iter=0 as=vectorize\n";

  DatabaseImportTest() {
    device_.name = "local";
    device_.arch = "x86-64";
    device_.processor = "znver4";
    device_.features = {"+avx2", "+fma", "-avx512vl"};
    device_.memory_bandwidth_gbs = 15;
    auto opened = record::Database::open(path_);
    EXPECT_TRUE(opened.ok());
    database_ = std::move(*opened);
    EXPECT_TRUE(database_->add_task({"task", kText, "add", 64}).ok());
    EXPECT_TRUE(database_->add_device({"key", device_}).ok());
  }
  record::Record record(const std::string& trace, double seconds) {
    record::Record r;
    r.task_key = "task";
    r.device_key = "key";
    r.trace = trace;
    r.result.seconds = {2 * seconds, seconds, 3 * seconds};
    r.unix_ms = 1700000000123;
    return r;
  }
  ImportReport import(const std::vector<std::string>& paths) {
    auto report = import_databases(paths, store_, {});
    EXPECT_TRUE(report.ok()) << report.error().message();
    return report.ok() ? *report : ImportReport();
  }

  static const std::string kText;
  TempDir folder_;
  const std::string path_ = folder_.file("a.db"), store_ = folder_.file("store");
  target::Device device_;
  std::unique_ptr<record::Database> database_;
};
const std::string DatabaseImportTest::kText = [] {
  const auto workload =
      ir::parse_workload("workload {\n  input A: f32[64]\n  B: f32[i: 64] = A[i] + 1.0\n  output B\n}");
  EXPECT_TRUE(workload.ok());
  return ir::print(*workload);
}();

TEST_F(DatabaseImportTest, RecordsKeepTheirDevice) {
  auto failed = record("", 1);
  failed.result = {};
  failed.result.outcome = record::Outcome::kRunTimeout;
  failed.settings.threads = 2;
  ASSERT_TRUE(database_->add({record("", 1e-3), record(kVectorized, 2e-3), failed}).ok());
  const auto report = import({path_, path_});  // all records are known the second time
  EXPECT_EQ(report.records, 3);
  EXPECT_EQ(report.failed, 1);
  EXPECT_EQ(report.corrupt, 0);
  EXPECT_EQ(report.repeated, 3);
  auto store = Store::open(store_);
  ASSERT_TRUE(store.ok()) << store.error().message();
  ASSERT_EQ((*store)->size(), 3);
  EXPECT_TRUE((*store)->verify().ok());
  EXPECT_THAT((*store)->devices(), ElementsAre("znver4-avx2-1t"));
  const auto& attributes = (*store)->device_attributes();
  ASSERT_EQ(attributes.size(), 1u);
  ASSERT_TRUE(attributes[0].has_value());
  EXPECT_EQ(attributes[0]->memory_bandwidth_gbs, 15);
  EXPECT_EQ(attributes[0]->name, "znver4-avx2-1t");
  EXPECT_EQ((*store)->workloads()[0].text, kText);
  EXPECT_EQ((*store)->entry(0).mean_seconds, 1e-3);  // the fastest repeat
  EXPECT_EQ((*store)->entry(0).unix_seconds, 1700000000);
  EXPECT_EQ((*store)->entry(2).error_no, 7);
  EXPECT_TRUE((*store)->entry(2).failed());
  EXPECT_EQ(sched::print(*(*store)->trace(1)), kVectorized);
  EXPECT_GT((*store)->per_store(1).rows, 0);
}

TEST_F(DatabaseImportTest, DesignPointsAreKept) {
  constexpr size_t kVersionAt = 8;
  auto chosen = record(kVectorized, 1e-3), trivial = record("", 2e-3);
  chosen.candidate.point = record::DesignPoint{2, {1, int64_t{5'000'000'000}, 7}};
  trivial.candidate.point = record::DesignPoint{4, {}};
  auto unknown = record("", 3e-3);
  unknown.settings.threads = 2;
  ASSERT_TRUE(database_->add({chosen, unknown, trivial}).ok());
  import({path_});
  EXPECT_EQ(record::testing::read_file(store_)[kVersionAt], 3);
  const auto store = Store::open(store_);
  ASSERT_TRUE(store.ok()) << store.error().message();
  EXPECT_TRUE((*store)->verify().ok());
  ASSERT_EQ((*store)->size(), 3);
  for (int64_t i = 0; i < 3; ++i) {
    const double seconds = (*store)->entry(i).mean_seconds;
    const auto point = (*store)->point(i);
    EXPECT_EQ(point, seconds == 1e-3   ? chosen.candidate.point
                     : seconds == 2e-3 ? trivial.candidate.point
                                       : std::nullopt);
  }
  // The numbers of points end beyond the section, or a sketch has no such number.
  const std::string whole = record::testing::read_file(store_);
  const int64_t decision = 5'000'000'000;
  const size_t at = whole.find(std::string_view(reinterpret_cast<const char*>(&decision), 8));
  ASSERT_NE(at, std::string::npos);
  for (const auto& [place, value] : {std::pair<size_t, int64_t>{at - 16, -1}, {at - 32, INT64_MAX}}) {
    std::string damaged = whole;
    damaged.replace(place, 8, reinterpret_cast<const char*>(&value), 8);
    write_file(store_, damaged);
    EXPECT_EQ(Store::open(store_).error().code, ErrorCode::kCorrupt) << place;
  }
}

// A store without disturbances is one that earlier programs read.
TEST_F(DatabaseImportTest, DisturbancesAreKept) {
  constexpr size_t kVersionAt = 8;
  ASSERT_TRUE(database_->add({record("", 1e-3)}).ok());
  import({path_});
  EXPECT_EQ(record::testing::read_file(store_)[kVersionAt], 1);
  EXPECT_FALSE((*Store::open(store_))->entry(0).disturbance);
  auto disturbed = record(kVectorized, 1e-3);
  disturbed.result.disturbance = 0.2371;
  ASSERT_TRUE(database_->add({disturbed}).ok());
  import({path_});
  EXPECT_EQ(record::testing::read_file(store_)[kVersionAt], 2);
  const auto store = Store::open(store_);
  ASSERT_TRUE(store.ok()) << store.error().message();
  EXPECT_TRUE((*store)->verify().ok());
  EXPECT_FALSE((*store)->entry(0).disturbance);
  EXPECT_FLOAT_EQ((*store)->entry(1).disturbance.value(), 0.2371F);
  std::string damaged = record::testing::read_file(store_);
  const float old_share = 0.2371F, share = 1.5F;
  const size_t at = damaged.find(std::string_view(reinterpret_cast<const char*>(&old_share), 4));
  ASSERT_NE(at, std::string::npos);
  damaged.replace(at, 4, reinterpret_cast<const char*>(&share), 4);
  write_file(store_, damaged);
  EXPECT_EQ(Store::open(store_).error().code, ErrorCode::kCorrupt);
}

TEST_F(DatabaseImportTest, OneReadingIsNoTime) {
  auto hopeless = record(kVectorized, 1);
  hopeless.result.seconds.resize(1);
  hopeless.result.stopped_early = true;
  ASSERT_TRUE(database_->add({record("", 1), hopeless}).ok());
  const auto report = import({path_});
  EXPECT_EQ(report.records, 1);
  EXPECT_EQ(report.stopped_early, 1);
  EXPECT_EQ(report.corrupt, 0);
}

TEST_F(DatabaseImportTest, TheReportAccountsForEveryRecord) {
  auto hopeless = record(kVectorized, 1);
  hopeless.result.seconds.resize(1);
  hopeless.result.stopped_early = true;
  auto older = record(kVectorized, 2);
  older.code_version = record::kCodeVersion - 1;
  auto cold = record("", 1);
  cold.settings.flush_cache = true;
  ASSERT_TRUE(database_->add({record("", 1), hopeless, older, cold}).ok());
  const auto report = import({path_});
  EXPECT_EQ(report.records, 1);
  EXPECT_EQ(report.stopped_early, 1);
  EXPECT_EQ(report.other_versions, 1);
  EXPECT_EQ(report.corrupt, 1);
  EXPECT_EQ(report.repeated, 0);
  EXPECT_EQ(database_->record_count().value(), 4);
}

TEST_F(DatabaseImportTest, WhatCannotBeUsedIsNamed) {
  auto cold = record("", 1);
  cold.settings.flush_cache = true;
  auto stranger = record("", 1);
  stranger.device_key = "unknown";
  ASSERT_TRUE(
      database_->add({cold, stranger, record("split stage=9 iter=0 lengths=[2]\n", 1), record("", 1)}).ok());
  const auto report = import({path_});
  EXPECT_EQ(report.records, 1);
  EXPECT_EQ(report.corrupt, 3);
  ASSERT_EQ(report.problems.size(), 3u);
  EXPECT_THAT(report.problems[0].reason, HasSubstr("cold"));
  EXPECT_THAT(report.problems[1].reason, HasSubstr("device"));
}

// Two machines with the same processor, but different caches.
TEST_F(DatabaseImportTest, EqualNamesOfDifferentDevices) {
  auto other = record("", 1);
  other.device_key = "0123456789abcdef";
  device_.l3_bytes = int64_t{32} << 20;
  ASSERT_TRUE(database_->add_device({other.device_key, device_}).ok());
  ASSERT_TRUE(database_->add({record("", 1), other}).ok());
  EXPECT_EQ(import({path_}).records, 2);
  auto store = Store::open(store_);
  ASSERT_TRUE(store.ok());
  EXPECT_THAT((*store)->devices(), ElementsAre("znver4-avx2-1t", "znver4-avx2-1t-01234567"));
}

}  // namespace
}  // namespace tensorsmith::learn::dataset_test
