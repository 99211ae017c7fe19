// TensorBoard's event files: TFRecord files whose records are protobuf messages of type Event
// (tensorflow/core/util/event.proto, tensorflow/core/lib/io/record_writer.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "engine/tune/tune_model.h"
#include "runtime/file_io.h"

namespace tensorsmith::tools {

// Creates the directory if it is missing. kInvalidArgument: the path is not a directory, or it
// cannot be created.
Status make_event_folder(const std::string& folder);

class EventFile {
 public:
  // Creates a new file in the directory, which is created if it is missing. `clock` gives the times
  // of events and must outlive the file. Errors: kIo, and those of make_event_folder().
  static Result<std::unique_ptr<EventFile>> create(const std::string& folder, const Clock& clock);

  // Adds a point of the curve `tag`. finish() reports write errors, because a curve is no reason to
  // abort a run.
  void scalar(const std::string& tag, int64_t step, double value);
  // Returns the first write error.
  Status finish();

 private:
  EventFile(runtime::FileWriter file, const Clock& clock) : file_(std::move(file)), clock_(clock) {}
  void write_event(const std::string& fields);

  runtime::FileWriter file_;
  const Clock& clock_;
  Status status_;
};

// Writes curves of a search in milliseconds by number of measurements: the model's latency, untuned
// and best so far, the failures, and each task's fastest program. Forwards all events to `next`.
class TuneCurves final : public engine::TuneEvents {
 public:
  TuneCurves(EventFile& file, engine::TuneEvents& next) : file_(file), next_(next) {}
  void begins(engine::TunePhase phase, const engine::PhasePlan& plan) override { next_.begins(phase, plan); }
  void progress(const search::TuneProgress& p) override;
  void compared(const engine::Speedup& speedup) override { next_.compared(speedup); }

 private:
  EventFile& file_;
  engine::TuneEvents& next_;
};

}  // namespace tensorsmith::tools
