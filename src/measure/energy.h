// The energy that the processor's packages use, from the counters of Linux (powercap, Intel's and AMD's
// RAPL).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace tensorsmith::measure {

inline constexpr const char* kEnergyFolder = "/sys/class/powercap";

class EnergyMeter {
 public:
  // Opens the counters of all packages; `folder` contains intel-rapl:0, intel-rapl:1, ... kUnsupported
  // if there are none or one may not be read.
  static Result<EnergyMeter> open(const std::string& folder = kEnergyFolder);

  // Returns the joules that all packages together have used since open(), whatever program caused them.
  // Between two calls no counter may overflow twice, which takes minutes. Only reads the open
  // descriptors.
  double joules();
  std::vector<int> descriptors() const;

 private:
  struct Counter {
    FileDescriptor file;
    int64_t range = 0;  // microjoules at which the counter begins again
    int64_t last = 0;
  };

  EnergyMeter() = default;

  std::vector<Counter> counters_;
  double joules_ = 0;
};

}  // namespace tensorsmith::measure
