// The energy meter on folders like those of Linux.
#include "measure/energy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tensorsmith::measure::energy_test {
namespace {

namespace fs = std::filesystem;

class Energy : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("energy_test." + std::to_string(::getpid()));
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& zone, const std::string& file, const std::string& text) const {
    fs::create_directories(folder_ / zone);
    // A file of sysfs is rewritten in place.
    std::ofstream(folder_ / zone / file) << text << "\n";
  }
  void add(const std::string& zone, const std::string& name, int64_t microjoules) const {
    write(zone, "name", name);
    write(zone, "energy_uj", std::to_string(microjoules));
    write(zone, "max_energy_range_uj", "1000000");
  }

  fs::path folder_;
};

TEST_F(Energy, IsTheSumOfThePackages) {
  add("intel-rapl:0", "package-0", 400);
  add("intel-rapl:1", "package-1", 999000);
  add("intel-rapl:2", "psys", 5);            // includes the packages
  add("intel-rapl:0:0", "core", 7);          // is part of a package
  add("intel-rapl-mmio:0", "package-0", 9);  // the same package by another way
  auto meter = EnergyMeter::open(folder_.string());
  ASSERT_TRUE(meter.ok()) << meter.error().message();
  EXPECT_EQ(meter->descriptors().size(), 2U);
  EXPECT_EQ(meter->joules(), 0);
  write("intel-rapl:0", "energy_uj", "2400");
  write("intel-rapl:2", "energy_uj", "99999");
  write("intel-rapl:0:0", "energy_uj", "99999");
  EXPECT_DOUBLE_EQ(meter->joules(), 2000e-6);
  // The counter of the second package begins again after a million.
  write("intel-rapl:1", "energy_uj", "500");
  EXPECT_DOUBLE_EQ(meter->joules(), 2000e-6 + 1500e-6);
  EXPECT_DOUBLE_EQ(meter->joules(), 2000e-6 + 1500e-6);
}

TEST_F(Energy, WithoutCountersIsAnError) {
  const auto expect_error = [&](const std::string& folder, const std::string& text) {
    const auto meter = EnergyMeter::open(folder);
    ASSERT_FALSE(meter.ok());
    EXPECT_EQ(meter.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(meter.error().message().find(text), std::string::npos) << meter.error().message();
  };
  expect_error((folder_ / "missing").string(), "shows no energy counters");
  expect_error(folder_.string(), "shows no energy counters");
  add("intel-rapl:0", "package-0", 400);
  fs::remove(folder_ / "intel-rapl:0" / "energy_uj");
  expect_error(folder_.string(), "energy_uj: the energy counter of the processor cannot be read");
}

}  // namespace
}  // namespace tensorsmith::measure::energy_test
