#include "feature/store_values.h"

#include <algorithm>
#include <cstdlib>

#include "feature/value_ops.h"

namespace tensorsmith::feature {

StoredBufferId StoreValues::id_of(const ir::BufferNode* buffer) {
  const StoredBufferId known = collector_.find_buffer(buffer);
  if (known.valid()) return known;
  const sched::Layout* layout = layout_of(buffer);
  layouts_.push_back(layout);
  if (layout == nullptr) return collector_.buffer(buffer, buffer->shape, buffer->strides);
  std::vector<int64_t> shape;
  for (const sched::LayoutDim& d : *layout) shape.push_back(d.extent);
  return collector_.buffer(buffer, shape, {});
}

const sched::Layout* StoreValues::layout_of(const ir::BufferNode* buffer) const {
  const sched::StageId producer = schedule_->producer_of(buffer);
  if (!producer.valid() || !schedule_->stages[producer].layout) return nullptr;
  return &*schedule_->stages[producer].layout;
}

void StoreValues::add_access(const ir::BufferNode* buffer, const std::vector<Form>& indices, bool write) {
  const StoredBufferId id = id_of(buffer);
  if (const sched::Layout* layout = layouts_[id]) {
    add_digits(*layout, *buffer, [&](size_t d) { return indices[d]; });
  } else {
    for (const Form& index : indices) collector_.add_index(index);
  }
  collector_.add_access(id, write);
}

template <class IndexOf>
void StoreValues::add_digits(const sched::Layout& layout, const ir::BufferNode& buffer,
                             const IndexOf& index_of) {
  for (const sched::LayoutDim& d : layout) {
    const size_t dim = d.dim;
    Form digit = forms_.floordiv(index_of(dim), d.divisor);
    if (buffer.shape[dim] > d.divisor * d.extent) digit = forms_.floormod(digit, d.extent);
    collector_.add_index(digit);
  }
}

void StoreValues::begin(const sched::Stage& stage, const std::vector<Form>& axes) {
  const ir::Operation& op = *stage.op;
  axis_bindings_.clear();
  for (size_t r = 0; r < axes.size(); ++r) {
    const ir::Axis& axis = r < op.spatial.size() ? op.spatial[r] : op.reduce[r - op.spatial.size()];
    axis_bindings_.emplace_back(axis.var.get(), axes[r]);
  }
  reads_ = stage.reads;
  read_indices_.assign(reads_->indices().size(), {});
}

void StoreValues::visit_value(const ir::Expr& e, OpCounts& ops) {
  if (e.dtype() == ir::DType::kI64) {
    count_form(forms_.of(e, axis_bindings_), ops);
  } else if (e.dtype() == ir::DType::kBool) {
    condition(e, ops);
  } else {
    run(bodies_.of(e, reads_), ops);
  }
}

void StoreValues::run(const Body& body, OpCounts& ops) {
  ops.add(body.ops);
  for (const BodyPart& part : body.parts) {
    switch (part.kind) {
      case BodyPart::Kind::kReads:
        run_reads(part.reads, ops);
        break;
      case BodyPart::Kind::kSelect:
        run_select(part, ops);
        break;
      case BodyPart::Kind::kIndex:
      case BodyPart::Kind::kCondition:
        visit_value(*part.expr, ops);
        break;
      case BodyPart::Kind::kDivision:
        run_division(part, ops);
        break;
    }
  }
}

void StoreValues::run_select(const BodyPart& part, OpCounts& ops) {
  const auto& select = *ir::as<ir::Select>(*part.expr);
  OpCounts of_condition;
  const Truth truth = condition(select.condition, of_condition);
  if (truth != Truth::kNo) run(part.a, ops);
  if (truth != Truth::kYes) run(part.b, ops);
  if (truth != Truth::kOpen) return;
  ops.add(of_condition);
  count_select(select, part.expr->dtype(), ops);
}

// TVM turns x / c into a product, or into x for c = 1.
void StoreValues::run_division(const BodyPart& part, OpCounts& ops) {
  const auto& binary = *ir::as<ir::Binary>(*part.expr);
  const auto divisor = constant_value(ir::as<ir::Cast>(binary.b)->a);
  if (divisor) {
    if (*divisor != 1) ops.add("mul", true);
    return run(part.a, ops);
  }
  count_binary(binary.op, binary.a.dtype(), ops);
  run(part.a, ops);
  run(part.b, ops);
}

StoreValues::ReadIndex& StoreValues::read_index(sched::Reads::IndexId id) {
  ReadIndex& index = read_indices_[id];
  if (index.known) return index;
  index.known = true;
  index.form = forms_.rewritten(forms_.of(*reads_->indices()[id].expr, axis_bindings_));
  index.plain = is_plain(index.form);
  if (index.plain) count_form(index.form, index.ops);
  return index;
}

bool StoreValues::is_plain(const Form& form) const {
  const auto terms = forms_.terms(form);
  return std::all_of(terms.begin(), terms.end(), [&](const FormArena::Term& term) {
    const FormArena::Atom& atom = forms_.atom(term);
    return atom.kind != FormArena::Kind::kEither && atom.kind != FormArena::Kind::kOpaque &&
           is_plain(atom.a) && is_plain(atom.b);
  });
}

void StoreValues::run_reads(const ReadRun& run, OpCounts& ops) {
  bool plain = true;
  for (const auto& [id, times] : run.indices) plain = read_index(id).plain && plain;
  if (plain) {
    for (const auto& tensor : run.tensors) add_reads(tensor.buffer, tensor.indices.data(), tensor.reads);
    for (const auto& [id, times] : run.indices) {
      const OpCounts& own = read_indices_[id].ops;
      for (size_t i = 0; i < own.counts.size(); ++i) ops.counts[i] += times * own.counts[i];
    }
    return;
  }
  // A read inside an index is added after the read that has this index.
  for (const ir::Load* load : run.loads) {
    const sched::Reads::IndexId* indices = reads_->indices_of(load);
    add_reads(load->buffer.get(), indices, 1);
    for (size_t d = 0; d < load->indices.size(); ++d) count_form(read_indices_[indices[d]].form, ops);
  }
}

// `indices`: those of all the reads, concatenated.
void StoreValues::add_reads(const ir::BufferNode* buffer, const sched::Reads::IndexId* indices,
                            size_t reads) {
  const StoredBufferId id = id_of(buffer);
  const size_t rank = buffer->shape.size();
  if (const sched::Layout* layout = layouts_[id]) {
    for (size_t read = 0; read < reads; ++read, indices += rank) {
      add_digits(*layout, *buffer, [&](size_t d) { return read_indices_[indices[d]].form; });
      collector_.add_access(id, false);
    }
    return;
  }
  for (size_t i = 0; i < rank * reads; ++i) {
    ReadIndex& index = read_indices_[indices[i]];
    if (!index.id.valid()) {
      index.id = collector_.add_index(index.form);
    } else {
      collector_.add_known_index(index.id);
    }
  }
  collector_.add_access(id, false, reads);
}

void StoreValues::count_form(const Form& form, OpCounts& ops) {
  int parts = form.constant != 0 || form.count == 0 ? 1 : 0;
  bool first = true;
  for (uint32_t i = 0; i < form.count; ++i) {
    const FormArena::Term term = forms_.terms(form)[i];
    ++parts;
    if (term.coefficient != 1 && !(term.coefficient == -1 && !first)) ops.add("mul", false);
    first = false;
    count_atom(term, ops);
  }
  ops.add("addsub", false, parts - 1);
}

void StoreValues::count_atom(const FormArena::Term& term, OpCounts& ops) {
  const FormArena::Atom atom = forms_.atom(term);
  switch (atom.kind) {
    case FormArena::Kind::kVariable:
      return;
    case FormArena::Kind::kFloorDiv:
    case FormArena::Kind::kFloorMod:
      ops.add("divmod", false);
      return count_form(atom.a, ops);
    case FormArena::Kind::kMin:
    case FormArena::Kind::kMax:
      ops.add("cmp", false);
      count_form(atom.a, ops);
      return count_form(atom.b, ops);
    case FormArena::Kind::kEither:
    case FormArena::Kind::kOpaque:
      return run(bodies_.of(*atom.expr, reads_), ops);
  }
}

std::optional<int64_t> StoreValues::constant_value(const ir::Expr& e) {
  const auto* binary = ir::as<ir::Binary>(e);
  if (binary != nullptr && binary->op == ir::BinaryOp::kMul) {  // a product of two constant sums
    const auto a = constant_value(binary->a), b = constant_value(binary->b);
    return a && b ? std::optional<int64_t>(*a * *b) : std::nullopt;
  }
  const Form form = forms_.of(e, axis_bindings_);
  return form.is_constant() ? std::optional<int64_t>(form.constant) : std::nullopt;
}

StoreValues::Truth StoreValues::condition(const ir::Expr& e, OpCounts& ops) {
  if (const auto* imm = ir::as<ir::IntImm>(e)) return imm->value != 0 ? Truth::kYes : Truth::kNo;
  if (const auto* unary = ir::as<ir::Unary>(e); unary != nullptr && unary->op == ir::UnaryOp::kNot) {
    const Truth inner = condition(unary->a, ops);
    if (inner == Truth::kOpen) ++ops["bool_op"];
    return inner == Truth::kOpen ? inner : inner == Truth::kYes ? Truth::kNo : Truth::kYes;
  }
  const auto* binary = ir::as<ir::Binary>(e);
  if (binary != nullptr && (binary->op == ir::BinaryOp::kAnd || binary->op == ir::BinaryOp::kOr)) {
    const Truth decides = binary->op == ir::BinaryOp::kAnd ? Truth::kNo : Truth::kYes;
    OpCounts left, right;
    const Truth a = condition(binary->a, left), b = condition(binary->b, right);
    if (a == decides || b == decides) return decides;
    if (a == Truth::kOpen) ops.add(left);
    if (b == Truth::kOpen) ops.add(right);
    if (a != Truth::kOpen || b != Truth::kOpen) return a == Truth::kOpen ? a : b;
    ++ops["bool_op"];
    return Truth::kOpen;
  }
  if (binary != nullptr && ir::is_comparison(binary->op) && binary->a.dtype() == ir::DType::kI64) {
    const Form difference =
        forms_.add(forms_.of(binary->a, axis_bindings_), forms_.of(binary->b, axis_bindings_), -1);
    const Truth truth = compare(binary->op, forms_.range(difference));
    if (truth == Truth::kOpen) count_comparison(difference, ops);
    return truth;
  }
  run(bodies_.of(e, reads_), ops);
  return Truth::kOpen;
}

// Decides `d op 0` from the range of d.
StoreValues::Truth StoreValues::compare(ir::BinaryOp op, const ValueRange& d) {
  const auto decide = [](bool always, bool never) {
    return always ? Truth::kYes : never ? Truth::kNo : Truth::kOpen;
  };
  switch (op) {
    case ir::BinaryOp::kLt:
      return decide(d.max < 0, d.min >= 0);
    case ir::BinaryOp::kLe:
      return decide(d.max <= 0, d.min > 0);
    case ir::BinaryOp::kGt:
      return decide(d.min > 0, d.max <= 0);
    case ir::BinaryOp::kGe:
      return decide(d.min >= 0, d.max < 0);
    case ir::BinaryOp::kEq:
      return decide(d.min == 0 && d.max == 0, d.min > 0 || d.max < 0);
    case ir::BinaryOp::kNe:
      return decide(d.min > 0 || d.max < 0, d.min == 0 && d.max == 0);
    default:
      return Truth::kOpen;
  }
}

// Counts a comparison as it is written with the terms spread over both sides so that no coefficient
// is negative. For a single quotient, the constant is multiplied by the divisor: floordiv(x, d) >=
// c is x >= d * c.
void StoreValues::count_comparison(const Form& difference, OpCounts& ops) {
  ops.add("cmp", false);
  if (difference.count == 1 && std::abs(forms_.terms(difference)[0].coefficient) == 1) {
    const FormArena::Atom atom = forms_.atom(forms_.terms(difference)[0]);
    if (atom.kind == FormArena::Kind::kFloorDiv) return count_form(atom.a, ops);
    // TVM writes floormod(floordiv(x, d), c) as floordiv(floormod(x, c * d), d) before.
    if (atom.kind == FormArena::Kind::kFloorMod && atom.a.count == 1 && atom.a.constant == 0) {
      const FormArena::Atom inner = forms_.atom(forms_.terms(atom.a)[0]);
      if (inner.kind == FormArena::Kind::kFloorDiv) {
        ops.add("divmod", false);
        return count_form(inner.a, ops);
      }
    }
  }
  int left = 0, right = 0;
  for (uint32_t i = 0; i < difference.count; ++i) {
    const FormArena::Term term = forms_.terms(difference)[i];
    ++(term.coefficient > 0 ? left : right);
    if (term.coefficient != 1 && term.coefficient != -1) ops.add("mul", false);
    count_atom(term, ops);
  }
  if (difference.constant != 0) ++(left == 0 ? left : right);
  ops.add("addsub", false, std::max(left - 1, 0) + std::max(right - 1, 0));
}

}  // namespace tensorsmith::feature
