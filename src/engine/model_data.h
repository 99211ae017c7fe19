// A store, a split and the devices that a command names, as training and evaluation want them.
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
  // Of this store, its parts apart (learn::check_split).
  Result<learn::Split> load_split(const std::string& path) const;
  // The store's names of devices given by these or by the registry's names. kNotFound for one that is not in
  // the store.
  Result<std::vector<std::string>> store_names(const std::vector<std::string>& devices) const;
  // The split's train and validation records, of these devices (empty: of all). adapt: the test records, if
  // they have features, as unlabelled ones. kInvalidArgument where nothing is left to train on.
  Result<learn::TrainingData> training_data(const learn::Split& split,
                                            const std::vector<std::string>& devices, bool adapt) const;

 private:
  std::unique_ptr<learn::Store> store_;
  std::unique_ptr<std::vector<target::Device>> devices_;
  std::vector<const target::Device*> pointers_;
};

// "train", "validation", "test" or "unused".
Result<learn::Part> parse_part(const std::string& name);

}  // namespace tensorsmith::engine
