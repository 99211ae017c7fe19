#include <memory>

#include "learn/schemas.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/options.h"

namespace tensorsmith::tools {
namespace {

struct SchemaCommand {
  std::string name;
};

Status schema(const SchemaCommand& command) {
  const auto schemas = learn::feature_schemas();
  std::string names;
  for (const feature::Schema& known : schemas) {
    if (known.name == command.name) {
      print_lines(to_markdown(known));
      return {};
    }
    names += (names.empty() ? "" : ", ") + known.name;
  }
  if (!command.name.empty())
    return Error{ErrorCode::kNotFound, "schema '" + command.name + "'",
                 "is unknown; the known schemas are " + names};
  for (const feature::Schema& known : schemas)
    print_out("{} ({} columns): {}\n", known.name, known.columns.size(), known.rows);
  return {};
}

}  // namespace

void add_dataset_schema_command(CLI::App& dataset, int& exit_code) {
  auto o = std::make_shared<SchemaCommand>();
  CLI::App* command = dataset.add_subcommand(
      "schema", "Print the names, units and meanings of the features that cost models use");
  command->add_option("name", o->name, "Name of the schema; without it, all schemas are listed");
  command->callback([o, &exit_code] { exit_code = run_command([&] { return schema(*o); }); });
}

}  // namespace tensorsmith::tools
