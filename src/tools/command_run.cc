#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "graph/evaluate.h"
#include "graph/graph.h"
#include "tools/commands.h"
#include "tools/model_pipeline.h"
#include "tools/options.h"
#include "tools/output_check.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  std::string directory;
  int threads = 0;
  std::vector<std::string> inputs;  // NAME=file.pb
  std::string output;               // directory for output_I.pb
  std::string check;                // test data directory
  std::string reference;            // ONNX model
  std::vector<std::string> shapes;
  Tolerance tolerance;
  uint64_t seed = 0;
  bool json = false;
};

Result<std::vector<lower::Tensor>> read_numbered(const fs::path& directory, const std::string& prefix,
                                                 size_t count) {
  std::vector<lower::Tensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    TS_ASSIGN_OR_RETURN(
        lower::Tensor tensor,
        graph::read_tensor_proto((directory / (prefix + std::to_string(i) + ".pb")).string()));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<std::vector<lower::Tensor>> given_inputs(const runtime::Model& model,
                                                const std::vector<std::string>& options) {
  std::vector<std::optional<lower::Tensor>> found(model.inputs().size());
  for (const auto& text : options) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos) {
      return Error{ErrorCode::kInvalidArgument, "--input " + text, "write it as NAME=tensor.pb"};
    }
    const std::string name = text.substr(0, equals);
    size_t i = 0;
    while (i < model.inputs().size() && model.inputs()[i].name != name) ++i;
    if (i == model.inputs().size()) {
      std::string names;
      for (const auto& info : model.inputs()) names += (names.empty() ? "" : ", ") + info.name;
      return Error{ErrorCode::kNotFound, "--input " + text,
                   "the model has no input '" + name + "'; it has " + names};
    }
    TS_ASSIGN_OR_RETURN(found[i], graph::read_tensor_proto(text.substr(equals + 1)));
  }
  std::vector<lower::Tensor> tensors;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) {
      return Error{ErrorCode::kInvalidArgument, "input '" + model.inputs()[i].name + "'",
                   "is missing; give it with --input " + model.inputs()[i].name + "=tensor.pb"};
    }
    tensors.push_back(std::move(*found[i]));
  }
  return tensors;
}

std::vector<lower::Tensor> random_inputs(const runtime::Model& model, uint64_t seed) {
  Rng rng(seed);
  std::vector<lower::Tensor> tensors;
  for (const auto& info : model.inputs()) {
    tensors.push_back(
        lower::random_tensor(ir::parse_dtype(runtime::to_string(info.dtype)).value(), info.shape, rng, 1));
  }
  return tensors;
}

// Prints one line an output; true when all agree.
bool report_comparison(const runtime::Model& model, const std::vector<lower::Tensor>& got,
                       const std::vector<lower::Tensor>& expected, const Tolerance& tolerance,
                       const std::string& against, bool json) {
  bool all = true;
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < got.size(); ++i) {
    const Comparison c = compare(got[i], expected[i], tolerance);
    all = all && c.ok;
    if (json) {
      list.push_back({{"output", model.outputs()[i].name},
                      {"ok", c.ok},
                      {"elements", c.elements},
                      {"wrong", c.wrong},
                      {"worst_absolute_difference", c.worst_absolute},
                      {"detail", c.detail}});
      continue;
    }
    fmt::print("output '{}': {} of {} elements agree with {}, largest difference {:.3g}{}\n",
               model.outputs()[i].name, c.elements - c.wrong, c.elements, against, c.worst_absolute,
               c.ok ? "" : " - " + c.detail);
  }
  if (json) fmt::print("{}\n", nlohmann::json{{"against", against}, {"ok", all}, {"outputs", list}}.dump(2));
  return all;
}

// The test data sets under a path: itself, or its test_data_set_* folders.
std::vector<fs::path> data_sets(const fs::path& path) {
  std::vector<fs::path> out;
  std::error_code ignored;
  if (fs::exists(path / "input_0.pb", ignored) || fs::exists(path / "output_0.pb", ignored)) return {path};
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    if (entry.path().filename().string().rfind("test_data_set_", 0) == 0) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

Status check_data_sets(runtime::Model& model, const RunOptions& options) {
  const auto sets = data_sets(options.check);
  if (sets.empty()) {
    return Error{ErrorCode::kNotFound, options.check, "no input_0.pb and no test_data_set_* folder in it"};
  }
  bool all = true;
  for (const auto& set : sets) {
    TS_ASSIGN_OR_RETURN(const auto inputs, read_numbered(set, "input_", model.inputs().size()));
    TS_ASSIGN_OR_RETURN(const auto expected, read_numbered(set, "output_", model.outputs().size()));
    TS_ASSIGN_OR_RETURN(const auto got, run_model(model, inputs));
    all = report_comparison(model, got, expected, options.tolerance, set.string(), options.json) && all;
  }
  if (!all)
    return Error{ErrorCode::kMismatch, options.directory,
                 "outputs differ from the expected ones in " + options.check};
  return {};
}

Status check_reference(runtime::Model& model, const RunOptions& options) {
  ModelOptions model_options;
  model_options.path = options.reference;
  model_options.shapes = options.shapes;
  TS_ASSIGN_OR_RETURN(const graph::Graph graph, import_model(model_options));
  const std::vector<lower::Tensor> inputs = random_inputs(model, options.seed);
  TS_ASSIGN_OR_RETURN(const auto expected, graph::evaluate(graph, inputs));
  TS_ASSIGN_OR_RETURN(const auto got, run_model(model, inputs));
  if (got.size() != expected.size()) {
    return Error{ErrorCode::kMismatch, options.reference,
                 "has another number of outputs than " + options.directory};
  }
  if (!report_comparison(model, got, expected, options.tolerance, "the reference interpreter",
                         options.json)) {
    return Error{ErrorCode::kMismatch, options.directory,
                 "outputs differ from those of " + options.reference};
  }
  return {};
}

Status run(const RunOptions& options) {
  runtime::LoadOptions load_options;
  load_options.threads = options.threads;
  TS_ASSIGN_OR_RETURN(auto model, runtime::Model::load(options.directory, load_options));
  if (!options.check.empty()) return check_data_sets(*model, options);
  if (!options.reference.empty()) return check_reference(*model, options);
  TS_ASSIGN_OR_RETURN(const auto inputs, given_inputs(*model, options.inputs));
  TS_ASSIGN_OR_RETURN(const auto outputs, run_model(*model, inputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& info = model->outputs()[i];
    if (!options.output.empty()) {
      std::error_code error;
      fs::create_directories(options.output, error);
      const std::string file = (fs::path(options.output) / ("output_" + std::to_string(i) + ".pb")).string();
      TS_RETURN_IF_ERROR(graph::write_tensor_proto(file, info.name, outputs[i]));
      fmt::print("{}: '{}' {} {}\n", file, info.name, ir::to_string(outputs[i].dtype),
                 fmt::join(info.shape, "x"));
      continue;
    }
    std::string head;
    for (int64_t e = 0; e < std::min<int64_t>(outputs[i].num_elements(), 8); ++e) {
      const ir::Scalar v = outputs[i].at(e);
      head += " " + (ir::is_float(v.dtype) ? fmt::format("{:.6g}", v.f) : fmt::format("{}", v.i));
    }
    fmt::print("'{}' {} {}:{}{}\n", info.name, ir::to_string(outputs[i].dtype), fmt::join(info.shape, "x"),
               head, outputs[i].num_elements() > 8 ? " ..." : "");
  }
  return {};
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Run a compiled model and check its outputs");
  command->add_option("directory", options->directory, "Compiled model")->required();
  command->add_option("--threads", options->threads, "Threads (0 = all cores)")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command
      ->add_option("--input", options->inputs, "Input from a TensorProto file, NAME=tensor.pb (repeatable)")
      ->allow_extra_args(false);
  command->add_option("--output", options->output, "Directory to write output_I.pb to");
  auto* check = command->add_option(
      "--check", options->check,
      "Compare with expected outputs: a test_data_set_N directory or one that holds such");
  auto* reference =
      command->add_option("--reference", options->reference,
                          "Compare with the reference interpreter running this model on random inputs");
  check->excludes(reference);
  command->add_option("--shape", options->shapes, "Shapes for --reference, as the model was compiled with")
      ->allow_extra_args(false);
  command->add_option("--rtol", options->tolerance.rtol, "Relative tolerance")->capture_default_str();
  command->add_option("--atol", options->tolerance.atol, "Absolute tolerance")->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of the random inputs")->capture_default_str();
  command->add_flag("--json", options->json, "Machine-readable output");
  command->callback([options, &exit_code] { exit_code = run_command([&] { return run(*options); }); });
}

}  // namespace tensorsmith::tools
