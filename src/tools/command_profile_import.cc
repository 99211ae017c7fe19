// `profile import`: imports counters that Nsight Compute collected on another machine.
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/input_file.h"
#include "record/database.h"
#include "record/ncu_csv.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/options.h"
#include "tools/output_files.h"

namespace tensorsmith::tools {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;

struct ProfileImportCommand {
  std::string database, file, record;
  bool json = false;
};

Result<std::set<std::string>> record_keys(record::Database& database) {
  std::set<std::string> keys;
  TS_RETURN_IF_ERROR(database.for_each([&](const record::Record& record) -> Status {
    keys.insert(record.key());
    return {};
  }));
  return keys;
}

Status import_profiles(const ProfileImportCommand& command) {
  TS_RETURN_IF_ERROR(
      check_outputs({{"DATABASE", command.database, OutputKind::kDatabase}}, {{"FILE", command.file}}));
  TS_ASSIGN_OR_RETURN(const std::string text, read_input(command.file, kMostBytes));
  auto launches = record::parse_ncu_csv(text);
  if (!launches.ok()) return Error{launches.error().code, command.file, launches.error().message()};
  TS_ASSIGN_OR_RETURN(auto database, record::Database::open(command.database));
  TS_ASSIGN_OR_RETURN(const auto keys, record_keys(*database));
  if (!command.record.empty() && keys.count(command.record) == 0)
    return Error{ErrorCode::kNotFound, "--record " + command.record,
                 "is not the key of a record in " + record::shown_database(command.database)};
  std::map<std::string, std::vector<record::NcuLaunch>> by_record;
  int64_t unknown = 0;
  for (record::NcuLaunch& launch : *launches) {
    const std::string key = command.record.empty() ? record::record_in(launch.kernel, keys) : command.record;
    if (key.empty()) {
      ++unknown;
    } else {
      by_record[key].push_back(std::move(launch));
    }
  }
  if (by_record.empty())
    return Error{ErrorCode::kNotFound, command.file,
                 "no kernel's name contains the key of a record; name the record with --record"};
  std::vector<record::Profile> profiles;
  for (const auto& [key, of_record] : by_record)
    profiles.push_back({key, record::kNcuProfiler, record::merge_launches(of_record)});
  TS_RETURN_IF_ERROR(database->add(profiles));
  if (command.json) {
    print_json(
        nlohmann::json{{"profiles", profiles.size()}, {"launches", launches->size()}, {"unknown", unknown}});
  } else {
    print_out(
        "{} profiles imported from {} kernel launches; {} launches skipped because they belong to no "
        "record\n",
        profiles.size(), launches->size() - static_cast<size_t>(unknown), unknown);
  }
  return {};
}

}  // namespace

void add_profile_import_command(CLI::App& profile, int& exit_code) {
  auto o = std::make_shared<ProfileImportCommand>();
  CLI::App* command = profile.add_subcommand(
      "import", "Add counters from a CSV file of Nsight Compute (ncu --csv --page raw) to a record database");
  command->add_option("database", o->database, "Record database")->required();
  command->add_option("file", o->file, "CSV file that `ncu --csv --page raw` printed")->required();
  command->add_option("--record", o->record,
                      "Key of the record to which all launches of the file belong; without it each kernel's "
                      "name must contain the key of its record");
  command->add_flag("--json", o->json, "Print the result as JSON on standard output");
  command->callback([o, &exit_code] { exit_code = run_command([&] { return import_profiles(*o); }); });
}

}  // namespace tensorsmith::tools
