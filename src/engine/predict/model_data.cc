#include "engine/predict/model_data.h"

#include <algorithm>

#include "learn/latency/queries.h"

namespace tensorsmith::engine {

Result<ModelData> ModelData::open(const std::string& store_path) {
  ModelData data;
  TS_ASSIGN_OR_RETURN(data.store_, learn::Store::open(store_path));
  auto devices = learn::devices_of(*data.store_);
  if (!devices.ok()) return Error{devices.error().code, store_path, devices.error().message()};
  data.devices_ = std::make_unique<std::vector<target::Device>>(std::move(*devices));
  data.pointers_ = learn::pointers_to(*data.devices_);
  return data;
}

Result<learn::Split> ModelData::load_split(const std::string& path) const {
  TS_ASSIGN_OR_RETURN(learn::Split split, learn::load_split(path));
  const Status sound = learn::check_split(*store_, split);
  if (!sound.ok()) return Error{sound.error().code, path, sound.error().message()};
  return split;
}

Result<std::vector<std::string>> ModelData::store_names(const std::vector<std::string>& devices) const {
  std::vector<std::string> out;
  for (const std::string& name : devices) {
    const auto& known = store_->devices();
    size_t at = std::find(known.begin(), known.end(), name) - known.begin();
    if (at == known.size()) {
      TS_ASSIGN_OR_RETURN(const target::Device device, target::find_device(name));
      at =
          static_cast<size_t>(std::find_if(devices_->begin(), devices_->end(),
                                           [&](const target::Device& d) { return d.key() == device.key(); }) -
                              devices_->begin());
    }
    if (at == known.size())
      return Error{ErrorCode::kNotFound, "device '" + name + "'", "is not in the store"};
    out.push_back(known[at]);
  }
  return out;
}

Result<learn::TrainingData> ModelData::training_data(const learn::Split& split,
                                                     const std::vector<std::string>& devices,
                                                     bool adapt) const {
  learn::TrainingData out;
  out.store = store_.get();
  out.devices = pointers_;
  out.train = split.records_of(learn::Part::kTrain);
  out.validation = split.records_of(learn::Part::kValidation);
  if (!devices.empty()) {
    TS_ASSIGN_OR_RETURN(const auto names, store_names(devices));
    out.train = learn::records_of_devices(*store_, out.train, names);
    out.validation = learn::records_of_devices(*store_, out.validation, names);
  }
  if (adapt) {
    for (const int64_t i : split.records_of(learn::Part::kTest)) {
      if (store_->entry(i).leaves > 0) out.unlabelled.push_back(i);
    }
  }
  if (out.train.empty())
    return Error{ErrorCode::kInvalidArgument, "--split", "has no training records of these devices"};
  return out;
}

Result<learn::Part> parse_part(const std::string& name) {
  for (const auto part :
       {learn::Part::kTrain, learn::Part::kValidation, learn::Part::kTest, learn::Part::kUnused}) {
    if (name == learn::to_string(part)) return part;
  }
  return Error{ErrorCode::kInvalidArgument, "--part",
               "'" + name + "' is not one of train, validation, test, unused"};
}

}  // namespace tensorsmith::engine
