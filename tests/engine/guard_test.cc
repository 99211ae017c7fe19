// Pins what a change of design must not change: keys, the schedules chosen without measuring, features, and what the models
// in the repository predict for stored programs. tests/data/guard holds the expected lines. After a change that means to
// change some of them, run this test with TENSORSMITH_WRITE_GUARD=1 and look at the difference.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/hash.h"
#include "cli_support.h"
#include "engine/model/load_model.h"
#include "engine/tune/schedules.h"
#include "feature/program_summary.h"
#include "ir/text.h"
#include "lab/kinds/kinds.h"
#include "learn/cost_model.h"
#include "learn/dataset/import.h"
#include "learn/dataset/store.h"
#include "learn/latency/queries.h"
#include "record/database.h"
#include "record/line_reader.h"
#include "sched/step.h"
#include "space/design_space.h"
#include "support/standard_workloads.h"

namespace tensorsmith::engine::guard_test {
namespace {

using tensorsmith::testing::TemporaryDirectory;

const std::string kData = TENSORSMITH_SOURCE_DIR "/tests/data/";

// Six digits: the last bits of a logarithm differ between processors.
std::string number(double value) {
  std::ostringstream out;
  out.precision(6);
  out << value;
  return out.str();
}
std::string hash_of(const std::string& text) { return Hasher().add(text).hex128().substr(0, 12); }
std::string hash_of(std::span<const float> values) {
  std::string text;
  for (const float value : values) text += number(static_cast<double>(value)) + ' ';
  return hash_of(text);
}
std::string hash_of(std::span<const double> values) {
  std::string text;
  for (const double value : values) text += number(value) + ' ';
  return hash_of(text);
}

// Compares the lines with those of tests/data/guard/NAME.txt, and shows the first that differ.
void expect_kept(const std::string& name, const std::vector<std::string>& lines) {
  const std::string path = kData + "guard/" + name + ".txt";
  if (std::getenv("TENSORSMITH_WRITE_GUARD") != nullptr) {
    std::ofstream out(path);
    for (const std::string& line : lines) out << line << "\n";
    ASSERT_TRUE(out.flush().good()) << path;
    return;
  }
  std::ifstream in(path);
  ASSERT_TRUE(in.good()) << path;
  std::vector<std::string> expected;
  for (std::string line; std::getline(in, line);) expected.push_back(line);
  ASSERT_EQ(lines.size(), expected.size());
  int differences = 0;
  std::string shown;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] == expected[i]) continue;
    if (++differences <= 5) shown += "  was " + expected[i] + "\n  is  " + lines[i] + "\n";
  }
  EXPECT_EQ(differences, 0) << "of " << lines.size() << " lines of " << path << "; the first:\n" << shown;
}

std::vector<target::Device> devices() {
  const target::Device cpu = target::find_device("xeon-8358:threads=2").value();
  std::vector<target::Device> out = {cpu};
  for (const char* isa : {"avx2", "sse4.2"}) out.push_back(target::with_isa(cpu, isa).value());
  for (const char* gpu : {"a100", "h100"}) out.push_back(target::find_device(gpu).value());
  return out;
}

TEST(Guard, KeysOfDevices) {
  std::vector<std::string> lines;
  for (const target::Device& device : target::registry()) lines.push_back(device.name + " " + device.key());
  expect_kept("devices", lines);
}

TEST(Guard, UntunedSchedules) {
  std::vector<std::string> lines;
  for (const char* network : {"resnet18", "mobilenet_v3_small", "googlenet", "resnet3d18:size=56", "dcgan",
                              "vit_b_16", "mobilebert", "llama_15m"}) {
    for (const target::Device& device : devices()) {
      const std::string name =
          device.name +
          (device.kind() == target::DeviceKind::kGpu ? "" : "/" + std::to_string(device.register_bytes()));
      const auto model = load_model({.path = std::string("zoo:") + network}, device);
      ASSERT_TRUE(model.ok()) << model.error().message();
      const auto schedules = default_schedules(model->partition, device);
      ASSERT_TRUE(schedules.ok()) << schedules.error().message();
      for (size_t i = 0; i < schedules->size(); ++i) {
        const TaskSchedule& schedule = (*schedules)[i];
        lines.push_back(std::string(network) + " " + name + " " +
                        model->partition.tasks[i].key.substr(0, 12) + " " +
                        hash_of(sched::print(schedule.trace)) + " " + number(schedule.estimated_seconds));
      }
    }
  }
  expect_kept("untuned", lines);
}

// Random candidates and what the estimate says of them.
TEST(Guard, SampledCandidates) {
  using namespace tensorsmith::test::standard;
  const std::vector<std::pair<std::string, ir::Workload>> workloads = {
      {"matmul", matmul(192, 256, 320)},
      {"matmul_f16", matmul(256, 512, 128, ir::DType::kF16)},
      {"matmul_bf16", matmul(96, 128, 64, ir::DType::kBF16)},
      {"dense_bias_relu", dense_bias_relu(64, 100, 300)},
      {"conv", conv2d_bias_relu({.h = 28, .w = 28, .ci = 32, .co = 48})},
      {"depthwise", depthwise_conv2d({.h = 28, .w = 28, .ci = 64, .co = 64, .groups = 64})},
      {"softmax", softmax(96, 200)},
      {"layernorm", layernorm(64, 384)},
      {"max_pool", max_pool(1, 32, 28, 28, 3, 2, 1)},
      {"elementwise", elementwise_chain(100000)}};
  std::vector<std::string> lines;
  for (const target::Device& device : devices()) {
    for (const auto& [name, workload] : workloads) {
      const auto space = space::DesignSpace::build(workload, device, {});
      if (!space.ok()) {
        lines.push_back(name + " " + device.name + " " + space.error().message());
        continue;
      }
      Rng rng(11);
      for (int i = 0; i < 20; ++i) {
        const space::Candidate candidate = space->sample(rng);
        const auto trace = space->to_trace(candidate);
        ASSERT_TRUE(trace.ok()) << trace.error().message();
        lines.push_back(name + " " + device.name + "/" + std::to_string(device.register_bytes()) + " " +
                        hash_of(sched::print(*trace)) + " " + number(space->estimate(candidate)));
      }
    }
  }
  expect_kept("sampled", lines);
}

// A line for each of the records of a store that ran: its program, its features and what the model predicts.
void expect_kept_records(const std::string& name, const learn::Store& store,
                         const std::vector<std::string>& models) {
  std::vector<int64_t> records;
  for (int64_t i = 0; i < store.size(); ++i) {
    if (!store.entry(i).failed()) records.push_back(i);
  }
  ASSERT_GT(records.size(), 200U);
  const auto devices = learn::devices_of(store);
  ASSERT_TRUE(devices.ok()) << devices.error().message();
  std::vector<std::vector<learn::Prediction>> predictions;
  for (const std::string& path : models) {
    const auto model = path.find('/') == std::string::npos ? lab::cost_model_kinds().make_untrained(path, {})
                                                           : lab::cost_model_kinds().load(path);
    ASSERT_TRUE(model.ok()) << model.error().message();
    const auto predicted = learn::predict_records(**model, store, learn::pointers_to(*devices), records);
    ASSERT_TRUE(predicted.ok()) << predicted.error().message();
    predictions.push_back(*predicted);
  }
  std::map<uint32_t, feature::WorkloadAccess> accesses;
  std::vector<std::string> lines;
  feature::LeafFeatures leaves;
  for (size_t r = 0; r < records.size(); ++r) {
    const auto entry = store.entry(records[r]);
    const learn::StoredWorkload& workload = store.workloads()[entry.workload];
    const auto trace = store.trace(records[r]);
    ASSERT_TRUE(trace.ok()) << trace.error().message();
    store.leaves(records[r], leaves);
    if (!accesses.contains(entry.workload)) {
      const auto parsed = ir::parse_workload(workload.text);
      ASSERT_TRUE(parsed.ok()) << parsed.error().message();
      accesses[entry.workload] = feature::analyze_accesses(*parsed, workload.flops);
      if (workload.foreign_keys.empty())
        accesses[entry.workload].workload = std::make_shared<ir::Workload>(*parsed);
    }
    const auto summary =
        feature::summarize_program(accesses[entry.workload], leaves, *trace, (*devices)[entry.device]);
    std::string line = store.devices()[entry.device] + " " + workload.key.substr(0, 12) + " " +
                       hash_of(sched::print(*trace)) + " " + hash_of(leaves.vectors.values) + " " +
                       hash_of(summary.resources) + " " + hash_of(summary.columns);
    for (const auto& of_model : predictions)
      line += " " + number(of_model[r].seconds) + " " + number(of_model[r].log_sigma);
    lines.push_back(line);
  }
  expect_kept(name, lines);
}

TEST(Guard, ProgramsOfAnsor) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("store");
  std::vector<learn::ImportFile> files;
  for (const char* device : {"xeon8358", "v100", "k80", "mi50"})
    files.push_back({device, kData + "ansor/" + device + ".jsonl.zst"});
  const auto imported = learn::import_ansor(files, kData + "ansor/workloads.json", path, {.threads = 2});
  ASSERT_TRUE(imported.ok()) << imported.error().message();
  const auto store = learn::Store::open(path);
  ASSERT_TRUE(store.ok()) << store.error().message();
  expect_kept_records("ansor", **store,
                      {"draft", "roofline", TENSORSMITH_SOURCE_DIR "/models/tensorsmith.safetensors"});
}

// Tasks and devices of the file, and every `stride`-th of its records.
void expect_kept_own(const std::string& name, int stride, const std::string& model) {
  const TemporaryDirectory folder;
  const std::string lines = folder.file("lines.jsonl"), database = folder.file("db"),
                    path = folder.file("store");
  {
    auto reader =
        record::LineReader::open(kData + "own/" + name + ".jsonl.zst", record::Database::kMaxJsonLine);
    ASSERT_TRUE(reader.ok()) << reader.error().message();
    std::ofstream out(lines);
    for (int64_t records = 0;;) {
      const auto line = (*reader)->next();
      ASSERT_TRUE(line.ok()) << line.error().message();
      if (!*line) break;
      const bool is_record = (*line)->text.find(R"("type":"record")") != std::string::npos;
      if (!is_record || records++ % stride == 0) out << (*line)->text << "\n";
    }
    ASSERT_TRUE(out.flush().good());
    const auto opened = record::Database::open(database);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    const auto imported = (*opened)->import_jsonl(lines);
    ASSERT_TRUE(imported.ok()) << imported.error().message();
  }
  const auto imported = learn::import_databases({database}, path, {.threads = 2});
  ASSERT_TRUE(imported.ok()) << imported.error().message();
  const auto store = learn::Store::open(path);
  ASSERT_TRUE(store.ok()) << store.error().message();
  expect_kept_records(name, **store, {"draft", "roofline", model});
}

TEST(Guard, DataOfAReport) {
  const TemporaryDirectory folder;
  const tensorsmith::testing::CliOptions options{.directory = folder.path()};
  const std::vector<std::string> import = {"db", "import", "r.db", kData + "record/version1.jsonl.zst"};
  ASSERT_EQ(tensorsmith::testing::run_cli(import, options).exit_code, 0);
  const auto result = tensorsmith::testing::run_cli({"report", "r.db", "--json"}, options);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::string> lines;
  nlohmann::json data = nlohmann::json::parse(result.out);
  data.erase("settings");  // the date and the commit
  data = data.flatten();
  for (const auto& [path, value] : data.items())
    lines.push_back(path + " " + (value.is_number_float() ? number(value.get<double>()) : value.dump()));
  expect_kept("report", lines);
}

TEST(Guard, OwnProgramsOnACpu) {
  expect_kept_own("zen4", 27, TENSORSMITH_SOURCE_DIR "/models/cpu.safetensors");
}

TEST(Guard, OwnProgramsOnAGpu) {
  expect_kept_own("h100", 3, TENSORSMITH_SOURCE_DIR "/models/tensorsmith.safetensors");
}

}  // namespace
}  // namespace tensorsmith::engine::guard_test
