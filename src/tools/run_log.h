// Searches that were measured, kept in a file: a JSON line each, so that a killed comparison goes on where it was.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/compare_searches.h"

namespace tensorsmith::tools {

// null: infinity.
nlohmann::ordered_json numbers_to_json(const std::vector<double>& values);

// A line is flushed when its search is done; one that a killed run left unfinished is dropped. A search is found again by
// all that decides it; of several lines of one search the last counts.
class RunLog {
 public:
  // path: empty: nothing is kept. options and from outlive it. Errors: kIo, kMismatch for another kind of file.
  static Result<RunLog> open(const std::string& path, const engine::CompareOptions& options,
                             const std::vector<std::string>& from);

  bool find(engine::SearchRun& run) const;
  Status keep(const engine::SearchRun& run) const;

 private:
  using Json = nlohmann::ordered_json;

  RunLog(std::string path, const engine::CompareOptions& options, const std::vector<std::string>& from)
      : path_(std::move(path)), options_(&options), from_(&from) {}
  Json key_of(const engine::SearchRun& run) const;

  std::string path_;
  const engine::CompareOptions* options_;
  const std::vector<std::string>* from_;
  std::map<std::string, Json> lines_;
};

}  // namespace tensorsmith::tools
