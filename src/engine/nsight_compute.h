// Counters of recorded programs of an NVIDIA GPU by Nsight Compute (ncu), which is started here.
//
// ncu starts this program again, which builds the records' programs, each kernel with its record's key in its name, and
// launches each once, on normal-distributed data; ncu runs every launch as often as it has groups of counters.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "record/database.h"
#include "target/target.h"

namespace tensorsmith::engine {

// The program that profiles: "ncu" in PATH, or where NVIDIA's packages put it. kNotFound says what to install.
Result<std::string> find_nsight_compute();

struct NsightComputeRun {
  std::map<std::string, std::map<std::string, double>> counters;  // by record
  std::vector<std::string> problems;                              // of programs that could not be launched
};
// Of these records of a database, by key. ncu: its file. kIo: it does not start; kUnsupported: it ran and counted nothing,
// with its own reason (the driver's counters may be for administrators only).
Result<NsightComputeRun> run_nsight_compute(const std::string& ncu, const std::string& database,
                                            const target::Device& device,
                                            const std::vector<std::string>& record_keys);

// What ncu starts: this program with such arguments. The exit code; a line on standard error for each program that cannot
// be launched.
bool is_launcher(int argc, char** argv);
int launcher_main(int argc, char** argv);

}  // namespace tensorsmith::engine
