#include "codegen/gpu/register_tile.h"

#include <algorithm>
#include <map>
#include <utility>

#include "codegen/c/expr.h"
#include "codegen/gpu/emitter.h"
#include "codegen/gpu/separable.h"
#include "ir/analysis.h"
#include "ir/simplify.h"
#include "ir/structural.h"
#include "sched/register_pairs.h"

namespace tensorsmith::codegen {

using ir::Expr;
using ir::For;

namespace {

// Limits on the number of sums; for fewer sums, other code is as good.
constexpr int64_t kFewestSums = 16, kMostSums = 256;
// Most products of a group; each is a line of text.
constexpr int64_t kMostProducts = 2048;
constexpr int64_t kMostSteps = 8;  // most steps of a group

class TileMatcher {
 public:
  TileMatcher(const GpuKernel& kernel, const ir::VarBounds& bounds, const ir::VarMap& constants)
      : kernel_(kernel), bounds_(bounds), constants_(constants) {}

  std::optional<RegisterTile> match(const ir::Stmt& nest) {
    if (!match_update(nest) || !find_places()) return std::nullopt;
    // `columns` is the factor that is loaded as vectors of columns. If both factors can be, the one
    // with longer rows is taken.
    std::optional<RegisterTile> best;
    for (const bool swapped : {false, true}) {
      if (auto tile = tile_of(swapped ? y_ : x_, swapped ? x_ : y_);
          tile && (!best || tile->columns.lines.size() > best->columns.lines.size()))
        best = std::move(tile);
    }
    return best;
  }

 private:
  struct Factor {
    const ir::Load* load = nullptr;
    Expr flat;
    std::optional<Separable> place;
  };

  bool match_factor(const Expr& e, Factor& factor) const {
    factor.load = ir::as<ir::Load>(e);
    return factor.load != nullptr && factor.load->buffer->dtype == ir::DType::kF32 &&
           kernel_.memory_of(factor.load->buffer.get()) == GpuMemory::kShared;
  }

  bool match_update(const ir::Stmt& nest) {
    for (const auto* loop = ir::as<For>(nest); loop != nullptr; loop = ir::as<For>(loop->body)) {
      loops_.push_back(loop);
      store_ = ir::as<ir::Store>(loop->body);
    }
    if (store_ == nullptr || store_->buffer->dtype != ir::DType::kF32 ||
        kernel_.memory_of(store_->buffer.get()) != GpuMemory::kPrivate)
      return false;
    const auto* sum = ir::as<ir::Binary>(store_->value);
    if (sum == nullptr || sum->op != ir::BinaryOp::kAdd) return false;
    const auto* old = ir::as<ir::Load>(sum->a);
    const auto* product = ir::as<ir::Binary>(sum->b);
    return old != nullptr && old->buffer == store_->buffer && product != nullptr &&
           product->op == ir::BinaryOp::kMul && match_factor(product->a, x_) &&
           match_factor(product->b, y_) && ir::structural_equal(old->indices, store_->indices);
  }

  bool find_places() {
    for (const For* loop : loops_) {
      const auto extent = ir::as_int(ir::simplify(ir::substitute(loop->extent, constants_), bounds_));
      if (!extent || *extent < 1 || loop->kind == ir::ForKind::kParallel ||
          loop->kind == ir::ForKind::kThread)
        return false;
      bounds_[loop->var.get()] = {0, *extent - 1};
      vars_.push_back(loop->var);
      extents_.push_back(*extent);
    }
    const auto flat = [&](const ir::Buffer& buffer, const std::vector<Expr>& indices) {
      std::vector<Expr> here;
      for (const Expr& i : indices) here.push_back(ir::substitute(i, constants_));
      return flat_index(buffer, here, bounds_);
    };
    for (Factor* factor : {&x_, &y_}) {
      factor->flat = flat(factor->load->buffer, factor->load->indices);
      factor->place = Separable::of(factor->flat, bounds_, vars_);
      if (!factor->place) return false;
    }
    sums_ = Separable::of(flat(store_->buffer, store_->indices), bounds_, vars_);
    return sums_ && !sums_->has_rest() && find_loops();
  }

  // Divides the loops into those that index the sums and those of the reduction. Returns whether
  // some loop of the reduction is not unrolled.
  bool find_loops() {
    bool rolled = false;
    for (size_t l = 0; l < loops_.size(); ++l) {
      bool in_sums = false;
      for (int64_t v = 1; v < extents_[l]; ++v) {
        const auto moved = sums_->moved(vars_[l], v);
        if (!moved) return false;
        in_sums = in_sums || *moved != 0;
      }
      if (in_sums) {
        spatial_.push_back(l);
        continue;
      }
      reduction_.push_back(l);
      all_steps_ *= extents_[l];
      rolled = rolled || (extents_[l] > 1 && loops_[l]->kind != ir::ForKind::kUnrolled);
    }
    return rolled;
  }

  // Returns the offsets that the loops' variables add to the place, for all combinations of their
  // values; the last loop's variable changes fastest.
  std::optional<std::vector<int64_t>> moves(const Separable& place, const std::vector<size_t>& loops) const {
    std::vector<int64_t> out = {0};
    for (const size_t l : loops) {
      std::vector<int64_t> next;
      for (const int64_t before : out) {
        for (int64_t v = 0; v < extents_[l]; ++v) {
          const auto moved = place.moved(vars_[l], v);
          if (!moved) return std::nullopt;
          next.push_back(before + *moved);
        }
      }
      out = std::move(next);
    }
    return out;
  }

  // Steps of a group: those that the schedule unrolls, if they are few; else kPairSteps, if it
  // divides all steps; else the largest divisor up to kMostSteps.
  int64_t steps() const {
    int64_t unrolled = 1;
    for (size_t i = reduction_.size(); i-- > 0;) {
      const size_t l = reduction_[i];
      if (extents_[l] > 1 && loops_[l]->kind != ir::ForKind::kUnrolled) break;
      unrolled *= extents_[l];
    }
    if (unrolled > 1 && unrolled <= kMostSteps) return unrolled;
    if (all_steps_ % sched::kPairSteps == 0) return sched::kPairSteps;
    for (int64_t n = kMostSteps; n > 1; --n)
      if (all_steps_ % n == 0) return n;
    return 1;
  }

  // Finds the offsets of a group's steps, which must be the same in each group, with a constant
  // distance between groups.
  bool find_steps(const Factor& factor, int64_t count, TileOperand& out) const {
    const auto all = moves(*factor.place, reduction_);
    if (!all) return false;
    const auto at = [&](int64_t i) { return (*all)[i]; };
    out.steps.assign(all->begin(), all->begin() + count);
    out.group = count < all_steps_ ? at(count) : 0;
    for (int64_t i = 0; i < all_steps_; ++i)
      if (at(i) != i / count * out.group + out.steps[i % count]) return false;
    return true;
  }

  // Returns whether every `lanes` consecutive offsets of `these` are adjacent in memory and aligned
  // to `lanes` elements, whatever the other offsets are.
  bool are_vectors(const TileOperand& operand, const std::vector<int64_t>& these,
                   const std::vector<int64_t>& others, int64_t lanes) const {
    if (static_cast<int64_t>(these.size()) % lanes != 0) return false;
    const auto whole = [&](int64_t n) { return n % lanes == 0; };
    for (size_t i = 0; i < these.size(); ++i) {
      const auto in_vector = static_cast<int64_t>(i) % lanes;
      if (in_vector == 0 ? !whole(these[i]) : these[i] != these[i - 1] + 1) return false;
    }
    const auto rest = ir::as_int(ir::simplify(ir::floormod(operand.first, Expr(lanes)), bounds_));
    return rest == 0 && whole(operand.group) && std::all_of(others.begin(), others.end(), whole);
  }

  // Sets the operand's lines; `all` holds the offset of each sum's line, in any order.
  void set_lines(const Factor& factor, std::vector<int64_t> all, TileOperand& out) const {
    out.buffer = factor.load->buffer;
    ir::VarMap zero;
    for (const ir::Var& var : vars_) zero[var.get()] = Expr(0);
    out.first = ir::simplify(ir::substitute(factor.flat, zero), bounds_);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    out.lines = std::move(all);
  }

  std::optional<RegisterTile> tile_of(const Factor& rows, const Factor& columns) const {
    RegisterTile tile;
    tile.sums = store_->buffer;
    const int64_t count = steps();
    tile.groups = all_steps_ / count;
    if (!find_steps(rows, count, tile.rows) || !find_steps(columns, count, tile.columns)) return std::nullopt;
    const auto row = moves(*rows.place, spatial_), column = moves(*columns.place, spatial_),
               at = moves(*sums_, spatial_);
    if (!row || !column || !at) return std::nullopt;
    std::map<std::pair<int64_t, int64_t>, int64_t> sums;
    for (size_t i = 0; i < at->size(); ++i) sums[{(*row)[i], (*column)[i]}] = (*at)[i];
    set_lines(rows, *row, tile.rows);
    set_lines(columns, *column, tile.columns);
    // Each row must be combined with each column exactly once.
    const auto all_rows = static_cast<int64_t>(tile.rows.lines.size()),
               all_columns = static_cast<int64_t>(tile.columns.lines.size()),
               products = all_rows * all_columns;
    if (static_cast<int64_t>(sums.size()) != products || static_cast<int64_t>(at->size()) != products ||
        all_columns < sched::kFewestPairColumns || products < kFewestSums || products > kMostSums ||
        products * count > kMostProducts)
      return std::nullopt;
    for (const auto& [place, sum] : sums) tile.at.push_back(sum);
    return find_vectors(tile) ? std::optional(std::move(tile)) : std::nullopt;
  }

  bool find_vectors(RegisterTile& tile) const {
    const auto vectors = [&](const TileOperand& operand, const std::vector<int64_t>& these,
                             const std::vector<int64_t>& others) -> int64_t {
      for (const int64_t lanes : {4, 2})
        if (are_vectors(operand, these, others, lanes)) return lanes;
      return 1;
    };
    tile.lanes = vectors(tile.columns, tile.columns.lines, tile.columns.steps);
    tile.step_lanes = vectors(tile.rows, tile.rows.steps, tile.rows.lines);
    if (tile.step_lanes == 1) tile.row_lanes = vectors(tile.rows, tile.rows.lines, tile.rows.steps);
    return tile.lanes > 1;
  }

  const GpuKernel& kernel_;
  ir::VarBounds bounds_;
  const ir::VarMap& constants_;
  std::vector<const For*> loops_;
  std::vector<ir::Var> vars_;
  std::vector<int64_t> extents_;
  std::vector<size_t> spatial_, reduction_;  // indices into loops_
  int64_t all_steps_ = 1;
  const ir::Store* store_ = nullptr;
  Factor x_, y_;
  std::optional<Separable> sums_;
};

}  // namespace

std::optional<RegisterTile> find_register_tile(const ir::Stmt& nest, const GpuKernel& kernel,
                                               const ir::VarBounds& bounds, const ir::VarMap& constants) {
  return TileMatcher(kernel, bounds, constants).match(nest);
}

// Declares the pairs of sums and initializes them from the array that holds the sums outside the
// loop over chunks.
std::string GpuKernelEmitter::take_pairs(const RegisterTile& tile) {
  const std::string pairs = env_.names.make("pairs"), &sums = env_.buffers.at(tile.sums.get());
  const size_t count = tile.at.size() / 2;
  out_->line("uint64_t " + pairs + "[" + std::to_string(count) + "];");
  for (size_t i = 0; i < count; ++i)
    out_->line(pairs + "[" + std::to_string(i) + "] = ts_join_sums(" + sums + "[" +
               std::to_string(tile.at[2 * i]) + "], " + sums + "[" + std::to_string(tile.at[2 * i + 1]) +
               "]);");
  return pairs;
}

void GpuKernelEmitter::return_pairs(const RegisterTile& tile, const std::string& pairs) {
  const std::string& sums = env_.buffers.at(tile.sums.get());
  for (size_t i = 0; i < tile.at.size() / 2; ++i)
    out_->line("ts_part_sums(" + pairs + "[" + std::to_string(i) + "], " + sums + "[" +
               std::to_string(tile.at[2 * i]) + "], " + sums + "[" + std::to_string(tile.at[2 * i + 1]) +
               "]);");
}

void GpuKernelEmitter::emit_register_tile(const RegisterTile& tile, const std::string& pairs) {
  const auto steps = static_cast<int64_t>(tile.rows.steps.size());
  const auto rows = static_cast<int64_t>(tile.rows.lines.size()),
             columns = static_cast<int64_t>(tile.columns.lines.size());
  out_->open("");
  const std::string x = env_.names.make("x"), y = env_.names.make("y"), group = env_.names.make("group");
  ScalarWriter writer(env_, *out_);
  // Addresses are computed from indices and not from advancing pointers. With pointers, LLVM sinks
  // loads to the products that need them first, and ptxas then assigns sums and columns to the same
  // banks (measured: 0.54 in place of 0.78).
  const auto place = [&](const TileOperand& operand) {
    std::string text = env_.buffers.at(operand.buffer.get()) + "[";
    if (!ir::is_int_value(operand.first, 0))
      text += writer.value(writer.announce(operand.first)).at_least(Strength::kSum) + " + ";
    return text + (tile.groups > 1 ? group + " * " + std::to_string(operand.group) + " + " : "");
  };
  const std::string a = place(tile.rows), b = place(tile.columns);
  // If this loop were unrolled, the compiler would rename the sums in each group and lose the
  // pairs.
  out_->line(std::string(dialect_.unroll) + " 1");
  out_->open("for (int " + group + " = 0; " + group + " < " + std::to_string(tile.groups) + "; ++" + group +
             ")");
  const auto load = [&](int64_t lanes, const std::string& to, int64_t at_to, const std::string& from,
                        int64_t at_from) {
    out_->line("TS_COPY(" + std::to_string(lanes) + ", " +
               std::to_string(lanes * ir::bytes_of(ir::DType::kF32)) + ", " + to + " + " +
               std::to_string(at_to) + ", &" + from + std::to_string(at_from) + "]);");
  };
  const auto at = [](const std::vector<int64_t>& places, int64_t i) { return places[i]; };
  out_->line("float " + y + "[" + std::to_string(steps * columns) + "] " + std::string(dialect_.c.aligned) +
             ";");
  for (int64_t k = 0; k < steps; ++k)
    for (int64_t c = 0; c < columns; c += tile.lanes)
      load(tile.lanes, y, k * columns + c, b, at(tile.columns.steps, k) + at(tile.columns.lines, c));
  for (int64_t r = 0; r < rows; r += tile.row_lanes) {
    out_->open("");
    // Layout: [row of the vector][step] if steps are vectors, [step][row] if rows are.
    out_->line("float " + x + "[" + std::to_string(steps * tile.row_lanes) + "] " +
               std::string(dialect_.c.aligned) + ";");
    for (int64_t k = 0; k < steps; k += tile.step_lanes)
      load(std::max(tile.step_lanes, tile.row_lanes), x, k * tile.row_lanes, a,
           at(tile.rows.steps, k) + at(tile.rows.lines, r));
    for (int64_t row = 0; row < tile.row_lanes; ++row) {
      for (int64_t k = 0; k < steps; ++k) {
        for (int64_t c = 0; c < columns; c += 2)
          out_->line("ts_add_products(" + pairs + "[" + std::to_string(((r + row) * columns + c) / 2) +
                     "], " + x + "[" + std::to_string(k * tile.row_lanes + row) + "], " + y + "[" +
                     std::to_string(k * columns + c) + "], " + y + "[" + std::to_string(k * columns + c + 1) +
                     "]);");
      }
    }
    out_->close();
  }
  out_->close();
  out_->close();
}

}  // namespace tensorsmith::codegen
