// A small neural network over rows of numbers, with two hidden layers. The score of a program is
// the sum over its rows. Each input column is scaled so that its minimum and maximum in the
// training part become 0 and 1.
#pragma once

#include <span>
#include <vector>

#include "base/rng.h"
#include "learn/profile/ranker.h"

namespace tensorsmith::learn {

class Mlp final : public Ranker {
 public:
  Mlp(const ProgramRows& train, std::span<const double> labels, const ProgramRows& validation,
      std::span<const double> validation_labels, uint64_t seed);
  std::vector<double> scores(const ProgramRows& rows) const override;
  void add_to(TensorFile& file) const override;
  static Result<std::unique_ptr<Mlp>> read(const TensorFile& file, size_t width);

 private:
  Mlp() = default;
  struct Layer {
    size_t inputs = 0, outputs = 0;
    std::vector<double> weights;  // row-major [outputs][inputs], then the biases of the outputs
    std::vector<double> gradient, mean, square;  // same size as weights; for Adam
    Layer(size_t in, size_t out);
    void draw_weights(Rng& rng);
  };
  // Makes the hidden layers and the output layer.
  static std::vector<Layer> make_layers(size_t width);
  void fit_scale(const ProgramRows& train);
  // Computes the activations of all layers for one row; the last one holds the score.
  void forward(std::span<const float> row, std::vector<std::vector<double>>& activations) const;
  void backward(std::vector<std::vector<double>>& activations, double slope);
  void step(int64_t number);
  double loss(const ProgramRows& rows, std::span<const double> labels) const;

  std::vector<double> low_, scale_;  // per column
  double mean_label_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace tensorsmith::learn
