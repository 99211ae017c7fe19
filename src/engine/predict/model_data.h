// A store, a split and the devices that a command names, in the form that training and evaluation
// need.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "learn/dataset/split.h"
#include "learn/dataset/store.h"
#include "learn/training.h"

namespace tensorsmith::engine {

class ModelData {
 public:
  static Result<ModelData> open(const std::string& store_path);

  const learn::Store& store() const { return *store_; }
  const std::vector<const target::Device*>& devices() const { return pointers_; }
  // Loads a split and checks that it belongs to this store and that its parts are disjoint
  // (learn::check_split).
  Result<learn::Split> load_split(const std::string& path) const;
  // Converts names of devices, either the store's or the registry's, to the store's names.
  // kNotFound for a device that is not in the store.
  Result<std::vector<std::string>> store_names(const std::vector<std::string>& devices) const;
  // Returns the split's train and validation records of these devices (empty: of all devices). If
  // `adapt` is set, the test records that have features are added without labels. kInvalidArgument
  // if no records are left to train on.
  Result<learn::TrainingData> training_data(const learn::Split& split,
                                            const std::vector<std::string>& devices, bool adapt) const;

 private:
  std::unique_ptr<learn::Store> store_;
  std::unique_ptr<std::vector<target::Device>> devices_;
  std::vector<const target::Device*> pointers_;
};

// Parses "train", "validation", "test" or "unused".
Result<learn::Part> parse_part(const std::string& name);

}  // namespace tensorsmith::engine
