#include "learn/net/net.h"

namespace tensorsmith::learn::net {

namespace {

template <class T>
Tensor to_tensor(const std::vector<T>& values, at::IntArrayRef shape, torch::ScalarType type,
                 torch::Device device) {
  // clone() is needed because the batch is reused while the tensor is alive.
  return torch::from_blob(const_cast<T*>(values.data()), shape, type).clone().to(device);
}

}  // namespace

NetInput NetInput::create(const Batch& batch, const BatchOptions& options, torch::Device device) {
  NetInput out;
  out.programs = batch.programs;
  if (options.rows != RowKind::kNone) {
    out.rows = Ragged::create(batch.row_begin, device);
    out.row_values = to_tensor(batch.rows, {out.rows.rows, feature::kPerStoreWidth}, torch::kFloat32, device);
    out.positions = to_tensor(batch.positions, {out.rows.rows}, torch::kInt64, device);
  }
  if (options.steps) {
    out.steps = Ragged::create(batch.step_begin, device);
    out.step_values =
        to_tensor(batch.steps, {out.steps.rows, options.step_options.width()}, torch::kFloat32, device);
  }
  for (int k = 0; k < feature::kProgramKinds && options.summaries; ++k) {
    const SummaryRows& rows = batch.summaries[k];
    const auto n = std::ssize(rows.places);
    const int width = summary_width(static_cast<feature::ProgramKind>(k));
    out.summaries[k] = {to_tensor(rows.places, {n}, torch::kInt64, device),
                        to_tensor(rows.structure, {n}, torch::kInt64, device),
                        to_tensor(rows.values, {n, width}, torch::kFloat32, device)};
  }
  out.device = to_tensor(batch.device, {batch.programs}, torch::kInt64, device);
  out.device_features =
      to_tensor(batch.device_features, {batch.programs, kDeviceColumns}, torch::kFloat32, device);
  return out;
}

}  // namespace tensorsmith::learn::net
