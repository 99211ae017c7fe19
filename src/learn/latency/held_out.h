// What a model's predictions are worth beyond what it was trained on: on other devices, with other numbers of
// threads, for other kinds of programs. Errors within the training devices say nothing of that, so each
// device is left out in turn and predicted by a smaller model of the others.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "learn/training.h"

namespace tensorsmith::learn {

// The model's devices with what the file or else the registry and the names tell of them
// ("znver4-avx2-1t": a CPU with one thread).
std::vector<SeenDevice> seen_devices(const ModelCard& card);
SeenDevice seen_device(const target::Device& device);

// device and threads; the kind of program is the model's to tell. A device is known by its name and figures:
// an edited file of a known device is another device. A model without devices has nothing to compare with.
Unseen unseen_by(const ModelCard& card, const target::Device& device);
// Whether the model was trained on any device of this kind.
bool knows_kind(const ModelCard& card, target::DeviceKind kind);
// kMismatch for a model that says nothing of programs on such a device: it was trained on the other kind and
// nothing tells how far its physical part is off there. file: named in the error.
Status check_knows(const ModelCard& card, const std::string& file, const target::Device& device);

// What a model has not seen of the devices that it is asked about; looks each device up once.
class UnseenEffects {
 public:
  explicit UnseenEffects(const ModelCard& card) : card_(card) {}
  // Sets `unseen` (keeping what the model has set) and, where there is something unseen, the widths: those of
  // the card's held-out errors, or 0 (not known) where there are none. The error of an unseen kind of program
  // also shifts the prediction, since what stands in is off by a common factor.
  void apply(const target::Device& device, Prediction& prediction);

 private:
  struct OfDevice {
    Unseen unseen;
    double spread = 1;
  };
  const ModelCard& card_;
  std::map<const target::Device*, OfDevice> devices_;
};

// A sentence where the model was trained on runs with other numbers of threads than the device's; else empty.
std::string describe_unseen_threads(const ModelCard& card, const Unseen& unseen,
                                    const target::Device& device);
// One sentence for each other thing that is unseen, and what the widths come from; empty: nothing is unseen.
std::vector<std::string> describe_unseen(const ModelCard& card, const Unseen& unseen,
                                         const target::Device& device);

// Errors of one device. All devices have equal weights, whatever their number of records.
struct DeviceErrors {
  std::string device;
  target::DeviceKind kind = target::DeviceKind::kCpu;
  std::vector<double> errors;   // log(measured / predicted)
  std::vector<double> weights;  // as many, or none: equal
};
// shifted: whether the errors' median is taken off as a common factor. spread: multiplies log_sigma. Of no
// errors: unknown.
HeldOutError held_out_error(std::span<const DeviceErrors> devices, bool shifted, double spread,
                            std::string source);

// Errors of a model on the given records of devices that it has not seen, at most max_programs a task, drawn
// by the seed; programs of kinds that it does not know are left out. By device. own_loops: what others have
// compiled is taken for programs of our own, whose loops are looked at (feature/program_summary.h).
Result<std::vector<DeviceErrors>> unseen_device_errors(const CostModel& model, const Store& store,
                                                       std::span<const target::Device* const> devices,
                                                       std::span<const int64_t> records, int max_programs,
                                                       uint64_t seed, bool own_loops);

// Leaves each device of the training part out in turn (devices with one processor's name together: variants of a machine know each
// other's error) and fills the card's new_device, and new_kind where the others have no device of its kind; then again with the small,
// the middle or the large workloads left out as well, which says how much wider intervals are at sizes that the training part does not
// have. train: makes a model of the records that are given. At most kHeldOutRecords programs of a task are predicted; they stand for
// all that the training part has of it. Leaves the card as it is where there are fewer than two devices.
inline constexpr int kHeldOutRecords = 60;
inline constexpr int kHeldOutFolds = 3;
Status hold_out_devices(const TrainingData& data, uint64_t seed,
                        const std::function<Result<std::unique_ptr<CostModel>>(const TrainingData&)>& train,
                        ModelCard& card);

}  // namespace tensorsmith::learn
