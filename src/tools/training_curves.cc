#include "tools/training_curves.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace tensorsmith::tools {
namespace {

namespace fs = std::filesystem;

// Makes a device's name valid as a directory name; TensorBoard shows it as the run's name.
std::string folder_name(std::string member) {
  std::replace_if(
      member.begin(), member.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_' && c != '.'; }, '_');
  return member;
}

}  // namespace

Result<TrainingCurves> TrainingCurves::create(const std::string& folder, const Clock& clock) {
  TS_RETURN_IF_ERROR(make_event_folder(folder));
  return TrainingCurves(folder, clock);
}

EventFile* TrainingCurves::file_of(const std::string& member) {
  const auto known = files_.find(member);
  if (known != files_.end()) return known->second.get();
  auto file = EventFile::create(member.empty() ? folder_ : (fs::path(folder_) / folder_name(member)).string(),
                                *clock_);
  if (!file.ok() && status_.ok()) status_ = file.error();
  return (files_[member] = file.ok() ? std::move(*file) : nullptr).get();
}

void TrainingCurves::add(const learn::TrainingProgress& progress) {
  EventFile* file = file_of(progress.member);
  if (file == nullptr) return;
  const int64_t step = progress.member.empty() ? progress.step : progress.member_step;
  file->scalar("loss/train", step, progress.train_loss);
  file->scalar("loss/validation", step, progress.validation_loss);
  if (progress.samples_per_second > 0) file->scalar("samples_per_second", step, progress.samples_per_second);
}

Status TrainingCurves::finish() {
  for (auto& [member, file] : files_) {
    if (file == nullptr) continue;
    const Status done = file->finish();
    if (status_.ok()) status_ = done;
  }
  return std::move(status_);
}

}  // namespace tensorsmith::tools
