#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "graph/zoo/zoo.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

namespace zoo = graph::zoo;

Status list(bool json) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  Table table({"network", "input", "parameters", "description"});
  for (const zoo::Entry& entry : zoo::entries()) {
    zoo::Request request;
    request.name = entry.name;
    TS_ASSIGN_OR_RETURN(const int64_t parameters, zoo::parameters(request));
    const bool image = entry.kind == zoo::InputKind::kImage;
    out.push_back({{"name", entry.name},
                   {image ? "size" : "sequence", entry.extent},
                   {"parameters", parameters},
                   {"description", entry.description}});
    table.add({std::string(entry.name),
               image ? fmt::format("{0}x{0}", entry.extent) : fmt::format("{} tokens", entry.extent),
               fmt::format("{:.2f} M", 1e-6 * static_cast<double>(parameters)),
               std::string(entry.description)});
  }
  fmt::print("{}", json ? out.dump(2) + "\n" : table.text());
  return {};
}

struct ExportOptions {
  zoo::Request request;
  std::string output;
};

}  // namespace

void add_zoo_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("zoo", "Well-known networks with seeded random weights");
  command->require_subcommand(1);

  auto json = std::make_shared<bool>(false);
  CLI::App* list_command = command->add_subcommand("list", "The networks, their usual inputs and parameters");
  list_command->add_flag("--json", *json, "Machine-readable output");
  list_command->callback([json, &exit_code] { exit_code = run_command([&] { return list(*json); }); });

  auto options = std::make_shared<ExportOptions>();
  CLI::App* export_command = command->add_subcommand("export", "Write a network as an ONNX model");
  export_command->add_option("network", options->request.name, "Name, see `zoo list`")->required();
  export_command->add_option("--batch", options->request.batch, "Inputs a run")->capture_default_str();
  export_command->add_option("--size", options->request.size, "Image side in pixels (0 = the usual one)")
      ->capture_default_str();
  export_command
      ->add_option("--sequence", options->request.sequence, "Tokens an input (0 = the usual number)")
      ->capture_default_str();
  export_command->add_option("--seed", options->request.seed, "Seed of the weights")->capture_default_str();
  export_command->add_option("-o,--output", options->output, "ONNX file to write")->required();
  export_command->callback([options, &exit_code] {
    exit_code = run_command([&] { return zoo::export_onnx(options->request, options->output); });
  });
}

}  // namespace tensorsmith::tools
