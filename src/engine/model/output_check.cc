#include "engine/model/output_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tensorsmith::engine {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

// Two units in the last place of the stored type.
double storage_tolerance(ir::DType dtype) {
  if (dtype == ir::DType::kBF16) return 0x1p-6;
  return dtype == ir::DType::kF16 ? 0x1p-9 : 0;
}

// Number of elements of a quantized output that may be one step off: one in kOneStepShare, but at
// least kOneStepLeast. The values are chosen, not fitted.
constexpr int64_t kOneStepShare = 10, kOneStepLeast = 2;

}  // namespace

Comparison compare(const lower::Tensor& got, const lower::Tensor& expected, const Tolerance& tolerance) {
  Comparison out;
  out.elements = expected.num_elements();
  if (got.dtype != expected.dtype || got.shape != expected.shape) {
    out.ok = false;
    out.wrong = out.elements;
    out.detail = fmt::format("is {} {}, expected {} {}", ir::to_string(got.dtype), shape_text(got.shape),
                             ir::to_string(expected.dtype), shape_text(expected.shape));
    return out;
  }
  const double rtol = std::max(tolerance.rtol, storage_tolerance(got.dtype));
  double worst_excess = -1;
  for (int64_t i = 0; i < out.elements; ++i) {
    const ir::Scalar a = got.at(i);
    const ir::Scalar b = expected.at(i);
    bool good = true, near = false;
    double difference = 0;
    double limit = 0;
    if (ir::is_float(got.dtype)) {
      if (std::isnan(a.f) || std::isnan(b.f)) {
        good = std::isnan(a.f) && std::isnan(b.f);
        difference = good ? 0 : HUGE_VAL;
      } else if (a.f != b.f) {
        difference = std::abs(a.f - b.f);
        limit = tolerance.atol + rtol * std::abs(b.f);
        good = std::isfinite(difference) && difference <= limit;
        near = difference <= tolerance.step * (1 + rtol);
      }
    } else {
      good = a.i == b.i;
      difference = std::abs(static_cast<double>(a.i) - static_cast<double>(b.i));
      near = difference <= tolerance.step;
    }
    out.worst_absolute = std::max(out.worst_absolute, difference);
    if (!good && near) ++out.one_step;
    if (good || near) continue;
    ++out.wrong;
    out.ok = false;
    if (difference - limit > worst_excess) {
      worst_excess = difference - limit;
      out.detail = ir::is_float(got.dtype)
                       ? fmt::format("element {}: got {:.7g}, expected {:.7g}", i, a.f, b.f)
                       : fmt::format("element {}: got {}, expected {}", i, a.i, b.i);
    }
  }
  if (out.one_step > std::max(kOneStepLeast, out.elements / kOneStepShare)) {
    if (out.ok) out.detail = "too many elements differ by one quantization step to be explained by rounding";
    out.ok = false;
    out.wrong += out.one_step;
  }
  return out;
}

Result<std::vector<lower::Tensor>> run_model(runtime::Model& model,
                                             const std::vector<lower::Tensor>& inputs) {
  if (inputs.size() != model.inputs().size()) {
    return Error{
        ErrorCode::kInvalidArgument, "inputs",
        fmt::format("the model has {} inputs, but {} were given", model.inputs().size(), inputs.size())};
  }
  std::vector<const void*> in;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& info = model.inputs()[i];
    if (info.dtype != inputs[i].dtype || info.shape != inputs[i].shape) {
      return Error{ErrorCode::kInvalidArgument, "input '" + info.name + "'",
                   fmt::format("is {} {}, but the model needs {} {}", ir::to_string(inputs[i].dtype),
                               shape_text(inputs[i].shape), to_string(info.dtype), shape_text(info.shape))};
    }
  }
  for (const auto& tensor : inputs) in.push_back(tensor.data.data());
  std::vector<lower::Tensor> results;
  std::vector<void*> out;
  for (const auto& info : model.outputs()) {
    results.push_back(lower::Tensor::zeros(info.dtype, info.shape));
    // Filled with a pattern that reveals elements that are never written.
    std::fill(results.back().data.begin(), results.back().data.end(), std::byte{0xA5});
  }
  for (auto& tensor : results) out.push_back(tensor.data.data());
  TS_RETURN_IF_ERROR(model.run(in, out));
  return results;
}

}  // namespace tensorsmith::engine
