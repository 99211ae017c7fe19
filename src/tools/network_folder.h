// The folder of a comparison of whole networks (`compare --whole`): a file for each finished part, so that an
// interrupted comparison continues, and the records of all measurements.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "lab/compare_networks.h"
#include "record/database.h"

namespace tensorsmith::tools {

// Numbers that are not finite become null.
nlohmann::ordered_json to_json(const lab::NetworkRun& run);

class NetworkFolder {
 public:
  // Creates the folder if it is missing. All parts depend on the settings. Errors: kInvalidArgument for a folder
  // that holds something else; kMismatch for finished parts with other settings; kIo.
  static Result<NetworkFolder> open(const std::string& path, const nlohmann::ordered_json& settings);

  std::string file(const std::string& name) const;
  // Returns the file for the plot of a network's curves.
  std::string curves_file(const std::string& network) const;
  // Fills in the part with this network, method and seed if the folder has it. A damaged file counts as none.
  bool find(lab::NetworkRun& run) const;
  // Stores the part atomically, after its records.
  Status keep(const lab::NetworkRun& run, record::Database& measured) const;

 private:
  explicit NetworkFolder(std::string path) : path_(std::move(path)) {}
  std::string part_file(const lab::NetworkRun& run) const;

  std::string path_;
};

}  // namespace tensorsmith::tools
