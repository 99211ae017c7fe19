#include "learn/lm/prompt.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "ir/analysis.h"
#include "ir/linear.h"
#include "learn/latency/device_columns.h"

namespace tensorsmith::learn::lm {

namespace {

// Indices of vocabulary amounts that prompts use.
constexpr int kDeviceAmounts = 0;  // the first of kDeviceColumns amounts
constexpr int kThreads = kDeviceColumns;
constexpr int kVectorRegisters = kThreads + 1;
constexpr int kShareOfWork = kThreads + 2, kStage = kThreads + 3, kFromEnd = kThreads + 4,
              kGuarded = kThreads + 5;
static_assert(kGuarded < 32, "the upper half is for answers");

double points_of(const ir::Operation& op) {
  double points = 1;
  for (const auto* axes : {&op.spatial, &op.reduce})
    for (const auto& axis : *axes) points *= axis.extent;
  return points;
}

class PromptMaker {
 public:
  PromptMaker(const ir::Workload& workload, const PromptOptions& options)
      : workload_(workload), options_(options) {
    for (const auto& op : workload.operations)
      if (!op->is_placeholder()) all_points_ += points_of(*op);
  }

  void add_device(const target::Device& device) {
    out_.add_word(WordKind::kPosition, "device");
    const auto columns = device_columns(device);
    for (int c = 0; c < kDeviceColumns; ++c) out_.add_amount(kDeviceAmounts + c, columns[c] / 16);
    out_.add_amount(kThreads, std::log2(device.compute_units() + 1.0) / 4);
    out_.add_amount(kVectorRegisters, device.register_count() / 32.0);
    out_.add_word(WordKind::kDevice, device.arch);
    out_.add_word(WordKind::kDevice, "vectors of " + std::to_string(device.register_bytes()));
    out_.end_position();
  }

  void add_sketch(std::string_view text) {
    while (!text.empty()) {
      const size_t end = text.find("; ");
      std::string_view plan = text.substr(0, end);
      out_.add_word(WordKind::kPosition, "plan");
      while (!plan.empty()) {
        const size_t space = plan.find(' ');
        const std::string_view word = plan.substr(0, space);
        if (!word.empty()) out_.add_word(WordKind::kSketch, without_number(word));
        plan = space == std::string_view::npos ? std::string_view() : plan.substr(space + 1);
      }
      out_.end_position();
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 2);
    }
  }

  void add_operation(size_t number) {
    const ir::Operation& op = *workload_.operations[number];
    add_head(op, number);
    add_axes(op, number, op.spatial, false);
    add_axes(op, number, op.reduce, true);
    add_reads(op, number);
  }

  // Selects operations in descending order of work while they fit; returns them in their original
  // order.
  std::vector<size_t> chosen() const {
    std::vector<size_t> order(workload_.operations.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::erase_if(order, [&](size_t i) { return workload_.operations[i]->is_placeholder(); });
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return points_of(*workload_.operations[a]) > points_of(*workload_.operations[b]);
    });
    size_t positions = out_.size();
    std::vector<size_t> result;
    for (const size_t i : order) {
      const ir::Operation& op = *workload_.operations[i];
      size_t loads = 0;
      for (const auto& body : op.bodies) loads += ir::loads_of(body).size();
      positions += 1 + op.spatial.size() + op.reduce.size() + std::min<size_t>(loads, kMostReads);
      if (positions > options_.most && !result.empty()) break;
      result.push_back(i);
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  Positions take() {
    if (out_.size() > options_.most) {  // happens if one operation has very many axes
      out_.begin.resize(options_.most + 1);
      out_.features.resize(out_.begin.back());
    }
    return std::move(out_);
  }

 private:
  static constexpr size_t kMostReads = 8;

  void add_head(const ir::Operation& op, size_t number) {
    out_.add_word(WordKind::kPosition, "operation");
    out_.add_word(WordKind::kOperation, without_number(op.name));
    out_.add_word(WordKind::kOperation, std::string("combiner ") + std::string(ir::to_string(op.combiner)));
    out_.add_word(WordKind::kOperation,
                  std::string("dtype ") + std::string(ir::to_string(op.output()->dtype)));
    if (is_output(op)) out_.add_word(WordKind::kOperation, "output");
    out_.add_number(NumberKind::kElements, op.output()->num_elements());
    out_.add_amount(kShareOfWork, points_of(op) / std::max(all_points_, 1.0));
    out_.add_amount(kStage, number / 16.0);
    std::map<std::string, int> nodes;
    for (const auto& body : op.bodies)
      ir::for_each_expr(body, [&](const ir::Expr& e) {
        if (const auto* unary = ir::as<ir::Unary>(e)) ++nodes[std::string(ir::to_string(unary->op))];
        if (const auto* binary = ir::as<ir::Binary>(e); binary && e->dtype != ir::DType::kI64)
          ++nodes[std::string(ir::to_string(binary->op))];
        if (const auto* call = ir::as<ir::Call>(e)) ++nodes[std::string(ir::to_string(call->intrinsic))];
        if (ir::as<ir::Select>(e) != nullptr) ++nodes["select"];
      });
    for (const auto& [name, count] : nodes)
      out_.add_word(WordKind::kOperation, "node " + name, static_cast<float>(std::log2(1.0 + count) / 2));
    out_.end_position();
  }

  bool is_output(const ir::Operation& op) const {
    return std::any_of(workload_.outputs.begin(), workload_.outputs.end(),
                       [&](const ir::Buffer& b) { return b == op.output(); });
  }

  void add_axes(const ir::Operation& op, size_t number, const std::vector<ir::Axis>& axes, bool reduce) {
    for (size_t a = 0; a < axes.size(); ++a) {
      out_.add_word(WordKind::kPosition, reduce ? "reduce axis" : "axis");
      out_.add_word(WordKind::kAxis, without_number(axes[a].var.name()));
      out_.add_word(WordKind::kOperation, without_number(op.name), 0.5F);
      out_.add_number(NumberKind::kExtent, axes[a].extent);
      out_.add_amount(kStage, number / 16.0);
      out_.add_amount(kFromEnd, (axes.size() - 1 - a) / 4.0);
      out_.end_position();
    }
  }

  void add_reads(const ir::Operation& op, size_t number) {
    size_t added = 0;
    std::vector<std::pair<const ir::BufferNode*, std::vector<int64_t>>> seen;
    for (const auto& body : op.bodies) {
      for (const ir::Load* load : ir::loads_of(body)) {
        if (added == kMostReads) return;
        const auto strides = strides_of(op, *load);
        const auto same = std::pair(load->buffer.get(), strides.value_or(std::vector<int64_t>()));
        if (std::find(seen.begin(), seen.end(), same) != seen.end()) continue;
        seen.push_back(same);
        ++added;
        out_.add_word(WordKind::kPosition, "read");
        const auto producer = workload_.producer_of(load->buffer.get());
        const ir::Operation* made = producer ? workload_.operations[*producer].get() : nullptr;
        const bool placeholder = made != nullptr && made->is_placeholder();
        out_.add_word(WordKind::kOperation, made == nullptr     ? "of nothing"
                                            : made->is_constant ? "of a constant"
                                            : placeholder       ? "of an input"
                                                                : "of a result");
        if (made != nullptr && !placeholder)
          out_.add_word(WordKind::kOperation, without_number(made->name), 0.5F);
        out_.add_number(NumberKind::kElements, load->buffer->num_elements());
        out_.add_amount(kStage, number / 16.0);
        if (!strides) {
          out_.add_word(WordKind::kAxis, "not affine");
        } else {
          for (size_t a = 0; a < strides->size(); ++a) add_stride(op, a, (*strides)[a]);
        }
        out_.end_position();
      }
    }
  }

  void add_stride(const ir::Operation& op, size_t axis, int64_t stride) {
    const bool reduce = axis >= op.spatial.size();
    const auto& list = reduce ? op.reduce : op.spatial;
    const size_t from_end = list.size() - 1 - (reduce ? axis - op.spatial.size() : axis);
    const char* size = stride == 0             ? "0"
                       : std::abs(stride) == 1 ? "1"
                       : std::abs(stride) < 16 ? "few"
                                               : "many";
    out_.add_word(WordKind::kAxis,
                  std::string(reduce ? "reduce " : "spatial ") + std::to_string(from_end) + " moves " + size);
  }

  // Returns, for each axis of the operation (spatial, then reduce), by how many elements a step
  // along it moves the address; nothing if the access is not affine.
  static std::optional<std::vector<int64_t>> strides_of(const ir::Operation& op, const ir::Load& load) {
    const auto by_dimension = load.buffer->effective_strides();
    std::vector<int64_t> strides(op.spatial.size() + op.reduce.size(), 0);
    for (size_t d = 0; d < load.indices.size(); ++d) {
      const auto sum = ir::as_affine(load.indices[d]);
      if (!sum) return std::nullopt;
      for (const auto& term : sum->terms) {
        size_t a = 0;
        for (const auto* axes : {&op.spatial, &op.reduce})
          for (const auto& axis : *axes) {
            if (axis.var == term.atom) strides[a] += term.coefficient * by_dimension[d];
            ++a;
          }
      }
    }
    return strides;
  }

  const ir::Workload& workload_;
  const PromptOptions& options_;
  double all_points_ = 0;
  Positions out_;
};

}  // namespace

std::string_view without_number(std::string_view name) {
  size_t end = name.size();
  while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') --end;
  if (end == name.size()) return name;
  if (end > 1 && name[end - 1] == '_') return name.substr(0, end - 1);
  return end > 1 ? name.substr(0, end) : name;  // "i0" and "i1" stay different axes
}

Positions make_prompt(const ir::Workload& workload, const target::Device& device, std::string_view sketch,
                      const PromptOptions& options) {
  PromptMaker maker(workload, options);
  if (options.device) maker.add_device(device);
  maker.add_sketch(sketch);
  for (const size_t number : maker.chosen()) maker.add_operation(number);
  return maker.take();
}

}  // namespace tensorsmith::learn::lm
