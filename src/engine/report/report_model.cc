#include "engine/report/report_model.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/input_file.h"
#include "engine/device/gpu_device.h"
#include "engine/device/measured_device.h"
#include "engine/model/model_timer.h"
#include "engine/report/report_records.h"
#include "runtime/model.h"

namespace tensorsmith::engine {
namespace {

constexpr int kRuns = 15;
constexpr double kMostModelSeconds = 2;  // then fewer runs suffice

// Describes the calls one after another, with the times of the manifest.
ReportModel described(const runtime::ModelDescription& description, const std::string& directory) {
  ReportModel model;
  model.name = description.name;
  model.directory = directory;
  model.device = description.device;
  model.tool_version = description.tool_version;
  model.threads = description.threads;
  model.end_to_end = speedup_of(description);
  model.estimate = estimate_of(description);
  double begin = 0;
  for (const runtime::CallInfo& call : description.calls) {
    ReportKernel& kernel = model.kernels.emplace_back();
    kernel.task = call.task;
    kernel.begin_seconds = begin;
    kernel.seconds = call.measured_seconds;
    kernel.flops = call.flops;
    for (const runtime::BufferRef& buffer : call.buffers) kernel.bytes += buffer.bytes;
    begin += kernel.seconds;
  }
  return model;
}

}  // namespace

Result<ReportModel> read_report_model(const std::string& directory, const ReportModelOptions& options,
                                      const Clock& clock) {
  const std::string manifest = (std::filesystem::path(directory) / "manifest.json").string();
  TS_ASSIGN_OR_RETURN(const std::string text, read_input(manifest, runtime::kMaxManifestBytes));
  auto description = runtime::parse_manifest(text);
  if (!description.ok()) return Error{description.error().code, manifest, description.error().message()};
  ReportModel report = described(*description, directory);
  if (!options.run) {
    report.not_run_because = "running was disabled";
    return report;
  }
  runtime::LoadOptions load;
  load.threads = options.threads > 0 ? options.threads : description->threads;
  load.profile = true;
  load.gpu = options.gpu;
  auto model = runtime::Model::load(directory, load);
  if (!model.ok()) {
    if (model.error().code != ErrorCode::kUnsupported) return model.error();
    report.not_run_because = model.error().message();
    return report;
  }
  TS_ASSIGN_OR_RETURN(const std::vector<ProfiledRun> runs,
                      profile_runs(**model, kRuns, options.seed, clock, kMostModelSeconds));
  std::vector<size_t> order(runs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return runs[a].seconds < runs[b].seconds; });
  // Disturbances only make a run slower, so the lower quartile is typical.
  const ProfiledRun& typical = runs[order[order.size() / 4]];
  double begin = 0;
  for (size_t c = 0; c < report.kernels.size(); ++c) {
    report.kernels[c].begin_seconds = begin;
    report.kernels[c].seconds = typical.calls[c];
    begin += typical.calls[c];
  }
  report.kernels_run_seconds = typical.seconds;
  for (const ProfiledRun& run : runs) report.run_seconds.push_back(run.seconds);
  if (runtime::platform_of(description->arch) != nullptr) return report;
  TS_ASSIGN_OR_RETURN(const target::Device machine, target::probe_local());
  const target::Device ran_on = with_threads(machine, (*model)->num_threads());
  report.ran_on_key = ran_on.key();
  report.roofs = roofs_of(with_measurements(ran_on));
  return report;
}

}  // namespace tensorsmith::engine
