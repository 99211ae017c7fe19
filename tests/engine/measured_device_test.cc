#include "engine/device/measured_device.h"

#include <gtest/gtest.h>

namespace tensorsmith::engine::measured_device_test {
namespace {

// A database keeps the figures that were measured when the device was added. A device from before
// the clock was measured has the base clock, with which predictions would be too slow.
TEST(MeasuredDevice, DatabasesOfBeforeLackTheClock) {
  auto database = record::Database::open(":memory:").value();
  target::Device device = target::find_device("local:threads=1").value();
  const std::string key = device.key();
  device.memory_bandwidth_gbs = 12.5;
  ASSERT_TRUE(database->add_device({key, device}).ok());
  const auto described = described_device(target::find_device("local:threads=1").value(), *database);
  ASSERT_TRUE(described.ok()) << described.error().message();
  EXPECT_EQ(described->memory_bandwidth_gbs, 12.5);
  EXPECT_EQ(described->base_clock_ghz, device.clock_ghz);
  EXPECT_GE(described->clock_ghz, device.clock_ghz);
  EXPECT_TRUE(target::check_device(*described).ok());

  // Measured figures are kept.
  auto other = record::Database::open(":memory:").value();
  device.base_clock_ghz = device.clock_ghz;
  device.clock_ghz += 0.7;
  device.peak_f32_gflops *= device.clock_ghz / device.base_clock_ghz;
  ASSERT_TRUE(other->add_device({key, device}).ok());
  EXPECT_EQ(described_device(target::find_device("local:threads=1").value(), *other)->clock_ghz,
            device.clock_ghz);
}

// Devices that are not this machine have the figures of their files.
TEST(MeasuredDevice, NotOfOtherMachines) {
  const target::Device device = target::find_device("xeon-8358").value();
  EXPECT_EQ(target::to_json(with_measurements(device)), target::to_json(device));
}

}  // namespace
}  // namespace tensorsmith::engine::measured_device_test
