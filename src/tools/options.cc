#include "tools/options.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "base/processors.h"
#include "engine/device/gpu_device.h"
#include "engine/device/measured_device.h"
#include "graph/zoo/zoo.h"
#include "lab/kinds/kinds.h"
#include "record/database.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/numbers.h"
#include "tools/shape_advice.h"
#include "tools/tensor_input.h"

namespace tensorsmith::tools {

Result<std::pair<std::string, std::vector<int64_t>>> parse_shape_option(const std::string& text) {
  const Error bad{ErrorCode::kInvalidArgument, "--shape " + text,
                  "write it as NAME=1x3x48x320, or NAME=scalar"};
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) return bad;
  std::vector<int64_t> dims;
  if (text.substr(equals + 1) == "scalar") return std::pair{text.substr(0, equals), std::move(dims)};
  if (equals + 1 == text.size()) return bad;
  size_t begin = equals + 1;
  while (begin < text.size()) {
    size_t end = text.find_first_of("x,", begin);
    if (end == std::string::npos) end = text.size();
    int64_t value = 0;
    const auto [ptr, ec] = std::from_chars(text.data() + begin, text.data() + end, value);
    if (ec != std::errc() || ptr != text.data() + end || value < 0) return bad;
    dims.push_back(value);
    begin = end + 1;
    if (end + 1 == text.size()) return bad;  // trailing separator
  }
  return std::pair{text.substr(0, equals), std::move(dims)};
}

Result<std::pair<std::string, int64_t>> parse_dim_option(const std::string& text) {
  const size_t equals = text.rfind('=');
  int64_t length = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] =
      std::from_chars(text.data() + (equals == std::string::npos ? 0 : equals + 1), end, length);
  if (equals == std::string::npos || equals == 0 || error != std::errc() || stop != end || length < 1)
    return Error{ErrorCode::kInvalidArgument, "--dim " + text, "write it as NAME=8, a positive integer"};
  return std::pair{text.substr(0, equals), length};
}

Status parse_set_option(const std::string& text, graph::ImportOptions& import) {
  const auto bad = [&](std::string reason) {
    return Error{ErrorCode::kInvalidArgument, "--set " + text, std::move(reason)};
  };
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return bad("write it as NAME=16000, NAME=1,3,224, or NAME=@FILE");
  const std::string name = text.substr(0, equals);
  if (import.constant_inputs.contains(name) || import.constant_texts.contains(name))
    return bad("input '" + name + "' is given twice");
  if (text[equals + 1] != '@') {
    import.constant_texts[name] = text.substr(equals + 1);
    return {};
  }
  const std::string file = text.substr(equals + 2);
  for (const char* ending : {".raw", ".bin", ".npz"})
    if (file.ends_with(ending)) return bad("give a .npy file or an ONNX TensorProto, which say their shape");
  TS_ASSIGN_OR_RETURN(import.constant_inputs[name], read_tensor(file, {}));
  return {};
}

learn::ImportFile import_file(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals != std::string::npos && equals > 0 && text.find('/') > equals)
    return {text.substr(0, equals), text.substr(equals + 1)};
  const std::string name = std::filesystem::path(text).filename();
  return {name.substr(0, name.find('.')), text};
}

void ModelOptions::add_to(CLI::App& command) {
  command.add_option("model", path, "ONNX model file, or a network of the zoo (zoo:NAME[:batch=B][:size=S])")
      ->required();
  add_import_options(command);
}

std::vector<CLI::Option*> ModelOptions::add_import_options(CLI::App& command) {
  has_options = true;
  std::vector<CLI::Option*> options = {
      command
          .add_option(
              "--shape", shapes,
              "Shape of an input, NAME=1x3x48x320 or NAME=scalar (repeatable). It replaces the shape in the "
              "model, and is needed where that has unknown dimensions")
          ->allow_extra_args(false)
          ->type_name("NAME=SHAPE"),
      command
          .add_option("--dim", dims,
                      "Length of a symbolic dimension in all inputs that have it, NAME=8 (repeatable)")
          ->allow_extra_args(false)
          ->type_name("NAME=N"),
      command
          .add_option("--absent", absent,
                      "Leave out an optional input, or give an empty sequence as input (repeatable)")
          ->allow_extra_args(false)
          ->type_name("NAME"),
      command
          .add_option("--set", fixed,
                      "Contents of an input, which becomes a constant: numbers, or true and false, "
                      "NAME=16000, NAME=1,3,224 (one number fills an input of any shape), or a .npy file or "
                      "ONNX TensorProto, NAME=@FILE (repeatable)")
          ->allow_extra_args(false)
          ->type_name("NAME=VALUES"),
      command.add_flag("--bounded", bounded,
                       "Pad results whose number of rows depends on the data (NonMaxSuppression, NonZero, "
                       "...) to the largest "
                       "possible number. An added output NAME.count holds the number of valid rows"),
      command.add_flag(
          "--tf32", tf32,
          "Multiply f32 values on tensor cores as TF32, which keeps 10 of the 23 bits of the fraction "
          "(NVIDIA GPUs from sm_80 on)"),
  };
  for (CLI::Option* option : options) option->group(kModelGroup);
  return options;
}

Result<engine::ModelSource> ModelOptions::source() const {
  engine::ModelSource out;
  out.path = path;
  out.import.absent = {absent.begin(), absent.end()};
  out.import.bounded = bounded;
  out.tf32 = tf32;
  out.routines = routines;
  for (const auto& text : shapes) {
    TS_ASSIGN_OR_RETURN(auto entry, parse_shape_option(text));
    if (!out.import.shapes.emplace(entry.first, entry.second).second) {
      return Error{ErrorCode::kInvalidArgument, "--shape " + text,
                   "input '" + entry.first + "' is given twice"};
    }
  }
  for (const auto& text : fixed) TS_RETURN_IF_ERROR(parse_set_option(text, out.import));
  for (const auto& text : dims) {
    TS_ASSIGN_OR_RETURN(const auto entry, parse_dim_option(text));
    if (!out.import.dims.emplace(entry).second)
      return Error{ErrorCode::kInvalidArgument, "--dim " + text,
                   "dimension '" + entry.first + "' is given twice"};
  }
  if (has_options)
    out.import.shape_advice = [](std::span<const graph::OpenInput> inputs) {
      return shape_advice(inputs, command_line());
    };
  return out;
}

Result<engine::LoadedModel> ModelOptions::load(const target::Device* device) const {
  TS_ASSIGN_OR_RETURN(const engine::ModelSource from, source());
  TS_ASSIGN_OR_RETURN(engine::LoadedModel model,
                      device == nullptr ? engine::load_model(from) : engine::load_model(from, *device));
  print_notes(model.graph.notes);
  return model;
}

void ProcessesOptions::add_to(CLI::App& command) {
  constexpr int kMostProcesses = 4096;
  auto* ranks = add_whole(command, "--ranks", ranks_, 1, kMostProcesses,
                          "Number of processes that train the model together, each on a share of the data; "
                          "for neural models only");
  add_whole(command, "--rank", rank_, 0, kMostProcesses - 1,
            "Number of this process, from 0 on; process 0 writes the model")
      ->needs(ranks);
  command.add_option("--master", master_, "Address at which the other processes reach process 0, HOST:PORT")
      ->needs(ranks);
}

Result<learn::Processes> ProcessesOptions::get() const {
  learn::Processes out;
  out.count = ranks_;
  out.rank = rank_;
  if (rank_ >= ranks_)
    return Error{ErrorCode::kInvalidArgument, "--rank",
                 "must be less than --ranks, " + std::to_string(ranks_)};
  if (ranks_ == 1) return out;
  const size_t colon = master_.rfind(':');
  const std::string_view port =
      colon == std::string::npos ? std::string_view() : std::string_view(master_).substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  constexpr int kLastPort = 65535;
  if (colon == std::string::npos || colon == 0 || error != std::errc() || end != port.data() + port.size() ||
      out.port < 1 || out.port > kLastPort)
    return Error{ErrorCode::kInvalidArgument, "--master" + (master_.empty() ? "" : " " + master_),
                 "must be HOST:PORT, the address where process 0 waits for the others"};
  out.host = master_.substr(0, colon);
  return out;
}

void DeviceOptions::add_to(CLI::App& command) {
  command
      .add_option("--device", device,
                  "Target device: local, local:isa=avx2, cuda, opencl:1, a device file, ... (see "
                  "`tensorsmith devices list`)")
      ->capture_default_str()
      ->configurable()
      ->type_name("DEVICE");
  add_whole(command, "--threads", threads, 0, 1024, "Number of threads to run on (0 = all cores)")
      ->configurable();
}

void warn_of_threads(int threads) {
  if (threads <= 0) return;
  const int most = processors().at_once;
  if (threads > most)
    warn(fmt::format(
        "{} threads are more than the {} that can run at once on this machine: they take turns, which is "
        "slower; use {} or fewer",
        threads, most, most));
}

Result<target::Device> DeviceOptions::resolve() const {
  TS_ASSIGN_OR_RETURN(target::Device found, engine::find_device(device));
  if (threads > 0 && found.kind() == target::DeviceKind::kGpu)
    return Error{ErrorCode::kInvalidArgument, "--threads", "applies to CPUs only, not to " + found.name};
  found = engine::with_threads(std::move(found), threads);
  if (engine::is_local(found)) warn_of_threads(found.cpu().cores);
  return found;
}

std::vector<std::string> DeviceOptions::notes(const target::Device& found) const {
  const Processors machine = processors();
  const std::string text = shortage(machine);
  const bool by_default = threads == 0 && engine::is_local(found);
  if (text.empty() || found.compute_units() < machine.usable + (by_default ? 0 : 1)) return {};
  return {text};
}

void WorkingThreads::add_to(CLI::App& command, const std::string& help) {
  add_whole(command, "--threads", given_, 1, 1024, help)->default_str("one per core");
}

int WorkingThreads::count() const {
  if (!warned_) warn_of_threads(given_);
  warned_ = true;
  return given_ > 0 ? given_ : processors().usable;
}

namespace {

// Adds the option of a setting; there is an overload for each type of value.
struct AddTuneOption {
  CLI::App& command;
  const engine::TuneOption& option;
  std::string flag = std::string(option.flag);

  CLI::Option* operator()(bool* value) const {
    if (option.default_value() == false) return command.add_flag(flag, *value, option.help);
    return command.add_flag_function(flag, [value](int64_t) { *value = false; }, option.help);
  }
  CLI::Option* operator()(int* value) const {
    return add_whole(command, flag, *value, static_cast<int>(option.least), static_cast<int>(option.most),
                     option.help);
  }
  CLI::Option* operator()(int64_t* value) const {
    return add_whole(command, flag, *value, static_cast<int64_t>(option.least),
                     static_cast<int64_t>(option.most), option.help);
  }
  CLI::Option* operator()(uint64_t* value) const { return add_seed(command, *value, option.help); }
  CLI::Option* operator()(double* value) const {
    if (option.kind == engine::TuneOptionKind::kSeconds)
      return add_seconds(command, flag, *value, option.least, option.most, option.help);
    return add_share(command, flag, *value, option.help);
  }
  CLI::Option* operator()(std::string* value) const {
    auto* added = command.add_option(flag, *value, option.help)->type_name(std::string(option.type));
    return option.kind == engine::TuneOptionKind::kText ? added->capture_default_str() : added;
  }
  CLI::Option* operator()(std::vector<std::string>* value) const {
    return command.add_option(flag, *value, option.help)
        ->allow_extra_args(false)
        ->type_name(std::string(option.type));
  }
};

}  // namespace

CLI::Option* add_tune_option(CLI::App& command, std::string_view name, engine::TuneOptionValue value) {
  const engine::TuneOption& option = engine::tune_option(name);
  CLI::Option* added = std::visit(AddTuneOption{command, option}, value);
  if (option.group == engine::TuneOptionGroup::kSearch) added->group(kSearchGroup);
  if (option.group == engine::TuneOptionGroup::kAdvanced) added->group(kAdvancedGroup);
  return added;
}

void add_tune_options(CLI::App& command, std::initializer_list<std::string_view> names,
                      engine::TuneModelOptions& options) {
  options.cost_model.kinds = &lab::cost_model_kinds();
  for (const std::string_view name : names)
    add_tune_option(command, name, engine::tune_option(name).value(options));
}

void DatabaseOption::add_to(CLI::App& command, const std::string& description) {
  option_ =
      command.add_option("--db", path, description)->capture_default_str()->configurable()->type_name("FILE");
  option_->check([](const std::string& name) { return name.empty() ? "needs the name of a file" : ""; });
}

bool DatabaseOption::is_there() const {
  std::error_code ignored;
  return option_->count() > 0 || record::is_database_address(path) || std::filesystem::exists(path, ignored);
}

void add_force(CLI::App& command, bool& force) {
  command
      .add_flag(
          "--force", force,
          "Replace an existing file with the name of the output, whatever it holds; without this option only "
          "an earlier output of the same kind is replaced (an input is never replaced)")
      ->group(kAdvancedGroup);
}

int report_error(const Error& error) {
  print_error("tensorsmith: error: {}\n", error.message());
  return error.code == ErrorCode::kCancelled ? kExitInterrupted : kExitFailed;
}

std::vector<ModelOptions> models_of_networks(const std::vector<std::string>& networks) {
  std::vector<ModelOptions> models;
  const auto add = [&](std::string path) { models.emplace_back().path = std::move(path); };
  for (const std::string& network : networks) {
    if (network == "zoo") {
      for (const auto& entry : graph::zoo::entries()) add("zoo:" + std::string(entry.name));
    } else if (network.starts_with("zoo:") || network.find_first_of("/.") != std::string::npos) {
      add(network);
    } else {
      add("zoo:" + network);
    }
  }
  return models;
}

}  // namespace tensorsmith::tools
