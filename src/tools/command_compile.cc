#include <filesystem>

#include "engine/model/c_model.h"
#include "engine/model/compile_model.h"
#include "engine/tune/schedules.h"
#include "record/database.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/log_sink.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

struct CompileCommandOptions {
  ModelOptions model;
  DeviceOptions device;
  engine::ScheduleOptions schedules;
  std::string directory;
  // If not on the command line, the output goes beside the model.
  const CLI::Option* directory_option = nullptr;
  DatabaseOption database;
  bool untuned = false;
  std::string backend;
  std::string emit;
  std::string prefix = "tensorsmith";
};

Status compile(const CompileCommandOptions& options) {
  const bool as_c = options.emit == "c";
  if (as_c) TS_RETURN_IF_ERROR(engine::check_c_prefix(options.prefix));
  TS_ASSIGN_OR_RETURN(const target::Device device, options.device.resolve());
  if (as_c && device.kind() == target::DeviceKind::kGpu)
    return Error{ErrorCode::kInvalidArgument, "--emit c",
                 "C can only be written for CPUs, not for " + device.name};
  const std::string directory = options.directory_option->count() > 0
                                    ? options.directory
                                    : folder_beside(options.model.path, as_c ? "_c" : "_compiled");
  TS_RETURN_IF_ERROR(check_outputs({{"-o", directory, OutputKind::kModelDirectory}},
                                   {{"MODEL", options.model.path},
                                    {"--db", options.untuned ? "" : options.database.path},
                                    {"--device", device_file(options.device.device)}}));
  ModelOptions source = options.model;
  source.routines = !as_c;  // C sources need no library
  TS_ASSIGN_OR_RETURN(const engine::LoadedModel model, source.load(&device));
  engine::CompileOptions compile_options;
  compile_options.directory = directory;
  if (as_c) compile_options.c_prefix = options.prefix;
  if (!options.backend.empty()) {
    TS_ASSIGN_OR_RETURN(compile_options.backend, codegen::find_backend(options.backend));
  }
  compile_options.model_name = std::filesystem::path(options.model.path).filename().string();
  TS_ASSIGN_OR_RETURN(const target::Device local, target::probe_local());
  compile_options.jobs = local.cpu().cores;
  compile_options.cancelled = &catch_interrupts();
  StderrLogSink log(LogLevel::kWarning);
  compile_options.log = &log;
  const bool records = !options.untuned && options.database.is_there();
  if (!options.untuned && !records) {
    print_error(
        "tensorsmith: note: there is no {} here, so the model gets untuned schedules; `tensorsmith tune` "
        "finds faster ones\n",
        record::shown_database(options.database.path));
  }
  TS_ASSIGN_OR_RETURN(const size_t found,
                      engine::compile_recorded(model, device, records ? options.database.path : "",
                                               options.schedules, compile_options));
  print_out("{}: {} kernels, {} of {} tasks with tuned schedules\n", directory, model.partition.calls.size(),
            found, model.partition.tasks.size());
  return {};
}

}  // namespace

void add_compile_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CompileCommandOptions>();
  std::vector<std::string> backends;
  for (const codegen::Backend* backend : codegen::backends()) backends.emplace_back(backend->name());
  CLI::App* command = app.add_subcommand(
      "compile", "Compile a model with the fastest schedules in a database, without measuring");
  options->model.add_to(*command);
  options->directory_option =
      command
          ->add_option(
              "-o,--output", options->directory,
              "Folder of the compiled model (default: beside the model, model.onnx -> model_compiled)")
          ->type_name("FOLDER");
  options->device.add_to(*command);
  options->database.add_to(*command, "Record database to take schedules from");
  command->add_flag("--untuned", options->untuned, "Use the default schedules and no database");
  command
      ->add_option("--emit", options->emit,
                   "Write source code instead of a compiled model. With c: C99, one file for each kernel, "
                   "and a header")
      ->check(CLI::IsMember({"c"}))
      ->group(kAdvancedGroup);
  command
      ->add_option("--prefix", options->prefix,
                   "First part of all names in this source code: the model is PREFIX_model(), declared in "
                   "PREFIX_model.h")
      ->capture_default_str()
      ->type_name("PREFIX")
      ->group(kAdvancedGroup)
      ->needs("--emit");
  command
      ->add_option("--backend", options->backend,
                   "Compiler that makes machine code; c writes C and calls `cc`")
      ->check(CLI::IsMember(backends))
      ->group(kAdvancedGroup)
      ->excludes("--emit");
  add_tune_option(*command, "winograd", &options->schedules.winograd);
  add_tune_option(*command, "objective", &options->schedules.objective)->excludes("--untuned");
  command->callback([options, &exit_code] { exit_code = run_command([&] { return compile(*options); }); });
}

}  // namespace tensorsmith::tools
