#include <cstring>

#include "base/hash.h"
#include "learn/cost_model.h"

namespace tensorsmith::learn {

namespace {

class RandomModel final : public CostModel {
 public:
  explicit RandomModel(uint64_t seed) : seed_(seed) {}

  std::vector<float> predict(std::span<const Sample> programs) const override {
    std::vector<float> scores;
    scores.reserve(programs.size());
    for (const Sample& program : programs) {
      Hasher hasher;
      hasher.add(seed_);
      for (float value : program.features->values) {
        uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof(bits));
        hasher.add(static_cast<uint64_t>(bits));
      }
      // 24 bits are what a float in [0, 1) can hold.
      scores.push_back(static_cast<float>(hasher.digest64() >> 40) * 0x1p-24F);
    }
    return scores;
  }
  std::string name() const override { return "random"; }

 private:
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<CostModel> make_random_model(uint64_t seed) { return std::make_unique<RandomModel>(seed); }

}  // namespace tensorsmith::learn
