// Emits products of tiles by AMX. Tiles are numbered: first the sums, then the rows' factor, then
// the columns' factor.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <array>

#include "codegen/llvm/statement_emitter.h"
#include "codegen/matrix_nest.h"

namespace tensorsmith::codegen {

using ir::For;
using llvm::Value;

namespace {

constexpr int64_t kWordBytes = 4;

// A part of the rows or columns: values of the loops' variables, and the number of iterations of
// the last loop.
struct Part {
  std::vector<int64_t> at;
  int64_t count = 0;
};

std::vector<Part> parts_of(const std::vector<const For*>& loops) {
  std::vector<Part> result{{}};
  for (const For* loop : loops) {
    const bool last = loop == loops.back();
    const int64_t extent = *ir::as_int(loop->extent), step = last ? sched::kTileSide : 1;
    std::vector<Part> next;
    for (const Part& part : result) {
      for (int64_t i = 0; i < extent; i += step) {
        Part more = part;
        more.at.push_back(i);
        more.count = std::min(step, extent - i);
        next.push_back(std::move(more));
      }
    }
    result = std::move(next);
  }
  return result;
}

}  // namespace

// Tile configuration as in Intel's manual, volume 1, table 18-1.
llvm::Constant* StatementEmitter::tile_configuration(const TileShapes& shapes) {
  std::array<uint8_t, 64> bytes{};
  bytes[0] = 1;  // palette
  for (size_t t = 0; t < shapes.size(); ++t) {
    bytes[16 + 2 * t] = shapes[t].second * kWordBytes;
    bytes[48 + t] = shapes[t].first;
  }
  llvm::Constant* data = llvm::ConstantDataArray::get(b_.getContext(), bytes);
  auto* global = new llvm::GlobalVariable(module_, data->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::PrivateLinkage, data, "tiles");
  global->setAlignment(llvm::Align(64));
  return global;
}

void StatementEmitter::configure_tiles(const TileShapes& shapes) {
  b_.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {tile_configuration(shapes)});
}

void StatementEmitter::with_tiles(const TileShapes& shapes, const std::function<void()>& emit_products) {
  // If parallel loops are called, the part of them that runs on this thread may leave another tile
  // configuration behind.
  const bool stay = f_.in_parallel || !decisions_.contains_parallel(program_.body);
  if (f_.tile_shapes.empty()) {
    f_.tile_shapes = shapes;
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    if (stay) b_.SetInsertPoint(indices_.outermost());
    configure_tiles(shapes);
  } else if (!stay || shapes != f_.tile_shapes) {
    configure_tiles(shapes);
  }
  emit_products();
  if (stay && shapes != f_.tile_shapes) configure_tiles(f_.tile_shapes);
}

bool StatementEmitter::emit_matrix(const For& loop) {
  if (context_.lanes != 1 || context_.mask != nullptr || context_.guard != nullptr) return false;
  const auto nest = match_matrix_nest(loop, context_.traits.matrix);
  if (!nest) return false;
  uses_matrix_units_ = true;
  const std::vector<Part> rows = parts_of(nest->rows), columns = parts_of(nest->columns);
  const int64_t steps = *ir::as_int(nest->sums.back()->extent), depth = std::min(steps, sched::kTileSide);

  TileShapes shapes;
  for (const Part& r : rows)
    for (const Part& c : columns) shapes.emplace_back(r.count, c.count);
  const size_t first_row = shapes.size();
  for (const Part& r : rows) shapes.emplace_back(r.count, depth);
  const size_t first_column = shapes.size();
  for (const Part& c : columns) shapes.emplace_back(depth, c.count);

  const auto tile = [&](size_t number) { return b_.getInt8(number); };
  const auto bytes = [&](int64_t stride) { return b_.getInt64(stride * kWordBytes); };
  const auto bind = [&](const std::vector<const For*>& loops, const Part& part) {
    for (size_t l = 0; l < loops.size(); ++l) indices_.bind(loops[l]->var, Affine::of(part.at[l]));
  };
  const auto pointer = [&](const ir::Buffer& buffer, const std::vector<ir::Expr>& indices) {
    const EvaluationScope scope(context_.evaluated);
    return memory_.pointer_to(buffer, indices);
  };
  const auto for_each_sum = [&](llvm::Intrinsic::ID access) {
    size_t number = 0;
    for (const Part& r : rows) {
      for (const Part& c : columns) {
        bind(nest->rows, r);
        bind(nest->columns, c);
        Value* place = pointer(nest->store->buffer, nest->store->indices);
        b_.CreateIntrinsic(access, {}, {tile(number++), place, bytes(nest->c_stride)});
      }
    }
  };
  const llvm::Intrinsic::ID product = nest->dot == ir::Intrinsic::kDot2 ? llvm::Intrinsic::x86_tdpbf16ps
                                      : nest->b_is_first                ? llvm::Intrinsic::x86_tdpbsud
                                                                        : llvm::Intrinsic::x86_tdpbusd;
  const auto step = [&] {
    for (size_t c = 0; c < columns.size(); ++c) {
      bind(nest->columns, columns[c]);
      b_.CreateIntrinsic(
          llvm::Intrinsic::x86_tileloadd64, {},
          {tile(first_column + c), pointer(nest->b->buffer, nest->b->indices), bytes(nest->b_stride)});
    }
    for (size_t r = 0; r < rows.size(); ++r) {
      bind(nest->rows, rows[r]);
      b_.CreateIntrinsic(
          llvm::Intrinsic::x86_tileloadd64, {},
          {tile(first_row + r), pointer(nest->a->buffer, nest->a->indices), bytes(nest->a_stride)});
      for (size_t c = 0; c < columns.size(); ++c)
        b_.CreateIntrinsic(product, {},
                           {tile(r * columns.size() + c), tile(first_row + r), tile(first_column + c)});
    }
  };
  // Emits the loops of the sum; the last one advances by the depth of a tile.
  const std::function<void(size_t)> emit_sum = [&](size_t l) {
    if (l == nest->sums.size()) return step();
    const For& sum = *nest->sums[l];
    const int64_t by = l + 1 == nest->sums.size() ? depth : 1, trips = *ir::as_int(sum.extent) / by;
    if (trips == 1) {
      indices_.bind(sum.var, Affine::of(0));
      emit_sum(l + 1);
      indices_.unbind(sum.var);
      return;
    }
    emit_loop(ir::Var(sum.var.name()), b_.getInt64(0), b_.getInt64(trips), {0, trips - 1}, true,
              [&](const Affine& number) {
                indices_.bind(sum.var, indices_.sum(Affine(), number, by));
                emit_sum(l + 1);
                indices_.unbind(sum.var);
              });
  };
  with_tiles(shapes, [&] {
    for_each_sum(llvm::Intrinsic::x86_tileloadd64);
    emit_sum(0);
    for_each_sum(llvm::Intrinsic::x86_tilestored64);
  });
  for (const std::vector<const For*>* loops : {&nest->rows, &nest->columns})
    for (const For* l : *loops) indices_.unbind(l->var);
  memory_.forget();
  return true;
}

}  // namespace tensorsmith::codegen
