#include "codegen/gpu/tensor_core_nest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "codegen/c/expr.h"
#include "codegen/gpu/separable.h"
#include "ir/analysis.h"
#include "ir/parts.h"
#include "ir/simplify.h"
#include "ir/structural.h"
#include "sched/tensor_cores.h"

namespace tensorsmith::codegen {

using ir::Expr;
using ir::For;
using ir::Stmt;

namespace {

constexpr int64_t kChunkBytes = 16;         // bytes that a lane of ldmatrix addresses, and bytes of a line
                                            // of its matrices
constexpr int64_t kElementsUnitBytes = 32;  // bytes of a line that eight lanes read when they read
                                            // single elements
constexpr int64_t kBankLineBytes = 128;     // bytes that all banks of shared memory deliver together

struct Factor {
  const ir::Load* load = nullptr;
  std::optional<Separable> place;
};

class NestMatcher {
 public:
  NestMatcher(const GpuKernel& kernel, int capability) : kernel_(kernel), capability_(capability) {}

  // Returns whether the loop is a nest around one store that adds products of suitable types.
  bool is_candidate(const Stmt& s) {
    for (const auto* loop = ir::as<For>(s); loop != nullptr; loop = ir::as<For>(loop->body)) {
      loops_.push_back(loop);
      store_ = ir::as<ir::Store>(loop->body);
    }
    return store_ != nullptr && match_update();
  }

  // Matches the nest; call is_candidate first.
  std::optional<MmaNest> match() {
    if (!find_places() || !find_step() || !find_lanes() || !find_fragments() || !find_tiles())
      return std::nullopt;
    return std::move(nest_);
  }
  const std::string& why() const { return why_; }

 private:
  bool refuse(std::string reason) {
    why_ = std::move(reason);
    return false;
  }

  bool match_factor(const Expr& e, Factor& factor) const {
    factor.load = sched::mma_factor(e, store_->buffer->dtype);
    return factor.load != nullptr && kernel_.memory_of(factor.load->buffer.get()) == GpuMemory::kShared;
  }

  bool match_update() {
    const auto* sum = ir::as<ir::Binary>(store_->value);
    if (sum == nullptr || sum->op != ir::BinaryOp::kAdd ||
        kernel_.memory_of(store_->buffer.get()) != GpuMemory::kPrivate)
      return false;
    const auto* old = ir::as<ir::Load>(sum->a);
    const auto* product = ir::as<ir::Binary>(sum->b);
    if (old == nullptr || old->buffer != store_->buffer || product == nullptr ||
        product->op != ir::BinaryOp::kMul)
      return false;
    if (!ir::structural_equal(old->indices, store_->indices) || !match_factor(product->a, x_) ||
        !match_factor(product->b, y_))
      return false;
    const ir::DType a = x_.load->buffer->dtype, b = y_.load->buffer->dtype;
    const ir::DType sums = ir::is_float(a) ? ir::DType::kF32 : ir::DType::kI32;
    return x_.load->buffer != y_.load->buffer && store_->buffer->dtype == sums &&
           sched::has_mma(capability_, a, b);
  }

  bool find_places() {
    for (const For* loop : loops_) {
      const auto extent = ir::as_int(loop->extent);
      if (!extent || loop->kind == ir::ForKind::kParallel || loop->kind == ir::ForKind::kThread)
        return refuse("a loop of the nest has a variable extent");
      bounds_[loop->var.get()] = {0, *extent - 1};
      vars_.push_back(loop->var);
    }
    for (const size_t axis : {kThreadX, kThreadY, kThreadZ}) {
      bounds_[kernel_.index[axis].get()] = {0, kernel_.extents[axis] - 1};
      vars_.push_back(kernel_.index[axis]);
    }
    x_.place = place_of(x_.load->buffer, x_.load->indices);
    y_.place = place_of(y_.load->buffer, y_.load->indices);
    sums_ = place_of(store_->buffer, store_->indices);
    for (const auto* place : {&x_.place, &y_.place, &sums_})
      if (!*place || (*place)->has_rest())
        return refuse("an index is not a sum of functions of single loops");
    return true;
  }

  std::optional<Separable> place_of(const ir::Buffer& buffer, const std::vector<Expr>& indices) const {
    return Separable::of(flat_index(buffer, indices, bounds_), bounds_, vars_);
  }

  int64_t extent(const For* loop) const { return *ir::as_int(loop->extent); }

  // Returns whether the place moves by `stride` for every `every` values of the variable, modulo
  // `modulo` if given.
  static bool moves_by(const Separable& place, const ir::Var& var, int64_t count, int64_t stride,
                       int64_t every = 1, int64_t modulo = 0) {
    for (int64_t v = 0; v < count; ++v) {
      const int64_t steps = modulo > 0 ? v / every % modulo : v / every;
      if (place.moved(var, v) != steps * stride) return false;
    }
    return true;
  }

  // Finds the loop of the reduction, and which factor holds the rows.
  bool find_step() {
    for (const For* loop : loops_) {
      if (extent(loop) == 1) continue;
      const bool in_sums = !moves_by(*sums_, loop->var, extent(loop), 0);
      if (in_sums) {
        fragments_.push_back(loop);
      } else if (step_ != nullptr) {
        return refuse("the nest has two reduction loops");
      } else {
        step_ = loop;
      }
    }
    if (step_ == nullptr) return refuse("the nest has no reduction loop");
    nest_.steps = extent(step_);
    // The lanes of a group share the rows of A.
    const ir::Var& lane = kernel_.index[kThreadX];
    if (kernel_.extents[kThreadX] != sched::kMmaGroups * sched::kMmaPlaces)
      return refuse("threadIdx.x does not span exactly one warp");
    if (x_.place->moved(lane, 1) != 0) std::swap(x_, y_);
    return true;
  }

  bool find_tile(const Factor& factor, MmaTile& tile, int64_t every, int64_t modulo, int64_t step,
                 const char* name) {
    const ir::Var& lane = kernel_.index[kThreadX];
    const int64_t lanes = kernel_.extents[kThreadX];
    const auto k = factor.place->moved(step_->var, 1);
    const auto next = factor.place->moved(lane, every);
    if (!k || !next || *next % step != 0) return refuse(std::string(name) + " is not a tile");
    const int64_t own = *next / step;
    tile.buffer = factor.load->buffer;
    tile.steps_contiguous = *k == 1;
    tile.line = tile.steps_contiguous ? own : *k;
    if ((tile.steps_contiguous ? *k : own) != 1 || tile.line <= 1)
      return refuse(std::string(name) + " has no lines");
    unit(tile) = own;
    if (!moves_by(*factor.place, step_->var, nest_.steps, *k) ||
        !moves_by(*factor.place, lane, lanes, own * step, every, modulo))
      return refuse("lanes do not have the rows and columns of an instruction");
    return true;
  }
  // Distance in elements between rows of A, or between columns of B.
  int64_t& unit(const MmaTile& tile) { return &tile == &nest_.a ? row_ : column_; }

  bool find_lanes() {
    const int64_t bytes = ir::bytes_of(x_.load->buffer->dtype);
    if (nest_.steps * bytes % sched::kMmaStepBytes != 0)
      return refuse("the reduction steps do not fill an instruction");
    if (!find_tile(x_, nest_.a, sched::kMmaPlaces, sched::kMmaGroups, 1, "the first factor")) return false;
    if (!find_tile(y_, nest_.b, 1, sched::kMmaPlaces, sched::kMmaPairs, "the second factor")) return false;
    if (bytes == 1 && (!nest_.a.steps_contiguous || !nest_.b.steps_contiguous))
      return refuse("8-bit elements are not contiguous along the reduction");
    return moves_by(*sums_, kernel_.index[kThreadX], kernel_.extents[kThreadX], 0) ||
           refuse("the sums are not private to a lane");
  }

  // Determines the row, the column and the sum of each iteration of the fragment loops.
  bool find_fragments() {
    int64_t all = 1;
    for (const For* loop : fragments_) all *= extent(loop);
    struct Sum {
      int64_t row, column, at;
    };
    std::vector<Sum> found;
    for (int64_t n = 0; n < all; ++n) {
      Sum sum{0, 0, 0};
      int64_t rest = n;
      for (const For* loop : fragments_) {
        const int64_t value = rest % extent(loop);
        rest /= extent(loop);
        const auto a = x_.place->moved(loop->var, value), b = y_.place->moved(loop->var, value),
                   c = sums_->moved(loop->var, value);
        if (!a || !b || !c) return refuse("an index is not known");
        sum.row += *a;
        sum.column += *b;
        sum.at += *c;
      }
      if (sum.row % row_ != 0 || sum.column % column_ != 0) return refuse("fragments do not begin at lines");
      found.push_back({sum.row / row_, sum.column / column_, sum.at});
    }
    return order_fragments(all,
                           [&](int64_t n) { return std::array{found[n].row, found[n].column, found[n].at}; });
  }

  template <class Get>
  bool order_fragments(int64_t all, const Get& get) {
    int64_t last_row = 0, last_column = 0;
    for (int64_t n = 0; n < all; ++n) {
      const auto [row, column, at] = get(n);
      if (row < 0 || column < 0 || row % sched::kMmaGroups != 0) return refuse("rows do not form fragments");
      last_row = std::max(last_row, row / sched::kMmaGroups);
      last_column = std::max(last_column, column / sched::kMmaColumns);
    }
    const int64_t halves = last_row + 1, columns = last_column + 1;
    if (halves % sched::kMmaHalves != 0 || columns % 2 != 0 || halves * columns * sched::kMmaPairs != all)
      return refuse("sums do not fill fragments");
    nest_.rows = halves / sched::kMmaHalves;
    nest_.columns = columns;
    std::vector<std::array<int64_t, 2>> pairs(halves * columns, {-1, -1});
    for (int64_t n = 0; n < all; ++n) {
      const auto [row, column, at] = get(n);
      const int64_t pair = column % sched::kMmaColumns;
      if (pair >= sched::kMmaPairs) return refuse("columns do not form pairs");
      auto& place = pairs[row / sched::kMmaGroups * columns + column / sched::kMmaColumns];
      if (place[pair] >= 0) return refuse("a sum is computed twice");
      place[pair] = at;
    }
    nest_.pair = pairs.front()[1] - pairs.front()[0];
    for (const auto& pair : pairs) {
      if (pair[0] < 0 || pair[1] - pair[0] != nest_.pair)
        return refuse("pairs of sums differ in their distance");
      nest_.at.push_back(pair[0]);
    }
    return true;
  }

  bool finish_tile(const Factor& factor, MmaTile& tile) {
    const int64_t bytes = ir::bytes_of(tile.buffer->dtype);
    if (tile.line * bytes % kChunkBytes != 0) return refuse("lines of a tile are not aligned");
    ir::VarMap zero;
    for (const For* loop : loops_) zero[loop->var.get()] = Expr(0);
    zero[kernel_.index[kThreadX].get()] = Expr(0);
    tile.first =
        ir::simplify(ir::substitute(flat_index(tile.buffer, factor.load->indices, bounds_), zero), bounds_);
    // Each warp must begin at a whole group of lines, or at a whole chunk.
    const int64_t unit = tile.single_elements() ? kElementsUnitBytes : kChunkBytes;
    const int64_t whole = tile.steps_contiguous ? sched::kMmaGroups * tile.line : unit / bytes;
    for (const size_t axis : {kThreadY, kThreadZ}) {
      for (int64_t v = 0; v < kernel_.extents[axis]; ++v) {
        const auto moved = factor.place->moved(kernel_.index[axis], v);
        if (!moved || *moved % whole != 0) return refuse("tiles of warps are not aligned");
      }
    }
    const auto first = ir::as_int(ir::simplify(ir::substitute(
        tile.first, {{kernel_.index[kThreadY].get(), Expr(0)}, {kernel_.index[kThreadZ].get(), Expr(0)}})));
    if (!first || *first != 0) return refuse("a tile does not begin with its buffer");
    tile.swizzle = tile.buffer->allocation_elements() % tile.line == 0 ? mma_swizzle(tile.line * bytes, unit)
                                                                       : MmaSwizzle{unit};
    return true;
  }

  bool find_tiles() {
    nest_.sums = store_->buffer;
    return finish_tile(x_, nest_.a) && finish_tile(y_, nest_.b);
  }

  const GpuKernel& kernel_;
  const int capability_;
  std::vector<const For*> loops_, fragments_;
  const For* step_ = nullptr;
  const ir::Store* store_ = nullptr;
  Factor x_, y_;
  std::optional<Separable> sums_;
  std::vector<ir::Var> vars_;
  ir::VarBounds bounds_;
  int64_t row_ = 1, column_ = 1;
  MmaNest nest_;
  std::string why_;
};

}  // namespace

MmaSwizzle mma_swizzle(int64_t line_bytes, int64_t unit) {
  if (line_bytes < 2 * unit || !std::has_single_bit(static_cast<uint64_t>(line_bytes))) return {unit};
  // Lines that span all banks all begin in the same bank; of lines that span half of them, every
  // other line does.
  const int most = kBankLineBytes / unit;
  const int units = std::min<int64_t>(line_bytes / unit, most);
  return {unit, std::countr_zero(static_cast<unsigned>(most / units)), units - 1};
}

namespace {

// Looks at outermost loops first, and not inside a nest or a refused candidate.
void find_nests(const GpuKernel& kernel, int capability, const Stmt& s, MmaKernel& out) {
  if (ir::as<For>(s) != nullptr) {
    NestMatcher matcher(kernel, capability);
    if (matcher.is_candidate(s)) {
      if (auto nest = matcher.match())
        out.nests.emplace(s.get(), std::move(*nest));
      else
        out.refused.push_back(matcher.why());
      return;
    }
  }
  ir::for_each_part(s, [&](const Stmt& part) { find_nests(kernel, capability, part, out); });
}

}  // namespace

MmaKernel find_mma(const GpuKernel& kernel, int capability) {
  MmaKernel out;
  if (!sched::has_mma(capability, ir::DType::kF16, ir::DType::kF16)) return out;
  find_nests(kernel, capability, kernel.body, out);
  BufferUses uses;
  uses.add(kernel.body);
  for (auto& [loop, nest] : out.nests) {
    for (MmaTile* tile : {&nest.a, &nest.b}) {
      if (uses.reads.at(tile->buffer.get()) != 1) tile->swizzle.mask = 0;
      if (tile->swizzle.mask != 0) out.swizzled[tile->buffer.get()] = *tile;
    }
  }
  if (!sched::copies_asynchronously(capability)) return out;
  out.pipelines = find_copy_pipelines(kernel);
  for (const auto& [loop, pipeline] : out.pipelines)
    for (const ir::Buffer& tile : pipeline.tiles) out.copies[tile.get()] = pipeline.stages;
  return out;
}

}  // namespace tensorsmith::codegen
