// Weights are fetched before they are needed: in a model they come from memory, and the prefetchers of processors keep up with a
// register tile's loads only up to the end of a page (docs/decisions/003-prefetches-and-pages.md).
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <iterator>

#include "codegen/llvm/memory_emitter.h"

namespace tensorsmith::codegen {

using llvm::Value;

namespace {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kLeastInputBytes = int64_t{64} << 10;  // smaller ones are soon in the caches
constexpr int64_t kMostLines = 4;                        // of a step
constexpr size_t kMostPieces = 64;                       // that a step reads
constexpr int64_t kMostTileLines = 4;                    // of the next tile, in a step
constexpr int64_t kFarApart = 2048;                      // bytes between steps that prefetchers do not follow
constexpr int kIntoL2 = 2;                               // locality of llvm.prefetch

}  // namespace

void MemoryEmitter::note_read(const Address& at) {
  const auto& element = at.element;
  auto [it, is_new] = reads_.try_emplace(at.info->instance);
  InputReads& reads = it->second;
  if (is_new) {
    reads.info = at.info;
    reads.element = element;
    reads.element.lane = 0;
    reads.element.constant = 0;
  }
  const auto same_terms = std::ranges::equal(
      reads.element.terms, element.terms,
      [](const auto& a, const auto& b) { return a.atom == b.atom && a.coefficient == b.coefficient; });
  reads.alike = reads.alike && same_terms && element.vector == nullptr &&
                (element.lane == 0 || element.lane == 1) && reads.pieces.size() <= kMostPieces;
  if (!reads.alike) return;
  int64_t begin = element.constant, end = begin + (element.lane == 1 ? context_.lanes : 1);
  auto next = reads.pieces.upper_bound(begin);
  if (next != reads.pieces.begin() && std::prev(next)->second >= begin) --next;
  while (next != reads.pieces.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = reads.pieces.erase(next);
  }
  reads.pieces.emplace(begin, end);
}

std::optional<StepReads> MemoryEmitter::step_of(const InputReads& reads) {
  if (!reads.alike || reads.pieces.empty()) return std::nullopt;
  const auto& [first, end] = *reads.pieces.begin();
  StepReads step{end - first, static_cast<int64_t>(reads.pieces.size()), 0};
  if (step.count > 1) step.stride = std::next(reads.pieces.begin())->first - first;
  int64_t expected = first;
  for (const auto& [piece, piece_end] : reads.pieces) {
    if (piece != expected || piece_end - piece != step.span) return std::nullopt;
    expected += step.stride;
  }
  return step;
}

void MemoryEmitter::prefetch(const BufferInfo& info, const Affine& element) {
  Value* pointer = pointer_to(info, element);
  auto* fetch = b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {pointer->getType()},
                                   {pointer, b_.getInt32(0), b_.getInt32(kIntoL2), b_.getInt32(1)});
  annotate(fetch, info, false);
}

bool MemoryEmitter::prefetch_next_block(const InputReads& reads, const StepReads& step) {
  const int64_t bytes = ir::bytes_of(reads.info->dtype);
  const auto next = indices_.next_block(reads.element, step);
  if (!next || next->block * bytes > context_.traits.l2_bytes / 2) return false;
  const int64_t lines = (next->elements * bytes + kLineBytes - 1) / kLineBytes;
  if (lines > kMostLines) return false;
  for (int64_t line = 0; line < lines; ++line) {
    Affine element = next->element;
    element.constant += line * kLineBytes / bytes;
    prefetch(*reads.info, element);
  }
  return true;
}

void MemoryEmitter::prefetch_next_tile(const InputReads& reads, const StepReads& step) {
  const int64_t in_line = kLineBytes / ir::bytes_of(reads.info->dtype);
  const int64_t lines = (step.span + in_line - 1) / in_line;
  if (lines * step.count > kMostTileLines) return;
  const auto distance = indices_.next_tile(reads.element, kFarApart / ir::bytes_of(reads.info->dtype));
  if (!distance) return;
  // From the end of a piece: where tiles follow each other, its begin lies in a line of the tile before.
  for (const auto& [begin, end] : reads.pieces) {
    for (int64_t line = 0; line < lines; ++line) {
      Affine element = reads.element;
      element.constant = end + *distance - 1 - line * in_line;
      prefetch(*reads.info, element);
    }
  }
}

void MemoryEmitter::prefetch_ahead() {
  for (auto& [instance, reads] : reads_) {
    if (reads.info->elements * ir::bytes_of(reads.info->dtype) < kLeastInputBytes) continue;
    const auto step = step_of(reads);
    if (!step) continue;
    reads.element.constant = reads.pieces.begin()->first;
    if (!prefetch_next_block(reads, *step)) prefetch_next_tile(reads, *step);
  }
}

}  // namespace tensorsmith::codegen
