#include "tools/measured_device.h"

#include <algorithm>

namespace tensorsmith::tools {

bool is_local(const target::Device& device) { return device.name == "local"; }

Status register_device(const target::Device& device, record::Database& database) {
  record::DeviceInfo info{device.key(), device};
  TS_ASSIGN_OR_RETURN(const auto known, database.devices());
  if (std::any_of(known.begin(), known.end(), [&](const auto& d) { return d.key == info.key; })) return {};
  if (info.device.memory_bandwidth_gbs == 0)
    info.device.memory_bandwidth_gbs = target::measure_memory_bandwidth(device);
  return database.add_device(info);
}

}  // namespace tensorsmith::tools
