#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/commands.h"
#include "tools/options.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

nlohmann::json to_json(const target::Device& d) {
  return {{"name", d.name},
          {"description", d.description},
          {"kind", d.kind == target::DeviceKind::kCpu ? "cpu" : "gpu"},
          {"arch", d.arch},
          {"cpu", d.cpu},
          {"features", d.features},
          {"cores", d.cores},
          {"clock_ghz", d.clock_ghz},
          {"vector_bytes", d.vector_bytes},
          {"vector_registers", d.vector_registers},
          {"fma_per_cycle", d.fma_per_cycle},
          {"l1_bytes", d.l1_bytes},
          {"l2_bytes", d.l2_bytes},
          {"l3_bytes", d.l3_bytes},
          {"cacheline_bytes", d.cacheline_bytes},
          {"memory_bandwidth_gbs", d.memory_bandwidth_gbs},
          {"memory_gb", d.memory_gb},
          {"peak_f32_gflops", d.peak_f32_gflops},
          {"key", d.key()}};
}

struct DevicesOptions {
  std::string name;
  bool json = false;
};

Status devices(const DevicesOptions& options) {
  std::vector<target::Device> list;
  if (!options.name.empty()) {
    TS_ASSIGN_OR_RETURN(target::Device device, target::find_device(options.name));
    list.push_back(std::move(device));
  } else {
    TS_ASSIGN_OR_RETURN(target::Device local, target::probe_local());
    list.push_back(std::move(local));
    list.insert(list.end(), target::registry().begin(), target::registry().end());
  }
  if (options.json || !options.name.empty()) {
    nlohmann::json out = nlohmann::json::array();
    for (const auto& d : list) out.push_back(to_json(d));
    fmt::print("{}\n", (options.name.empty() ? out : out[0]).dump(2));
    return {};
  }
  Table table({"name", "kind", "cores", "vector", "peak f32", "memory", "description"});
  for (const auto& d : list) {
    table.add({d.name, d.kind == target::DeviceKind::kCpu ? "cpu" : "gpu", std::to_string(d.cores),
               d.kind == target::DeviceKind::kCpu ? fmt::format("{} bit", d.vector_bytes * 8) : "-",
               d.peak_f32_gflops > 0 ? fmt::format("{:.0f} GFLOP/s", d.peak_f32_gflops) : "-",
               d.memory_bandwidth_gbs > 0 ? fmt::format("{:.0f} GB/s", d.memory_bandwidth_gbs) : "-",
               d.description});
  }
  fmt::print("{}", table.text());
  return {};
}

}  // namespace

void add_devices_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DevicesOptions>();
  CLI::App* command =
      app.add_subcommand("devices", "List known devices, or show one with all its attributes");
  command->add_option("name", options->name, "Device to show: local, local:isa=avx2, v100, ...");
  command->add_flag("--json", options->json, "Machine-readable output");
  command->callback([options, &exit_code] { exit_code = run_command([&] { return devices(*options); }); });
}

}  // namespace tensorsmith::tools
