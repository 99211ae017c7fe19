#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/device/gpu_device.h"
#include "engine/report/report_model.h"
#include "engine/report/report_peers.h"
#include "engine/report/report_records.h"
#include "record/database.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report_page.h"
#include "tools/report_run.h"

namespace tensorsmith::tools {
namespace {

namespace fs = std::filesystem;

struct ReportCommand {
  std::vector<std::string> inputs;  // databases and directories
  std::vector<std::string> beside;  // databases and directories, or one report page
  std::string output, peers, cost_model, title, version;
  std::string gpu;  // GPU that compiled models run on
  int threads = 0;
  uint64_t seed = 0;
  bool no_run = false, json = false, force = false;
};

Status check_command(const ReportCommand& command) {
  std::error_code ignored;
  for (const std::string& input : command.inputs) {
    if (!record::is_database_address(input) && !fs::exists(input, ignored))
      return Error{
          ErrorCode::kNotFound, input,
          "there is no such file or folder; name a record database, or the folder of a compiled model"};
  }
  if (command.output.empty() && !command.json)
    return Error{ErrorCode::kInvalidArgument, "report", "needs -o FILE for the page, or --json"};
  if (command.output.empty()) return {};
  std::vector<InputPath> inputs{{"--peers", command.peers}, {"--cost-model", command.cost_model}};
  for (const std::string& input : command.inputs) inputs.push_back({"INPUT", input});
  for (const std::string& input : command.beside) inputs.push_back({"--beside", input});
  return check_outputs({{"-o", command.output, OutputKind::kReport}}, inputs, command.force);
}

std::string title_of(const std::vector<std::string>& inputs) {
  std::string names;
  for (const std::string& input : inputs) {
    if (record::is_database_address(input)) {
      names += (names.empty() ? "" : ", ") + record::shown_database(input);
      continue;
    }
    const fs::path path = fs::path(input).lexically_normal();
    const fs::path name = path.has_filename() ? path.filename() : path.parent_path().filename();
    names += (names.empty() ? "" : ", ") + name.string();
  }
  return "Tensorsmith: " + names;
}

// Adds the contents of databases and of directories of compiled models.
Status add_inputs(const std::vector<std::string>& inputs, const ReportCommand& command,
                  engine::Report& report) {
  engine::ReportModelOptions model_options;
  model_options.run = !command.no_run;
  model_options.threads = command.threads;
  if (model_options.run) warn_of_threads(command.threads);
  model_options.seed = command.seed;
  if (!command.gpu.empty()) {
    TS_ASSIGN_OR_RETURN(model_options.gpu, engine::parse_gpu_place(command.gpu));
    if (!model_options.gpu)
      return Error{ErrorCode::kInvalidArgument, "--gpu " + command.gpu,
                   "is not a GPU; name " + runtime::gpu_names("[:N]", " or ")};
  }
  std::error_code ignored;
  std::string database;
  for (const std::string& input : inputs) {
    if (fs::is_directory(input, ignored)) continue;
    if (!database.empty())
      return Error{ErrorCode::kInvalidArgument, record::shown_database(input),
                   "cannot be used together with the database " + record::shown_database(database) +
                       "; show it with --beside, or put both in one with `db export` and `db import`"};
    database = input;
    TS_ASSIGN_OR_RETURN(auto records, record::Database::open_read_only(input));
    TS_RETURN_IF_ERROR(engine::add_records(*records, {}, nullptr, report));
    report.settings.emplace_back("database", record::shown_database(input));
  }
  const SystemClock clock;
  for (const std::string& input : inputs) {
    if (!fs::is_directory(input, ignored)) continue;
    TS_ASSIGN_OR_RETURN(auto model, engine::read_report_model(input, model_options, clock));
    engine::connect_records(report, model);
    report.models.push_back(std::move(model));
  }
  return {};
}

// Returns the data of the run that is shown beside the main one.
Result<nlohmann::json> beside(const ReportCommand& command) {
  if (command.beside.size() == 1 && is_report_page(command.beside[0]))
    return read_report_page(command.beside[0]);
  engine::Report report;
  report.title = title_of(command.beside);
  TS_RETURN_IF_ERROR(add_inputs(command.beside, command, report));
  return report_json(report);
}

Status make_report(const ReportCommand& command) {
  TS_RETURN_IF_ERROR(check_command(command));
  engine::Report report;
  report.title = command.title.empty() ? title_of(command.inputs) : command.title;
  report.settings = common_settings(command.version);
  if (!command.peers.empty()) {
    TS_ASSIGN_OR_RETURN(report.peers, engine::read_peers(command.peers));
  }
  TS_RETURN_IF_ERROR(add_inputs(command.inputs, command, report));
  add_importance(report);
  TS_RETURN_IF_ERROR(add_predictions(command.cost_model, report));
  nlohmann::json data = report_json(report);
  if (!command.beside.empty()) {
    TS_ASSIGN_OR_RETURN(data["beside"], beside(command));
  }
  if (!command.output.empty()) TS_RETURN_IF_ERROR(write_report(data, command.output));
  if (command.json) {
    print_json(data, 2);
  } else {
    print_out("report: {}\n", command.output);
  }
  return {};
}

}  // namespace

void add_report_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<ReportCommand>();
  CLI::App* command = app.add_subcommand(
      "report", "Write an HTML page about tuning results: latency, search, kernels, schedules, failures");
  command
      ->add_option("input", o->inputs,
                   "A record database, folders of compiled models, or both; with both, the page shows which "
                   "records the models use")
      ->required();
  command->add_option("-o,--output", o->output, "The page");
  command
      ->add_option(
          "--beside", o->beside,
          "Second run to show beside this one: an earlier report page, or a database and folders of compiled "
          "models (repeat --beside for each of them)")
      ->allow_extra_args(false);
  command->add_option("--peers", o->peers,
                      "Timings of other engines, as `python -m tensorsmith.peers --json` prints them");
  command->add_option("--cost-model", o->cost_model,
                      "Cost model whose predictions are compared with the measurements (default: the one "
                      "that comes with Tensorsmith; none: no predictions)");
  command->add_option("--title", o->title, "Title of the page (default: the names of the inputs)");
  add_whole(*command, "--threads", o->threads, 0, 4096,
            "Number of threads to run the models on (0 = as many as they were compiled for)");
  command->add_option(
      "--gpu", o->gpu,
      "GPU to run on, for models that were compiled for GPUs: " + runtime::gpu_names("[:N]", ", "));
  command->add_flag("--no-run", o->no_run, "Do not run the models; use the times in their manifests");
  add_seed(*command, o->seed, "Seed of the models' random inputs");
  add_force(*command, o->force);
  command->add_flag("--json", o->json, "Print the data of the page as JSON on standard output");
  command->callback([o, &app, &exit_code] {
    o->version = app.version();
    exit_code = run_command([&] { return make_report(*o); });
  });
}

}  // namespace tensorsmith::tools
