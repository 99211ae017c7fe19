// tensorsmith: tunes, compiles and runs neural networks. All user-visible output is printed from
// here and from the commands.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <new>
#include <sstream>
#include <system_error>

#include "base/result.h"
#include "codegen/backend.h"
#include "lab/nsight_compute.h"
#include "measure/measurer.h"
#include "tools/commands.h"
#include "tools/commit.h"
#include "tools/config_file.h"
#include "tools/console.h"
#include "tools/help_text.h"
#include "tools/install_commands.h"
#include "tools/options.h"
#include "tools/suggest.h"

namespace {

int run(int argc, char** argv) {
  using namespace tensorsmith;
  // Workers are child processes of the same program; they speak a private protocol and take no
  // options.
  if (measure::is_worker(argc, argv)) return measure::worker_main(argc, argv);
  if (lab::is_launcher(argc, argv)) return lab::launcher_main(argc, argv);
  CLI::App app{
      "Tensorsmith makes neural networks faster on this machine: it searches schedules by measuring "
      "candidates "
      "under a learned cost model and compiles the result to a library that runs without the tuner.",
      "tensorsmith"};
  app.formatter_fn([](const CLI::App* command, const std::string& words, CLI::AppFormatMode) {
    std::istringstream in(words);
    return tools::help_text(tools::command_tree(*command, {std::istream_iterator<std::string>(in), {}}),
                            tools::output_columns());
  });
  const std::string commit = TENSORSMITH_COMMIT;
  app.set_version_flag("-V,--version", "tensorsmith " TENSORSMITH_VERSION +
                                           (commit.empty() ? "" : " (" + commit + ")") + ", " +
                                           codegen::default_backend().version());
  app.require_subcommand(1);
  // One line, as all errors.
  app.failure_message([](const CLI::App* chosen, const CLI::Error& error) {
    std::string help = "tensorsmith";
    while (!chosen->get_subcommands().empty()) {
      chosen = chosen->get_subcommands().front();
      help += " " + chosen->get_name();
    }
    std::string reason = error.what();
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    return "tensorsmith: error: " + reason + "; see '" + help + " --help'\n";
  });
  tools::prepare_config(app);
  int exit_code = 0;
  tools::add_tune_command(app, exit_code);
  tools::add_bench_command(app, exit_code);
  tools::add_run_command(app, exit_code);
  tools::add_compile_command(app, exit_code);
  tools::add_predict_command(app, exit_code);
  tools::add_report_command(app, exit_code);
  tools::add_tasks_command(app, exit_code);
  tools::add_zoo_command(app, exit_code);
  tools::add_devices_command(app, exit_code);
  tools::add_db_command(app, exit_code);
  tools::add_transfer_command(app, exit_code);
  tools::add_worker_command(app, exit_code);
  tools::add_dataset_command(app, exit_code);
  tools::add_train_command(app, exit_code);
  tools::add_eval_command(app, exit_code);
  tools::add_calibrate_command(app, exit_code);
  tools::add_search_hyperparameters_command(app, exit_code);
  tools::add_profile_command(app, exit_code);
  tools::add_explain_command(app, exit_code);
  tools::add_compare_command(app, exit_code);
  tools::add_lm_command(app, exit_code);
  tools::add_help_command(app, exit_code);
  tools::add_completion_command(app, exit_code);
  tools::add_man_command(app, TENSORSMITH_VERSION, TENSORSMITH_DATE, exit_code);
  tools::add_config_options(app);
  tools::group_commands(app);
  tools::add_examples(app);
  // Called after the command line was parsed and before the command runs.
  app.parse_complete_callback([&] {
    if (const auto status = tools::apply_config(app); !status.ok())
      throw CLI::RuntimeError(tools::report_error(status.error()));
  });
  const auto explain = [&](const CLI::ParseError& error) {
    std::ostringstream out, err;
    const bool asked_for = app.exit(error, out, err) == 0;  // --help, --version
    tools::write_out(out.str());
    tools::write_error(err.str());
    return asked_for ? 0 : tools::kExitUsage;
  };
  if (argc == 1) {
    tools::write_out(app.help());
    return tools::kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    return explain(version);
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();  // reported already
  } catch (const CLI::ParseError& error) {
    // An unknown word also explains other errors, such as a missing argument, so it is reported
    // first. It also takes precedence over --help, as in `tensorsmith nonsense --help`.
    const std::string unknown = tools::unknown_word(app);
    if (unknown.empty()) return explain(error);
    tools::print_error("tensorsmith: error: {}\n", unknown);
    return tools::kExitUsage;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  using tensorsmith::tools::print_error;
  tensorsmith::tools::open_missing_streams();
  // A lost worker or a closed pager must give an error value instead of ending the program.
  std::signal(SIGPIPE, SIG_IGN);
  // SIG_IGN may be inherited from a supervisor and hides the exit status of children.
  std::signal(SIGCHLD, SIG_DFL);
  int exit_code = tensorsmith::tools::kExitBug;
  try {
    exit_code = run(argc, argv);
  } catch (const tensorsmith::InternalError& error) {
    print_error("tensorsmith: bug: {}\nPlease report this with the command line.\n", error.what());
  } catch (const std::bad_alloc&) {
    print_error("tensorsmith: error: out of memory\n");
    exit_code = tensorsmith::tools::kExitFailed;
  } catch (const std::filesystem::filesystem_error& error) {
    print_error("tensorsmith: error: {}: {}\n", error.path1().string(), error.code().message());
    exit_code = tensorsmith::tools::kExitFailed;
  } catch (const std::system_error& error) {
    // Most likely a library could not start a thread.
    print_error("tensorsmith: error: the operating system refused a request: {}{}\n", error.what(),
                error.code() == std::errc::resource_unavailable_try_again
                    ? " (see the limits on processes and memory, ulimit -a)"
                    : "");
    exit_code = tensorsmith::tools::kExitFailed;
  } catch (const std::exception& error) {
    print_error("tensorsmith: bug: unexpected exception: {}\n", error.what());
  }
  return tensorsmith::tools::finish_output(exit_code);
}
