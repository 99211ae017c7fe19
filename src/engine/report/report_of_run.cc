#include "engine/report/report_of_run.h"

#include "engine/device/gpu_device.h"
#include "engine/report/report_model.h"

namespace tensorsmith::engine {

Result<Report> report_of_run(const std::vector<ModelToTune>& models, const std::vector<TunedModel>& tuned,
                             const search::TuneProgress* progress, const target::Device& device,
                             const record::MeasureSettings& settings, record::Database& database,
                             ReportLoops* loops, const Clock& clock) {
  Report report;
  ReportFilter filter{std::set<std::string>(), device.key(), settings};
  for (const ModelToTune& model : models) {
    report.title += (report.title.empty() ? "Tensorsmith: " : ", ") + model.name;
    for (const graph::Task& task : model.model->partition.tasks) filter.tasks->insert(task.key);
  }
  TS_RETURN_IF_ERROR(add_records(database, filter, loops, report));
  for (size_t m = 0; m < models.size(); ++m) {
    ReportModel model;
    if (!tuned.empty()) {
      ReportModelOptions options;
      options.threads = settings.threads;
      options.gpu = gpu_place(device);
      TS_ASSIGN_OR_RETURN(model, read_report_model(models[m].directory, options, clock));
    }
    model.name = models[m].name;
    model.directory = models[m].directory;
    connect_run(report, *models[m].model, tuned.empty() ? nullptr : &tuned[m], progress, model);
    report.models.push_back(std::move(model));
  }
  return report;
}

}  // namespace tensorsmith::engine
