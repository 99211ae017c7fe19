// dot(stage, iterator)
//   Arguments: a contraction of 8-bit integers or of bf16 elements, and its reduce loop. As many steps of the
//     loop as have elements that fill 32 bits (four or two) become one step. A packed element is such an i32.
//   Rewrite, bf16: ir::Intrinsic::kDot2 computes two steps at once, from packed elements of two. The last one
//     is filled with zeros beyond the end of the loop.
//       T.words[..., q, ...]   packed elements of two of T, which replace the stage T = f32(x)
//       C.product[i, j]        = sum_q dot2(X.words[i, q], Y.words[q, j])
//       C[i, j]                = product
//     The packed elements of a constant are made ahead of time: its placeholder is replaced, and the stage T is
//     removed.
//   Rewrite, 8 bits: the factors are tensors of integers x minus a zero point z. In
//       sum (x - z)(y - u) = sum x y - z sum y - u sum x + N z u      (N: number of terms)
//     ir::Intrinsic::kDot4 computes the sum of x y, four steps at once. Bytes that do not have the signedness
//     that it requires are shifted by 128, which flips their top bit, and so are their zero points.
//       C.sums[i]              = sum dot4(X.words, 1 1 1 1), needed if the other factor has a zero point
//       C.product[i, j]        = sum_q dot4(X.words[i, q], Y.words[q, j])
//       C[i, j]                = product - z sums - u sums + N z u
//     The packed elements of a constant have the sums in one more step of the loop, where C reads them. With a
//     constant of reduced range, ir::Intrinsic::kDot4Narrow is used, also for the sums.
//
// dot16(stage, iterator)
//   As dot, for 8-bit integers as i16, from which zero points are subtracted first: 32 bits hold two of them,
//     and ir::Intrinsic::kDot2I16 computes two steps at once. For machines that cannot multiply bytes exactly.
//       C.product[i, j]        = sum_q dot2i16(X.words[i, q], Y.words[q, j])
//       C[i, j]                = product
//   Checks: C = sum A * B at root, its loops untouched, of f32 or of i32; A and B are casts f32(x) of bf16
//     tensors or i32(x) of 8-bit tensors, or stages that only C reads: f32(x), or i32(x) - z, or 0 where a
//     border is padded; z does not change along reduce loops. One dimension of each tensor is indexed by the
//     reduce loop, from its first to its last element; no other dimension's index uses the loop.
//
//     C[i, j] = sum_k (i32(A[i, k]) - za) * (i32(B[k, j]) - zb)     (k: 512)
//        dot C, k    =>    C.product[i, j] = sum_q dot4(A.words[i, q], B.words[q, j])     (q: 128)
//     C[i, j] = sum_k f32(A[i, k]) * f32(B[k, j])     (k: 512)
//        dot C, k    =>    C.product[i, j] = sum_q dot2(A.words[i, q], B.words[q, j])     (q: 256)
#include <algorithm>
#include <span>

#include "ir/analysis.h"
#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"
#include "sched/primitives/short_elements.h"

namespace tensorsmith::sched::primitives {

namespace {

using ir::DType;
using ir::Expr;

constexpr int64_t kOnes = 0x01010101;

Expr i32(int64_t value) { return ir::int_imm(DType::kI32, value); }

// One factor of the products: elements of a tensor, for bytes minus a zero point.
struct Factor {
  StageId stage;         // stage that holds the tensor
  bool centers = false;  // the stage has converted (i32 or f32) values and is replaced by a stage of packed
                         // elements; otherwise it holds the elements
  std::vector<Expr> indices;   // indices of the contraction's read
  size_t dim = 0;              // dimension that the reduce loop indexes
  std::vector<ir::Axis> axes;  // axes of the tensor
  Expr raw;                    // an element, over these axes
  Expr zero;                   // i32, over the contraction's axes; undefined: 0
  Expr centered;               // for i16: an element minus its zero point as i32, over the tensor's axes
  StageId constant;            // the placeholder whose elements are packed ahead of time
  bool flip = false;           // shifted by 128 to the other signedness
  bool totals = false;         // sums are stored behind the packed elements

  int64_t steps() const { return axes[dim].extent; }
  int64_t words() const { return (steps() + per_word() - 1) / per_word(); }
  int64_t per_word() const {
    return raw.dtype() == DType::kBF16 || centered.defined() ? 2 : 4;
  }  // else bytes
  bool is_signed() const { return (raw.dtype() == DType::kI8) != flip; }
};

class Rewrite {
 public:
  // `halves`: 8-bit integers become i16.
  Rewrite(Schedule& schedule, StageId s, const ir::Axis& loop, bool halves)
      : schedule_(schedule), s_(s), op_(schedule.stages[s].op), loop_(loop), halves_(halves) {}

  Status run() {
    const Error no =
        illegal("stage '" + op_->name + "' is not a sum of products of " +
                (halves_ ? "" : "two bf16 elements or of ") + "two 8-bit integers minus their zero points");
    if (op_->combiner != ir::Combiner::kSum || (halves_ && sum_dtype() != DType::kI32)) return no;
    const auto* product = ir::as<ir::Binary>(op_->bodies.front());
    if (product == nullptr || product->op != ir::BinaryOp::kMul) return no;
    TS_ASSIGN_OR_RETURN(Factor a, factor(product->a, no));
    TS_ASSIGN_OR_RETURN(Factor b, factor(product->b, no));
    if (a.stage == b.stage) return illegal("both factors are read from '" + stage(a.stage).op->name + "'");
    if (bytes() && !halves_) choose_signs(a, b);
    rewrite(a, b);
    return {};
  }

 private:
  const Stage& stage(StageId s) const { return schedule_.stages[s]; }
  DType sum_dtype() const { return op_->output()->dtype; }
  bool bytes() const { return sum_dtype() == DType::kI32; }

  bool varies_in_reduction(const Expr& e) const {
    for (const ir::Axis& axis : op_->reduce)
      if (ir::uses_var(e, axis.var)) return true;
    return false;
  }

  Result<Factor> factor(const Expr& e, const Error& no) const {
    Factor f;
    const auto* load = ir::as<ir::Load>(e);
    if (load == nullptr) {
      const auto parts = take_apart(e);
      if (!parts) return no;
      load = ir::as<ir::Load>(parts->raw);
      if (load == nullptr) return no;
      f.zero = parts->zero;
    }
    f.stage = schedule_.producer_of(load->buffer.get());
    f.indices = load->indices;
    const Stage& source = stage(f.stage);
    if (is_element(load->buffer->dtype, sum_dtype())) {
      for (const int64_t extent : load->buffer->shape) f.axes.push_back({ir::Var("d"), extent});
      f.raw = ir::load(load->buffer, axis_values(f.axes));
    } else {
      if (source.is_placeholder() || source.op->has_reduction() || source.op->bodies.size() != 1) return no;
      const auto parts = take_apart(source.op->bodies.front());
      if (!parts) return no;
      const std::string name = "stage '" + source.op->name + "'";
      if (source.attach != AttachKind::kRoot || source.layout || source.storage_align)
        return illegal(name + " was scheduled before; this step must come first");
      TS_RETURN_IF_ERROR(check_loops_untouched(schedule_, f.stage));
      if (schedule_.is_output(f.stage) || !only_read_by(f.stage, s_))
        return illegal(name + " is an output, or other stages also read it");
      f.centers = true;
      f.axes = source.op->spatial;
      f.raw = parts->raw;
      if (parts->zero.defined()) f.zero = ir::substitute(parts->zero, at(f));
    }
    if (halves_) {
      TS_RETURN_IF_ERROR(center(f));
    } else if (f.zero.defined() && varies_in_reduction(f.zero)) {
      return illegal("a zero point changes along a reduce loop");
    }
    TS_RETURN_IF_ERROR(find_dimension(f));
    f.constant = constant_of(f);
    return f;
  }

  // Subtracts the zero point from the elements if the differences are certain to fit in i16.
  Status center(Factor& f) const {
    if (f.zero.defined()) {
      const auto* cast = ir::as<ir::Cast>(f.zero);
      const auto imm = ir::as_int(f.zero);
      const bool small =
          imm ? std::abs(*imm) < 1 << 14 : cast != nullptr && ir::bytes_of(cast->a.dtype()) == 1;
      if (!small) return illegal("a zero point may have more than 8 bits");
    }
    if (f.centers) {
      f.centered = stage(f.stage).op->bodies.front();
    } else {
      f.centered = ir::cast(DType::kI32, f.raw);
      for (const std::vector<ir::Axis>* axes : {&op_->spatial, &op_->reduce})
        for (const ir::Axis& axis : *axes)
          if (f.zero.defined() && ir::uses_var(f.zero, axis.var))
            return illegal("a zero point changes along loop '" + axis.var.name() + "'");
      if (f.zero.defined()) f.centered = f.centered - f.zero;
    }
    f.zero = Expr();
    return {};
  }

  // Maps the tensor's axes to the indices that the contraction reads.
  static ir::VarMap at(const Factor& f) {
    ir::VarMap map;
    for (size_t d = 0; d < f.axes.size(); ++d) map[f.axes[d].var.get()] = f.indices[d];
    return map;
  }

  bool only_read_by(StageId source, StageId reader) const {
    for (const StageId r : schedule_.stages.ids())
      if (r != reader && schedule_.stages[r].reads_from(stage(source))) return false;
    return true;
  }

  Status find_dimension(Factor& f) const {
    size_t found = 0;
    bool fits = true;
    for (size_t d = 0; d < f.indices.size(); ++d) {
      if (!ir::uses_var(f.indices[d], loop_.var)) continue;
      ++found;
      f.dim = d;
      const auto* var = ir::as<ir::VarRef>(f.indices[d]);
      fits = fits && var != nullptr && f.axes[d].extent == loop_.extent;
      // The same zero point must apply to all four steps.
      if (f.centers && f.zero.defined() && !halves_) {
        const auto parts = take_apart(stage(f.stage).op->bodies.front());
        fits = fits && !ir::uses_var(parts->zero, f.axes[d].var);
      }
    }
    if (found == 1 && fits) return {};
    return illegal("loop '" + loop_.var.name() + "' is not the index of one whole dimension of '" +
                   stage(f.stage).op->name + "'");
  }

  // Returns the constant that is the only source of the elements, if it can be replaced.
  StageId constant_of(const Factor& f) const {
    const auto loads = ir::loads_of(f.centered.defined() ? f.centered : f.raw);
    if (loads.size() != 1) return {};
    const StageId source = schedule_.producer_of(loads.front()->buffer.get());
    const Stage& constant = stage(source);
    if (!constant.op->is_constant || constant.transform || constant.layout) return {};
    return only_read_by(source, f.centers ? f.stage : s_) ? source : StageId();
  }

  // Returns whether the factor is a constant of reduced range.
  bool reduced_range(const Factor& f) const {
    if (!f.constant.valid() || !stage(f.constant).op->reduced_range) return false;
    const auto* load = ir::as<ir::Load>(f.raw);
    return load != nullptr && load->buffer == stage(f.constant).op->output();
  }

  // Chooses signs: one factor must be unsigned, the other signed. The constant (or else the second
  // factor) becomes the signed one, except for unsigned bytes without a zero point: then the sums
  // of the other factor are not needed. A constant of reduced range keeps its signedness.
  void choose_signs(Factor& a, Factor& b) const {
    Factor& weights = a.constant.valid() && !b.constant.valid() ? a : b;
    Factor& data = &weights == &a ? b : a;
    const bool becomes_unsigned =
        weights.raw.dtype() == DType::kU8 && (!weights.zero.defined() || reduced_range(weights));
    weights.flip = weights.raw.dtype() != (becomes_unsigned ? DType::kU8 : DType::kI8);
    data.flip = data.raw.dtype() != (becomes_unsigned ? DType::kI8 : DType::kU8);
    for (Factor* f : {&a, &b}) {
      if (!f->flip) continue;
      const Expr moved = (f->zero.defined() ? f->zero : i32(0)) + i32(f->is_signed() ? -128 : 128);
      f->zero = ir::is_int_value(moved, 0) ? Expr() : moved;
    }
  }

  std::string name(const std::string& wanted) const { return unique_name(schedule_, wanted); }

  // Returns the elements of a packed element, over axes in which f.dim counts packed elements.
  // Bytes are i32.
  std::vector<Expr> elements(const Factor& f, const std::vector<ir::Axis>& axes) const {
    ir::VarMap map;
    for (size_t d = 0; d < axes.size(); ++d) map[f.axes[d].var.get()] = axes[d].var;
    std::vector<Expr> result;
    for (int64_t j = 0; j < f.per_word(); ++j) {
      const Expr step = Expr(axes[f.dim].var) * Expr(f.per_word()) + Expr(j);
      map[f.axes[f.dim].var.get()] = step;
      Expr element = ir::substitute(halves_ ? f.centered : f.raw, map);
      if (bytes() && !halves_) element = ir::cast(DType::kI32, ir::cast(DType::kU8, element));
      // The value is 0 after the flip.
      const Expr fill = bytes() ? i32(f.flip ? 128 : 0) : ir::make_const(f.raw.dtype(), 0);
      if ((f.words() - 1) * f.per_word() + j >= f.steps())
        element = ir::select(step < Expr(f.steps()), element, fill);
      result.push_back(std::move(element));
    }
    return result;
  }

  Expr word(const Factor& f, const std::vector<ir::Axis>& axes) const {
    std::vector<Expr> parts = elements(f, axes);
    if (!bytes()) return ir::call(ir::Intrinsic::kPair, std::move(parts));
    if (halves_)
      return ir::binary(ir::BinaryOp::kBitOr, ir::binary(ir::BinaryOp::kBitAnd, parts[0], i32(0xffff)),
                        ir::binary(ir::BinaryOp::kShl, parts[1], i32(16)));
    Expr result = parts[0];
    int64_t bit = 0;
    for (const Expr& part : std::span(parts).subspan(1)) {
      const Expr shifted = ir::binary(ir::BinaryOp::kShl, part, i32(bit += 8));
      result = ir::binary(ir::BinaryOp::kBitOr, result, shifted);
    }
    return f.flip ? ir::binary(ir::BinaryOp::kBitXor, result, i32(kOnes * 128)) : result;
  }

  static std::vector<ir::Axis> word_axes(const Factor& f) {
    std::vector<ir::Axis> axes = fresh_axes(f.axes);
    axes[f.dim].extent = f.words();
    return axes;
  }

  // Returns the dimensions whose index is a reduce loop's variable, from the first to the last
  // element. The result is empty if another dimension's index contains a reduce loop.
  std::vector<size_t> reduced_dimensions(const Factor& f) const {
    std::vector<size_t> result;
    std::vector<ir::Var> seen;
    for (size_t d = 0; d < f.indices.size(); ++d) {
      if (!varies_in_reduction(f.indices[d])) continue;
      const auto* var = ir::as<ir::VarRef>(f.indices[d]);
      if (var == nullptr || std::find(seen.begin(), seen.end(), var->var) != seen.end()) return {};
      seen.push_back(var->var);
      for (const ir::Axis& axis : op_->reduce)
        if (axis.var == var->var && axis.extent != f.axes[d].extent) return {};
      result.push_back(d);
    }
    return result;
  }

  // Returns how many terms of the sum read each element of the factor, among the elements that are
  // read.
  int64_t repetitions(const Factor& f) const {
    int64_t result = 1;
    for (const ir::Axis& axis : op_->reduce) {
      bool used = false;
      for (const Expr& index : f.indices) used = used || ir::uses_var(index, axis.var);
      if (!used) result *= axis.extent;
    }
    return result;
  }

  // Returns the stage of a constant's packed elements, made ahead of time; with f.totals, their
  // sums are in one more step.
  Stage prepared(const Factor& f) const {
    const ir::OperationRef source = stage(f.constant).op;
    const std::string made = name(source->name + ".words");
    auto workload = std::make_shared<ir::Workload>();
    workload->operations.push_back(source);
    std::vector<ir::Axis> axes = word_axes(f);
    Expr body = word(f, axes);
    if (f.totals) {
      const std::vector<size_t> reduced = reduced_dimensions(f);
      const std::vector<ir::Axis> own = fresh_axes(f.axes);
      std::vector<ir::Axis> kept;
      std::vector<ir::Axis> reduce;
      std::vector<Expr> kept_values;
      ir::VarMap map;
      for (size_t d = 0; d < own.size(); ++d) {
        map[f.axes[d].var.get()] = own[d].var;
        if (std::find(reduced.begin(), reduced.end(), d) != reduced.end()) {
          reduce.push_back(own[d]);
        } else {
          kept.push_back(own[d]);
          kept_values.push_back(axes[d].var);
        }
      }
      Expr value = ir::cast(DType::kI32, ir::substitute(f.raw, map));
      if (f.flip) value = value + i32(f.is_signed() ? -128 : 128);
      workload->operations.push_back(ir::compute(made + ".sums", kept, reduce, ir::Combiner::kSum, {value}));
      ++axes[f.dim].extent;
      body = ir::select(Expr(axes[f.dim].var) == Expr(f.words()),
                        ir::load(workload->operations.back()->output(), kept_values), body);
    }
    workload->operations.push_back(ir::compute(made, axes, {}, ir::Combiner::kNone, {body}));
    workload->outputs = workload->operations.back()->outputs;
    auto constant = std::make_shared<ir::Operation>(*source);
    constant->name = made;
    constant->reduced_range = false;  // the elements are packed, so the range no longer applies to them
    constant->outputs = workload->outputs;
    constant->spatial.clear();
    for (const ir::Axis& axis : axes) constant->spatial.push_back({ir::Var("d"), axis.extent});
    Stage result = Stage::create(source);
    result.transform = std::move(workload);
    result.set_op(constant);
    return result;
  }

  // Returns the packed element that the contraction reads at its indices, with `step` as the index
  // of packed elements.
  static Expr words_at(const Factor& f, const ir::Buffer& words, const ir::VarMap& map, const Expr& step) {
    std::vector<Expr> indices;
    for (const Expr& index : f.indices) indices.push_back(ir::substitute(index, map));
    indices[f.dim] = step;
    return ir::load(words, indices);
  }

  // Makes new axes for the contraction, with the loop over packed elements; `map` maps the old ones
  // to them.
  void axes_of(int64_t words, std::vector<ir::Axis>& spatial, std::vector<ir::Axis>& reduce, Expr& step,
               ir::VarMap& map) const {
    spatial = fresh_axes(op_->spatial);
    reduce = fresh_axes(op_->reduce);
    for (size_t i = 0; i < spatial.size(); ++i) map[op_->spatial[i].var.get()] = spatial[i].var;
    for (size_t i = 0; i < reduce.size(); ++i) {
      map[op_->reduce[i].var.get()] = reduce[i].var;
      if (!(op_->reduce[i].var == loop_.var)) continue;
      reduce[i].extent = words;
      step = reduce[i].var;
    }
  }

  // Returns a stage with the sums of the factor's packed elements, and sets `read` to the
  // contraction's read of it (over its own axes).
  ir::OperationRef sums_stage(const Factor& f, const ir::Buffer& words, const std::string& stage_name,
                              Expr& read) const {
    std::vector<ir::Axis> spatial;
    std::vector<ir::Axis> reduce;
    Expr step;
    ir::VarMap map;
    axes_of(f.words(), spatial, reduce, step, map);
    const auto used = [&](const ir::Axis& axis) {
      for (const Expr& index : f.indices)
        if (ir::uses_var(index, axis.var)) return true;
      return false;
    };
    std::vector<ir::Axis> kept;
    std::vector<ir::Axis> summed;
    std::vector<Expr> at;
    for (size_t i = 0; i < spatial.size(); ++i) {
      if (!used(op_->spatial[i])) continue;
      kept.push_back(spatial[i]);
      at.push_back(op_->spatial[i].var);
    }
    for (size_t i = 0; i < reduce.size(); ++i)
      if (used(op_->reduce[i])) summed.push_back(reduce[i]);
    const Expr value = words_at(f, words, map, step);
    const Expr ones = i32(kOnes);
    const Expr body = ir::call(ir::Intrinsic::kDot4Narrow, f.is_signed() ? std::vector<Expr>{ones, value}
                                                                         : std::vector<Expr>{value, ones});
    const ir::OperationRef made = ir::compute(stage_name, kept, summed, ir::Combiner::kSum, {body});
    read = ir::load(made->output(), at);
    return made;
  }

  void rewrite(Factor& a, Factor& b) {
    const bool narrow = (reduced_range(a) && !a.flip) || (reduced_range(b) && !b.flip);
    const Factor* factors[] = {&a, &b};
    Factor* own[] = {&a, &b};
    ir::Buffer words[2];
    Expr sums[2];  // as C reads them; undefined: not needed
    std::vector<Stage> before;
    std::vector<std::pair<StageId, Stage>> replaced;
    std::vector<StageId> erased;
    for (size_t i = 0; i < 2; ++i) {
      Factor& f = *own[i];
      const bool needs_sums = factors[1 - i]->zero.defined();
      if (f.constant.valid()) {
        f.totals = needs_sums && !reduced_dimensions(f).empty();
        Stage made = prepared(f);
        words[i] = made.op->output();
        replaced.emplace_back(f.constant, std::move(made));
        if (f.centers) erased.push_back(f.stage);
      } else {
        const std::vector<ir::Axis> axes = word_axes(f);
        Stage made = Stage::create(ir::compute(name(stage(f.stage).op->name + ".words"), axes, {},
                                               ir::Combiner::kNone, {word(f, axes)}));
        words[i] = made.op->output();
        if (f.centers) {
          replaced.emplace_back(f.stage, std::move(made));
        } else {
          before.push_back(std::move(made));
        }
      }
      if (!needs_sums) continue;
      if (f.totals) {
        std::vector<Expr> indices = f.indices;
        for (const size_t d : reduced_dimensions(f)) indices[d] = Expr(0);
        indices[f.dim] = Expr(f.words());
        sums[i] = ir::load(words[i], indices);
      } else {
        before.push_back(
            Stage::create(sums_stage(f, words[i], name(op_->name + (i == 0 ? ".sums" : ".sums2")), sums[i])));
      }
      if (const int64_t times = repetitions(f); times > 1) sums[i] = sums[i] * i32(times);
    }

    std::vector<ir::Axis> spatial;
    std::vector<ir::Axis> reduce;
    Expr step;
    ir::VarMap map;
    axes_of(a.words(), spatial, reduce, step, map);
    std::vector<Expr> arguments = {words_at(a, words[0], map, step), words_at(b, words[1], map, step)};
    const ir::Intrinsic dot = halves_    ? ir::Intrinsic::kDot2I16
                              : !bytes() ? ir::Intrinsic::kDot2
                              : narrow   ? ir::Intrinsic::kDot4Narrow
                                         : ir::Intrinsic::kDot4;
    if (bytes() && !halves_ && a.is_signed())
      std::swap(arguments[0], arguments[1]);  // the first must be unsigned
    const ir::OperationRef product = ir::compute(name(op_->name + ".product"), spatial, reduce,
                                                 ir::Combiner::kSum, {ir::call(dot, arguments)});
    before.push_back(Stage::create(product));

    auto result = std::make_shared<ir::Operation>(*op_);
    result->spatial = fresh_axes(op_->spatial);
    result->reduce.clear();
    result->combiner = ir::Combiner::kNone;
    Expr body = ir::load(product->output(), axis_values(op_->spatial));
    for (size_t i = 0; i < 2; ++i)
      if (sums[i].defined()) body = body - factors[1 - i]->zero * sums[i];
    if (a.zero.defined() && b.zero.defined()) {
      int64_t terms = 1;
      for (const ir::Axis& axis : op_->reduce) terms *= axis.extent;
      body = body + a.zero * b.zero * i32(terms);
    }
    ir::VarMap to_result;
    for (size_t i = 0; i < op_->spatial.size(); ++i)
      to_result[op_->spatial[i].var.get()] = result->spatial[i].var;
    result->bodies = {ir::substitute(body, to_result)};

    Stage rest = Stage::create(std::move(result));
    rest.scope = stage(s_).scope;
    rest.auto_unroll_max_step = stage(s_).auto_unroll_max_step;
    schedule_.stages[s_] = std::move(rest);
    for (auto& [replaced_stage, made] : replaced) schedule_.stages[replaced_stage] = std::move(made);
    StageId place = s_;
    for (Stage& made : before) {
      insert_stage(schedule_, place, std::move(made));
      ++place;
    }
    std::sort(erased.rbegin(), erased.rend());  // all precede s_
    for (const StageId gone : erased) erase_stage(schedule_, gone);
  }

  Schedule& schedule_;
  StageId s_;
  ir::OperationRef op_;
  ir::Axis loop_;
  const bool halves_;
};

Status rewrite(Schedule& schedule, int stage_number, int iterator, bool halves) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_computed_stage(schedule, stage_number));
  const Stage& stage = schedule.stages[s];
  const std::string name = "stage '" + stage.op->name + "'";
  TS_ASSIGN_OR_RETURN(const IteratorId leaf, find_leaf(stage, iterator));
  if (stage.attach != AttachKind::kRoot)
    return illegal(name + " is attached to a loop; apply dot before compute_at");
  TS_RETURN_IF_ERROR(check_loops_untouched(schedule, s));
  if (stage.layout) return illegal(name + " has a packed layout; apply dot before pack_layout");
  const size_t loop = leaf.place();
  const size_t rank = stage.op->spatial.size();
  if (loop < rank || loop >= stage.num_roots())
    return illegal("loop '" + stage.iterators[leaf].name + "' is not a reduce loop");
  const ir::Axis axis = stage.op->reduce[loop - rank];
  return Rewrite(schedule, s, axis, halves).run();
}

}  // namespace

Status apply(Schedule& schedule, const Dot& step) {
  return rewrite(schedule, step.stage, step.iterator, false);
}

Status apply(Schedule& schedule, const Dot16& step) {
  return rewrite(schedule, step.stage, step.iterator, true);
}

}  // namespace tensorsmith::sched::primitives
