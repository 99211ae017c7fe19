// ONNX's own test cases (Debian's libonnx-testdata) with the importer and the reference
// interpreter. scripts/conformance runs those of the newest ONNX through the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>

#include "onnx_testdata.h"

namespace tensorsmith::graph::conformance_test {
namespace {

// The expected outputs were made with epsilon 0.01, which the model does not have (its default is 1e-6).
constexpr const char* kContradictory[] = {"test_adam_multiple"};

const std::filesystem::path kData = "/usr/share/libonnx-testdata/data";

struct Suite {
  const char* name;
  int cases;  // in the package
  int floor;  // number that passes today, so that a newly broken operator is noticed
};

struct Outcome {
  bool passed = false;
  bool constants = false;  // some inputs had to become constants
  bool unsupported = false;
  std::string reason;
};

Outcome failed(std::string reason) { return {false, false, false, std::move(reason)}; }

// The data of bf16 cases is stored as u16, sometimes flat. CastLike's second input, of which only
// the dtype matters, has another shape than the model declares.
lower::Tensor as_declared(const lower::Tensor& tensor, const Value& value) {
  lower::Tensor result = tensor;
  if (value.name == "like") return lower::Tensor::zeros(value.dtype, value.shape);
  if (value.dtype != ir::DType::kBF16 || tensor.dtype != ir::DType::kU16) return result;
  result.dtype = value.dtype;
  if (lower::Tensor::zeros(value.dtype, value.shape).data.size() == tensor.data.size())
    result.shape = value.shape;
  return result;
}

Result<std::vector<lower::Tensor>> run_case(const std::string& model, const testing::DataSet& data,
                                            const std::function<bool(const lower::Tensor&)>& is_constant,
                                            bool optimized) {
  const std::vector<std::string>& names = data.names;
  ImportOptions options;
  options.absent.insert(data.absent.begin(), data.absent.end());
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    if (is_constant(data.inputs[i])) options.constant_inputs[names[i]] = data.inputs[i];
  }
  Result<Graph> graph = import_onnx(model, options);
  if (!graph.ok() && graph.error().code == ErrorCode::kInvalidArgument &&
      graph.error().reason.find("leaves the shape") != std::string::npos) {
    for (size_t i = 0; i < data.inputs.size(); ++i) options.shapes[names[i]] = data.inputs[i].shape;
    graph = import_onnx(model, options);
  }
  if (!graph.ok()) return std::move(graph).error();
  if (optimized) TS_RETURN_IF_ERROR(optimize(*graph));
  std::vector<lower::Tensor> inputs;
  for (ValueId id : graph->inputs) {
    const Value& value = graph->values[id];
    for (size_t i = 0; i < data.inputs.size(); ++i) {
      if (names[i] == value.name) inputs.push_back(as_declared(data.inputs[i], value));
    }
  }
  return evaluate(*graph, inputs);
}

Outcome check_case(const std::filesystem::path& folder, bool optimized) {
  const std::string model = (folder / "model.onnx").string();
  const auto data = testing::read_data_set(folder / "test_data_set_0", model);
  if (!data.ok()) {
    // If the model is invalid, its error is more precise than that of its data.
    const auto graph = import_onnx(model, {});
    const Error& error = graph.ok() ? data.error() : graph.error();
    return {false, false, error.code == ErrorCode::kUnsupported, error.message()};
  }
  const std::function<bool(const lower::Tensor&)> kinds[] = {
      [](const lower::Tensor&) { return false; },
      [](const lower::Tensor& t) {
        return t.dtype == ir::DType::kI64 || t.dtype == ir::DType::kI32 || t.dtype == ir::DType::kBool;
      },
      [](const lower::Tensor&) { return true; },
  };
  std::string first_reason;
  for (const auto& kind : kinds) {
    const auto outputs = run_case(model, *data, kind, optimized);
    if (!outputs.ok()) {
      if (first_reason.empty()) first_reason = outputs.error().message();
      if (outputs.error().code != ErrorCode::kUnsupported) return failed(outputs.error().message());
      if (outputs.error().reason.find("must be constant") == std::string::npos) break;
      continue;
    }
    if (outputs->size() != data->outputs.size()) return failed("wrong number of outputs");
    for (size_t i = 0; i < outputs->size(); ++i) {
      const lower::Tensor& got = (*outputs)[i];
      const lower::Tensor expected = as_declared(data->outputs[i], {"", got.dtype, got.shape, nullptr});
      // The expected bf16 values are truncated instead of rounded.
      const double rtol = got.dtype == ir::DType::kBF16 ? 1.0 / 128 : 1e-3;
      const std::string wrong = testing::difference(got, expected, rtol, 1e-4);
      if (!wrong.empty()) return failed("output " + std::to_string(i) + ": " + wrong);
    }
    return {true, &kind != &kinds[0], false, ""};
  }
  return {false, false, true, first_reason};
}

class OnnxConformance : public ::testing::TestWithParam<Suite> {};

// For experiments with cases of another version of ONNX: TENSORSMITH_ONNX_CASES is a folder with
// data/node.
std::filesystem::path data_folder() {
  const char* other = std::getenv("TENSORSMITH_ONNX_CASES");
  return other != nullptr ? std::filesystem::path(other) : kData;
}

// Each case passes, before and after the graph passes, or the error names the unsupported operator
// or dtype.
TEST_P(OnnxConformance, Cases) {
  const std::filesystem::path suite = data_folder() / GetParam().name;
  if (!std::filesystem::exists(suite)) {
    GTEST_SKIP() << suite << " is absent; install libonnx-testdata to run ONNX's own cases";
  }
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(suite)) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  int passed = 0;
  int with_constants = 0;
  std::map<std::string, std::vector<std::string>> unsupported;
  std::vector<std::string> wrong;
  for (const auto& folder : folders) {
    Outcome outcome = check_case(folder, false);
    if (outcome.passed) outcome = check_case(folder, true);
    const std::string name = folder.filename().string();
    if (outcome.passed) {
      ++passed;
      with_constants += outcome.constants ? 1 : 0;
    } else if (outcome.unsupported) {
      std::string reason = outcome.reason;
      if (reason.starts_with(folder.string())) reason = reason.substr(folder.string().size() + 1);
      unsupported[reason].push_back(name);
    } else if (std::find(std::begin(kContradictory), std::end(kContradictory), name) ==
               std::end(kContradictory)) {
      wrong.push_back(name + ": " + outcome.reason);
    }
  }
  for (const auto& [reason, names] : unsupported) {
    std::printf("unsupported: %s (%zu: %s)\n", reason.c_str(), names.size(), names.front().c_str());
  }
  for (const std::string& line : wrong) std::printf("WRONG: %s\n", line.c_str());
  std::printf("%d of %zu ONNX %s cases pass (%d with inputs compiled in), %zu fail\n", passed, folders.size(),
              GetParam().name, with_constants, wrong.size());
  EXPECT_THAT(wrong, ::testing::IsEmpty());
  if (data_folder() != kData) return;
  EXPECT_GE(passed, GetParam().floor);
  EXPECT_GE(static_cast<int>(folders.size()), GetParam().cases);
}

INSTANTIATE_TEST_SUITE_P(All, OnnxConformance,
                         ::testing::Values(Suite{"node", 932, 909}, Suite{"simple", 23, 15},
                                           Suite{"pytorch-converted", 82, 82},
                                           Suite{"pytorch-operator", 35, 35}),
                         [](const auto& suite) {
                           std::string name = suite.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tensorsmith::graph::conformance_test
