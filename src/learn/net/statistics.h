// Scaling of a network's inputs and labels, fitted on training records only and stored with the
// model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tensorsmith::learn::net {

enum class ScalingKind : uint8_t {
  kMax,       // divides by the column's largest absolute value (TenSet's MLP)
  kMinMax,    // to [0, 1] (CDMPP)
  kStandard,  // to mean 0 and variance 1
};

// (x - shift) * scale by column. A column that is constant in the training data has scale 0, since
// its effect cannot be learned.
struct ColumnScaling {
  std::vector<float> shift, scale;
};

// Takes rows one by one, in one pass and constant memory.
class ColumnStatistics {
 public:
  explicit ColumnStatistics(int width);
  void add(std::span<const float> rows);  // any number of rows, row-major
  int64_t rows() const { return count_; }
  ColumnScaling scaling(ScalingKind kind) const;

 private:
  struct Column {
    double mean = 0, squares = 0, low = 0, high = 0;
  };
  std::vector<Column> columns_;
  int64_t count_ = 0;
};

// Converts between r = log(seconds) - base and the number z that a network predicts: r itself
// ("none"), standardized r ("log"), or the standardized Box-Cox transform of exp(r) ("box-cox",
// CDMPP section 5; G. Box, D. Cox, An analysis of transformations, 1964) with the lambda of the
// greatest likelihood.
struct LabelTransform {
  double center = 0;               // mean of r
  double lambda = 0;               // exponent for exp(r - center); 0: the logarithm
  double mean = 0, deviation = 1;  // of the transformed values

  static LabelTransform fit(const std::string& kind, std::span<const double> r);
  double encode(double r) const;
  // The inverse. If lambda < 0, large z have no inverse and decode to the largest possible r.
  double decode(double z) const;
};
// Lower limit of 1 + lambda * transformed value in decode().
inline constexpr double kLeastPower = 1e-6;

}  // namespace tensorsmith::learn::net
