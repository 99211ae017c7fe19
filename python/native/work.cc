// Long-running functions: thin wrappers of `engine` that return the JSON text of
// engine/report/report_json.h.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/shipped_file.h"
#include "bindings.h"
#include "cost_model.h"
#include "engine/device/gpu_device.h"
#include "engine/device/measured_device.h"
#include "engine/model/compile_model.h"
#include "engine/predict/predict.h"
#include "engine/report/report_json.h"
#include "engine/report/speedup.h"
#include "engine/tune/tune_model.h"
#include "engine/tune/tune_options.h"
#include "engine/tune/unmeasured.h"
#include "errors.h"
#include "graph/onnx/declared.h"
#include "lab/kinds/kinds.h"
#include "lab/strategies/strategies.h"
#include "long_call.h"
#include "measure/measurer.h"
#include "record/database.h"
#include "shape_advice.h"

namespace tensorsmith::python {

namespace nb = nanobind;

namespace {

using Json = nlohmann::json;
using Shapes = std::map<std::string, std::vector<int64_t>>;
using Dims = std::map<std::string, int64_t>;
using Texts = std::map<std::string, std::string>;

// Options for reading a model.
class Import {
 public:
  Import(Shapes shapes, Dims dims, const std::vector<std::string>& absent, Texts constants, bool bounded,
         bool tf32) {
    source_.import.shapes = std::move(shapes);
    source_.import.dims = std::move(dims);
    source_.import.shape_advice = shape_advice;
    source_.import.absent = {absent.begin(), absent.end()};
    source_.import.constant_texts = std::move(constants);
    source_.import.bounded = bounded;
    source_.tf32 = tf32;
  }
  engine::ModelSource source(const std::string& path) const {
    engine::ModelSource source = source_;
    source.path = path;
    return source;
  }

 private:
  engine::ModelSource source_;
};

Result<target::Device> device_of(const std::string& name, int threads) {
  TS_ASSIGN_OR_RETURN(target::Device device, engine::find_device(name));
  if (threads > 0 && device.kind() == target::DeviceKind::kGpu)
    return Error{ErrorCode::kInvalidArgument, "threads", "applies to CPUs only, not to " + device.name};
  return engine::with_threads(std::move(device), threads);
}

// Names of tasks come from files, so bytes that are not UTF-8 are replaced.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

const char* text(engine::TunePhase phase) {
  switch (phase) {
    case engine::TunePhase::kUntuned:
      return "untuned";
    case engine::TunePhase::kSearch:
      return "search";
    case engine::TunePhase::kCompare:
      return "compare";
    case engine::TunePhase::kWrite:
      return "write";
  }
  return "";
}

// Calls the Python function for each phase and measurement, with JSON text.
class PythonEvents final : public engine::TuneEvents {
 public:
  PythonEvents(LongCall& call, const nb::object& told) : call_(call), told_(told) {}

  void begins(engine::TunePhase phase, const engine::PhasePlan& plan) override {
    phase_ = text(phase);
    tell({{"phase", phase_}, {"planned_seconds", plan.seconds}, {"later_seconds", plan.later_seconds}});
  }
  void progress(const search::TuneProgress& p) override {
    tell({{"phase", phase_},
          {"elapsed_seconds", p.elapsed_seconds},
          {"trials", p.trials},
          {"failures", p.failures},
          {"resumed", p.resumed},
          {"task", p.current_task < p.tasks.size() ? p.tasks[p.current_task].name : ""},
          {"estimate", engine::to_json(engine::estimate_of(p))}});
  }
  void compared(const engine::Speedup& speedup) override {
    tell({{"phase", phase_}, {"end_to_end", engine::to_json(speedup)}});
  }

 private:
  void tell(const Json& event) {
    if (!told_.is_none()) call_.tell([this, event = dump(event)] { told_(event); });
  }

  LongCall& call_;
  const nb::object& told_;  // called and reference-counted by the thread that holds the GIL
  std::string phase_;
};

// Folder that a compiled model is written to, and the model's name.
struct Output {
  std::string directory, name;
};

// Returns the options with these settings (JSON, see engine/tune/tune_options.h) and this database.
engine::TuneModelOptions tune_options_of(const std::string& settings, const std::string& database) {
  engine::TuneModelOptions options;
  check(engine::set_tune_options(Json::parse(settings), options));
  options.where.database = database;
  options.cost_model.kinds = &lab::cost_model_kinds();
  return options;
}

Result<Json> tune(const engine::ModelSource& source, const Output& output, const std::string& device_name,
                  int threads, engine::TuneModelOptions& options, LongCall& call, PythonEvents& events) {
  TS_ASSIGN_OR_RETURN(const target::Device device, device_of(device_name, threads));
  if (!engine::is_measurable(device))
    return Error{ErrorCode::kUnsupported, "device " + device_name,
                 "tuning measures on this machine; use local or a variant of it (local:isa=avx2)"};
  TS_RETURN_IF_ERROR(engine::check_output_directory(output.directory));
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  TS_ASSIGN_OR_RETURN(const auto model, engine::load_model(source, device));
  const std::string& database_path = options.where.database;
  TS_ASSIGN_OR_RETURN(const auto database, record::Database::open(database_path));
  double& seconds = options.search.seconds;
  if (seconds > 0) seconds = std::max(seconds - (clock.monotonic_seconds() - start), 1e-3);
  PythonLog log(call);
  TS_ASSIGN_OR_RETURN(const auto tuned,
                      engine::tune_models({{&model, output.directory, output.name}}, device, options,
                                          *database, clock, log, events, call.cancelled()));
  Json report = engine::to_json(tuned.front(), output.directory, record::shown_database(database_path));
  report["notes"] = model.graph.notes;
  report["interrupted"] = tuned.front().interrupted;
  return report;
}

Result<Json> compile_unmeasured(const engine::ModelSource& source, const Output& output,
                                const std::string& device_name, int threads,
                                const engine::TuneModelOptions& options, LongCall& call) {
  TS_ASSIGN_OR_RETURN(const target::Device device, device_of(device_name, threads));
  TS_RETURN_IF_ERROR(engine::check_output_directory(output.directory));
  TS_ASSIGN_OR_RETURN(const auto model, engine::load_model(source, device));
  PythonLog log(call);
  TS_ASSIGN_OR_RETURN(const auto choices,
                      engine::compile_unmeasured({{&model, output.directory, output.name}}, device, options,
                                                 log, call.cancelled()));
  Json report = engine::to_json(model, output.directory, choices.front());
  report["notes"] = model.graph.notes;
  return report;
}

// A flag by which another thread requests the end of a call.
struct Cancel {
  std::atomic<bool> wanted{false};
};

// Compiles with the best schedules in the database, or with untuned ones if `database` is empty.
Result<Json> compile(const engine::ModelSource& source, const Output& output, const std::string& device_name,
                     int threads, const std::string& database, const engine::ScheduleOptions& allowed,
                     LongCall& call, const std::atomic<bool>& cancelled) {
  TS_ASSIGN_OR_RETURN(const target::Device device, device_of(device_name, threads));
  TS_RETURN_IF_ERROR(engine::check_output_directory(output.directory));
  TS_ASSIGN_OR_RETURN(const auto model, engine::load_model(source, device));
  TS_ASSIGN_OR_RETURN(const target::Device local, target::probe_local());
  PythonLog log(call);
  engine::CompileOptions options;
  options.directory = output.directory;
  options.model_name = output.name;
  options.jobs = local.cpu().cores;
  options.log = &log;
  options.cancelled = &cancelled;
  TS_ASSIGN_OR_RETURN(const size_t found,
                      engine::compile_recorded(model, device, database, allowed, options));
  return Json{{"directory", output.directory},
              {"kernels", model.partition.calls.size()},
              {"tasks", model.partition.tasks.size()},
              {"tuned_tasks", found},
              {"notes", model.graph.notes}};
}

Json task_json(const graph::Task& task) {
  return {{"name", task.name}, {"key", task.key}, {"calls", task.calls}};
}

// Returns the values' names in the graph.
Json call_json(const engine::LoadedModel& model, const graph::Call& call) {
  const auto names = [&](const std::vector<graph::ValueId>& values) {
    Json list = Json::array();
    for (const graph::ValueId value : values)
      if (value != graph::kNoValue) list.push_back(model.graph.values[value].name);
    return list;
  };
  return {{"task", call.task ? model.partition.tasks[*call.task].name : call.name},
          {"inputs", names(call.inputs)},
          {"outputs", names(call.outputs)}};
}

Json declared_json(const std::vector<graph::DeclaredTensor>& tensors) {
  Json out = Json::array();
  for (const auto& tensor : tensors) {
    Json shape;
    if (tensor.shape) {
      shape = Json::array();
      for (const auto& dim : *tensor.shape)
        shape.push_back(dim.length >= 0    ? Json(dim.length)
                        : dim.name.empty() ? Json(nullptr)
                                           : Json(dim.name));
    }
    out.push_back({{"name", tensor.name},
                   {"dtype", tensor.dtype ? Json(ir::to_string(*tensor.dtype)) : Json(nullptr)},
                   {"shape", shape}});
  }
  return out;
}

void bind_tuning(nb::module_& module) {
  module.def(
      "tune_settings", [] { return dump(engine::tune_options_schema()); },
      "Returns the JSON schema of the argument `settings`.");
  module.def(
      "tune",
      [](const std::string& model, const Import& import, const std::string& directory,
         const std::string& name, const std::string& device, int threads, const std::string& database,
         const std::string& strategy, const std::string& settings, const std::string& worker,
         const nb::object& progress, const nb::object& cost_model) {
        engine::TuneModelOptions options = tune_options_of(settings, database);
        PythonCostModel own(cost_model);
        if (!cost_model.is_none()) options.cost_model.make_scorer = own.maker();
        if (!strategy.empty()) options.search.strategy = value_or_raise(lab::find_tuning_strategy(strategy));
        options.where.worker = measure::as_worker(worker);
        LongCall call;
        PythonEvents events(call, progress);
        auto report = call.run([&] {
          return tune(import.source(model), {directory, name}, device, threads, options, call, events);
        });
        own.rethrow();
        return dump(value_or_raise(std::move(report)));
      },
      nb::arg("model"), nb::arg("source"), nb::arg("directory"), nb::arg("name"), nb::kw_only(),
      nb::arg("device"), nb::arg("threads"), nb::arg("database"), nb::arg("strategy"), nb::arg("settings"),
      nb::arg("worker"), nb::arg("progress").none(), nb::arg("cost_model").none() = nb::none(),
      "Tunes the model and returns the report as JSON.");
  module.def(
      "compile_unmeasured",
      [](const std::string& model, const Import& import, const std::string& directory,
         const std::string& name, const std::string& device, int threads, const std::string& database,
         const std::string& settings, const nb::object& cost_model) {
        engine::TuneModelOptions options = tune_options_of(settings, database);
        PythonCostModel own(cost_model);
        if (!cost_model.is_none()) options.cost_model.make_scorer = own.maker();
        LongCall call;
        auto report = call.run([&] {
          return compile_unmeasured(import.source(model), {directory, name}, device, threads, options, call);
        });
        own.rethrow();
        return dump(value_or_raise(std::move(report)));
      },
      nb::arg("model"), nb::arg("source"), nb::arg("directory"), nb::arg("name"), nb::kw_only(),
      nb::arg("device"), nb::arg("threads"), nb::arg("database"), nb::arg("settings"),
      nb::arg("cost_model").none() = nb::none(),
      "Compiles the model without measurements and returns the chosen schedules as JSON.");
}

void bind_compiling(nb::module_& module) {
  nb::class_<Cancel>(module, "Cancel", "Ends a call from another thread.")
      .def(nb::init<>())
      .def("set", [](Cancel& cancel) { cancel.wanted = true; }, "Asks the call to end.");
  module.def(
      "compile",
      [](const std::string& model, const Import& import, const std::string& directory,
         const std::string& name, const std::string& device, int threads, const std::string& database,
         bool winograd, const std::string& objective, const Cancel* cancel) {
        LongCall call;
        const std::atomic<bool>& cancelled = cancel != nullptr ? cancel->wanted : call.cancelled();
        return dump(value_or_raise(call.run([&] {
          return compile(import.source(model), {directory, name}, device, threads, database,
                         {.winograd = winograd, .objective = objective}, call, cancelled);
        })));
      },
      nb::arg("model"), nb::arg("source"), nb::arg("directory"), nb::arg("name"), nb::kw_only(),
      nb::arg("device"), nb::arg("threads"), nb::arg("database"), nb::arg("winograd"),
      nb::arg("objective") = "latency", nb::arg("cancel").none(),
      "Compiles the model and returns a description of the result as JSON.");
}

void bind_predicting(nb::module_& module) {
  module.def(
      "predict",
      [](const std::string& model, const Import& import, const std::string& device, int threads,
         const std::string& latency_model, bool roofline, const std::string& database, bool untuned,
         bool winograd) {
        engine::PredictOptions options;
        options.kinds = &lab::cost_model_kinds();
        options.cpu_model = shipped_file(kCostModelFile);
        options.latency_model = latency_model;
        options.roofline = roofline;
        options.device = device;
        options.threads = threads;
        options.database = database;
        options.untuned = untuned;
        options.schedules.winograd = winograd;
        LongCall call;
        PythonLog log(call);
        return dump(engine::to_json(
            value_or_raise(call.run([&] { return engine::predict(import.source(model), options, log); }))));
      },
      nb::arg("model"), nb::arg("source"), nb::kw_only(), nb::arg("device"), nb::arg("threads"),
      nb::arg("latency_model"), nb::arg("roofline"), nb::arg("database"), nb::arg("untuned"),
      nb::arg("winograd"), "Returns the prediction as JSON.");
}

// Binds the functions that describe models and devices without a run.
void bind_facts(nb::module_& module) {
  module.def(
      "tasks",
      [](const std::string& model, const Import& import, const std::string& device) {
        LongCall call;
        const auto loaded = value_or_raise(call.run([&]() -> Result<engine::LoadedModel> {
          TS_ASSIGN_OR_RETURN(const target::Device found, device_of(device, 0));
          return engine::load_model(import.source(model), found);
        }));
        Json tasks = Json::array(), calls = Json::array();
        for (const auto& task : loaded.partition.tasks) tasks.push_back(task_json(task));
        for (const auto& one : loaded.partition.calls) calls.push_back(call_json(loaded, one));
        return dump({{"tasks", tasks}, {"calls", calls}});
      },
      nb::arg("model"), nb::arg("source"), nb::kw_only(), nb::arg("device"),
      "Returns the tensor programs of the model and their calls in the order of a run as JSON.");
  module.def(
      "declared",
      [](const std::string& path) {
        const auto declared = value_or_raise(graph::onnx_declared(path));
        return dump({{"inputs", declared_json(declared.inputs)},
                     {"outputs", declared_json(declared.outputs)},
                     {"external", declared.external_files}});
      },
      nb::arg("path"),
      "Returns the declared inputs and outputs of the ONNX file and the names of its files of weights as "
      "JSON.");
  module.def(
      "check_import",
      [](const nb::bytes& model) {
        const std::string_view bytes(model.c_str(), model.size());
        check(without_lock([&]() -> Status {
          auto graph = graph::import_onnx_bytes(bytes, {}, "model");
          return graph.ok() ? Status() : Status(graph.error());
        }));
      },
      nb::arg("model"), "Raises the error of importing an ONNX model from these bytes, if there is one.");
  module.def(
      "device",
      [](const std::string& name, int threads) {
        return target::to_json(value_or_raise(device_of(name, threads)));
      },
      nb::arg("name"), nb::arg("threads"), "Returns the device as JSON.");
}

}  // namespace

void bind_work(nb::module_& module) {
  nb::class_<Import>(module, "Import", "Options for reading a model.")
      .def(nb::init<Shapes, Dims, std::vector<std::string>, Texts, bool, bool>(), nb::kw_only(),
           nb::arg("shapes"), nb::arg("dims"), nb::arg("absent"), nb::arg("constants"), nb::arg("bounded"),
           nb::arg("tf32"));
  bind_tuning(module);
  bind_compiling(module);
  bind_predicting(module);
  bind_facts(module);
}

}  // namespace tensorsmith::python
