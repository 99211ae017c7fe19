// Expected errors of a model outside its training data: on other devices, with other numbers of
// threads and for other kinds of programs. Errors on the training devices say nothing about these
// cases, so each device is left out in turn and predicted by a smaller model trained on the others.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "learn/training.h"

namespace tensorsmith::learn {

// Returns the devices that the model was trained on. Their attributes come from the card, else from
// the registry of devices, else from the name ("znver4-avx2-1t" is a CPU with one thread).
std::vector<SeenDevice> seen_devices(const ModelCard& card);
SeenDevice seen_device(const target::Device& device);

// Sets Unseen::device and Unseen::threads; only the model itself can tell whether the kind of
// program is unseen. A device is identified by its name and attributes, so an edited file of a
// known device is another device. Nothing is unseen if the card lists no devices.
Unseen unseen_by(const ModelCard& card, const target::Device& device);
// Returns whether the model was trained on any device of this kind, or lists no devices at all.
bool knows_kind(const ModelCard& card, target::DeviceKind kind);
// Returns kMismatch if the model cannot predict programs on this device: it was trained on the
// other kind of device only, and the error of its physical estimate on this kind was not measured.
// file: named in the error.
Status check_knows(const ModelCard& card, const std::string& file, const target::Device& device);

// Adds to predictions what is unseen about their devices, with the errors to expect then. Looks up
// each device once.
class UnseenEffects {
 public:
  explicit UnseenEffects(const ModelCard& card) : card_(card) {}
  // Sets the flags of `unseen` in addition to those that the model has set. If anything is unseen,
  // replaces the interval widths by those of the card's held-out errors, or by 0 (not known) if the
  // card has none. For an unseen kind of program it also shifts the prediction, because the
  // physical estimate that replaces it is off by a common factor.
  void apply(const target::Device& device, Prediction& prediction);

 private:
  struct OfDevice {
    Unseen unseen;
    double spread = 1;
  };
  const ModelCard& card_;
  std::map<const target::Device*, OfDevice> devices_;
};

// Returns a sentence for people if the model was trained on runs with other numbers of threads than
// the device has; else an empty string.
std::string describe_unseen_threads(const ModelCard& card, const Unseen& unseen,
                                    const target::Device& device);
// Returns one sentence for each other property that is unseen and one about the source of the
// interval widths. Empty if nothing is unseen.
std::vector<std::string> describe_unseen(const ModelCard& card, const Unseen& unseen,
                                         const target::Device& device);

// Errors on one device. All devices have equal weights, regardless of their number of records.
struct DeviceErrors {
  std::string device;
  target::DeviceKind kind = target::DeviceKind::kCpu;
  std::vector<double> errors;   // log(measured / predicted)
  std::vector<double> weights;  // one for each error; empty: equal weights
};
// Summarizes the errors. shifted: whether the median of the errors is taken out first, as a common
// factor. spread: factor on log_sigma. The result is unknown (HeldOutError::known) if there are no
// errors.
HeldOutError held_out_error(std::span<const DeviceErrors> devices, bool shifted, double spread,
                            std::string source);

// Returns, for each device that the model has not seen, its errors on the given records, on at most
// `max_programs` programs per task, drawn by `seed`. Programs of kinds that the model does not know
// are left out. own_loops: treats programs compiled elsewhere as if Tensorsmith had compiled them,
// so that their loops are analyzed (feature/program_summary.h).
Result<std::vector<DeviceErrors>> unseen_device_errors(const CostModel& model, const Store& store,
                                                       std::span<const target::Device* const> devices,
                                                       std::span<const int64_t> records, int max_programs,
                                                       uint64_t seed, bool own_loops);

// Leaves out each device of the training part in turn and fills the card's new_device, or new_kind
// if no other device is of its kind. Devices with the same processor name are left out together,
// since variants of one machine predict each other. The errors are then measured again with the
// small, the medium or the large workloads left out as well; this gives the factor by which
// intervals widen for sizes that the training part lacks. train: trains a model on the given
// records. At most kHeldOutRecords programs of a task are used, weighted to represent all records
// of the task in the training part. Does nothing if there are fewer than two machines.
inline constexpr int kHeldOutRecords = 60;
inline constexpr int kHeldOutFolds = 3;
Status hold_out_devices(const TrainingData& data, uint64_t seed,
                        const std::function<Result<std::unique_ptr<CostModel>>(const TrainingData&)>& train,
                        ModelCard& card);

}  // namespace tensorsmith::learn
