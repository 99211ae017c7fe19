// Vectors stored across a row: for u unrolled, for v in lanes: B[.. v * S + u] = f(u, v), S > 1. Lane by lane
// each vector would be as many scalar stores; together they are a matrix, which is transposed in registers
// and stored row by row. This is how data moves between planes and rows of channels.
#include <bit>
#include <numeric>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/split_blocks.h"
#include "ir/analysis.h"

namespace tensorsmith::codegen {

using ir::For;
using llvm::Value;

namespace {

// Of 32 bits, within which one instruction interleaves two vectors; across them permutations are slower.
constexpr size_t kCheapLanes = 4;

// Lanes first, first + step, ...
llvm::SmallVector<int, 64> sequence(size_t count, int first, int step = 1) {
  llvm::SmallVector<int, 64> lanes(count);
  for (size_t i = 0; i < count; ++i) lanes[i] = first + static_cast<int>(i) * step;
  return lanes;
}

size_t lanes_of(Value* v) { return llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements(); }

// Vectors and where each of their lanes has come from: its index in the vectors as they were, one after the
// other.
struct Rows {
  std::vector<Value*> vectors;
  std::vector<llvm::SmallVector<int, 64>> from;
};

// Brings what the vectors (a power of two of them, no more than lanes) hold in one lane together, in the
// vectors' order: pairs of them are interleaved by elements, then by pairs of elements, ... Which vector
// holds what of a lane in the end depends on what the cheap instructions do.
void transpose(llvm::IRBuilder<>& builder, Rows& rows) {
  const size_t count = rows.vectors.size(), lanes = lanes_of(rows.vectors.front());
  rows.from.resize(count);
  for (size_t i = 0; i < count; ++i) rows.from[i] = sequence(lanes, static_cast<int>(i * lanes));
  for (size_t granule = 1; granule < count; granule *= 2) {
    const size_t block = granule < kCheapLanes ? std::min(kCheapLanes, lanes) : lanes;
    llvm::SmallVector<int, 64> picks[2];  // of the halves of all blocks
    for (size_t half = 0; half < 2; ++half)
      for (size_t start = 0; start < lanes; start += block)
        for (size_t lane = 0; lane < block; ++lane) {
          const size_t number = lane / granule;
          picks[half].push_back(static_cast<int>(start + half * block / 2 + number / 2 * granule +
                                                 lane % granule + number % 2 * lanes));
        }
    llvm::Instruction* first = nullptr;
    for (size_t i = 0; i < count; ++i) {
      if ((i & granule) != 0) continue;
      const size_t pair[2] = {i, i + granule};
      Value* a = rows.vectors[pair[0]];
      Value* b = rows.vectors[pair[1]];
      const llvm::SmallVector<int, 64> from[2] = {rows.from[pair[0]], rows.from[pair[1]]};
      for (size_t half = 0; half < 2; ++half) {
        Value* v = rows.vectors[pair[half]] = builder.CreateShuffleVector(a, b, picks[half]);
        if (first == nullptr) first = llvm::dyn_cast<llvm::ShuffleVectorInst>(v);
        for (size_t lane = 0; lane < lanes; ++lane) {
          const auto pick = static_cast<size_t>(picks[half][lane]);
          rows.from[pair[half]][lane] = from[pick / lanes][pick % lanes];
        }
      }
    }
    // The shuffles of a level look like those of any other to instruction selection, which takes them apart.
    if (first != nullptr && granule > 1) begin_block_at(*first);
  }
}

}  // namespace

bool Emitter::emit_transposed(const For& loop, int64_t extent) {
  const auto* inner = ir::as<For>(loop.body);
  const int64_t widest = traits_.vector_bytes / 4;
  if (lanes_ != 1 || extent < 2 || extent > widest || inner == nullptr ||
      inner->kind != ir::ForKind::kVectorized || !plan_.vectorizable(loop.body))
    return false;
  const std::optional<int64_t> lanes = ir::as_int(inner->extent);
  const auto* store = ir::as<ir::Store>(inner->body);
  if (store == nullptr || !lanes || *lanes < 2 || *lanes > widest) return false;
  if (store->buffer->dtype != ir::DType::kF32 || info_of(store->buffer).lanes != 1) return false;
  // All values are there before the first is stored.
  for (const ir::Load* load : ir::loads_of(store->value))
    if (load->buffer == store->buffer) return false;

  lanes_ = static_cast<int>(*lanes);
  Affine lane;
  lane.lane = 1;
  f_.vars[inner->var.get()] = lane;
  // What was evaluated for another u holds no longer.
  const auto at = [&](int64_t u) {
    const EvaluationScope scope(evaluated_);
    Affine value;
    value.constant = u;
    f_.vars[loop.var.get()] = value;
    return address_of(store->buffer, store->indices);
  };
  const Address next = at(1);
  Address first = at(0);
  const int64_t stride = first.element.lane;
  const bool matrix = first.element.vector == nullptr && next.element.vector == nullptr && stride > 1 &&
                      next.element.lane == stride && next.element.terms == first.element.terms &&
                      next.element.constant == first.element.constant + 1;
  if (matrix) {
    std::vector<Value*> vectors;
    for (int64_t u = 0; u < extent; ++u) {
      at(u);
      const EvaluationScope scope(evaluated_);
      vectors.push_back(to_memory(ir::DType::kF32, broadcast(eval(store->value))));
    }
    const size_t count = std::bit_ceil(static_cast<size_t>(extent));
    const size_t width = std::max(count, std::bit_ceil(static_cast<size_t>(*lanes)));
    auto filler = sequence(width, 0);
    for (size_t i = static_cast<size_t>(*lanes); i < width; ++i) filler[i] = -1;
    if (width != static_cast<size_t>(*lanes))
      for (Value*& v : vectors) v = b_.CreateShuffleVector(v, filler);
    vectors.resize(count, llvm::PoisonValue::get(vectors.front()->getType()));
    Rows rows{std::move(vectors), {}};
    transpose(b_, rows);
    forget_loads(store->buffer);
    loaded_.constants.clear();
    first.element.lane = 0;
    const auto row_lanes = static_cast<size_t>(extent);
    for (int64_t row = 0; row < *lanes; ++row) {
      // Its first element was lane `row` of the first vector.
      size_t holder = 0, start = 0;
      for (size_t i = 0; i < count; ++i)
        for (size_t k = 0; k < width; k += count)
          if (rows.from[i][k] == row) holder = i, start = k;
      Value* v = rows.vectors[holder];
      if (row_lanes != width) v = b_.CreateShuffleVector(v, sequence(row_lanes, static_cast<int>(start)));
      Address place = first;
      place.element.constant += row * stride;
      annotate(b_.CreateAlignedStore(v, pointer_to(store->buffer, *place.info, place.element),
                                     alignment_of(place)),
               *place.info, false);
    }
    emitted_steps_ += extent * 4 + *lanes;
  }
  f_.vars.erase(inner->var.get());
  f_.vars.erase(loop.var.get());
  lanes_ = 1;
  return matrix;
}

}  // namespace tensorsmith::codegen
