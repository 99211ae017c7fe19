// Graphs that once gave wrong results (found by scripts/fuzz_graphs), with the outputs that ONNX
// Runtime and the ONNX reference evaluator agree on: tests/data/graphs/NAME/model.onnx and
// test_data_set_0. They run with every instruction set of this machine, one and two threads,
// untuned and random schedules.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "graph_case.h"
#include "onnx_testdata.h"

namespace tensorsmith::oracle::regression_graphs_test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kRandomSchedules = 2;  // per device and number of threads

std::vector<fs::path> cases() {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(fs::path(TENSORSMITH_SOURCE_DIR) / "tests/data/graphs")) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<RunRequest> runs() {
  std::vector<RunRequest> list = {{"local", 1, ScheduleKind::kInterpreter, 0}};
  for (const std::string device : {"local", "local:isa=avx512", "local:isa=avx2", "local:isa=sse4.2"}) {
    if (!target::find_device(device).ok()) continue;
    for (const int threads : {1, 2}) {
      list.push_back({device, threads, ScheduleKind::kDefault, 0});
      for (uint64_t seed = 0; seed < kRandomSchedules; ++seed) {
        list.push_back({device, threads, ScheduleKind::kRandom, seed});
      }
    }
  }
  return list;
}

std::string describe(const RunRequest& run) {
  return run.device + ", " + std::to_string(run.threads) + " threads, " +
         (run.schedule == ScheduleKind::kRandom        ? "random schedules " + std::to_string(run.seed)
          : run.schedule == ScheduleKind::kInterpreter ? "interpreter"
                                                       : "untuned");
}

// Tolerated relative error of a graph of a few operators.
double relative_tolerance(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF64:
      return 1e-12;
    case ir::DType::kF16:
      return 2e-3;
    case ir::DType::kBF16:
      return 1.6e-2;
    default:
      return 1e-5;
  }
}

class RegressionGraphs : public ::testing::TestWithParam<fs::path> {};

TEST_P(RegressionGraphs, Case) {
  const auto data = graph::testing::read_data_set(GetParam() / "test_data_set_0", GetParam() / "model.onnx");
  ASSERT_TRUE(data.ok()) << data.error().message();
  GraphCase graph_case;
  const Status loaded = graph_case.load((GetParam() / "model.onnx").string());
  ASSERT_TRUE(loaded.ok()) << graph_case.stage() << ": " << loaded.error().message();
  const fs::path directory = fs::path(::testing::TempDir()) / ("graph_" + GetParam().filename().string());
  for (const RunRequest& run : runs()) {
    SCOPED_TRACE(describe(run));
    const auto outputs = graph_case.run(run, data->inputs, directory.string(), nullptr);
    ASSERT_TRUE(outputs.ok()) << graph_case.stage() << ": " << outputs.error().message();
    ASSERT_EQ(outputs->size(), data->outputs.size());
    for (size_t i = 0; i < outputs->size(); ++i) {
      const lower::Tensor& expected = data->outputs[i];
      EXPECT_EQ(
          graph::testing::difference((*outputs)[i], expected, relative_tolerance(expected.dtype), 1e-30), "")
          << "output " << i;
    }
  }
  fs::remove_all(directory);
}

INSTANTIATE_TEST_SUITE_P(All, RegressionGraphs, ::testing::ValuesIn(cases()), [](const auto& folder) {
  std::string name = folder.param.filename().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace tensorsmith::oracle::regression_graphs_test
