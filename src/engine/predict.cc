#include "engine/predict.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/gpu_device.h"
#include "engine/measured_device.h"
#include "learn/dataset/import.h"
#include "learn/latency/held_out.h"
#include "record/database.h"

namespace tensorsmith::engine {
namespace {

Result<target::Device> device_of(const PredictOptions& options) {
  TS_ASSIGN_OR_RETURN(target::Device device, engine::find_device(options.device));
  if (device.kind == target::DeviceKind::kCpu && options.threads > device.cores) {
    return Error{
        ErrorCode::kInvalidArgument, "--threads " + std::to_string(options.threads),
        device.name + " has " + std::to_string(device.cores) + (device.cores == 1 ? " core" : " cores")};
  }
  if (device.kind == target::DeviceKind::kGpu) {
    return Error{ErrorCode::kUnsupported, "--device " + options.device,
                 "no cost model has seen our programs for GPUs, so nothing could predict them; name a CPU"};
  }
  return with_threads(std::move(device), options.threads);
}

std::vector<std::string> notes_on(const Prediction& p, const learn::CostModel* model) {
  std::vector<std::string> out = p.model.graph.notes;
  if (!p.assumed.empty())
    out.push_back("assumed of " + p.device.name + ", which does not say it: " + target::to_string(p.assumed));
  if (model != nullptr) {
    target::Device named = p.device;
    named.name = learn::stored_device_name(p.device);
    for (std::string& note : learn::describe_unseen(model->card(), p.latency.unseen, named))
      out.push_back(std::move(note));
  }
  const auto& tasks = p.latency.tasks;
  const auto raised = std::count_if(tasks.begin(), tasks.end(), [](const auto& t) { return t.raised; });
  if (raised > 0)
    out.push_back(
        fmt::format("{} of {} tasks: the model said less than the device's peak and bandwidths allow; "
                    "they take the least time that these allow",
                    raised, tasks.size()));
  return out;
}

}  // namespace

Result<Prediction> predict(const ModelSource& source, const PredictOptions& options, LogSink& log) {
  std::unique_ptr<learn::CostModel> latency_model;
  Prediction out;
  out.predictor = "the uncalibrated roofline, the least time that the device allows";
  if (const std::string& file = options.latency_model; !file.empty()) {
    TS_ASSIGN_OR_RETURN(latency_model, learn::load_cost_model(file));
    if (latency_model->ranks_only()) {
      return Error{ErrorCode::kInvalidArgument, file,
                   "is a model that only ranks the programs of a task; predicting seconds needs another"};
    }
    out.predictor = file + " (" + latency_model->card().kind + ")";
  }
  TS_ASSIGN_OR_RETURN(out.device, device_of(options));
  TS_ASSIGN_OR_RETURN(out.model, load_model(source, out.device));
  const graph::Partition& partition = out.model.partition;
  TS_ASSIGN_OR_RETURN(out.schedules, default_schedules(partition, out.device, options.schedules));
  out.tuned.assign(out.schedules.size(), 0);
  if (!options.database.empty()) {
    if (!options.untuned) {
      TS_ASSIGN_OR_RETURN(
          [[maybe_unused]] const size_t found,
          apply_best_records(partition, out.device, options.database, options.schedules, out.schedules, log));
      for (size_t t = 0; t < out.tuned.size(); ++t) out.tuned[t] = out.schedules[t].measured_seconds > 0;
    }
    TS_ASSIGN_OR_RETURN(auto database, record::Database::open_read_only(options.database));
    TS_ASSIGN_OR_RETURN(out.device, described_device(out.device, *database));
  } else {
    out.device = with_measurements(std::move(out.device));
  }
  TS_ASSIGN_OR_RETURN(out.assumed, target::assumed_attributes(options.device, out.device));
  out.device = target::with_assumed_figures(std::move(out.device));
  if (latency_model)
    TS_RETURN_IF_ERROR(learn::check_knows(latency_model->card(), options.latency_model, out.device));
  if (is_local(out.device)) out.cache_retention = target::measure_cache_retention(out.device);
  TS_ASSIGN_OR_RETURN(out.latency, predict_model(out.model, out.device, out.schedules, latency_model.get(),
                                                 out.cache_retention));
  out.notes = notes_on(out, latency_model.get());
  return out;
}

}  // namespace tensorsmith::engine
