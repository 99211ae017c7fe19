#include "learn/profile/mlp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tensorsmith::learn {
namespace {

constexpr size_t kHidden = 64;
constexpr int kEpochs = 400, kPatience = 60;
constexpr size_t kMlpBatch = 16;
constexpr double kRate = 2e-3;
// The usual constants of Adam (Kingma and Ba 2015).
constexpr double kMeanDecay = 0.9, kSquareDecay = 0.999, kTiny = 1e-8;
// Inputs are clamped to [1 - kFarthest, kFarthest]: how far a value lies beyond the training range
// says little.
constexpr double kFarthest = 2;

std::string layer_name(size_t layer) { return "layer" + std::to_string(layer); }

}  // namespace

Mlp::Layer::Layer(size_t in, size_t out) : inputs(in), outputs(out) {
  weights.resize(out * in + out, 0);
  mean = square = gradient = weights;
}

void Mlp::Layer::draw_weights(Rng& rng) {
  for (size_t i = 0; i < outputs * inputs; ++i) weights[i] = rng.normal() * std::sqrt(2.0 / inputs);
}

std::vector<Mlp::Layer> Mlp::make_layers(size_t width) {
  return {Layer(width, kHidden), Layer(kHidden, kHidden), Layer(kHidden, 1)};
}

Mlp::Mlp(const ProgramRows& train, std::span<const double> labels, const ProgramRows& validation,
         std::span<const double> validation_labels, uint64_t seed) {
  Rng rng(seed);
  fit_scale(train);
  for (const double label : labels) mean_label_ += label / labels.size();
  layers_ = make_layers(train.width);
  for (Layer& layer : layers_) layer.draw_weights(rng);
  std::vector<size_t> order(train.programs());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<Layer> best = layers_;
  double best_loss = std::numeric_limits<double>::infinity();
  int since = 0;
  int64_t steps = 0;
  for (int epoch = 0; epoch < kEpochs && since < kPatience; ++epoch) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
    for (size_t at = 0; at < order.size(); at += kMlpBatch) {
      const size_t end = std::min(order.size(), at + kMlpBatch);
      for (size_t i = at; i < end; ++i) {
        const size_t p = order[i];
        std::vector<std::vector<std::vector<double>>> rows(train.begin[p + 1] - train.begin[p]);
        double score = mean_label_;
        for (size_t r = 0; r < rows.size(); ++r) {
          forward({train.values.data() + (train.begin[p] + r) * train.width, train.width}, rows[r]);
          score += rows[r].back()[0];
        }
        for (auto& row : rows) backward(row, (score - labels[p]) / (end - at));
      }
      step(++steps);
    }
    const double now = validation.programs() > 0 ? loss(validation, validation_labels) : 0;
    ++since;
    if (validation.programs() > 0 && now >= best_loss) continue;
    best_loss = now;
    best = layers_;
    since = 0;
  }
  layers_ = std::move(best);
}

void Mlp::fit_scale(const ProgramRows& train) {
  low_.assign(train.width, std::numeric_limits<double>::infinity());
  std::vector<double> high(train.width, -std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < train.values.size(); ++i) {
    const double x = train.values[i];
    low_[i % train.width] = std::min(low_[i % train.width], x);
    high[i % train.width] = std::max(high[i % train.width], x);
  }
  // A column that is constant in the training part gets scale 0.
  for (size_t c = 0; c < train.width; ++c) scale_.push_back(high[c] > low_[c] ? 1 / (high[c] - low_[c]) : 0);
}

void Mlp::forward(std::span<const float> row, std::vector<std::vector<double>>& activations) const {
  activations.assign(1, {});
  for (size_t c = 0; c < row.size(); ++c)
    activations[0].push_back(std::clamp((row[c] - low_[c]) * scale_[c], 1 - kFarthest, kFarthest));
  for (const Layer& layer : layers_) {
    std::vector<double> out(layer.outputs);
    const std::vector<double>& in = activations.back();
    for (size_t o = 0; o < layer.outputs; ++o) {
      const double* weights = layer.weights.data() + o * layer.inputs;
      double sum = layer.weights[layer.outputs * layer.inputs + o];
      for (size_t i = 0; i < layer.inputs; ++i) sum += weights[i] * in[i];
      out[o] = &layer == &layers_.back() ? sum : std::max(sum, 0.0);
    }
    activations.push_back(std::move(out));
  }
}

void Mlp::backward(std::vector<std::vector<double>>& activations, double slope) {
  std::vector<double> of_output = {slope};
  for (size_t l = layers_.size(); l-- > 0;) {
    Layer& layer = layers_[l];
    const std::vector<double>& in = activations[l];
    std::vector<double> of_input(layer.inputs, 0);
    for (size_t o = 0; o < layer.outputs; ++o) {
      if (of_output[o] == 0) continue;
      for (size_t i = 0; i < layer.inputs; ++i) {
        layer.gradient[o * layer.inputs + i] += of_output[o] * in[i];
        of_input[i] += of_output[o] * layer.weights[o * layer.inputs + i];
      }
      layer.gradient[layer.outputs * layer.inputs + o] += of_output[o];
    }
    for (size_t i = 0; l > 0 && i < layer.inputs; ++i)
      if (in[i] <= 0) of_input[i] = 0;
    of_output = std::move(of_input);
  }
}

void Mlp::step(int64_t number) {
  const double of_mean = 1 - std::pow(kMeanDecay, number);
  const double of_square = 1 - std::pow(kSquareDecay, number);
  for (Layer& layer : layers_) {
    for (size_t i = 0; i < layer.weights.size(); ++i) {
      const double g = layer.gradient[i];
      layer.mean[i] = kMeanDecay * layer.mean[i] + (1 - kMeanDecay) * g;
      layer.square[i] = kSquareDecay * layer.square[i] + (1 - kSquareDecay) * g * g;
      layer.weights[i] -=
          kRate * (layer.mean[i] / of_mean) / (std::sqrt(layer.square[i] / of_square) + kTiny);
      layer.gradient[i] = 0;
    }
  }
}

double Mlp::loss(const ProgramRows& rows, std::span<const double> labels) const {
  const std::vector<double> predicted = scores(rows);
  double sum = 0;
  for (size_t p = 0; p < predicted.size(); ++p)
    sum += (predicted[p] - labels[p]) * (predicted[p] - labels[p]);
  return sum / std::max<size_t>(predicted.size(), 1);
}

std::vector<double> Mlp::scores(const ProgramRows& rows) const {
  std::vector<double> out;
  std::vector<std::vector<double>> activations;
  for (size_t p = 0; p < rows.programs(); ++p) {
    double score = mean_label_;
    for (size_t r = rows.begin[p]; r < rows.begin[p + 1]; ++r) {
      forward({rows.values.data() + r * rows.width, rows.width}, activations);
      score += activations.back()[0];
    }
    out.push_back(score);
  }
  return out;
}

void Mlp::add_to(TensorFile& file) const {
  const auto width = std::ssize(low_);
  const double mean[] = {mean_label_};
  file.add<double>("low", {width}, low_);
  file.add<double>("scale", {width}, scale_);
  file.add<double>("mean_label", {1}, mean);
  for (size_t l = 0; l < layers_.size(); ++l)
    file.add<double>(layer_name(l), {std::ssize(layers_[l].weights)}, layers_[l].weights);
}

Result<std::unique_ptr<Mlp>> Mlp::read(const TensorFile& file, size_t width) {
  std::unique_ptr<Mlp> out(new Mlp);
  const auto read = [&](const std::string& name, size_t size) -> Result<std::vector<double>> {
    TS_ASSIGN_OR_RETURN(auto values, file.values<double>(name, {static_cast<int64_t>(size)}));
    if (!std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); }))
      return Error{ErrorCode::kCorrupt, "", "the model's numbers are out of range"};
    return values;
  };
  TS_ASSIGN_OR_RETURN(out->low_, read("low", width));
  TS_ASSIGN_OR_RETURN(out->scale_, read("scale", width));
  TS_ASSIGN_OR_RETURN(const auto mean, read("mean_label", 1));
  out->mean_label_ = mean[0];
  out->layers_ = make_layers(width);
  for (size_t l = 0; l < out->layers_.size(); ++l) {
    TS_ASSIGN_OR_RETURN(out->layers_[l].weights, read(layer_name(l), out->layers_[l].weights.size()));
  }
  return out;
}

}  // namespace tensorsmith::learn
