// `train --tensorboard`: writes the losses of a training for TensorBoard, one run for each
// separately trained part.
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
  // Creates the directory if it is missing. `clock` must outlive the object. Errors: those of
  // EventFile::create.
  static Result<TrainingCurves> create(const std::string& folder, const Clock& clock);

  // Adds one point to each curve of the part's run: an event file in the directory, or in
  // FOLDER/MEMBER if the model's members are trained one after another. finish() reports write
  // errors.
  void add(const learn::TrainingProgress& progress);
  // Returns the first write error.
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
