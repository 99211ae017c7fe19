#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/model/load_model.h"
#include "engine/model/output_check.h"
#include "engine/model/reference_inputs.h"
#include "graph/evaluate.h"
#include "graph/graph.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/npy.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report.h"
#include "tools/tensor_input.h"

namespace tensorsmith::tools {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  std::string directory;
  int threads = 0;
  int64_t max_turns = runtime::LoadOptions().max_turns;
  std::string device;               // empty: the first device of the kind that the model was compiled for
  std::vector<std::string> inputs;  // NAME=FILE
  std::string output;               // directory for output_I.npy
  std::string format = "npy";       // format of the output files
  std::string check;                // test data directory
  std::string reference;            // ONNX model
  ModelOptions import;              // import options of --reference
  engine::Tolerance tolerance;
  uint64_t seed = 0;
  bool json = false, force = false;
};

// The values of a test data set, input_0.pb, input_1.pb, ... or output_0.pb, ...
class TestData {
 public:
  // `kind`: "input" or "output".
  static Result<TestData> read(const fs::path& folder, const std::string& kind) {
    TestData data(folder, kind);
    std::error_code ignored;
    for (fs::path file = data.file(0); fs::exists(file, ignored); file = data.file(data.values_.size())) {
      TS_ASSIGN_OR_RETURN(data.values_.emplace_back(), graph::read_test_value(file.string()));
    }
    return data;
  }

  // Returns the tensors of the model's inputs or outputs. Values are found by their names (NAME[0], NAME[1],
  // ... are the tensors of a sequence), or by their numbers if one has no name.
  Result<std::vector<lower::Tensor>> tensors(std::span<const runtime::TensorInfo> wanted) const {
    std::map<std::string, const lower::Tensor*> by_name;
    for (const graph::TestValue& value : values_) {
      for (size_t i = 0; i < value.tensors.size(); ++i) {
        by_name[value.name + "[" + std::to_string(i) + "]"] = &value.tensors[i];
        if (value.tensors.size() == 1) by_name[value.name] = &value.tensors[i];
      }
    }
    const bool named = std::ranges::all_of(
        wanted, [&](const runtime::TensorInfo& info) { return by_name.contains(info.name); });
    std::vector<lower::Tensor> tensors;
    if (named) {
      for (const runtime::TensorInfo& info : wanted) tensors.push_back(*by_name.at(info.name));
      return tensors;
    }
    for (const graph::TestValue& value : values_)
      tensors.insert(tensors.end(), value.tensors.begin(), value.tensors.end());
    if (tensors.size() >= wanted.size()) {
      tensors.resize(wanted.size());
      return tensors;
    }
    return Error{ErrorCode::kNotFound, folder_.string(),
                 "has " + std::to_string(tensors.size()) + " tensors of " + kind_ + "s, but the model has " +
                     std::to_string(wanted.size()) + " " + kind_ + "s"};
  }

 private:
  TestData(fs::path folder, std::string kind) : folder_(std::move(folder)), kind_(std::move(kind)) {}
  fs::path file(size_t i) const { return folder_ / (kind_ + "_" + std::to_string(i) + ".pb"); }

  fs::path folder_;
  std::string kind_;
  std::vector<graph::TestValue> values_;
};

Result<std::vector<lower::Tensor>> given_inputs(const runtime::Model& model,
                                                const std::vector<std::string>& options) {
  std::vector<std::optional<lower::Tensor>> found(model.inputs().size());
  for (const auto& text : options) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos) {
      return Error{ErrorCode::kInvalidArgument, "--input " + text, "write it as NAME=FILE"};
    }
    const std::string name = text.substr(0, equals);
    size_t i = 0;
    while (i < model.inputs().size() && model.inputs()[i].name != name) ++i;
    if (i == model.inputs().size()) {
      std::string names;
      for (const auto& info : model.inputs()) names += (names.empty() ? "" : ", ") + info.name;
      return Error{ErrorCode::kNotFound, "--input " + text,
                   "there is no input '" + name + "'; it has " + names};
    }
    TS_ASSIGN_OR_RETURN(found[i], read_tensor(text.substr(equals + 1), model.inputs()[i]));
  }
  std::vector<lower::Tensor> tensors;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) {
      return Error{ErrorCode::kInvalidArgument, "input '" + model.inputs()[i].name + "'",
                   "is missing; give it with --input " + model.inputs()[i].name + "=FILE"};
    }
    tensors.push_back(std::move(*found[i]));
  }
  return tensors;
}

struct Outputs {
  std::vector<lower::Tensor> got, expected;
};

// Compares each output.
std::vector<engine::Comparison> compare(const runtime::Model& model, const Outputs& outputs,
                                        const engine::Tolerance& tolerance) {
  std::vector<engine::Comparison> comparisons;
  for (size_t i = 0; i < outputs.got.size(); ++i) {
    engine::Tolerance own = tolerance;
    own.step = model.outputs()[i].quantization_step;
    comparisons.push_back(engine::compare(outputs.got[i], outputs.expected[i], own));
  }
  return comparisons;
}

bool agree(const std::vector<engine::Comparison>& comparisons) {
  return std::all_of(comparisons.begin(), comparisons.end(), [](const auto& c) { return c.ok; });
}

// Prints one line per output; returns true if all agree.
bool report_comparison(const runtime::Model& model, const std::vector<engine::Comparison>& comparisons,
                       const std::string& against, bool json) {
  const bool all = agree(comparisons);
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < comparisons.size(); ++i) {
    const engine::Comparison& c = comparisons[i];
    if (json) {
      list.push_back({{"output", model.outputs()[i].name},
                      {"ok", c.ok},
                      {"elements", c.elements},
                      {"wrong", c.wrong},
                      {"one_quantization_step", c.one_step},
                      {"worst_absolute_difference", c.worst_absolute},
                      {"detail", c.detail}});
      continue;
    }
    const std::string steps =
        c.one_step > 0 ? fmt::format(" ({} of them are one quantization step off)", c.one_step) : "";
    print_out("output '{}': {} of {} elements agree with {}{}, largest difference {:.3g}{}\n",
              model.outputs()[i].name, c.elements - c.wrong, c.elements, against, steps, c.worst_absolute,
              c.ok ? "" : " - " + c.detail);
  }
  if (json) print_json(nlohmann::json{{"against", against}, {"ok", all}, {"outputs", list}}, 2);
  return all;
}

// Returns the test data sets under a path: the path itself, or its test_data_set_* directories.
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
  std::error_code ignored;
  if (!fs::exists(options.check, ignored)) {
    return Error{ErrorCode::kNotFound, options.check,
                 "there is no such folder; give --check one with input_0.pb and output_0.pb, or with "
                 "test_data_set_* folders"};
  }
  if (!fs::is_directory(options.check, ignored)) {
    return Error{ErrorCode::kInvalidArgument, options.check,
                 "is a file; give --check the folder that holds input_0.pb and output_0.pb"};
  }
  const auto sets = data_sets(options.check);
  if (sets.empty()) {
    return Error{ErrorCode::kNotFound, options.check, "no input_0.pb and no test_data_set_* folder in it"};
  }
  bool all = true;
  for (const auto& set : sets) {
    TS_ASSIGN_OR_RETURN(const TestData given, TestData::read(set, "input"));
    TS_ASSIGN_OR_RETURN(const TestData expected, TestData::read(set, "output"));
    TS_ASSIGN_OR_RETURN(const auto inputs, given.tensors(model.inputs()));
    Outputs outputs;
    TS_ASSIGN_OR_RETURN(outputs.expected, expected.tensors(model.outputs()));
    TS_ASSIGN_OR_RETURN(outputs.got, engine::run_model(model, inputs));
    all = report_comparison(model, compare(model, outputs, options.tolerance), set.string(), options.json) &&
          all;
  }
  if (!all)
    return Error{ErrorCode::kMismatch, options.directory,
                 "the outputs differ from the expected ones in " + options.check};
  return {};
}

Result<Outputs> run_both(runtime::Model& model, const graph::Graph& graph, const RunOptions& options,
                         engine::Spread spread) {
  const std::vector<lower::Tensor> inputs = engine::reference_inputs(graph, options.seed, spread);
  Outputs out;
  TS_ASSIGN_OR_RETURN(out.expected, graph::evaluate(graph, inputs));
  TS_ASSIGN_OR_RETURN(out.got, engine::run_model(model, inputs));
  if (out.got.size() != out.expected.size()) {
    return Error{ErrorCode::kMismatch, options.reference,
                 "has a different number of outputs than " + options.directory};
  }
  return out;
}

Status check_reference(runtime::Model& model, const RunOptions& options) {
  TS_ASSIGN_OR_RETURN(engine::ModelSource source, options.import.source());
  source.path = options.reference;
  TS_ASSIGN_OR_RETURN(const graph::Graph graph, engine::import_model(source));
  print_notes(graph.notes);
  TS_ASSIGN_OR_RETURN(Outputs outputs, run_both(model, graph, options, engine::Spread::kWide));
  std::vector<engine::Comparison> comparisons = compare(model, outputs, options.tolerance);
  // A comparison of NaN shows little, so a network with such results also runs on inputs of a
  // smaller range.
  if (agree(comparisons) && !engine::mostly_finite(outputs.expected)) {
    TS_ASSIGN_OR_RETURN(outputs, run_both(model, graph, options, engine::Spread::kNarrow));
    comparisons = compare(model, outputs, options.tolerance);
  }
  if (!report_comparison(model, comparisons, "the reference interpreter", options.json)) {
    return Error{ErrorCode::kMismatch, options.directory,
                 "the outputs differ from those of " + options.reference};
  }
  return {};
}

std::string output_file(const RunOptions& options, size_t i) {
  return (fs::path(options.output) / ("output_" + std::to_string(i) + "." + options.format)).string();
}

Status write_output(const RunOptions& options, size_t i, const std::string& name,
                    const lower::Tensor& tensor) {
  const std::string file = output_file(options, i);
  return options.format == "npy" ? write_npy(file, tensor) : graph::write_tensor_proto(file, name, tensor);
}

// Creates the directory for the outputs before the model runs, so that no run is wasted on results
// that cannot be written.
Status prepare_outputs(const RunOptions& options, size_t count) {
  std::vector<InputPath> inputs = {{"DIRECTORY", options.directory}};
  for (const std::string& input : options.inputs)
    inputs.push_back({"--input", input.substr(input.rfind('=') + 1)});
  TS_RETURN_IF_ERROR(check_apart({"--output", options.output, OutputKind::kTensor}, inputs));
  std::error_code error;
  if (fs::exists(options.output, error) && !fs::is_directory(options.output, error))
    return Error{ErrorCode::kInvalidArgument, options.output, "is not a folder; give --output a folder"};
  if (!fs::exists(options.output, error))
    TS_RETURN_IF_ERROR(check_parent({"--output", options.output, OutputKind::kTensor}));
  fs::create_directory(options.output, error);
  if (error) return Error{ErrorCode::kIo, options.output, "cannot be created: " + error.message()};
  std::vector<OutputPath> outputs;
  for (size_t i = 0; i < count; ++i)
    outputs.push_back({"--output", output_file(options, i), OutputKind::kTensor});
  return check_outputs(outputs, inputs, options.force);
}

// Prints one line per output: where it was written, or its first elements.
void print_outputs(const runtime::Model& model, const std::vector<lower::Tensor>& outputs,
                   const RunOptions& options) {
  constexpr int64_t kShown = 8;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const lower::Tensor& tensor = outputs[i];
    const auto& info = model.outputs()[i];
    if (!options.output.empty()) {
      const bool widened = options.format == "npy" && row_of(tensor.dtype).numpy.empty();
      print_out("{}: '{}' {} {}{}\n", output_file(options, i), info.name, ir::to_string(tensor.dtype),
                fmt::join(info.shape, "x"),
                widened
                    ? fmt::format(", written as {}: NumPy has no {}",
                                  ir::to_string(row_of(tensor.dtype).computed), ir::to_string(tensor.dtype))
                    : "");
      continue;
    }
    std::string head;
    for (int64_t e = 0; e < std::min(tensor.num_elements(), kShown); ++e) {
      const ir::Scalar v = tensor.at(e);
      head += " " + (ir::is_float(v.dtype) ? fmt::format("{:.6g}", v.f) : fmt::format("{}", v.i));
    }
    print_out("'{}' {} {}:{}{}\n", info.name, ir::to_string(tensor.dtype), fmt::join(info.shape, "x"), head,
              tensor.num_elements() > kShown ? " ..." : "");
  }
}

// Prints the outputs as JSON, with all elements or the names of the files that contain them.
void print_outputs_json(const runtime::Model& model, const std::vector<lower::Tensor>& outputs,
                        const RunOptions& options) {
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const lower::Tensor& tensor = outputs[i];
    nlohmann::json entry = {
        {"output", model.outputs()[i].name}, {"dtype", ir::to_string(tensor.dtype)}, {"shape", tensor.shape}};
    if (options.output.empty()) {
      nlohmann::json& values = entry["values"] = nlohmann::json::array();
      for (int64_t e = 0; e < tensor.num_elements(); ++e) {
        const ir::Scalar v = tensor.at(e);
        if (ir::is_float(v.dtype)) {
          values.push_back(v.f);  // null if not finite
        } else if (v.dtype == ir::DType::kU64) {
          values.push_back(static_cast<uint64_t>(v.i));
        } else {
          values.push_back(v.i);
        }
      }
    } else {
      entry["file"] = output_file(options, i);
    }
    list.push_back(std::move(entry));
  }
  print_json(nlohmann::json{{"outputs", list}}, -1);
}

Status run(const RunOptions& options) {
  warn_of_threads(options.threads);
  runtime::LoadOptions load_options;
  load_options.threads = options.threads;
  load_options.max_turns = options.max_turns;
  if (!options.device.empty()) {
    TS_ASSIGN_OR_RETURN(load_options.gpu, runtime::require_gpu_place(options.device));
  }
  TS_ASSIGN_OR_RETURN(auto model, runtime::Model::load(options.directory, load_options));
  if (!options.check.empty()) return check_data_sets(*model, options);
  if (!options.reference.empty()) return check_reference(*model, options);
  TS_ASSIGN_OR_RETURN(const auto inputs, given_inputs(*model, options.inputs));
  if (!options.output.empty()) TS_RETURN_IF_ERROR(prepare_outputs(options, model->outputs().size()));
  TS_ASSIGN_OR_RETURN(const auto outputs, engine::run_model(*model, inputs));
  if (!options.output.empty()) {
    for (size_t i = 0; i < outputs.size(); ++i)
      TS_RETURN_IF_ERROR(write_output(options, i, model->outputs()[i].name, outputs[i]));
  }
  options.json ? print_outputs_json(*model, outputs, options) : print_outputs(*model, outputs, options);
  return {};
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      app.add_subcommand("run", "Run a compiled model, and compare its outputs with expected ones");
  command->add_option("directory", options->directory, "Folder of the compiled model")->required();
  add_whole(*command, "--threads", options->threads, 0, 1024, "Number of threads to run on (0 = all cores)")
      ->configurable();
  add_max_turns(*command, options->max_turns);
  command
      ->add_option(
          "--device", options->device,
          "GPU to run on, for a model that was compiled for GPUs: cuda:1, opencl:0 (default: the first one)")
      ->type_name("DEVICE");
  auto* input = command->add_option(
      "--input", options->inputs,
      "File of an input, NAME=FILE (repeatable). Formats: .npy, .npz, .raw or .bin (only the elements, "
      "little-endian, in row-major order); any other file must contain an ONNX TensorProto");
  input->allow_extra_args(false);
  auto* output = command->add_option(
      "--output", options->output,
      "Folder to write the outputs to, as output_0.npy, output_1.npy, ... in the model's order");
  command
      ->add_option("--format", options->format,
                   "Format of the files in --output: npy (NumPy) or pb (ONNX's TensorProto)")
      ->check(CLI::IsMember({"npy", "pb"}))
      ->capture_default_str()
      ->needs(output);
  add_force(*command, options->force);
  auto* check = command->add_option(
      "--check", options->check,
      "Compare the outputs with expected ones from this folder: a test_data_set_N, or a folder of several");
  auto* reference = command->add_option(
      "--reference", options->reference,
      "Compare the outputs on random inputs with those of the reference interpreter, which runs "
      "this ONNX model");
  check->excludes(reference)->excludes(input)->excludes(output);
  reference->excludes(input)->excludes(output);
  // Import options must be the same as when the model was compiled.
  for (CLI::Option* option : options->import.add_import_options(*command)) option->needs(reference);
  // Tolerances for products whose factors have 10 fraction bits.
  constexpr double kTf32Relative = 1e-2, kTf32Absolute = 1e-3;
  constexpr double kMaxTolerance = 1e6;
  auto* relative = add_real(*command, "--rtol", options->tolerance.rtol, 0, kMaxTolerance,
                            "Relative difference of outputs that is allowed");
  auto* absolute = add_real(*command, "--atol", options->tolerance.atol, 0, kMaxTolerance,
                            "Absolute difference of outputs that is allowed");
  add_seed(*command, options->seed, "Seed of the random inputs");
  command->add_flag("--json", options->json, "Print the result as JSON on standard output");
  command->callback([options, relative, absolute, &exit_code] {
    if (options->import.tf32 && relative->empty()) options->tolerance.rtol = kTf32Relative;
    if (options->import.tf32 && absolute->empty()) options->tolerance.atol = kTf32Absolute;
    exit_code = run_command([&] { return run(*options); });
  });
}

}  // namespace tensorsmith::tools
