#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "graph/zoo/zoo.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

namespace zoo = graph::zoo;

Status list_networks(bool json) {
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
               fmt::format("{:.2f} M", 1e-6 * parameters), std::string(entry.description)});
  }
  if (json) {
    print_json(out, 2);
  } else {
    print_lines(table.text());
  }
  return {};
}

struct ExportOptions {
  zoo::Request request;
  std::string output;
  bool force = false;
};

Status export_network(const ExportOptions& options) {
  TS_RETURN_IF_ERROR(check_outputs({{"-o", options.output, OutputKind::kOnnxModel}}, {}, options.force));
  TS_RETURN_IF_ERROR(zoo::export_onnx(options.request, options.output));
  std::error_code ignored;
  const auto bytes = static_cast<double>(std::filesystem::file_size(options.output, ignored));
  print_out("{}: {} with random weights, {}\n", options.output, options.request.name, format_bytes(bytes));
  return {};
}

}  // namespace

void add_zoo_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "zoo", "List well-known networks and export them as ONNX models with random weights");
  command->require_subcommand(1);

  auto json = std::make_shared<bool>(false);
  CLI::App* list_command = command->add_subcommand(
      "list", "List the networks with their usual input sizes and numbers of parameters");
  list_command->add_flag("--json", *json, "Print the result as JSON on standard output");
  list_command->callback(
      [json, &exit_code] { exit_code = run_command([&] { return list_networks(*json); }); });

  auto options = std::make_shared<ExportOptions>();
  CLI::App* export_command = command->add_subcommand("export", "Write a network as an ONNX model");
  export_command->add_option("network", options->request.name, "Name of the network (see `zoo list`)")
      ->required();
  add_whole(*export_command, "--batch", options->request.batch, 1, kMaxCount, "Batch size");
  add_whole(*export_command, "--size", options->request.size, 0, kMaxCount,
            "Height and width of the image in pixels (0 = the network's usual size)");
  add_whole(*export_command, "--sequence", options->request.sequence, 0, kMaxCount,
            "Number of tokens per input (0 = the network's usual number)");
  add_seed(*export_command, options->request.seed, "Seed of the random weights");
  export_command->add_option("-o,--output", options->output, "ONNX file to write")->required();
  add_force(*export_command, options->force);
  export_command->callback(
      [options, &exit_code] { exit_code = run_command([&] { return export_network(*options); }); });
}

}  // namespace tensorsmith::tools
