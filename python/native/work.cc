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
#include "bindings.h"
#include "engine/device/gpu_device.h"
#include "engine/device/measured_device.h"
#include "engine/model/compile_model.h"
#include "engine/predict/predict.h"
#include "engine/predict/shipped_file.h"
#include "engine/report/report_json.h"
#include "engine/report/speedup.h"
#include "engine/tune/tune_model.h"
#include "engine/tune/tune_sources.h"
#include "errors.h"
#include "graph/onnx/declared.h"
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

// Options for reading a model.
struct Import {
  Shapes shapes;
  Dims dims;
  std::vector<std::string> absent;
  bool bounded = false, tf32 = false;

  engine::ModelSource source(const std::string& path) const {
    engine::ModelSource source;
    source.path = path;
    source.import.shapes = shapes;
    source.import.dims = dims;
    source.import.shape_advice = shape_advice;
    source.import.absent = {absent.begin(), absent.end()};
    source.import.bounded = bounded;
    source.tf32 = tf32;
    return source;
  }
};

Result<target::Device> device_of(const std::string& name, int threads) {
  TS_ASSIGN_OR_RETURN(target::Device device, engine::find_device(name));
  if (threads > 0 && device.kind == target::DeviceKind::kGpu)
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

struct TuneRequest {
  std::string model, directory, name;
  Import import;
  std::string device, database;
  int threads = 0;
  std::vector<std::string> sources;
  bool warm_start = true;
  std::string language_model, worker;
  engine::TuneModelOptions options;
};

Result<Json> tune(TuneRequest& r, LongCall& call, PythonEvents& events) {
  TS_ASSIGN_OR_RETURN(const target::Device device, device_of(r.device, r.threads));
  if (!engine::is_measurable(device))
    return Error{ErrorCode::kUnsupported, "device " + r.device,
                 "tuning measures on this machine; use local or a variant of it (local:isa=avx2)"};
  TS_RETURN_IF_ERROR(engine::check_output_directory(r.directory));
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  TS_ASSIGN_OR_RETURN(const auto model, engine::load_model(r.import.source(r.model), device));
  TS_ASSIGN_OR_RETURN(const auto database, record::Database::open(r.database));
  TS_ASSIGN_OR_RETURN(engine::TuneSources sources, engine::read_tune_sources(r.sources, r.warm_start));
  r.options.database_path = r.database;
  r.options.warm_start = r.warm_start;
  r.options.sources = std::move(sources.files);
  r.options.source_models = std::move(sources.models);
  TS_ASSIGN_OR_RETURN(r.options.language_model,
                      engine::language_model_for(*r.options.strategy, r.language_model));
  r.options.worker = measure::as_worker(r.worker);
  if (r.options.seconds > 0)
    r.options.seconds = std::max(r.options.seconds - (clock.monotonic_seconds() - start), 1e-3);
  PythonLog log(call);
  TS_ASSIGN_OR_RETURN(const auto tuned,
                      engine::tune_models({{&model, r.directory, r.name}}, device, r.options, *database,
                                          clock, log, events, call.cancelled()));
  Json report = engine::to_json(tuned.front(), r.directory, record::shown_database(r.database));
  report["notes"] = model.graph.notes;
  report["interrupted"] = tuned.front().interrupted;
  return report;
}

struct CompileRequest {
  std::string model, directory, name;
  Import import;
  std::string device, database;  // empty: untuned
  int threads = 0;
  engine::ScheduleOptions schedules;
};

// A flag by which another thread requests the end of a call.
struct Cancel {
  std::atomic<bool> wanted{false};
};

Result<Json> compile(const CompileRequest& r, LongCall& call, const std::atomic<bool>& cancelled) {
  TS_ASSIGN_OR_RETURN(const target::Device device, device_of(r.device, r.threads));
  TS_RETURN_IF_ERROR(engine::check_output_directory(r.directory));
  TS_ASSIGN_OR_RETURN(const auto model, engine::load_model(r.import.source(r.model), device));
  TS_ASSIGN_OR_RETURN(const target::Device local, target::probe_local());
  TS_ASSIGN_OR_RETURN(auto schedules, engine::default_schedules(model.partition, device, r.schedules));
  PythonLog log(call);
  engine::CompileOptions options;
  options.directory = r.directory;
  options.model_name = r.name;
  options.jobs = local.cores;
  options.log = &log;
  options.cancelled = &cancelled;
  size_t found = 0;
  if (!r.database.empty()) {
    TS_ASSIGN_OR_RETURN(
        found, engine::apply_best_records(model.partition, device, r.database, r.schedules, schedules, log));
    options.tuned = found > 0;
  }
  TS_RETURN_IF_ERROR(engine::compile_model(model, device, schedules, options));
  return Json{{"directory", r.directory},
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
      if (value != graph::kNoValue) list.push_back(model.graph.values[static_cast<size_t>(value)].name);
    return list;
  };
  return {{"task", model.partition.tasks[call.task].name},
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

}  // namespace

void bind_work(nb::module_& module) {
  nb::class_<Cancel>(module, "Cancel", "Ends a call from another thread.")
      .def(nb::init<>())
      .def("set", [](Cancel& cancel) { cancel.wanted = true; }, "Asks the call to end.");
  module.def(
      "tune",
      [](std::string model, std::string directory, std::string name, Shapes shapes, Dims dims,
         std::vector<std::string> absent, bool bounded, bool tf32, std::string device, int threads,
         std::string database, double seconds, int64_t trials, double until_gain, std::string strategy,
         int batch, uint64_t seed, bool flush_cache, bool end_to_end, bool winograd, std::string cost_model,
         bool frozen, std::vector<std::string> sources, bool warm_start, std::string language_model,
         std::string worker, const nb::object& progress) {
        TuneRequest r;
        r.model = std::move(model);
        r.directory = std::move(directory);
        r.name = std::move(name);
        r.import = {std::move(shapes), std::move(dims), std::move(absent), bounded, tf32};
        r.device = std::move(device);
        r.database = std::move(database);
        r.threads = threads;
        r.sources = std::move(sources);
        r.warm_start = warm_start;
        r.language_model = std::move(language_model);
        r.worker = std::move(worker);
        r.options.trials = trials;
        r.options.seconds = seconds;
        r.options.until_gain = until_gain;
        if (!strategy.empty()) r.options.strategy = value_or_raise(lab::find_tuning_strategy(strategy));
        r.options.batch = batch;
        r.options.seed = seed;
        r.options.flush_cache = flush_cache;
        r.options.end_to_end = end_to_end;
        r.options.schedules.winograd = winograd;
        if (!cost_model.empty()) r.options.cost_model.model = std::move(cost_model);
        r.options.cost_model.frozen = frozen;
        LongCall call;
        PythonEvents events(call, progress);
        return dump(value_or_raise(call.run([&] { return tune(r, call, events); })));
      },
      nb::arg("model"), nb::arg("directory"), nb::arg("name"), nb::kw_only(), nb::arg("shapes"),
      nb::arg("dims"), nb::arg("absent"), nb::arg("bounded"), nb::arg("tf32"), nb::arg("device"),
      nb::arg("threads"), nb::arg("database"), nb::arg("seconds"), nb::arg("trials"), nb::arg("until_gain"),
      nb::arg("strategy"), nb::arg("batch"), nb::arg("seed"), nb::arg("flush_cache"), nb::arg("end_to_end"),
      nb::arg("winograd"), nb::arg("cost_model"), nb::arg("frozen"), nb::arg("sources"),
      nb::arg("warm_start"), nb::arg("language_model"), nb::arg("worker"), nb::arg("progress").none(),
      "Tunes the model and returns the report as JSON.");
  module.def(
      "compile",
      [](std::string model, std::string directory, std::string name, Shapes shapes, Dims dims,
         std::vector<std::string> absent, bool bounded, bool tf32, std::string device, int threads,
         std::string database, bool winograd, const Cancel* cancel) {
        CompileRequest r{
            std::move(model),  std::move(directory),
            std::move(name),   {std::move(shapes), std::move(dims), std::move(absent), bounded, tf32},
            std::move(device), std::move(database),
            threads,           {.winograd = winograd}};
        LongCall call;
        const std::atomic<bool>& cancelled = cancel != nullptr ? cancel->wanted : call.cancelled();
        return dump(value_or_raise(call.run([&] { return compile(r, call, cancelled); })));
      },
      nb::arg("model"), nb::arg("directory"), nb::arg("name"), nb::kw_only(), nb::arg("shapes"),
      nb::arg("dims"), nb::arg("absent"), nb::arg("bounded"), nb::arg("tf32"), nb::arg("device"),
      nb::arg("threads"), nb::arg("database"), nb::arg("winograd"), nb::arg("cancel").none(),
      "Compiles the model and returns a description of the result as JSON.");
  module.def(
      "predict",
      [](const std::string& model, Shapes shapes, Dims dims, std::vector<std::string> absent, bool bounded,
         bool tf32, std::string device, int threads, std::string latency_model, bool roofline,
         std::string database, bool untuned, bool winograd) {
        const Import import{std::move(shapes), std::move(dims), std::move(absent), bounded, tf32};
        engine::PredictOptions options;
        options.cpu_model = engine::shipped_file(engine::kCostModelFile);
        options.latency_model = std::move(latency_model);
        options.roofline = roofline;
        options.device = std::move(device);
        options.threads = threads;
        options.database = std::move(database);
        options.untuned = untuned;
        options.schedules.winograd = winograd;
        LongCall call;
        PythonLog log(call);
        return dump(engine::to_json(
            value_or_raise(call.run([&] { return engine::predict(import.source(model), options, log); }))));
      },
      nb::arg("model"), nb::kw_only(), nb::arg("shapes"), nb::arg("dims"), nb::arg("absent"),
      nb::arg("bounded"), nb::arg("tf32"), nb::arg("device"), nb::arg("threads"), nb::arg("latency_model"),
      nb::arg("roofline"), nb::arg("database"), nb::arg("untuned"), nb::arg("winograd"),
      "Returns the prediction as JSON.");
  module.def(
      "tasks",
      [](const std::string& model, Shapes shapes, Dims dims, std::vector<std::string> absent, bool bounded,
         bool tf32, const std::string& device) {
        const Import import{std::move(shapes), std::move(dims), std::move(absent), bounded, tf32};
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
      nb::arg("model"), nb::kw_only(), nb::arg("shapes"), nb::arg("dims"), nb::arg("absent"),
      nb::arg("bounded"), nb::arg("tf32"), nb::arg("device"),
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

}  // namespace tensorsmith::python
