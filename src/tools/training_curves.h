// `train --tensorboard`: the losses of a training as TensorBoard shows them, a run for each part that is trained by itself.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "learn/training.h"
#include "tools/event_file.h"

namespace tensorsmith::tools {

class TrainingCurves {
 public:
  // The folder is made if it is not there. clock: outlives it. Errors: as of EventFile::create.
  static Result<TrainingCurves> create(const std::string& folder, const Clock& clock);

  // One point of each curve of the part's run: an event file in the folder, or in FOLDER/MEMBER where the model's members are
  // trained one after the other. What cannot be written is told by finish().
  void add(const learn::TrainingProgress& progress);
  // The first error of all that was written.
  Status finish();

 private:
  TrainingCurves(std::string folder, const Clock& clock) : folder_(std::move(folder)), clock_(&clock) {}
  EventFile* file_of(const std::string& member);

  std::string folder_;
  const Clock* clock_;
  std::map<std::string, std::unique_ptr<EventFile>> files_;  // by member; null: cannot be written
  Status status_;
};

}  // namespace tensorsmith::tools
