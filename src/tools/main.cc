// tensorsmith: tunes, compiles and runs neural networks. Everything a person sees is printed from here and
// its commands.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/result.h"
#include "measure/measurer.h"
#include "tools/commands.h"

namespace {

int run(int argc, char** argv) {
  using namespace tensorsmith;
  // Workers are this program started again; they speak a private protocol and take no options.
  if (argc > 1 && std::strcmp(argv[1], "__worker") == 0) return measure::worker_main(argc, argv);

  CLI::App app{
      "Tensorsmith makes neural networks faster on this machine: it searches schedules by measuring "
      "candidates\n"
      "under a learned cost model and compiles the result to a library that runs without the tuner.",
      "tensorsmith"};
  app.set_version_flag("--version", "tensorsmith 0.1.0");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  tensorsmith tune model.onnx -o tuned --seconds 60\n"
      "  tensorsmith bench tuned\n"
      "  tensorsmith run tuned --check test_data_set_0\n"
      "Each command has --help.");
  int exit_code = 0;
  tools::add_tasks_command(app, exit_code);
  tools::add_tune_command(app, exit_code);
  tools::add_compile_command(app, exit_code);
  tools::add_run_command(app, exit_code);
  tools::add_bench_command(app, exit_code);
  tools::add_db_command(app, exit_code);
  tools::add_dataset_command(app, exit_code);
  tools::add_train_command(app, exit_code);
  tools::add_eval_command(app, exit_code);
  tools::add_calibrate_command(app, exit_code);
  tools::add_search_hyperparameters_command(app, exit_code);
  tools::add_devices_command(app, exit_code);
  tools::add_predict_command(app, exit_code);
  tools::add_zoo_command(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version come here too, with exit code 0.
    return app.exit(error) == 0 ? 0 : tools::kExitUsage;
  }
  // Output that could not be written (a full disk behind a redirection) is a failure too.
  if (std::fflush(stdout) != 0 && exit_code == 0) {
    std::fprintf(stderr, "tensorsmith: error: cannot write the output: %s\n", std::strerror(errno));
    exit_code = tools::kExitFailed;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a lost worker or a closed pager is an error value, not a death
  try {
    return run(argc, argv);
  } catch (const tensorsmith::InternalError& error) {
    std::fprintf(stderr, "tensorsmith: bug: %s\nPlease report this with the command line.\n", error.what());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "tensorsmith: error: out of memory\n");
    return tensorsmith::tools::kExitFailed;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tensorsmith: bug: unexpected exception: %s\n", error.what());
  }
  return tensorsmith::tools::kExitBug;
}
