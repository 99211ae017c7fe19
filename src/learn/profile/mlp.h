// A small net over rows of numbers: two hidden layers, a program's score is the sum over its rows. Inputs are put
// between 0 and 1 by the least and the largest value of the training part.
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
    std::vector<double> weights;                 // row-major [outputs][inputs], then the outputs' biases
    std::vector<double> gradient, mean, square;  // of the same size, for Adam
    Layer(size_t in, size_t out);
    void draw_weights(Rng& rng);
  };
  // Of the hidden layers and the last one.
  static std::vector<Layer> make_layers(size_t width);
  void fit_scale(const ProgramRows& train);
  // Activations of all layers of one row; the last holds the score.
  void forward(std::span<const float> row, std::vector<std::vector<double>>& activations) const;
  void backward(std::vector<std::vector<double>>& activations, double slope);
  void step(int64_t number);
  double loss(const ProgramRows& rows, std::span<const double> labels) const;

  std::vector<double> low_, scale_;  // by column
  double mean_label_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace tensorsmith::learn
