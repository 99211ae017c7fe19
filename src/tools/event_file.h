// TensorBoard's event files: records of TensorFlow's TFRecord format, each a protobuf message Event
// (tensorflow/core/util/event.proto, tensorflow/core/lib/io/record_writer.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "engine/tune_model.h"
#include "runtime/file_io.h"

namespace tensorsmith::tools {

// Makes the folder if it is not there. kInvalidArgument: there is something else of the name, or it cannot be made.
Status make_event_folder(const std::string& folder);

class EventFile {
 public:
  // A new file in the folder, which is made if it is not there. clock: of the events; outlives it. kIo; as of
  // make_event_folder().
  static Result<std::unique_ptr<EventFile>> create(const std::string& folder, const Clock& clock);

  // A point of the curve `tag`. What cannot be written is told by finish(): a curve is no reason to end a run.
  void scalar(const std::string& tag, int64_t step, double value);
  // The first error of all that was written.
  Status finish();

 private:
  EventFile(runtime::FileWriter file, const Clock& clock) : file_(std::move(file)), clock_(clock) {}
  void write_event(const std::string& fields);

  runtime::FileWriter file_;
  const Clock& clock_;
  Status status_;
};

// Curves of a search: the model's latency, untuned and best so far, failures, and each task's fastest program, in
// milliseconds by measurement. next: told the same.
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
