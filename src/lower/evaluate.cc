#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "lower/bytecode.h"
#include "lower/interpreter.h"

namespace tensorsmith::lower {

using ir::Combiner;
using ir::DType;
using ir::Scalar;

namespace {

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t d = 0; d < shape.size(); ++d) text += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
  return text + "]";
}

// Values of a tensor of the workload during evaluation.
struct Storage {
  const ir::BufferNode* buffer = nullptr;
  std::vector<std::byte> owned;
  std::vector<uint32_t> written;  // empty: all elements are valid
  BufferSlot slot;
};

class Evaluation;

// Computes elements of one operation, kLanes at a time.
class OperationEvaluator {
 public:
  virtual ~OperationEvaluator() = default;
  virtual Status compute_all() = 0;
  virtual Status compute_points(std::span<const int64_t> flat_indices) = 0;
};

class Evaluation {
 public:
  // `lazy`: elements of intermediate tensors are computed only when they are read.
  Evaluation(const ir::Workload& workload, bool lazy) : workload_(workload), lazy_(lazy) {}

  Status bind(std::span<const Tensor> inputs);
  Status compute_all();
  Status compute_points(size_t op, std::span<const int64_t> flat_indices) {
    return evaluators_[op]->compute_points(flat_indices);
  }
  Storage& storage_of(const ir::BufferNode* buffer) { return storage_[slots_.at(buffer)]; }
  IdVector<SlotId, BufferSlot> slots() const {
    IdVector<SlotId, BufferSlot> all;
    for (const Storage& s : storage_) all.push_back(s.slot);
    return all;
  }
  void bind_buffers(ExprCompiler& compiler) const {
    for (const SlotId slot : storage_.ids()) {
      const Storage& s = storage_[slot];
      compiler.bind_buffer(s.buffer, {slot, !s.written.empty(), compact(*s.buffer)});
    }
  }
  // Computes elements of the tensor in a slot; called while another operation is computed.
  Status demand(SlotId slot, std::span<const int64_t> flat_indices);

 private:
  static std::vector<int64_t> compact(const ir::BufferNode& buffer) {
    std::vector<int64_t> strides(buffer.shape.size());
    int64_t stride = 1;
    for (size_t d = strides.size(); d-- > 0; stride *= buffer.shape[d]) strides[d] = stride;
    return strides;
  }

  const ir::Workload& workload_;
  bool lazy_;
  IdVector<SlotId, Storage> storage_;
  std::unordered_map<const ir::BufferNode*, SlotId> slots_;
  IdVector<SlotId, size_t> producer_;                            // index of the operation
  std::vector<std::unique_ptr<OperationEvaluator>> evaluators_;  // by operation; null for placeholders
};

template <class T, class Accumulator>
void accumulate(Combiner combiner, const T* value, Accumulator* acc, int lanes) {
  const auto each = [&](auto combined) {
    for (int l = 0; l < lanes; ++l) acc[l] = combined(acc[l], static_cast<Accumulator>(value[l]));
  };
  switch (combiner) {
    case Combiner::kSum:
      return each(std::plus<Accumulator>());
    case Combiner::kProd:
      return each(std::multiplies<Accumulator>());
    case Combiner::kMax:
      return each([](Accumulator a, Accumulator b) { return ir::maximum(a, b); });
    case Combiner::kMin:
      return each([](Accumulator a, Accumulator b) { return ir::minimum(a, b); });
    case Combiner::kNone:
    case Combiner::kArgMax:
    case Combiner::kArgMin:
      return;
  }
}

template <class T>
void accumulate_arg(bool is_max, const T* value, const int64_t* index, T* best, int64_t* best_index,
                    int lanes) {
  for (int l = 0; l < lanes; ++l) {
    const bool equal = value[l] == best[l] || (value[l] != value[l] && best[l] != best[l]);
    if (ir::beats(is_max, value[l], best[l]) || (equal && index[l] < best_index[l])) {
      best[l] = value[l];
      best_index[l] = index[l];
    }
  }
}

template <int kLanes>
class LaneEvaluator final : public OperationEvaluator, private BytecodeMachine<kLanes> {
 public:
  static std::unique_ptr<OperationEvaluator> create(Evaluation& evaluation, const ir::Operation& op) {
    auto program = std::make_unique<Program>();
    ExprCompiler compiler(program->code, true);
    evaluation.bind_buffers(compiler);
    compiler.push_level(&program->outer);
    for (const ir::Axis& axis : op.spatial) {
      program->spatial.push_back(compiler.bind_lanes(axis.var, axis.extent));
    }
    if (op.has_reduction()) {
      compiler.push_level(&program->inner);
      for (size_t r = 0; r < op.reduce.size(); ++r) {
        program->reduce.push_back(compiler.bind_uniform(op.reduce[r].var, op.reduce[r].extent, r));
      }
    }
    for (const ir::Expr& body : op.bodies) program->results.push_back(compiler.compile(body));
    for (auto* registers : {&program->reduce, &program->spatial}) {
      for (RegisterId& reg : *registers) {
        if (!compiler.uses_register(reg)) reg = {};
      }
    }
    return std::unique_ptr<OperationEvaluator>(new LaneEvaluator(evaluation, op, std::move(program)));
  }

  Status compute_all() override {
    const int64_t total = op_.output()->num_elements();
    std::vector<int64_t> axes(op_.spatial.size(), 0);
    for (int64_t begin = 0; begin < total; begin += kLanes) {
      const int count = std::min<int64_t>(kLanes, total - begin);
      for (int l = 0; l < kLanes; ++l) {
        set_axes(l, axes);
        if (l + 1 < count) advance(axes);
      }
      advance(axes);
      TS_RETURN_IF_ERROR(compute_block());
      for (size_t k = 0; k < op_.outputs.size(); ++k) {
        Storage& out = evaluation_.storage_of(op_.outputs[k].get());
        store_lanes<kLanes>(*this, program_->results[k], out.slot.dtype,
                            out.slot.data + begin * ir::bytes_of(out.slot.dtype), count);
      }
    }
    for (const ir::Buffer& buffer : op_.outputs) {
      Storage& out = evaluation_.storage_of(buffer.get());
      std::fill(out.written.begin(), out.written.end(), 1U);
    }
    return {};
  }

  Status compute_points(std::span<const int64_t> flat_indices) override {
    requested_ += std::ssize(flat_indices);
    // Demand-driven blocks are often nearly empty, so once a good part has been requested, whole
    // blocks are cheaper.
    if (requested_ * 4 > op_.output()->num_elements()) return compute_all();
    for (size_t begin = 0; begin < flat_indices.size(); begin += kLanes) {
      const auto block = flat_indices.subspan(begin, std::min<size_t>(kLanes, flat_indices.size() - begin));
      for (int l = 0; l < kLanes; ++l) {
        int64_t flat = std::cmp_less(l, block.size()) ? block.begin()[l] : block.back();
        std::vector<int64_t> axes(op_.spatial.size());
        for (size_t d = axes.size(); d-- > 0; flat /= op_.spatial[d].extent)
          axes[d] = flat % op_.spatial[d].extent;
        set_axes(l, axes);
      }
      TS_RETURN_IF_ERROR(compute_block());
      for (size_t k = 0; k < op_.outputs.size(); ++k) {
        Storage& out = evaluation_.storage_of(op_.outputs[k].get());
        const int bytes = ir::bytes_of(out.slot.dtype);
        constexpr size_t kMaxBytes = 8;  // of an element
        std::array<std::byte, kLanes * kMaxBytes> values;
        store_lanes<kLanes>(*this, program_->results[k], out.slot.dtype, values.data(), kLanes);
        const std::byte* value = values.data();
        for (const int64_t flat : block) {
          std::copy_n(value, bytes, out.slot.data + flat * bytes);
          if (out.slot.written != nullptr) out.slot.written[flat] = 1;
          value += bytes;
        }
      }
    }
    return {};
  }

 private:
  struct Program {
    Code code;
    Stream outer, inner;
    std::vector<RegisterId> spatial, reduce;  // invalid if the axis is not read
    std::vector<RegisterId> results;
  };

  LaneEvaluator(Evaluation& evaluation, const ir::Operation& op, std::unique_ptr<Program> program)
      : BytecodeMachine<kLanes>(program->code),
        evaluation_(evaluation),
        op_(op),
        program_(std::move(program)) {
    this->slots = evaluation_.slots();
  }

  void set_axes(int lane, const std::vector<int64_t>& axes) {
    for (size_t d = 0; d < axes.size(); ++d) {
      if (program_->spatial[d].valid()) this->ints(program_->spatial[d])[lane] = axes[d];
    }
  }
  void advance(std::vector<int64_t>& axes) const {
    for (size_t d = axes.size(); d-- > 0;) {
      if (++axes[d] < op_.spatial[d].extent) return;
      axes[d] = 0;
    }
  }

  // Computes the results of all lanes, whose axes are set.
  Status compute_block() {
    if (!op_.has_reduction()) return run_stream(program_->outer);
    int64_t points = 1;
    for (const ir::Axis& axis : op_.reduce) points *= axis.extent;
    const RegisterId result = program_->results[0];
    const DType dtype = op_.output()->dtype;
    const Scalar identity = identity_value(dtype);
    if (op_.combiner == Combiner::kArgMax || op_.combiner == Combiner::kArgMin) {
      switch (register_kind(dtype)) {
        case RegisterKind::kInt:
          if (dtype == DType::kU64) {
            return reduce_arg<uint64_t>(points, identity,
                                        [&] { return reinterpret_cast<uint64_t*>(this->ints(result)); });
          }
          return reduce_arg<int64_t>(points, identity, [&] { return this->ints(result); });
        case RegisterKind::kF32:
          return reduce_arg<float>(points, identity, [&] { return this->floats(result); });
        case RegisterKind::kF64:
          return reduce_arg<double>(points, identity, [&] { return this->doubles(result); });
      }
    }
    switch (register_kind(dtype)) {
      case RegisterKind::kInt:
        if (dtype == DType::kU64)
          return reduce<uint64_t>(points, identity, [&] { return this->ints(result); });
        return reduce<uint64_t, int64_t>(points, identity, [&] { return this->ints(result); });
      // Sums and products are accumulated in double and rounded once. This is closer to the exact
      // value than any order of rounded operations, so no schedule is favoured.
      case RegisterKind::kF32:
        return reduce<double>(points, identity, [&] { return this->floats(result); });
      case RegisterKind::kF64:
        return reduce<double>(points, identity, [&] { return this->doubles(result); });
    }
    return {};
  }

  Scalar identity_value(DType dtype) const {
    const ir::Expr e = ir::identity_of(op_.combiner, dtype);
    if (const auto* f = ir::as<ir::FloatImm>(e)) return ir::scalar_float(dtype, f->value);
    const auto value = ir::as_int(e);
    TS_CHECK(value.has_value(), "identity is not a constant");
    return ir::scalar_int(dtype, *value);
  }

  Status run_stream(const Stream& stream) {
    if (this->execute(stream)) return {};
    if (!nested_.ok()) return nested_.error();
    const Fault& fault = this->fault();
    const LoadSite& site = program_->code.sites[fault.site];
    return Error{ErrorCode::kInvalidArgument, "operation '" + op_.name + "'",
                 "read out of range: index " + std::to_string(fault.index) + " of dimension " +
                     std::to_string(site.dimension.value()) + " of '" + site.load->buffer->name +
                     "' with shape " + shape_text(site.load->buffer->shape)};
  }

  // Calls step() once per point of the reduction, in row-major order, after executing the point's
  // code.
  template <class Step>
  Status for_each_point(int64_t points, Step step) {
    if (points == 0) return {};
    TS_RETURN_IF_ERROR(run_stream(program_->outer));
    std::vector<int64_t> r(op_.reduce.size(), 0);
    const auto& offsets = program_->code.uniform;
    for (int64_t p = 0; p < points; ++p) {
      for (const UniformId k : offsets.ids()) {
        int64_t sum = 0;
        for (const UniformOffset::Term& t : offsets[k].terms) sum += t.coefficient * r[t.counter];
        this->uniform[k] = sum;
      }
      for (size_t d = 0; d < r.size(); ++d) {
        if (program_->reduce[d].valid()) std::fill_n(this->ints(program_->reduce[d]), kLanes, r[d]);
      }
      TS_RETURN_IF_ERROR(run_stream(program_->inner));
      step();
      for (size_t d = r.size(); d-- > 0;) {
        if (++r[d] < op_.reduce[d].extent) break;
        r[d] = 0;
      }
    }
    return {};
  }

  template <class Accumulator, class Order = Accumulator, class Result>
  Status reduce(int64_t points, const Scalar& identity, Result result) {
    const DType dtype = op_.output()->dtype;
    const bool ordered = op_.combiner == Combiner::kMax || op_.combiner == Combiner::kMin;
    const Accumulator start = ir::is_float(dtype) ? static_cast<Accumulator>(identity.f)
                                                  : static_cast<Accumulator>(static_cast<Order>(identity.i));
    Accumulator acc[kLanes];
    std::fill_n(acc, kLanes, start);
    if (ordered) {
      Order best[kLanes];
      std::fill_n(best, kLanes, static_cast<Order>(start));
      TS_RETURN_IF_ERROR(for_each_point(points, [&] { accumulate(op_.combiner, result(), best, kLanes); }));
      std::copy_n(best, kLanes, acc);
    } else {
      TS_RETURN_IF_ERROR(for_each_point(points, [&] { accumulate(op_.combiner, result(), acc, kLanes); }));
    }
    for (int l = 0; l < kLanes; ++l) {
      this->set_scalar(program_->results[0], l,
                       ir::is_float(dtype) ? ir::scalar_float(dtype, acc[l])
                                           : ir::scalar_int(dtype, static_cast<int64_t>(acc[l])));
    }
    return {};
  }

  template <class T, class Result>
  Status reduce_arg(int64_t points, const Scalar& identity, Result result) {
    const bool is_max = op_.combiner == Combiner::kArgMax;
    const DType index_dtype = op_.outputs[1]->dtype;
    T best[kLanes];
    int64_t best_index[kLanes];
    std::fill_n(best, kLanes,
                std::is_floating_point_v<T> ? static_cast<T>(identity.f) : static_cast<T>(identity.i));
    std::fill_n(best_index, kLanes, ir::as_int(ir::identity_of(Combiner::kMin, index_dtype)).value());
    TS_RETURN_IF_ERROR(for_each_point(points, [&] {
      accumulate_arg<T>(is_max, result(), this->ints(program_->results[1]), best, best_index, kLanes);
    }));
    std::copy_n(best, kLanes, result());
    std::copy_n(best_index, kLanes, this->ints(program_->results[1]));
    return {};
  }

  bool on_missing(const Instruction& check) override {
    const BufferSlot& slot = this->slots[check.slot];
    const int64_t* address = this->ints(check.a);
    const int64_t* mask = check.c.valid() ? this->ints(check.c) : nullptr;
    const int64_t offset = this->uniform[check.uniform];
    std::vector<int64_t> missing;
    for (int l = 0; l < kLanes; ++l) {
      const int64_t flat = address[l] + offset;
      if ((mask == nullptr || mask[l] != 0) && slot.written[flat] != slot.epoch) missing.push_back(flat);
    }
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    nested_ = evaluation_.demand(check.slot, missing);
    return nested_.ok();
  }

  Evaluation& evaluation_;
  const ir::Operation& op_;
  std::unique_ptr<Program> program_;
  Status nested_;
  int64_t requested_ = 0;
};

Status Evaluation::bind(std::span<const Tensor> inputs) {
  size_t input = 0;
  std::vector<bool> is_input;
  for (size_t o = 0; o < workload_.operations.size(); ++o) {
    const ir::Operation& op = *workload_.operations[o];
    for (const ir::Buffer& buffer : op.outputs) {
      Storage s;
      s.buffer = buffer.get();
      s.slot.dtype = buffer->dtype;
      if (op.is_placeholder()) {
        if (input == inputs.size()) {
          return Error{ErrorCode::kInvalidArgument, "input '" + op.name + "'", "no tensor was given for it"};
        }
        const Tensor& t = inputs[input++];
        if (t.dtype != buffer->dtype || t.shape != buffer->shape || t.data.size() != t.num_bytes()) {
          return Error{ErrorCode::kInvalidArgument, "input '" + op.name + "'",
                       "expected " + std::string(ir::to_string(buffer->dtype)) + shape_text(buffer->shape) +
                           ", got " + std::string(ir::to_string(t.dtype)) + shape_text(t.shape)};
        }
        // Only read: no operation writes a placeholder.
        s.slot.data = const_cast<std::byte*>(t.data.data());
      } else {
        const int64_t n = buffer->num_elements();
        s.owned.resize(ir::bytes_of(buffer->dtype, n));
        if (lazy_) s.written.assign(std::max<int64_t>(n, 1), 0);
      }
      producer_.push_back(o);
      slots_[buffer.get()] = storage_.push_back(std::move(s));
    }
  }
  if (input != inputs.size()) {
    return Error{ErrorCode::kInvalidArgument, "",
                 std::to_string(inputs.size()) + " input tensors were given, but the workload has " +
                     std::to_string(input)};
  }
  for (Storage& s : storage_) {
    if (s.slot.data == nullptr) s.slot.data = s.owned.data();
    if (!s.written.empty()) s.slot.written = s.written.data();
  }
  for (const ir::OperationRef& op : workload_.operations) {
    if (op->is_placeholder()) {
      evaluators_.push_back(nullptr);
    } else if (op->output()->num_elements() < kBlockLanes / 8) {
      evaluators_.push_back(LaneEvaluator<1>::create(*this, *op));
    } else {
      evaluators_.push_back(LaneEvaluator<kBlockLanes>::create(*this, *op));
    }
  }
  return {};
}

Status Evaluation::compute_all() {
  for (const auto& evaluator : evaluators_) {
    if (evaluator) TS_RETURN_IF_ERROR(evaluator->compute_all());
  }
  return {};
}

Status Evaluation::demand(SlotId slot, std::span<const int64_t> flat_indices) {
  return evaluators_[producer_[slot]]->compute_points(flat_indices);
}

}  // namespace

Result<std::vector<Tensor>> evaluate(const ir::Workload& workload, std::span<const Tensor> inputs) {
  Evaluation evaluation(workload, false);
  TS_RETURN_IF_ERROR(evaluation.bind(inputs));
  TS_RETURN_IF_ERROR(evaluation.compute_all());
  std::vector<Tensor> outputs;
  for (const ir::Buffer& buffer : workload.outputs) {
    Tensor t;
    t.dtype = buffer->dtype;
    t.shape = buffer->shape;
    const Storage& s = evaluation.storage_of(buffer.get());
    t.data.assign(s.slot.data, s.slot.data + t.num_bytes());
    outputs.push_back(std::move(t));
  }
  return outputs;
}

Result<std::vector<Scalar>> evaluate_points(const ir::Workload& workload, std::span<const Tensor> inputs,
                                            size_t output, std::span<const int64_t> flat_indices) {
  TS_CHECK(output < workload.outputs.size(), "evaluate_points: no such output");
  const ir::Buffer& buffer = workload.outputs[output];
  for (int64_t flat : flat_indices) {
    if (flat < 0 || flat >= buffer->num_elements()) {
      return Error{
          ErrorCode::kInvalidArgument, "output '" + buffer->name + "'",
          "element " + std::to_string(flat) + " is out of range for shape " + shape_text(buffer->shape)};
    }
  }
  Evaluation evaluation(workload, true);
  TS_RETURN_IF_ERROR(evaluation.bind(inputs));
  const auto op = workload.producer_of(buffer.get());
  TS_CHECK(op.has_value(), "output without a producer");
  if (!workload.operations[*op]->is_placeholder()) {
    TS_RETURN_IF_ERROR(evaluation.compute_points(*op, flat_indices));
  }
  std::vector<Scalar> values;
  const Storage& s = evaluation.storage_of(buffer.get());
  for (int64_t flat : flat_indices) {
    values.push_back(ir::load_scalar(buffer->dtype, s.slot.data + flat * ir::bytes_of(buffer->dtype)));
  }
  return values;
}

}  // namespace tensorsmith::lower
