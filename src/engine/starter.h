// Fast programs of many tasks on several devices, shipped with the program, so that a first tuning run does
// not start from nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "record/database.h"
#include "space/design_space.h"

namespace tensorsmith::engine {

class Starter {
 public:
  // Of an export of records (`db export --fastest`), plain or zstd, without those that are faster than their
  // device can be. Errors: a file that cannot be read or
  // holds no records (kCorrupt).
  static Result<Starter> load(const std::string& path);

  // At most count candidates of a task, those of devices with the same vectors and number of cores first,
  // then the fastest. They may have no place in this device's space.
  std::vector<space::Candidate> of(const std::string& task_key, const target::Device& device,
                                   size_t count) const;

 private:
  struct Entry {
    space::Candidate candidate;
    int vector_bytes = 0, cores = 0;
    double seconds = 0;
  };
  std::map<std::string, std::vector<Entry>> entries_;  // by task key
};

}  // namespace tensorsmith::engine
