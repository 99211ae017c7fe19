// An untrained language model with random weights.
#pragma once

#include <cmath>

#include "base/rng.h"
#include "learn/lm/language_model.h"

namespace tensorsmith::engine {

inline learn::lm::LanguageModel random_model(const learn::lm::LanguageModelSizes& sizes, uint64_t seed) {
  learn::lm::LanguageModel model;
  model.sizes = sizes;
  Rng rng(seed);
  for (const auto& [name, shape] : weight_shapes(sizes)) {
    auto& weight = model.weights[name];
    weight.shape = shape;
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    const bool scale = name.find("norm") != std::string::npos && name.ends_with("weight");
    const double deviation = shape.size() == 2 ? 1 / std::sqrt(static_cast<double>(shape[1])) : 0.2;
    for (int64_t i = 0; i < count; ++i)
      weight.values.push_back(static_cast<float>((scale ? 1 : 0) + deviation * rng.normal()));
  }
  return model;
}

}  // namespace tensorsmith::engine
