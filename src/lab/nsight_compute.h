// Collects hardware counters of recorded programs on an NVIDIA GPU with Nsight Compute (ncu), which
// is started as a child process.
//
// ncu in turn starts this program again, which builds the records' programs, each kernel with its
// record's key in its name, and launches each once on normally distributed data. ncu replays every
// launch once per group of counters.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "record/database.h"
#include "target/target.h"

namespace tensorsmith::lab {

// Returns the path of the profiler: "ncu" in PATH, or where NVIDIA's packages install it. kNotFound
// says what to install.
Result<std::string> find_nsight_compute();

struct NsightComputeRun {
  std::map<std::string, std::map<std::string, double>> counters;  // by record key
  std::vector<std::string> problems;                              // why programs could not be launched
};
// Profiles the records of a database with these keys. `ncu` is the path of the profiler. kIo: it
// does not start; kUnsupported: it ran but returned no counters, with its own reason (the driver
// may restrict counters to administrators).
Result<NsightComputeRun> run_nsight_compute(const std::string& ncu, const std::string& database,
                                            const target::Device& device,
                                            const std::vector<std::string>& record_keys);

// Entry point of the program as ncu starts it, recognized by its arguments. Returns the exit code;
// writes a line to standard error for each program that cannot be launched.
bool is_launcher(int argc, char** argv);
int launcher_main(int argc, char** argv);

}  // namespace tensorsmith::lab
