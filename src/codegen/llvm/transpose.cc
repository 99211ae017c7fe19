// Vectors stored across a row: for u unrolled, for v in lanes: B[.. v * S + u] = f(u, v), S > 1.
// Stored lane by lane, each vector would take as many scalar stores as it has lanes. Together they
// form a matrix, which is transposed in registers and stored row by row. This is how data moves
// between planes and rows of channels.
#include <bit>
#include <numeric>

#include "codegen/llvm/memory_emitter.h"
#include "codegen/llvm/split_blocks.h"

namespace tensorsmith::codegen {

using llvm::Value;

namespace {

// Number of 32-bit lanes within which one instruction interleaves two vectors; permutations across
// them are slower.
constexpr size_t kCheapLanes = 4;

// Returns lanes first, first + step, ...
llvm::SmallVector<int, 64> sequence(size_t count, int first, int step = 1) {
  llvm::SmallVector<int, 64> lanes(count);
  for (size_t i = 0; i < count; ++i) lanes[i] = first + static_cast<int>(i) * step;
  return lanes;
}

size_t lanes_of(Value* v) { return llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements(); }

// Vectors, and the origin of each of their lanes: its index in the concatenation of the original
// vectors.
struct Rows {
  std::vector<Value*> vectors;
  std::vector<llvm::SmallVector<int, 64>> from;
};

// Gathers the elements that the vectors (a power of two of them, no more than lanes) have in the
// same lane, in the vectors' order: pairs of vectors are interleaved by elements, then by pairs of
// elements, and so on. Which vector finally holds the elements of a lane depends on the cheap
// instructions.
void transpose(llvm::IRBuilder<>& builder, Rows& rows) {
  const size_t count = rows.vectors.size(), lanes = lanes_of(rows.vectors.front());
  rows.from.resize(count);
  for (size_t i = 0; i < count; ++i) rows.from[i] = sequence(lanes, i * lanes);
  for (size_t granule = 1; granule < count; granule *= 2) {
    const size_t block = granule < kCheapLanes ? std::min(kCheapLanes, lanes) : lanes;
    llvm::SmallVector<int, 64> picks[2];  // shuffles of the lower and upper halves of all blocks
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
          const size_t pick = picks[half][lane];
          rows.from[pair[half]][lane] = from[pick / lanes][pick % lanes];
        }
      }
    }
    // To instruction selection, the shuffles of a level look like any others; splitting the block
    // keeps it from taking them apart.
    if (first != nullptr && granule > 1) begin_block_at(*first);
  }
}

}  // namespace

bool MemoryEmitter::are_columns(const Address& first, const Address& second) {
  const Affine& a = first.element;
  const Affine& b = second.element;
  return a.vector == nullptr && b.vector == nullptr && a.lane > 1 && b.lane == a.lane && b.terms == a.terms &&
         b.constant == a.constant + 1;
}

void MemoryEmitter::store_columns(const Address& first, std::vector<Value*> columns) {
  const size_t row_lanes = columns.size(), lanes = lanes_of(columns.front());
  const size_t count = std::bit_ceil(row_lanes), width = std::max(count, std::bit_ceil(lanes));
  auto filler = sequence(width, 0);
  for (size_t i = lanes; i < width; ++i) filler[i] = -1;
  if (width != lanes)
    for (Value*& v : columns) v = b_.CreateShuffleVector(v, filler);
  columns.resize(count, llvm::PoisonValue::get(columns.front()->getType()));
  Rows rows{std::move(columns), {}};
  transpose(b_, rows);
  forget(*first.info);
  loaded_.constants.clear();
  for (size_t row = 0; row < lanes; ++row) {
    // Finds the vector that holds this row: its first element was lane `row` of the first vector.
    size_t holder = 0, start = 0;
    for (size_t i = 0; i < count; ++i)
      for (size_t k = 0; k < width; k += count)
        if (rows.from[i][k] == static_cast<int>(row)) holder = i, start = k;
    Value* v = rows.vectors[holder];
    if (row_lanes != width) v = b_.CreateShuffleVector(v, sequence(row_lanes, start));
    Address place = first;
    place.element.lane = 0;
    place.element.constant += static_cast<int64_t>(row) * first.element.lane;
    annotate(b_.CreateAlignedStore(v, pointer_to(place), alignment_of(place)), *place.info, false);
  }
  steps_ += static_cast<int64_t>(row_lanes * 4 + lanes);
}

}  // namespace tensorsmith::codegen
