#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "engine/device/gpu_device.h"
#include "engine/device/measured_device.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/options.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

struct ListOptions {
  bool json = false;
};

// Returns the commands that accept the device.
std::string uses(const target::Device& device) {
  if (engine::is_local(device)) return "tune, compile, run, predict";
  if (engine::gpu_place(device)) return "tune, compile, run";
  return device.kind() == target::DeviceKind::kCpu ? "compile, predict" : "train, eval";
}

Status list_devices(const ListOptions& options) {
  TS_ASSIGN_OR_RETURN(const target::Device local, target::probe_local());
  const engine::FoundGpus gpus = engine::find_gpus();
  std::vector<target::Device> devices = {local};
  devices.insert(devices.end(), gpus.devices.begin(), gpus.devices.end());
  const auto here = devices.size();
  devices.insert(devices.end(), target::registry().begin(), target::registry().end());
  std::stable_partition(devices.begin() + here, devices.end(),
                        [](const target::Device& d) { return d.kind() == target::DeviceKind::kCpu; });
  if (options.json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const auto& d : devices) {
      out.push_back(parse_json<nlohmann::ordered_json>(target::to_json(d)));
      out.back()["key"] = d.key();
      out.back()["used_by"] = uses(d);
    }
    print_json(out, 2);
    return {};
  }
  Table table({"name", "used by", "cores", "clock", "vector", "peak f32", "memory", "description"});
  for (const auto& d : devices) {
    const bool cpu = d.kind() == target::DeviceKind::kCpu;
    table.add({d.name, uses(d), std::to_string(d.compute_units()),
               d.clock_ghz > 0 ? fmt::format("{:.2f} GHz", d.clock_ghz) : "-",
               cpu ? fmt::format("{} bit", d.cpu().vector_bytes * 8) : "-",
               d.peak_f32_gflops > 0 ? fmt::format("{:.0f} GFLOP/s", d.peak_f32_gflops) : "-",
               d.memory_bandwidth_gbs > 0 ? fmt::format("{:.0f} GB/s", d.memory_bandwidth_gbs) : "-",
               d.description});
  }
  print_lines(table.text());
  write_out(
      "\nlocal is this machine; " + runtime::gpu_names(":N", " and ") +
      " are its GPUs. For the other CPUs Tensorsmith can compile "
      "models and\npredict their latency. The other GPUs are listed for cost models that are trained on "
      "other people's\nmeasurements (`tensorsmith dataset import`).\n");
  for (const std::string& missing : gpus.missing) write_out("Not available here: " + missing + "\n");
  return {};
}

struct ShowOptions {
  std::string name;
  bool probe = false;
};

Status show(const ShowOptions& options) {
  TS_ASSIGN_OR_RETURN(target::Device device, engine::find_device(options.name));
  if (options.probe) {
    if (!engine::is_local(device) && !engine::gpu_place(device)) {
      return Error{ErrorCode::kInvalidArgument, "--probe",
                   "measures this machine and cannot measure " + options.name +
                       "; use it with local, local:isa=..., cuda or opencl"};
    }
    device = engine::with_measurements(std::move(device));
  }
  if (engine::is_local(device)) print_notes(DeviceOptions().notes(device));
  print_json(parse_json<nlohmann::ordered_json>(target::to_json(device)), 2);
  return {};
}

}  // namespace

void add_devices_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("devices", "List the known devices and show their attributes");
  command->require_subcommand(1);

  auto list_options = std::make_shared<ListOptions>();
  CLI::App* list_command = command->add_subcommand("list", "List this machine and every known device");
  list_command->add_flag("--json", list_options->json,
                         "Print all attributes as JSON, with the key that stands for the device in records");
  list_command->callback(
      [list_options, &exit_code] { exit_code = run_command([&] { return list_devices(*list_options); }); });

  auto show_options = std::make_shared<ShowOptions>();
  CLI::App* show_command =
      command->add_subcommand("show", "Print all attributes of a device, in the format of device files");
  show_command
      ->add_option("device", show_options->name,
                   "Name of the device or a device file: local, local:isa=avx2, cuda, opencl:1, v100, "
                   "my_board.json, ...")
      ->required();
  show_command->add_flag("--probe", show_options->probe,
                         "Also measure the attributes that the system does not report: memory bandwidth, and "
                         "for GPUs the launch overhead");
  show_command->callback(
      [show_options, &exit_code] { exit_code = run_command([&] { return show(*show_options); }); });
}

}  // namespace tensorsmith::tools
