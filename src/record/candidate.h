// What a record says about its program beside the trace: where it lies in the task's design space, which
// strategy proposed it, and why it was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorsmith::record {

enum class Reason : uint8_t {
  kUnstated,     // records of other programs, and of databases from before the reason was kept
  kDefault,      // the untuned schedule
  kFallback,     // plain loops, where the untuned schedule cannot be built or run
  kPredicted,    // among the fastest by the scores
  kNeighbour,    // one decision away from one of the fastest programs measured
  kUncertain,    // the best of a structure of which nothing was measured
  kRandom,       // a random point of the design space
  kTransferred,  // a fast program of another task of its kernel class, rescaled
  kEnumerated,   // next of all candidates of a small space
  kSeeded,       // a fast program of the same task on another device, or from a file
  kWritten,      // by a language model
};
std::string_view to_string(Reason reason);  // "default", "random", ...: stored, so never renamed
std::optional<Reason> parse_reason(std::string_view name);

// A point of a task's design space: a sketch by its number and one number a decision. It names the same program
// as long as the space is built the same way, so whoever uses it compares the traces.
struct DesignPoint {
  int sketch = 0;
  std::vector<int64_t> decisions;
  friend bool operator==(const DesignPoint&, const DesignPoint&) = default;
};

struct Candidate {
  Reason reason = Reason::kUnstated;
  std::string strategy;              // by name; empty: none proposed it
  std::optional<DesignPoint> point;  // empty: not known
  std::string note;  // what an earlier version or another program said, where it is none of these
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// "1,16,0,7"; empty for no decisions. The inverse refuses everything else.
std::string print_decisions(const std::vector<int64_t>& decisions);
std::optional<std::vector<int64_t>> parse_decisions(std::string_view text);

// The text that databases of schema 1 and JSON lines of version 1 hold instead: "default", "search:SKETCH/D,D,D",
// or anything. What is not exactly one of the first two stays as the note.
Candidate parse_origin(std::string_view text);

}  // namespace tensorsmith::record
