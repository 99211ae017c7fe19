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

// Lanes first, first + step, ...
llvm::SmallVector<int, 64> sequence(size_t count, int first, int step = 1) {
  llvm::SmallVector<int, 64> lanes(count);
  for (size_t i = 0; i < count; ++i) lanes[i] = first + static_cast<int>(i) * step;
  return lanes;
}

size_t lanes_of(Value* v) { return llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements(); }

// The vectors as one sequence, index (vector, lane), both powers of two. Interleaving its halves rotates the
// index' bits by one; log2(vectors) times puts the vector's number into the low bits.
void transpose(llvm::IRBuilder<>& builder, std::vector<Value*>& vectors) {
  const size_t count = vectors.size(), lanes = lanes_of(vectors.front());
  llvm::SmallVector<int, 64> low(lanes), high(lanes);
  for (size_t i = 0; i < lanes; ++i) {
    low[i] = static_cast<int>(i / 2 + (i % 2) * lanes);
    high[i] = low[i] + static_cast<int>(lanes / 2);
  }
  for (size_t step = 1; step < count; step *= 2) {
    std::vector<Value*> next(count);
    for (size_t i = 0; i < count / 2; ++i) {
      next[2 * i] = builder.CreateShuffleVector(vectors[i], vectors[i + count / 2], low);
      next[2 * i + 1] = builder.CreateShuffleVector(vectors[i], vectors[i + count / 2], high);
    }
    vectors = std::move(next);
    // The shuffles of a level look like those of any other to instruction selection, which takes them apart.
    if (auto* first = llvm::dyn_cast<llvm::ShuffleVectorInst>(vectors.front())) begin_block_at(*first);
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
    transpose(b_, vectors);
    forget_loads(store->buffer);
    first.element.lane = 0;
    const auto row_lanes = static_cast<size_t>(extent);
    for (int64_t row = 0; row < *lanes; ++row) {
      const size_t start = static_cast<size_t>(row) * count;
      Value* v = vectors[start / width];
      if (row_lanes != width)
        v = b_.CreateShuffleVector(v, sequence(row_lanes, static_cast<int>(start % width)));
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
