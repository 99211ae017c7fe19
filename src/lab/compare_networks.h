// Compares ways to make whole networks fast: schedules transferred from source models (PACT 2022), schedules
// that a language model wrote, and searches of the same duration or until they match.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/sinks.h"
#include "engine/model/load_model.h"
#include "engine/report/speedup.h"
#include "engine/tune/source_models.h"
#include "engine/tune/warm_start.h"
#include "learn/search_model.h"
#include "record/database.h"
#include "target/target.h"

namespace tensorsmith::lab {

enum class NetworkMethodKind : uint8_t {
  // The fastest of a few random programs of each task: what a search without knowledge has after its first
  // round. The untuned program does not count.
  kRandomStart,
  kTransfer,    // the fastest programs of a source model, adapted
  kWritten,     // programs that a language model wrote
  kSameTime,    // a search that takes as long as another method did
  kUntilMatch,  // a search until its kernels are as fast as those of the methods above, or until the limit
};

struct NetworkMethod {
  std::string name;   // in files and JSON: "transfer-gain"
  std::string title;  // in tables and plots
  NetworkMethodKind kind = NetworkMethodKind::kTransfer;
  engine::SourceRanking ranking = engine::SourceRanking::kGain;  // kTransfer: how the source is chosen
  std::string like = {};  // kSameTime: name of the method whose duration it has
};

// Returns the methods in the order in which they run.
std::vector<NetworkMethod> network_methods(bool language_model);

// One part of a comparison: a network, a method and a seed.
struct NetworkRun {
  std::string network, method;  // NetworkMethod::name
  uint64_t seed = 0;
  std::string source;  // kTransfer: the chosen model
  double seconds = 0;  // of proposing and measuring; compiling and timing the network is not included
  int64_t trials = 0, failures = 0;
  engine::Speedup whole;        // the network untuned and with the method's schedules, run in turn
  double worst_difference = 0;  // largest absolute difference of the two networks' outputs
  // Sums over the kernels of one run of the network, each measured alone.
  double untuned_kernel_seconds = 0, kernel_seconds = 0;
  // The kernels' seconds after so many seconds of the method, one entry for each improvement.
  std::vector<std::pair<double, double>> curve;
  // kUntilMatch: seconds until the search's kernels were as fast as those of a method, by name. A method
  // that was not matched within the limit is missing.
  std::map<std::string, double> matched;
};

struct NetworkComparison {
  std::vector<engine::ModelSource> networks;
  // Each network needs one of another name, since it is not a source of itself.
  std::vector<engine::SourceModel> sources;
  const engine::WarmStart* known = nullptr;  // records of the sources; must outlive the call
  std::vector<NetworkMethod> methods;
  int seeds = 1;
  size_t programs = 8;         // of each task that are transferred or written, and random ones, at most
  std::string language_model;  // file, for kWritten
  std::string cost_model = learn::kShippedModel;  // of the searches
  int batch = 16;                                 // of the searches
  double limit = 600;                             // seconds of kUntilMatch
  std::vector<std::string> worker;                // the command line of measure's worker processes
  int threads = 1;                                // of a search
  // `find` fills in a part that an earlier call made and returns true. `keep` stores a new part with its
  // records.
  std::function<bool(NetworkRun&)> find = {};
  std::function<Status(const NetworkRun&, record::Database&)> keep = {};
  std::function<void(const NetworkRun&, size_t done, size_t all)> progress = {};  // after each part
};

// Returns the errors that do not depend on the networks, before anything is measured: kUnsupported for a device
// that is not of this machine; those of the cost model and the language model.
Status check_network_comparison(const target::Device& device, const NetworkComparison& comparison);

// Returns the parts by network, seed and method; when cancelled, those so far. A network is loaded only if one
// of its parts is missing. Each network with new schedules computes the same outputs as the untuned one, else
// kMismatch. Other errors: those of check_network_comparison, of search::tune and of files.
Result<std::vector<NetworkRun>> compare_networks(const target::Device& device,
                                                 const NetworkComparison& comparison, const Clock& clock,
                                                 LogSink& log, const std::atomic<bool>& cancel);

// Speed-ups of a method on a network over all seeds: geometric mean, least and largest. All 0: there is no run.
struct NetworkScore {
  double mean = 0, low = 0, high = 0;
};
// `reference`: name of a method; empty: the untuned network.
NetworkScore network_score(const std::vector<NetworkRun>& runs, const std::string& network,
                           const std::string& method, const std::string& reference = {});

}  // namespace tensorsmith::lab
