#include "codegen/llvm/extremum_regions.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "ir/analysis.h"
#include "ir/bounds.h"
#include "ir/parts.h"
#include "ir/structural.h"

namespace tensorsmith::codegen {

namespace {

using ir::Expr;
using ir::For;
using ir::Stmt;
using BufferSet = std::unordered_set<const ir::BufferNode*>;

// A part whose regions have at most this many bytes is not divided further: they stay in L1, and
// the wait for the next part's data is short.
constexpr int64_t kMaxRegionBytes = 8 << 10;
// With fewer bytes, the branch would cost more than the NaN checks.
constexpr int64_t kMinRegionBytes = 1 << 10;
constexpr size_t kMaxRegions = 4;
// Checking each element beforehand pays if an element would otherwise be checked at least this
// often on average.
constexpr double kMinLooks = 1.5;
// Largest ratio of the vectors in the regions of all iterations to the vectors in their union.
// Short rows waste parts of vectors.
constexpr double kMaxOverlap = 1.3;
constexpr int64_t kLanes = 16;
// Buffers of at most this many elements may be held in registers.
constexpr int64_t kMaxInRegisters = 2048;

bool reads(const Expr& e, const ir::Buffer& buffer) {
  const auto loads = ir::loads_of(e);
  return std::any_of(loads.begin(), loads.end(),
                     [&](const ir::Load* load) { return load->buffer == buffer; });
}

// Calls fn for each load of floats that can make the expression NaN. Returns false if fn does, or
// if the expression contains an operation that can turn numbers into NaN.
bool for_each_source(const Expr& e, const std::function<bool(const ir::Load&)>& fn) {
  if (!ir::is_float(e.dtype())) return true;
  const auto of = [&](const Expr& x) { return for_each_source(x, fn); };
  return ir::visit(
      ir::overloaded{
          [&](const ir::IntImm&) { return true; },
          [&](const ir::FloatImm& imm) { return !std::isnan(imm.value); },
          [&](const ir::VarRef&) { return true; }, [&](const ir::Unary& op) { return of(op.a); },
          [&](const ir::Binary& op) {
            return (op.op == ir::BinaryOp::kMin || op.op == ir::BinaryOp::kMax) && of(op.a) && of(op.b);
          },
          [&](const ir::Select& select) { return of(select.a) && of(select.b); },
          [&](const ir::Cast& cast) { return of(cast.a); },
          [&](const ir::Call& call) { return call.intrinsic == ir::Intrinsic::kAbs && of(call.args[0]); },
          [&](const ir::Load& load) { return fn(load); }},
      e);
}

BufferSet written_in(const Stmt& s) {
  BufferSet written;
  ir::for_each_stmt(s, [&](const Stmt& inner) {
    if (const auto* store = ir::as<ir::Store>(inner)) written.insert(store->buffer.get());
  });
  return written;
}

// Returns the buffers that only numbers are written to, provided that the values of updates are
// numbers.
BufferSet numbers_in(const Stmt& s) {
  BufferSet numbers = written_in(s);
  for (bool more = true; more;) {
    more = false;
    ir::for_each_stmt(s, [&](const Stmt& inner) {
      const auto* store = ir::as<ir::Store>(inner);
      if (store == nullptr || is_float_extremum_update(*store)) return;
      const bool number = for_each_source(
          store->value, [&](const ir::Load& load) { return numbers.contains(load.buffer.get()); });
      if (!number) more = numbers.erase(store->buffer.get()) > 0 || more;
    });
  }
  return numbers;
}

// Returns the box of elements that are accessed while the inner variables take all their values;
// nothing if they form no box or are not known.
std::optional<Region> box_of(const ir::Buffer& buffer, const std::vector<Expr>& indices,
                             const ir::VarBounds& inner_vars) {
  Region region{buffer, {}, {}};
  for (const Expr& e : indices) {
    const ir::LinearSum sum = ir::linearize(e);
    if (sum.bad) return std::nullopt;
    ir::LinearSum begin;
    begin.add_constant(sum.constant);
    int64_t extent = 1;
    for (const auto& [atom, coefficient] : sum.terms) {
      bool inner = false, outer = false, reads_memory = false;
      ir::for_each_expr(atom, [&](const Expr& x) {
        if (const auto* ref = ir::as<ir::VarRef>(x))
          (inner_vars.contains(ref->var.get()) ? inner : outer) = true;
        reads_memory = reads_memory || ir::as<ir::Load>(x) != nullptr;
      });
      if (reads_memory) return std::nullopt;
      if (!inner) {
        begin.add_term(atom, coefficient);
        continue;
      }
      const ir::Interval range = ir::bounds_of(atom, inner_vars);
      constexpr int64_t kFar = int64_t{1} << 40;
      if (outer || range.min < -kFar || range.max > kFar || std::abs(coefficient) > kFar >> 20 ||
          extent > kFar)
        return std::nullopt;
      begin.add_constant(coefficient > 0 ? range.min : range.max, coefficient);
      extent += std::abs(coefficient) * (range.max - range.min);
    }
    region.begin.push_back(std::move(begin));
    region.extent.push_back(extent);
  }
  return region;
}

// Extends a to the box around both, if their distance is constant.
bool unite(Region& a, const Region& b) {
  std::vector<int64_t> distance;
  for (size_t d = 0; d < a.begin.size(); ++d) {
    const ir::LinearSum difference = ir::difference(b.begin[d], a.begin[d]);
    if (!difference.is_constant()) return false;
    distance.push_back(difference.constant);
  }
  for (size_t d = 0; d < distance.size(); ++d) {
    const int64_t first = std::min<int64_t>(distance[d], 0);
    const int64_t end = std::max(a.extent[d], distance[d] + b.extent[d]);
    a.begin[d].add_constant(first);
    a.extent[d] = end - first;
  }
  return true;
}

// Finds the regions of the inputs that the values of updates come from.
class RegionFinder {
 public:
  RegionFinder(const BufferSet& inputs, const Stmt& s)
      : inputs_(inputs), written_(written_in(s)), numbers_(numbers_in(s)) {
    // Collects buffers that values come from indirectly, through other buffers.
    for (bool more = true; more && ok_;) {
      more = false;
      ir::for_each_stmt(s, [&](const Stmt& inner) {
        const auto* store = ir::as<ir::Store>(inner);
        if (store == nullptr || !is_source(*store)) return;
        ok_ = ok_ && for_each_source(value_of(*store), [&](const ir::Load& load) {
                const bool inside = written_.contains(load.buffer.get());
                if (inside) more = sources_.insert(load.buffer.get()).second || more;
                return inside || inputs_.contains(load.buffer.get());
              });
      });
    }
    walk(s);
  }

  bool ok() const { return ok_ && !regions_.empty(); }
  const std::vector<Region>& regions() const { return regions_; }
  int64_t elements() const {
    int64_t n = 0;
    for (const Region& region : regions_) n += elements_of(region);
    return n;
  }
  double vectors() const {
    double n = 0;
    for (const Region& region : regions_) {
      int64_t rows = 1;  // rows of contiguous elements
      int64_t row = 1;
      bool whole = true;
      for (size_t d = region.extent.size(); d-- > 0;) {
        const int64_t extent = std::min(region.extent[d], region.buffer->shape[d]);
        (whole ? row : rows) *= extent;
        whole = whole && extent == region.buffer->shape[d];
      }
      n += rows * ((row + kLanes - 1) / kLanes);
    }
    return n;
  }
  int64_t bytes() const {
    int64_t n = 0;
    for (const Region& region : regions_) n += ir::bytes_of(region.buffer->dtype, elements_of(region));
    return n;
  }
  // Returns how often an element is checked on average if values are checked where they are used;
  // they may be copies of elements.
  double looks_at_element() const { return looks_ / std::max<int64_t>(elements(), 1); }

 private:
  static int64_t elements_of(const Region& region) {
    int64_t n = 1;
    for (size_t d = 0; d < region.extent.size(); ++d)
      n *= std::min(region.extent[d], region.buffer->shape[d]);
    return n;
  }
  bool is_source(const ir::Store& store) const {
    return is_float_extremum_update(store) || sources_.contains(store.buffer.get());
  }
  static const Expr& value_of(const ir::Store& store) {
    return is_float_extremum_update(store) ? ir::as<ir::Binary>(store.value)->b : store.value;
  }

  void walk(const Stmt& s) {
    if (!ok_) return;
    if (const auto* loop = ir::as<For>(s)) {
      const int64_t extent = ir::bounds_of(loop->extent, inner_).max;
      const double before = times_;
      times_ *= extent;
      inner_[loop->var.get()] = {0, std::max<int64_t>(extent - 1, 0)};
      walk(loop->body);
      inner_.erase(loop->var.get());
      times_ = before;
      return;
    }
    const auto* store = ir::as<ir::Store>(s);
    if (store != nullptr && is_source(*store)) {
      for_each_source(value_of(*store), [&](const ir::Load& load) {
        if (inputs_.contains(load.buffer.get())) add(load);
        if (is_float_extremum_update(*store) && !numbers_.contains(load.buffer.get())) looks_ += times_;
        return true;
      });
    }
    ir::for_each_part(s, [&](const Stmt& part) { walk(part); });
  }

  void add(const ir::Load& load) {
    std::optional<Region> region = box_of(load.buffer, load.indices, inner_);
    ok_ = ok_ && region.has_value();
    if (!ok_) return;
    for (Region& known : regions_)
      if (known.buffer == region->buffer && unite(known, *region)) return;
    regions_.push_back(*std::move(region));
    ok_ = regions_.size() <= kMaxRegions;
  }

  const BufferSet& inputs_;
  const BufferSet written_, numbers_;
  BufferSet sources_;
  std::vector<Region> regions_;
  ir::VarBounds inner_;
  double times_ = 1;  // iterations of the enclosing loops
  double looks_ = 0;
  bool ok_ = true;
};

// The accesses of a statement to buffers that are allocated outside it and that it writes.
class Accesses {
 public:
  Accesses(const Stmt& s, const BufferSet& own, ir::VarBounds vars) : vars_(std::move(vars)) {
    for (const ir::BufferNode* buffer : written_in(s))
      if (!own.contains(buffer)) buffers_[buffer];
    walk(s, false);
  }

  // Returns whether all elements are always written before they are read.
  bool begin_here() const {
    return std::all_of(buffers_.begin(), buffers_.end(),
                       [](const auto& b) { return !b.second.read || b.second.begun; });
  }
  // Returns whether different iterations of an enclosing loop never access the same element.
  bool are_apart(const ir::Var& var) const {
    return std::all_of(buffers_.begin(), buffers_.end(), [&](const auto& b) {
      const Access& access = b.second;
      if (!access.read) return true;
      if (!access.box) return false;
      for (size_t d = 0; d < access.box->begin.size(); ++d) {
        const ir::LinearSum& begin = access.box->begin[d];
        if (std::abs(begin.coefficient_of(Expr(var))) >= access.box->extent[d]) return true;
      }
      return false;
    });
  }

 private:
  struct Access {
    bool begun = false;  // a store that is always executed comes first
    bool touched = false;
    bool read = false;
    std::optional<Region> box;
  };

  void walk(const Stmt& s, bool conditional) {
    const auto read = [&](const Expr& e) {
      for (const ir::Load* load : ir::loads_of(e)) access(load->buffer, load->indices, true, conditional);
    };
    if (const auto* loop = ir::as<For>(s)) {
      const int64_t extent = ir::bounds_of(loop->extent, vars_).max;
      vars_[loop->var.get()] = {0, std::max<int64_t>(extent - 1, 0)};
      walk(loop->body, conditional || ir::as_int(loop->extent).value_or(0) < 1);
      vars_.erase(loop->var.get());
      return;
    }
    const auto* branch = ir::as<ir::IfThenElse>(s);
    if (branch != nullptr) read(branch->condition);
    if (const auto* store = ir::as<ir::Store>(s)) {
      read(store->value);
      access(store->buffer, store->indices, false, conditional);
    }
    ir::for_each_part(s, [&](const Stmt& part) { walk(part, conditional || branch != nullptr); });
  }

  void access(const ir::Buffer& buffer, const std::vector<Expr>& indices, bool is_read, bool conditional) {
    const auto it = buffers_.find(buffer.get());
    if (it == buffers_.end()) return;
    Access& known = it->second;
    std::optional<Region> box = box_of(buffer, indices, vars_);
    if (!known.touched) {
      known.begun = !is_read && !conditional;
      known.box = std::move(box);
    } else if (!box || !known.box || !unite(*known.box, *box)) {
      known.box.reset();
    }
    known.touched = true;
    known.read = known.read || is_read;
  }

  ir::VarBounds vars_;
  std::unordered_map<const ir::BufferNode*, Access> buffers_;
};

bool updates(const Stmt& s) {
  bool found = false;
  ir::for_each_stmt(s, [&](const Stmt& inner) {
    const auto* store = ir::as<ir::Store>(inner);
    found = found || (store != nullptr && is_float_extremum_update(*store));
  });
  return found;
}

}  // namespace

const ir::Binary* extremum_update(const ir::Store& store) {
  const auto* op = ir::as<ir::Binary>(store.value);
  const bool is_update = op != nullptr && (op->op == ir::BinaryOp::kMin || op->op == ir::BinaryOp::kMax) &&
                         ir::structural_equal(op->a, ir::load(store.buffer, store.indices)) &&
                         !reads(op->b, store.buffer);
  return is_update ? op : nullptr;
}

bool is_float_extremum_update(const ir::Store& store) {
  const ir::DType dtype = store.buffer->dtype;
  return (dtype == ir::DType::kF32 || dtype == ir::DType::kF64) && extremum_update(store) != nullptr;
}

SpeculativeParts::SpeculativeParts(const ir::Program& program) {
  for (const ir::Buffer& buffer : program.inputs) inputs_.insert(buffer.get());
  for (const ir::Buffer& buffer : program.outputs) outputs_.insert(buffer.get());
  if (program.body && updates(program.body)) consider(program.body);
}

const SpeculativePart* SpeculativeParts::part(const ir::Stmt& s) const {
  const auto it = parts_.find(s.get());
  return it == parts_.end() ? nullptr : &it->second;
}

const SpeculativePart* SpeculativeParts::range(const ir::For& loop) const {
  const auto it = ranges_.find(&loop);
  return it == ranges_.end() ? nullptr : &it->second;
}

// Returns whether the statement can be executed again with the same result, by code that may index
// buffers by loops. It must initialize what it updates. Reductions other than minima and maxima are
// excluded: they would be too much code for a copy that is hardly ever executed.
// Inside loops, it must also not continue from values that previous iterations have left: a NaN
// among those would be lost, because this iteration does not read one.
bool SpeculativeParts::is_repeatable(const Stmt& s) const {
  BufferSet written;
  BufferSet own;
  std::vector<const ir::Store*> stores;
  bool has_updates = false;
  bool allowed = true;
  ir::for_each_stmt(s, [&](const Stmt& inner) {
    if (const auto* loop = ir::as<For>(inner)) allowed = allowed && loop->kind != ir::ForKind::kParallel;
    if (const auto* allocate = ir::as<ir::Allocate>(inner)) own.insert(allocate->buffer.get());
    const auto* store = ir::as<ir::Store>(inner);
    if (store == nullptr) return;
    stores.push_back(store);
    written.insert(store->buffer.get());
    const bool update = is_float_extremum_update(*store);
    has_updates = has_updates || update;
    allowed = allowed && (update || !reads(store->value, store->buffer));
  });
  if (!has_updates || !allowed) return false;
  // Outside buffers that may be in registers must not be indexed by loops.
  for (const ir::Store* store : stores) {
    const auto stays = [&](const ir::Buffer& buffer) {
      return own.contains(buffer.get()) || inputs_.contains(buffer.get()) ||
             buffer->allocation_elements() > kMaxInRegisters || outputs_.contains(buffer.get());
    };
    if (!stays(store->buffer)) return false;
    for (const ir::Load* load : ir::loads_of(store->value))
      if (!stays(load->buffer)) return false;
  }
  // Collects the buffers that are initialized from values other than those that the statement
  // writes.
  BufferSet begun;
  for (bool more = true; more;) {
    more = false;
    for (const ir::Store* store : stores) {
      const auto loads = ir::loads_of(store->value);
      const bool begins = std::all_of(loads.begin(), loads.end(), [&](const ir::Load* load) {
        return !written.contains(load->buffer.get()) || begun.contains(load->buffer.get());
      });
      if (begins && !is_float_extremum_update(*store))
        more = begun.insert(store->buffer.get()).second || more;
    }
  }
  if (begun.size() != written.size()) return false;
  if (loops_.empty()) return true;
  ir::VarBounds vars;
  for (size_t l = loops_.size(); l-- > 0;) {
    const Accesses accesses(s, own, vars);
    if (!accesses.begin_here()) return false;
    if (loops_[l]->kind != ir::ForKind::kParallel && !accesses.are_apart(loops_[l]->var)) return false;
    vars[loops_[l]->var.get()] = {0, std::max<int64_t>(ir::bounds_of(loops_[l]->extent, {}).max - 1, 0)};
  }
  return true;
}

bool SpeculativeParts::is_repeatable_in(const For& loop) {
  loops_.push_back(&loop);
  const bool repeatable = is_repeatable(loop.body);
  loops_.pop_back();
  return repeatable;
}

void SpeculativeParts::consider(const Stmt& s) {
  if (!updates(s)) return;
  if (is_repeatable(s)) return choose(s, nullptr);
  const auto* loop = ir::as<For>(s);
  if (loop == nullptr) return ir::for_each_part(s, [&](const Stmt& part) { consider(part); });
  if (loop->kind != ir::ForKind::kParallel && loop->kind != ir::ForKind::kSerial) return;
  const bool range = loop->kind == ir::ForKind::kParallel && is_repeatable_in(*loop);
  loops_.push_back(loop);
  if (range) {
    choose(loop->body, loop);
  } else {
    consider(loop->body);
  }
}

void SpeculativeParts::choose(const Stmt& s, const For* parallel) {
  if (look_before(s, std::numeric_limits<double>::infinity())) return;
  SpeculativePart part{{}, numbers_in(s)};
  if (parallel != nullptr) {
    ranges_.emplace(parallel, std::move(part));
  } else {
    parts_.emplace(s.get(), std::move(part));
  }
}

// Makes the statement, or statements inside it, parts that check their inputs beforehand; returns
// false if that does not pay. If more than `limit` vectors would be checked, the enclosing
// statement is the better part.
bool SpeculativeParts::look_before(const Stmt& s, double limit) {
  const RegionFinder found(inputs_, s);
  const double vectors = found.vectors();
  const bool outermost = std::isinf(limit);
  if (found.ok() && (found.looks_at_element() < kMinLooks || vectors > limit ||
                     (!outermost && found.bytes() < kMinRegionBytes)))
    return false;
  if (!found.ok() || found.bytes() > kMaxRegionBytes) {
    const auto* loop = ir::as<For>(s);
    if (loop != nullptr && loop->kind == ir::ForKind::kSerial && is_repeatable_in(*loop)) {
      const double times = std::max<int64_t>(ir::as_int(loop->extent).value_or(1), 1);
      loops_.push_back(loop);
      const bool inside = look_before(loop->body, found.ok() ? kMaxOverlap * vectors / times : limit);
      loops_.pop_back();
      if (inside) {
        around_.insert(s.get());
        return true;
      }
    }
    const auto* seq = ir::as<ir::Seq>(s);
    if (seq != nullptr && std::all_of(seq->stmts.begin(), seq->stmts.end(), [&](const Stmt& part) {
          return !updates(part) || is_repeatable(part);
        })) {
      for (const Stmt& part : seq->stmts)
        if (updates(part)) choose(part, nullptr);
      return true;
    }
  }
  if (found.ok()) parts_.emplace(s.get(), SpeculativePart{found.regions(), {}});
  return found.ok();
}

}  // namespace tensorsmith::codegen
