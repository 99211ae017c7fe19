#include "learn/latency/held_out.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "learn/latency/queries.h"

namespace tensorsmith::learn {
namespace {

// Relative tolerances: files round a clock, and bandwidths vary between measurements.
constexpr double kSameClock = 0.05, kSameBandwidth = 0.5;

bool near(double a, double b, double tolerance) {
  return a <= 0 || b <= 0 || std::abs(a - b) <= tolerance * std::max(a, b);
}

bool same(const SeenDevice& seen, const target::Device& device) {
  return seen.name == device.name && (seen.cores == 0 || seen.cores == device.compute_units()) &&
         (seen.vector_bytes == 0 || seen.vector_bytes == device.register_bytes()) &&
         near(seen.clock_ghz, device.clock_ghz, kSameClock) &&
         near(seen.memory_bandwidth_gbs, device.memory_bandwidth_gbs, kSameBandwidth);
}

// Parses names of the form "znver4-avx512-1t", which stores give to the local machine.
SeenDevice from_name(const std::string& name) {
  SeenDevice out;
  out.name = name;
  if (const auto known = target::find_device(name); name != "local" && known.ok()) return seen_device(*known);
  const size_t dash = name.rfind('-');
  if (dash != std::string::npos && name.ends_with('t')) {
    int cores = 0;
    const char* end = name.data() + name.size() - 1;
    const auto [stop, error] = std::from_chars(name.data() + dash + 1, end, cores);
    if (error == std::errc() && stop == end) out.cores = cores;
    out.cpu = name.substr(0, name.find('-'));
  }
  return out;
}

// Returns the value below which a share q of the weight lies. items: (value, weight), in ascending
// order.
double weighted_quantile(const std::vector<std::pair<double, double>>& items, double q) {
  double all = 0, sum = 0;
  for (const auto& [value, weight] : items) all += weight;
  for (const auto& [value, weight] : items) {
    sum += weight;
    if (sum >= q * all) return value;
  }
  return items.back().first;
}

std::string join(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

// Returns the fold of each workload, by its number in the store. The folds are the small, the
// medium and the large workloads, so that each fold has sizes that the others lack.
std::map<uint32_t, int> workload_folds(const Store& store, std::span<const int64_t> records) {
  std::set<uint32_t> present;
  for (const int64_t i : records) present.insert(store.entry(i).workload);
  std::vector<uint32_t> order(present.begin(), present.end());
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return store.workloads()[a].flops < store.workloads()[b].flops;
  });
  std::map<uint32_t, int> out;
  for (size_t i = 0; i < order.size(); ++i) out[order[i]] = i * kHeldOutFolds / order.size();
  return out;
}

// Factor by which errors are larger on a device whose architecture none of the other devices has.
// It has another compiler, and code generation causes most of the error of a physical estimate. The
// value was chosen on three GPUs, each predicted from the others.
constexpr double kOtherArchitectureSpread = 1.5;
double spread_on(std::span<const SeenDevice> others, const target::Device& device) {
  const bool known = std::any_of(others.begin(), others.end(), [&](const SeenDevice& other) {
    return other.kind == device.kind() && (other.arch.empty() || other.arch == device.arch);
  });
  return known ? 1 : kOtherArchitectureSpread;
}

const char* kind_name(target::DeviceKind kind) { return kind == target::DeviceKind::kGpu ? "GPUs" : "CPUs"; }

using HeldOutTask = std::pair<uint32_t, uint32_t>;
HeldOutTask task_of(const Store& store, int64_t record) {
  const Store::Entry entry = store.entry(record);
  return {entry.workload, entry.device};
}

// Devices with the same processor name (or device name, if that is unknown) count as one machine.
std::string machine_of(const target::Device& device) {
  return device.processor.empty() ? device.name : device.processor;
}

// Returns the model's error on the device. Errors measured on the other kind of device are better
// than none.
const HeldOutError& error_on(const ModelCard& card, const Unseen& unseen, const target::Device& device) {
  const auto own = static_cast<size_t>(device.kind());
  if (!unseen.kind) return card.new_device[own];
  return card.new_kind[own].known() ? card.new_kind[own] : card.new_kind[1 - own];
}

}  // namespace

SeenDevice seen_device(const target::Device& device) {
  return {device.name,
          device.kind(),
          device.processor,
          device.arch,
          device.compute_units(),
          device.register_bytes(),
          device.clock_ghz,
          device.memory_bandwidth_gbs};
}

std::vector<SeenDevice> seen_devices(const ModelCard& card) {
  std::vector<SeenDevice> out;
  for (const std::string& name : card.devices) {
    const auto it =
        std::find_if(card.seen.begin(), card.seen.end(), [&](const auto& d) { return d.name == name; });
    out.push_back(it != card.seen.end() ? *it : from_name(name));
  }
  return out;
}

Unseen unseen_by(const ModelCard& card, const target::Device& device) {
  Unseen out;
  const std::vector<SeenDevice> seen = seen_devices(card);
  if (seen.empty()) return out;
  out.device = std::none_of(seen.begin(), seen.end(), [&](const auto& d) { return same(d, device); });
  out.threads =
      out.device && device.kind() == target::DeviceKind::kCpu &&
      std::any_of(seen.begin(), seen.end(),
                  [](const auto& d) { return d.kind == target::DeviceKind::kCpu; }) &&
      std::none_of(seen.begin(), seen.end(), [&](const auto& d) {
        return d.kind == target::DeviceKind::kCpu && (d.cores == 0 || d.cores == device.compute_units());
      });
  return out;
}

bool knows_kind(const ModelCard& card, target::DeviceKind kind) {
  const std::vector<SeenDevice> seen = seen_devices(card);
  return seen.empty() || std::any_of(seen.begin(), seen.end(), [&](const auto& d) { return d.kind == kind; });
}

Status check_knows(const ModelCard& card, const std::string& file, const target::Device& device) {
  if (knows_kind(card, device.kind()) || card.new_kind[0].known() || card.new_kind[1].known()) return {};
  return Error{ErrorCode::kMismatch, file,
               "was trained on GPUs only and cannot predict programs on " + device.name +
                   ", a CPU; name a model that was trained on CPUs, or \"none\" for the roofline"};
}

void UnseenEffects::apply(const target::Device& device, Prediction& prediction) {
  const auto [it, is_new] = devices_.try_emplace(&device);
  OfDevice& found = it->second;
  if (is_new) {
    found.unseen = unseen_by(card_, device);
    found.unseen.kind = !knows_kind(card_, device.kind());
    found.spread = spread_on(seen_devices(card_), device);
  }
  prediction.unseen.device |= found.unseen.device;
  prediction.unseen.threads |= found.unseen.threads;
  prediction.unseen.kind |= found.unseen.kind;
  if (!prediction.unseen.any()) return;
  const HeldOutError& error = error_on(card_, prediction.unseen, device);
  if (error.known() || prediction.unseen.device || prediction.unseen.kind) {
    const double spread =
        (prediction.unseen.kind ? 1 : found.spread) * (prediction.unseen.size ? error.other_sizes : 1);
    prediction.log_sigma = spread * error.log_sigma;
    prediction.log_90 = spread * error.log_90;
    prediction.log_95 = spread * error.log_95;
  }
  prediction.seconds *= std::exp(error.shift);
  prediction.mean_seconds *= std::exp(error.shift);
  prediction.ranking_seconds *= std::exp(error.shift);
}

std::string describe_unseen_threads(const ModelCard& card, const Unseen& unseen,
                                    const target::Device& device) {
  if (!unseen.threads) return "";
  std::set<int> known;
  for (const SeenDevice& d : seen_devices(card))
    if (d.kind == target::DeviceKind::kCpu && d.cores > 0) known.insert(d.cores);
  if (known.empty()) return "";
  std::string list;
  for (const int count : known)
    list += (list.empty() ? "" : count == *known.rbegin() ? " or " : ", ") + std::to_string(count);
  const auto distance = [&](int count) { return std::abs(count - device.compute_units()); };
  const int nearest =
      *std::min_element(known.begin(), known.end(), [&](int a, int b) { return distance(a) < distance(b); });
  return "this prediction is for " + std::to_string(device.compute_units()) +
         (device.compute_units() == 1 ? " thread" : " threads") +
         ", but the model was trained only on runs with " + list +
         (known == std::set<int>{1} ? " thread" : " threads") +
         "; its error can be larger than the interval says. A prediction for " + std::to_string(nearest) +
         (nearest == 1 ? " thread" : " threads") + " is within the model's training data";
}

std::vector<std::string> describe_unseen(const ModelCard& card, const Unseen& unseen,
                                         const target::Device& device) {
  std::vector<std::string> out;
  if (!unseen.any()) return out;
  if (unseen.device) {
    const bool named = std::find(card.devices.begin(), card.devices.end(), device.name) != card.devices.end();
    out.push_back(named ? "the model was trained on a device named " + device.name + " with other attributes"
                        : "the model was not trained on " + device.name + ", only on " + join(card.devices));
  }
  if (unseen.kind) {
    out.push_back(knows_kind(card, device.kind())
                      ? std::string("the model was not trained on programs of this kind; an estimate from "
                                    "the device's peak rates is used instead")
                      : std::string("the model was not trained on programs for ") + kind_name(device.kind()) +
                            "; an estimate from the device's peak rates is used instead");
  }
  if (unseen.size && unseen.device && !unseen.kind)
    out.push_back("the model was not trained on workloads of this size, so the interval is wider");
  const HeldOutError& error = error_on(card, unseen, device);
  out.push_back(error.known()
                    ? "the interval's width comes from the model's errors in such cases, measured on " +
                          error.source
                    : std::string("the model's error in such cases is unknown, so there is no interval"));
  return out;
}

HeldOutError held_out_error(std::span<const DeviceErrors> devices, bool shifted, double spread,
                            std::string source) {
  HeldOutError out;
  std::vector<std::pair<double, double>> items;
  for (const DeviceErrors& device : devices) {
    if (device.errors.empty()) continue;
    ++out.devices;
    out.records += std::ssize(device.errors);
    double all = 0;
    for (size_t i = 0; i < device.errors.size(); ++i) all += device.weights.empty() ? 1 : device.weights[i];
    for (size_t i = 0; i < device.errors.size(); ++i)
      items.emplace_back(device.errors[i], (device.weights.empty() ? 1 : device.weights[i]) / all);
  }
  if (items.empty()) return out;
  std::sort(items.begin(), items.end());
  if (shifted) out.shift = weighted_quantile(items, 0.5);
  for (auto& [error, weight] : items) error = std::abs(error - out.shift);
  std::sort(items.begin(), items.end());
  out.log_sigma = spread * weighted_quantile(items, 0.6827);
  out.log_90 = std::max(out.log_sigma, weighted_quantile(items, 0.90));
  out.log_95 = std::max(out.log_90, weighted_quantile(items, 0.9545));
  out.source = std::move(source);
  return out;
}

Result<std::vector<DeviceErrors>> unseen_device_errors(const CostModel& model, const Store& store,
                                                       std::span<const target::Device* const> devices,
                                                       std::span<const int64_t> records, int max_programs,
                                                       uint64_t seed, bool own_loops) {
  std::vector<int64_t> measured;
  std::map<HeldOutTask, double> present, chosen;
  for (const int64_t i : records) {
    const Store::Entry entry = store.entry(i);
    if (entry.failed() || entry.leaves == 0 || !(entry.mean_seconds > 0)) continue;
    if (!unseen_by(model.card(), *devices[entry.device]).device) continue;
    measured.push_back(i);
    ++present[task_of(store, i)];
  }
  measured = some_records(store, measured, 0, max_programs, seed);
  for (const int64_t i : measured) ++chosen[task_of(store, i)];
  std::vector<StoredWorkload> own = store.workloads();
  for (StoredWorkload& workload : own) workload.foreign_keys.clear();
  QueryBatch batch(store, devices, model.inputs());
  std::map<uint32_t, DeviceErrors> by_device;
  constexpr size_t kBatch = 512;
  for (size_t begin = 0; begin < measured.size(); begin += kBatch) {
    const auto part = std::span(measured).subspan(begin, std::min(kBatch, measured.size() - begin));
    TS_ASSIGN_OR_RETURN(const auto made, batch.make(part));
    std::vector<ProgramQuery> queries(made.begin(), made.end());
    for (size_t i = 0; own_loops && i < part.size(); ++i)
      queries[i].workload = &own[store.entry(part[i]).workload];
    TS_ASSIGN_OR_RETURN(const auto predicted, model.predict(queries));
    for (size_t i = 0; i < part.size(); ++i) {
      const Store::Entry entry = store.entry(part[i]);
      const target::Device& device = *devices[entry.device];
      const double seconds = predicted[i].seconds;
      if (!std::isfinite(seconds) || seconds <= 0 || predicted[i].unseen.kind) continue;
      DeviceErrors& errors = by_device[entry.device];
      errors.device = device.name;
      errors.kind = device.kind();
      // Undo the shift of an earlier calibration.
      const double shift = model.card().new_device[static_cast<size_t>(device.kind())].shift;
      errors.errors.push_back(std::log(entry.mean_seconds / seconds) + shift);
      errors.weights.push_back(present[task_of(store, part[i])] / chosen[task_of(store, part[i])]);
    }
  }
  std::vector<DeviceErrors> out;
  for (auto& [number, errors] : by_device) out.push_back(std::move(errors));
  return out;
}

Status hold_out_devices(const TrainingData& data, uint64_t seed,
                        const std::function<Result<std::unique_ptr<CostModel>>(const TrainingData&)>& train,
                        ModelCard& card) {
  std::map<std::string, std::vector<uint32_t>> machines;
  std::vector<char> present(data.devices.size(), 0);
  for (const int64_t i : data.train) present[data.store->entry(i).device] = 1;
  for (uint32_t d = 0; d < present.size(); ++d)
    if (present[d] != 0) machines[machine_of(*data.devices[d])].push_back(d);
  if (machines.size() < 2) return {};
  const std::vector<int64_t> few = some_records(*data.store, data.train, 0, kHeldOutRecords, seed);
  std::map<HeldOutTask, double> in_training, chosen;
  for (const int64_t i : data.train) ++in_training[task_of(*data.store, i)];
  for (const int64_t i : few) ++chosen[task_of(*data.store, i)];
  // Without folds, the model has seen workloads of the same sizes; with folds, it has not.
  const std::map<uint32_t, int> none, by_size = workload_folds(*data.store, few);
  std::array<std::vector<DeviceErrors>, 2> of_device, of_size, of_kind;
  std::array<std::vector<std::string>, 2> device_names, kind_names;
  for (const auto& [machine, members] : machines) {
    const auto is_member = [&](int64_t record) {
      return std::find(members.begin(), members.end(), data.store->entry(record).device) != members.end();
    };
    const target::Device& device = *data.devices[members.front()];
    std::vector<SeenDevice> seen;
    for (uint32_t d = 0; d < present.size(); ++d) {
      if (present[d] != 0 && std::find(members.begin(), members.end(), d) == members.end())
        seen.push_back(seen_device(*data.devices[d]));
    }
    const bool known = std::any_of(seen.begin(), seen.end(),
                                   [&](const SeenDevice& other) { return other.kind == device.kind(); });
    const double device_spread = known ? spread_on(seen, device) : 1;
    const auto k = static_cast<size_t>(device.kind());
    // Returns the errors on the machine. With folds, each program is predicted by a model that was
    // trained without the workloads of its fold.
    const auto errors_of = [&](const std::map<uint32_t, int>& folds) -> Result<DeviceErrors> {
      DeviceErrors errors;
      errors.device = device.name;
      errors.kind = device.kind();
      for (int fold = 0; fold < (folds.empty() ? 1 : kHeldOutFolds); ++fold) {
        TrainingData others = data;
        others.train.clear();
        others.validation.clear();
        others.unlabelled.clear();
        std::vector<int64_t> test;
        for (const int64_t i : few) {
          const Store::Entry entry = data.store->entry(i);
          const bool in_fold = folds.empty() || folds.at(entry.workload) == fold;
          if (!is_member(i)) {
            if (folds.empty() || !in_fold) others.train.push_back(i);
          } else if (in_fold && !entry.failed() && entry.leaves > 0 && entry.mean_seconds > 0) {
            test.push_back(i);
          }
        }
        if (test.empty() || others.train.empty()) continue;
        TS_ASSIGN_OR_RETURN(const auto model, train(others));
        TS_ASSIGN_OR_RETURN(const auto predicted, predict_records(*model, *data.store, data.devices, test));
        for (size_t i = 0; i < test.size(); ++i) {
          const double seconds = predicted[i].seconds;
          if (!std::isfinite(seconds) || seconds <= 0 || (known && predicted[i].unseen.kind)) continue;
          errors.errors.push_back(std::log(data.store->entry(test[i]).mean_seconds / seconds) /
                                  device_spread);
          errors.weights.push_back(in_training[task_of(*data.store, test[i])] /
                                   chosen[task_of(*data.store, test[i])]);
        }
      }
      return errors;
    };
    TS_ASSIGN_OR_RETURN(DeviceErrors errors, errors_of(none));
    if (errors.errors.empty()) continue;
    (known ? device_names : kind_names)[k].push_back(errors.device);
    if (known) {
      TS_ASSIGN_OR_RETURN(DeviceErrors others, errors_of(by_size));
      of_size[k].push_back(std::move(others));
    }
    (known ? of_device : of_kind)[k].push_back(std::move(errors));
  }
  for (size_t k = 0; k < 2; ++k) {
    // A model that lacks one of n devices estimates the spread of the others less well than the
    // full model: the variance of a new device around the mean of n devices is 1 + 1 / n times that
    // between devices.
    const double n = of_device[k].size();
    const double spread = n > 1 ? std::sqrt((1 + 1 / n) / (1 + 1 / (n - 1))) : 1;
    if (!of_device[k].empty())
      card.new_device[k] = held_out_error(of_device[k], false, spread,
                                          join(device_names[k]) + ", each predicted from the others");
    if (card.new_device[k].known() && !of_size[k].empty()) {
      const HeldOutError elsewhere = held_out_error(of_size[k], false, spread, "");
      card.new_device[k].other_sizes = std::max(1.0, elsewhere.log_sigma / card.new_device[k].log_sigma);
    }
    if (!of_kind[k].empty() && !card.new_kind[k].known())
      card.new_kind[k] =
          held_out_error(of_kind[k], true, 1, join(kind_names[k]) + ", without any of its kind");
  }
  return {};
}

}  // namespace tensorsmith::learn
