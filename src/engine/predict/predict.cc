#include "engine/predict/predict.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/device/gpu_device.h"
#include "engine/device/measured_device.h"
#include "learn/dataset/import.h"
#include "learn/latency/held_out.h"
#include "record/database.h"

namespace tensorsmith::engine {
namespace {

Result<target::Device> device_of(const PredictOptions& options) {
  TS_ASSIGN_OR_RETURN(target::Device device, engine::find_device(options.device));
  const std::string threads = "--threads " + std::to_string(options.threads);
  if (device.kind() == target::DeviceKind::kGpu) {
    if (options.threads > 0)
      return Error{
          ErrorCode::kInvalidArgument, threads,
          device.name + " is a GPU, where each kernel has its own number of threads; leave this option out"};
    return device;
  }
  if (options.threads > device.cpu().cores) {
    return Error{ErrorCode::kInvalidArgument, threads,
                 device.name + " has " + std::to_string(device.cpu().cores) +
                     (device.cpu().cores == 1 ? " core" : " cores")};
  }
  return with_threads(std::move(device), options.threads);
}

// The errors of a model trained on CPUs are unknown on a GPU.
Status check_knows_device(const learn::ModelCard& card, const std::string& file,
                          const target::Device& device) {
  if (device.kind() == target::DeviceKind::kGpu && !learn::knows_kind(card, device.kind())) {
    return Error{ErrorCode::kMismatch, file,
                 "was trained on CPUs only and cannot predict programs on " + device.name +
                     ", a GPU; name a model that was trained on GPUs, or \"none\" for the roofline, or "
                     "leave --model out for the estimate"};
  }
  return learn::check_knows(card, file, device);
}

// Returns the device under the name that models know it by.
target::Device stored_device(const target::Device& device) {
  target::Device named = device;
  named.name = learn::stored_device_name(device);
  return named;
}

std::vector<std::string> notes_on(const Prediction& p, const learn::CostModel* model) {
  std::vector<std::string> out = p.model.graph.notes;
  if (!p.assumed.empty())
    out.push_back("the description of " + p.device.name +
                  " lacks attributes; assumed values: " + target::to_string(p.assumed));
  if (model != nullptr) {
    for (std::string& note : learn::describe_unseen(model->card(), p.latency.unseen, stored_device(p.device)))
      out.push_back(std::move(note));
  }
  const auto& tasks = p.latency.tasks;
  const auto raised = std::count_if(tasks.begin(), tasks.end(), [](const auto& t) { return t.raised; });
  if (raised > 0)
    out.push_back(
        fmt::format("for {} of {} tasks the {} predicted less time than the device's peak rate and "
                    "bandwidths allow; the least possible time (the roofline) is used for them instead",
                    raised, tasks.size(), p.by_estimate ? "estimate" : "model"));
  if (p.by_estimate)
    out.emplace_back(
        "the prediction is an estimate that was made to rank schedules; no measurement on this device went "
        "into it. The 90 % interval is based on its errors for f32 programs of another compiler (Ansor) on "
        "four other GPUs; on an H100 its errors for Tensorsmith's own programs were not larger");
  return out;
}

}  // namespace

Result<Prediction> predict(const ModelSource& source, const PredictOptions& options, LogSink& log) {
  Prediction out;
  TS_ASSIGN_OR_RETURN(out.device, device_of(options));
  const bool gpu = out.device.kind() == target::DeviceKind::kGpu;
  out.by_estimate = gpu && options.latency_model.empty() && !options.roofline;
  std::string file = options.latency_model;
  if (file.empty() && !gpu) file = options.cpu_model;
  if (options.roofline) file.clear();
  out.predictor = out.by_estimate
                      ? "the estimate of the design space for GPUs"
                      : "the roofline, which is the least time that the device's peak rates allow";
  std::unique_ptr<learn::CostModel> latency_model;
  if (!file.empty()) {
    TS_ASSIGN_OR_RETURN(latency_model, load_latency_model(*options.kinds, file));
    out.predictor = file + " (" + latency_model->card().kind + ")";
    TS_RETURN_IF_ERROR(check_knows_device(latency_model->card(), file, out.device));
  }
  TS_ASSIGN_OR_RETURN(out.model, load_model(source, out.device));
  const graph::Partition& partition = out.model.partition;
  const target::Device named = out.device;  // the device that `compile` uses
  if (!options.database.empty()) {
    TS_ASSIGN_OR_RETURN(auto database, record::Database::open_read_only(options.database));
    TS_ASSIGN_OR_RETURN(out.device, described_device(out.device, *database));
  } else {
    out.device = with_measurements(std::move(out.device));
  }
  TS_ASSIGN_OR_RETURN(out.assumed, target::assumed_attributes(options.device, out.device));
  out.device = target::with_assumed_figures(std::move(out.device));
  // The estimate relies on the measured figures, so its schedules are chosen with them.
  TS_ASSIGN_OR_RETURN(out.schedules,
                      default_schedules(partition, out.by_estimate ? out.device : named, options.schedules));
  if (!options.database.empty() && !options.untuned && !out.by_estimate) {
    TS_ASSIGN_OR_RETURN(
        [[maybe_unused]] const size_t found,
        apply_best_records(partition, named, options.database, options.schedules, out.schedules, log));
  }
  for (const TaskSchedule& schedule : out.schedules) out.tuned.push_back(schedule.measured_seconds > 0);
  if (is_local(out.device)) out.cache_retention = target::measure_cache_retention(out.device);
  TS_ASSIGN_OR_RETURN(out.latency, out.by_estimate ? predict_by_estimate(out.model, out.device, out.schedules)
                                                   : predict_model(out.model, out.device, out.schedules,
                                                                   latency_model.get(), out.cache_retention));
  out.notes = notes_on(out, latency_model.get());
  if (latency_model != nullptr) {
    std::string warning =
        learn::describe_unseen_threads(latency_model->card(), out.latency.unseen, stored_device(out.device));
    if (!warning.empty()) out.warnings.push_back(std::move(warning));
  }
  if (out.by_estimate && !options.database.empty() && !options.untuned)
    out.notes.emplace_back(
        "the estimate can only be computed for untuned schedules; the schedules in --db are not used");
  return out;
}

}  // namespace tensorsmith::engine
