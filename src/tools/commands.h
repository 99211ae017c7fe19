// The sub-commands. Each add_* registers options on the application and a callback that stores the exit code.
#pragma once

#include <CLI/CLI.hpp>

namespace tensorsmith::tools {

// Exit codes: 0 success, 1 the request failed (one line on stderr says why), 2 wrong usage, 3 a bug
// in Tensorsmith, 130 interrupted.
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitBug = 3;
inline constexpr int kExitInterrupted = 130;

void add_tasks_command(CLI::App& app, int& exit_code);
void add_tune_command(CLI::App& app, int& exit_code);
void add_transfer_command(CLI::App& app, int& exit_code);
void add_compile_command(CLI::App& app, int& exit_code);
void add_run_command(CLI::App& app, int& exit_code);
void add_bench_command(CLI::App& app, int& exit_code);
void add_db_command(CLI::App& app, int& exit_code);
void add_dataset_command(CLI::App& app, int& exit_code);
void add_dataset_collect_command(CLI::App& dataset, int& exit_code);  // sub-command of `dataset`
void add_dataset_label_command(CLI::App& dataset, int& exit_code);    // sub-command of `dataset`
void add_dataset_next_command(CLI::App& dataset, int& exit_code);     // sub-command of `dataset`
void add_dataset_schema_command(CLI::App& dataset, int& exit_code);   // sub-command of `dataset`
void add_profile_command(CLI::App& app, int& exit_code);
void add_profile_import_command(CLI::App& profile, int& exit_code);    // sub-command of `profile`
void add_profile_transfer_command(CLI::App& profile, int& exit_code);  // sub-command of `profile`
void add_explain_command(CLI::App& app, int& exit_code);
void add_report_command(CLI::App& app, int& exit_code);
void add_train_command(CLI::App& app, int& exit_code);
void add_eval_command(CLI::App& app, int& exit_code);
void add_calibrate_command(CLI::App& app, int& exit_code);
void add_compare_command(CLI::App& app, int& exit_code);
void add_search_hyperparameters_command(CLI::App& app, int& exit_code);
void add_devices_command(CLI::App& app, int& exit_code);
void add_predict_command(CLI::App& app, int& exit_code);
void add_lm_command(CLI::App& app, int& exit_code);
void add_worker_command(CLI::App& app, int& exit_code);
void add_zoo_command(CLI::App& app, int& exit_code);
void add_help_command(CLI::App& app, int& exit_code);
// Sets the heading of each command in the help. Must be called after all commands were added.
void group_commands(CLI::App& app);
// Appends examples to the help of each command. Must be called after all commands were added.
void add_examples(CLI::App& app);

}  // namespace tensorsmith::tools
