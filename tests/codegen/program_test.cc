// Statements: loops, masks, guards, allocations, parallel loops, against the interpreter; errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/llvm/codegen.h"
#include "codegen/runner.h"
#include "ir/text.h"

namespace tensorsmith::program_test {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::ForKind;
using ir::make_buffer;
using ir::Stmt;
using ir::Var;
using lower::Tensor;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Stmt loop(const Var& v, Expr extent, Stmt body, ForKind kind = ForKind::kSerial, int64_t unroll = 0) {
  return ir::make_for({v, std::move(extent), kind, ir::ThreadAxis::kNone, unroll, std::move(body)});
}
Stmt vectorized(const Var& v, int64_t extent, Stmt body) {
  return loop(v, extent, std::move(body), ForKind::kVectorized);
}
Stmt unrolled(const Var& v, int64_t extent, Stmt body) {
  return loop(v, extent, std::move(body), ForKind::kUnrolled);
}
Stmt parallel(const Var& v, int64_t extent, Stmt body) {
  return loop(v, extent, std::move(body), ForKind::kParallel);
}

// Runs on every device of this machine and compares with the interpreter.
void check(const ir::Program& program, double relative = 1e-5, int64_t index_limit = 0) {
  Rng rng(3);
  std::vector<Tensor> inputs;
  for (const Buffer& b : program.inputs)
    inputs.push_back(lower::random_tensor(b->dtype, b->shape, rng, index_limit));
  const auto want = lower::run(program, inputs);
  ASSERT_TRUE(want.ok()) << want.error().message();
  for (const target::Device& device : test::local_devices()) {
    const auto kernel = test::backend().compile(program, device, {});
    ASSERT_TRUE(kernel.ok()) << kernel.error().message();
    EXPECT_THAT(test::undefined_symbols(kernel->object), IsEmpty());
    const auto loaded = test::backend().load(kernel->object, kernel->symbol);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    for (const int threads : {1, 3}) {
      const auto got = test::run_kernel((*loaded)->function(), *kernel, program, inputs, threads);
      for (size_t o = 0; o < want->size(); ++o)
        EXPECT_EQ(test::compare(got[o], (*want)[o], relative, relative), "")
            << program.name << " on " << device.name << ", " << threads << " threads, output " << o;
    }
  }
}

// C[40, n] = A[40, 23] * B[23, n] with a register tile of 4 x (2 vectors of 8), tail in j predicated.
ir::Program tiled_matmul(int64_t n, ForKind outer) {
  const Buffer a = make_buffer("A", DType::kF32, {40, 23});
  const Buffer b = make_buffer("B", DType::kF32, {23, n});
  const Buffer c = make_buffer("C", DType::kF32, {40, n});
  const Buffer acc = make_buffer("acc", DType::kF32, {4, 16}, ir::MemoryScope::kLocal);
  const Var io("io"), jo("jo"), i("i"), j("j"), v("v"), k("k"), i2("i2"), j2("j2"), v2("v2"), i3("i3"),
      j3("j3"), v3("v3");
  const auto column = [&](const Var& x, const Var& y) { return Expr(jo) * 16 + Expr(x) * 8 + Expr(y); };
  const auto guard = [&](const Expr& at, Stmt s) { return n % 16 == 0 ? s : ir::make_if(at < Expr(n), s); };
  const Stmt init = unrolled(
      i2, 4,
      loop(j2, 2,
           vectorized(v2, 8,
                      ir::make_store(acc, {i2, Expr(j2) * 8 + Expr(v2)}, ir::float_imm(DType::kF32, 0)))));
  const Expr place = Expr(j) * 8 + Expr(v);
  const Stmt update = ir::make_store(
      acc, {i, place},
      ir::load(acc, {i, place}) + ir::load(a, {Expr(io) * 4 + Expr(i), k}) * ir::load(b, {k, column(j, v)}));
  const Stmt reduce = loop(k, 23, loop(i, 4, loop(j, 2, vectorized(v, 8, guard(column(j, v), update)))));
  const Stmt write = loop(
      i3, 4,
      loop(j3, 2,
           vectorized(v3, 8,
                      guard(column(j3, v3), ir::make_store(c, {Expr(io) * 4 + Expr(i3), column(j3, v3)},
                                                           ir::load(acc, {i3, Expr(j3) * 8 + Expr(v3)}))))));
  const Stmt tile = ir::make_allocate(acc, ir::make_seq({init, reduce, write}));
  return {"matmul" + std::to_string(n), {a, b}, {c}, loop(io, 10, loop(jo, (n + 15) / 16, tile), outer)};
}

TEST(Program, RegisterTileWithAndWithoutTail) {
  for (const int64_t n : {32, 37, 5}) {
    check(tiled_matmul(n, ForKind::kSerial));
    check(tiled_matmul(n, ForKind::kParallel));
  }
}

TEST(LlvmCode, RegisterTileLeavesNoLocalMemory) {
  const auto text = codegen::emit_llvm_ir(tiled_matmul(32, ForKind::kSerial), test::local_devices()[0], {});
  ASSERT_TRUE(text.ok()) << text.error().message();
  EXPECT_THAT(*text, ::testing::Not(HasSubstr("alloca")));
}

// A buffer with more elements than registers would be spilled, so the loops over it are not
// unrolled.
TEST(LlvmCode, LocalBuffersBeyondTheRegistersStayInMemory) {
  const target::Device& device = test::local_devices()[0];
  for (const int64_t over : {0, 1}) {
    const int64_t rows = device.cpu().vector_registers + over;
    const Buffer x = make_buffer("X", DType::kF32, {rows, 16});
    const Buffer y = make_buffer("Y", DType::kF32, {rows, 16});
    const Buffer t = make_buffer("t", DType::kF32, {rows, 16}, ir::MemoryScope::kLocal);
    const Var i("i"), v("v"), i2("i2"), v2("v2");
    const auto copy = [&](const Var& row, const Var& lane, const Buffer& to, const Buffer& from) {
      return loop(row, rows,
                  vectorized(lane, 16, ir::make_store(to, {row, lane}, ir::load(from, {row, lane}))));
    };
    const ir::Program program = {
        "copies", {x}, {y}, ir::make_allocate(t, ir::make_seq({copy(i, v, t, x), copy(i2, v2, y, t)}))};
    check(program);
    const auto text = codegen::emit_llvm_ir(program, device, {});
    ASSERT_TRUE(text.ok()) << text.error().message();
    EXPECT_EQ(text->find("alloca") != std::string::npos, over == 1);
    EXPECT_EQ(text->find("phi") != std::string::npos, over == 1);
  }
}

// Seven of the eight lanes are inactive under the first condition, and their rows do not exist: LLVM 19 would
// load the second half of the first vector without a mask.
TEST(Program, PartsOfVectorsWithoutActiveLanesAreNotLoaded) {
  for (const int rows : {1, 2, 3}) {
    std::string text = R"(program kernel {
  input x: i64[N, 2]
  output y: i64[8, 1]
  alloc last: i64[8, 1] {
    vectorized i in 8 {
      last[i, 0] = -9
    }
    for r in 2 {
      vectorized i in 8 {
        last[i, 0] = max(last[i, 0], select(select(i < N, select(x[i, r] < 0, x[i, r] + 1, x[i, r]) == 0, false), r, -1))
      }
    }
    vectorized i in 8 {
      y[i, 0] = last[i, 0]
    }
  }
}
)";
    for (size_t at = text.find('N'); at != std::string::npos; at = text.find('N'))
      text.replace(at, 1, std::to_string(rows));
    const auto program = ir::parse_program(text);
    ASSERT_TRUE(program.ok()) << program.error().message();
    check(*program);
  }
}

TEST(Program, EveryVectorLength) {
  for (int64_t lanes = 1; lanes <= 80; lanes += lanes < 20 ? 1 : 7) {
    const Buffer a = make_buffer("A", DType::kF32, {3, lanes});
    const Buffer b = make_buffer("B", DType::kF32, {3, lanes});
    const Var i("i"), v("v");
    check({"lanes" + std::to_string(lanes),
           {a},
           {b},
           loop(i, 3,
                vectorized(v, lanes, ir::make_store(b, {i, v}, ir::load(a, {i, v}) * ir::load(a, {0, v}))))});
  }
  // Longer than loops that are unrolled.
  const Buffer a = make_buffer("A", DType::kI16, {1000});
  const Buffer b = make_buffer("B", DType::kI16, {1000});
  const Var v("v");
  check({"long",
         {a},
         {b},
         vectorized(v, 1000, ir::make_store(b, {v}, ir::load(a, {v}) + ir::cast(DType::kI16, v)))});
}

TEST(Program, StridedLoadsAndStores) {
  for (const DType t : {DType::kF32, DType::kU8, DType::kF64}) {
    for (const int64_t stride : {0, 2, 3, 4, 5, -1, -2}) {
      for (const int64_t lanes : {4, 7, 16}) {
        const int64_t span = (lanes - 1) * std::abs(stride) + 1;
        const int64_t start = stride < 0 ? span - 1 : 0;
        const Buffer a = make_buffer("A", t, {span});
        const Buffer b = make_buffer("B", t, {lanes});
        const Buffer c = make_buffer("C", t, {span});
        const Var v("v"), w("w"), z("z");
        std::vector<Stmt> parts = {
            vectorized(v, lanes, ir::make_store(b, {v}, ir::load(a, {Expr(start) + Expr(v) * stride}))),
            loop(z, span, ir::make_store(c, {z}, ir::make_const(t, 9))),
            vectorized(w, lanes,
                       ir::make_store(c, {Expr(start) + Expr(w) * stride},
                                      ir::load(a, {Expr(start) + Expr(w) * stride}) + ir::make_const(t, 1)))};
        check({"stride" + std::to_string(stride), {a}, {b, c}, ir::make_seq(parts)});
      }
    }
  }
}

// Columns of a convolution's kernel: adjacent strided loads share the vectors that they are
// shuffled from, up to the end of the row, but not beyond.
TEST(Program, StridedLoadsAtNeighbouringPlaces) {
  for (const int64_t stride : {2, 3}) {
    for (const int64_t lanes : {7, 8, 14, 16, 28}) {
      for (const int64_t spare : {0, 1, 3}) {
        const int64_t columns = (lanes - 1) * stride + 3 + spare;
        const Buffer a = make_buffer("A", DType::kF32, {4, columns});
        const Buffer b = make_buffer("B", DType::kF32, {4, lanes});
        const Var i("i"), v("v");
        Expr sum = ir::load(a, {i, Expr(v) * stride});
        for (int64_t k = 1; k < 3; ++k)
          sum = sum + ir::load(a, {i, Expr(v) * stride + k}) * ir::float_imm(DType::kF32, 3);
        // The first row is above the image, the first column left of it.
        const Expr left =
            ir::select(Expr(v) * stride >= Expr(1) && Expr(i) >= Expr(1),
                       ir::load(a, {Expr(i) - 1, Expr(v) * stride - 1}), ir::float_imm(DType::kF32, 0));
        check({"columns", {a}, {b}, loop(i, 4, vectorized(v, lanes, ir::make_store(b, {i, v}, sum + left)))});
      }
    }
  }
}

// Unrolled rows of vectors that are stored as columns are transposed in registers: all sizes,
// borders that some lanes do not read, and sums that look similar.
TEST(Program, RowsStoredAsColumns) {
  const Var y("y"), u("u"), v("v");
  for (const int64_t rows : {2, 3, 4, 7, 8, 11, 14, 16, 17})
    for (const int64_t lanes : {2, 4, 5, 8, 11, 14, 15, 16}) {
      const Buffer x = make_buffer("X", DType::kF32, {3, rows, lanes});
      const Buffer out = make_buffer("Y", DType::kF32, {3, lanes, rows});
      const Expr inside = Expr(v) >= Expr(1) && Expr(y) < Expr(2);
      const Expr value = ir::select(inside, ir::load(x, {y, u, Expr(v) - 1}), ir::float_imm(DType::kF32, 0));
      check({"columns",
             {x},
             {out},
             loop(y, 3,
                  unrolled(
                      u, rows,
                      vectorized(v, lanes,
                                 ir::make_store(out, {y, v, u}, value * ir::float_imm(DType::kF32, 2)))))});
    }
  const Buffer x = make_buffer("X", DType::kF32, {4, 8});
  const Buffer out = make_buffer("Y", DType::kF32, {8, 4});
  const auto add = ir::make_store(out, {v, u}, ir::load(out, {v, u}) + ir::load(x, {u, v}));
  check(
      {"sums",
       {x},
       {out},
       ir::make_seq({loop(u, 4, vectorized(v, 8, ir::make_store(out, {v, u}, ir::float_imm(DType::kF32, 1)))),
                     unrolled(u, 4, vectorized(v, 8, add))})});
}

TEST(Program, GatherAndScatter) {
  const Buffer index = make_buffer("I", DType::kI64, {50});
  const Buffer narrow = make_buffer("N", DType::kI32, {50});
  const Buffer table = make_buffer("T", DType::kF32, {20, 3});
  const Buffer out = make_buffer("O", DType::kF32, {50, 3});
  const Buffer scattered = make_buffer("S", DType::kF32, {20});
  const Var i("i"), v("v"), z("z"), w("w");
  const Stmt gather = loop(i, 50, ir::make_store(out, {i, 0}, ir::load(table, {ir::load(index, {i}), 0})));
  const Stmt vector = vectorized(
      v, 50,
      ir::make_seq(
          {ir::make_store(out, {v, 1}, ir::load(table, {ir::load(index, {v}), 1})),
           ir::make_store(out, {v, 2}, ir::load(table, {ir::cast(DType::kI64, ir::load(narrow, {v})), 2}))}));
  // If several lanes store to one address, the last one wins.
  const Stmt scatter = ir::make_seq(
      {loop(z, 20, ir::make_store(scattered, {z}, ir::float_imm(DType::kF32, 0))),
       vectorized(w, 50, ir::make_store(scattered, {ir::load(index, {w})}, ir::load(out, {w, 1})))});
  check({"gather", {index, narrow, table}, {out, scattered}, ir::make_seq({gather, vector, scatter})}, 0, 20);
}

// Padding: only the chosen side of a select may be read. A wrong read is visible as a wrong result;
// the interpreter rejects out-of-range reads.
TEST(Program, SelectReadsOnlyTheChosenSide) {
  for (const int64_t lanes : {1, 6, 16}) {
    for (const int shift : {-3, 2}) {
      const Buffer x = make_buffer("X", DType::kF32, {5, 48});
      const Buffer y = make_buffer("Y", DType::kF32, {7, 48});
      const Var i("i"), jo("jo"), v("v");
      const Expr j = Expr(jo) * lanes + Expr(v);
      const Expr row = Expr(i) - 1;
      const Expr inside = row >= Expr(0) && row < Expr(5) && j + shift >= Expr(0) && j + shift < Expr(48);
      const Expr padded = ir::select(inside, ir::load(x, {row, j + shift}), ir::float_imm(DType::kF32, 0));
      const Expr other =
          ir::select(row >= Expr(0) && row < Expr(5), ir::load(x, {row, j}), ir::float_imm(DType::kF32, 7));
      // An expensive side becomes a branch.
      const Expr load_row =
          ir::select(row >= Expr(0) && row < Expr(5), ir::load(x, {row, 3}), ir::float_imm(DType::kF32, 0));
      const Expr expensive = ir::select(row >= Expr(0) && row < Expr(5),
                                        ir::call(ir::Intrinsic::kExp, {ir::load(x, {row, 1})}) *
                                            ir::call(ir::Intrinsic::kTanh, {ir::load(x, {row, j})}),
                                        ir::call(ir::Intrinsic::kExp, {ir::cast(DType::kF32, Expr(i))}));
      check({"pad",
             {x},
             {y},
             loop(i, 7,
                  loop(jo, 48 / lanes,
                       vectorized(v, lanes,
                                  ir::make_store(y, {i, j}, padded + other * load_row + expensive))))});
    }
  }
}

// Strided rows with padding: conditions on the row are uniform, those on the column differ between
// lanes.
TEST(Program, SelectOfStridedLoads) {
  for (const DType t : {DType::kF32, DType::kI16}) {
    for (const int64_t stride : {2, 3, 5, -1, -2}) {
      const int64_t lanes = 16, width = 24, columns = 32;
      const Buffer x = make_buffer("X", t, {5, width});
      const Buffer y = make_buffer("Y", t, {7, columns});
      const Buffer z = make_buffer("Z", t, {7, columns});
      const Var i("i"), jo("jo"), v("v");
      const Expr j = Expr(jo) * lanes + Expr(v);
      const Expr row = Expr(i) - 1;
      const Expr column = j * stride + (stride < 0 ? 23 : -3);
      const Expr row_inside = row >= Expr(0) && row < Expr(5);
      const Expr column_inside = column >= Expr(0) && column < Expr(width);
      const Stmt padded = ir::make_store(
          y, {i, j},
          ir::select(row_inside && column_inside, ir::load(x, {row, column}), ir::make_const(t, 0)) +
              ir::select(column_inside && row_inside, ir::load(x, {row, column}), ir::make_const(t, 3)));
      const Stmt cleared = ir::make_store(z, {i, j}, ir::make_const(t, 1));
      const Stmt branch =
          ir::make_if(row_inside && column_inside, ir::make_store(z, {i, j}, ir::load(x, {row, column})));
      check({"strided select",
             {x},
             {y, z},
             loop(i, 7,
                  loop(jo, columns / lanes, vectorized(v, lanes, ir::make_seq({padded, cleared, branch}))))});
    }
  }
}

TEST(Program, MasksOfBranchesInsideLanes) {
  const Buffer x = make_buffer("X", DType::kF32, {10});
  const Buffer y = make_buffer("Y", DType::kF32, {10});
  const Buffer k = make_buffer("K", DType::kI32, {16});
  const Var v("v"), z("z");
  const Stmt odd = ir::make_if(
      ir::floormod(Expr(v), 2) == Expr(0), ir::make_store(y, {v}, ir::load(x, {v})),
      ir::make_if(ir::load(x, {v}) > ir::float_imm(DType::kF32, 0), ir::make_store(y, {v}, -ir::load(x, {v})),
                  ir::make_store(y, {v}, ir::load(x, {Expr(9) - Expr(v)}))));
  const Stmt guarded = vectorized(v, 16, ir::make_if(Expr(v) < Expr(10), odd));
  const Stmt fill = loop(z, 16, ir::make_store(k, {z}, ir::int_imm(DType::kI32, 1)));
  const Var w("w"), u("u");
  // A uniform load whose address is valid only if some lane is active.
  const Stmt uniform = loop(
      u, 8,
      vectorized(
          w, 2,
          ir::make_if(Expr(u) * 2 + Expr(w) < Expr(3),
                      ir::make_store(k, {Expr(u) * 2 + Expr(w)},
                                     ir::cast(DType::kI32, ir::load(x, {Expr(u) * 9}) +
                                                               ir::load(x, {Expr(u) * 3 + Expr(w) * 2}))))));
  check({"masks", {x}, {y, k}, ir::make_seq({guarded, fill, uniform})});
}

TEST(Program, LocalBuffersInsideLanesAreOnePerLane) {
  const Buffer x = make_buffer("X", DType::kF32, {12, 9});
  const Buffer y = make_buffer("Y", DType::kF32, {12});
  const Buffer t = make_buffer("t", DType::kF32, {9}, ir::MemoryScope::kLocal);
  const Buffer s = make_buffer("s", DType::kF32, {}, ir::MemoryScope::kLocal);
  const Var v("v"), k("k"), k2("k2");
  const Stmt body = ir::make_allocate(
      t, ir::make_allocate(
             s, ir::make_seq(
                    {loop(k, 9, ir::make_store(t, {k}, ir::load(x, {v, k}) + ir::cast(DType::kF32, Expr(v)))),
                     ir::make_store(s, {}, ir::float_imm(DType::kF32, 0)),
                     loop(k2, 9, ir::make_store(s, {}, ir::load(s, {}) + ir::load(t, {Expr(8) - Expr(k2)}))),
                     ir::make_store(y, {v}, ir::load(s, {}))})));
  check({"lanes", {x}, {y}, vectorized(v, 12, body)});
}

TEST(Program, ReductionOverLanesIsExecutedSerially) {
  const Buffer x = make_buffer("X", DType::kF32, {16});
  const Buffer y = make_buffer("Y", DType::kF32, {1});
  const Var v("v");
  const Stmt sum = vectorized(v, 16, ir::make_store(y, {0}, ir::load(y, {0}) + ir::load(x, {v})));
  check({"sum", {x}, {y}, ir::make_seq({ir::make_store(y, {0}, ir::float_imm(DType::kF32, 0)), sum})});
  // A recurrence: lane v reads the element that lane v - 1 wrote.
  const Buffer z = make_buffer("Z", DType::kF32, {17});
  const Stmt scan = vectorized(v, 16, ir::make_store(z, {Expr(v) + 1}, ir::load(z, {v}) + ir::load(x, {v})));
  check({"scan", {x}, {z}, ir::make_seq({ir::make_store(z, {0}, ir::float_imm(DType::kF32, 0)), scan})});
}

TEST(Program, NestedVectorAndDynamicExtents) {
  const Buffer x = make_buffer("X", DType::kI32, {8, 8});
  const Buffer y = make_buffer("Y", DType::kI32, {8, 8});
  const Var i("i"), j("j"), a("a"), b("b");
  // A triangle, then the remaining elements.
  const Stmt triangle = loop(i, 8, loop(j, Expr(i) + 1, ir::make_store(y, {i, j}, ir::load(x, {j, i}))));
  const Stmt rest = vectorized(
      a, 8,
      vectorized(b, 8,
                 ir::make_if(Expr(b) > Expr(a), ir::make_store(y, {a, b}, ir::int_imm(DType::kI32, 5)))));
  check({"triangle", {x}, {y}, ir::make_seq({triangle, rest})});
}

TEST(Program, ParallelLoopsNestAndCapture) {
  const Buffer x = make_buffer("X", DType::kF32, {6, 10, 33});
  const Buffer y = make_buffer("Y", DType::kF32, {6, 10, 33});
  const Buffer row = make_buffer("row", DType::kF32, {33});
  const Buffer shared = make_buffer("shared", DType::kF32, {10, 33});
  const Var s("s"), p("p"), q("q"), i("i"), j("j"), p2("p2"), j2("j2");
  const Stmt fill = parallel(
      p, 10,
      loop(i, 33,
           ir::make_store(shared, {p, i}, ir::load(x, {s, p, i}) * ir::load(x, {s, Expr(9) - Expr(p), i}))));
  const Stmt use = parallel(
      p2, 10,
      ir::make_allocate(
          row, ir::make_seq(
                   {parallel(q, 33,
                             ir::make_store(
                                 row, {q},
                                 ir::load(shared, {Expr(9) - Expr(p2), q}) + ir::cast(DType::kF32, Expr(s)))),
                    vectorized(j, 33, ir::make_store(y, {s, p2, j}, ir::load(row, {Expr(32) - Expr(j)})))})));
  check({"parallel", {x}, {y}, loop(s, 6, ir::make_allocate(shared, ir::make_seq({fill, use})))});
}

TEST(Program, LargeBuffersLiveInTheWorkspaces) {
  const int64_t n = 20000;
  const Buffer x = make_buffer("X", DType::kF32, {4, n});
  const Buffer y = make_buffer("Y", DType::kF32, {4, n});
  const Buffer all = make_buffer("all", DType::kF32, {4, n});
  const Buffer mine = make_buffer("mine", DType::kF32, {n});
  const Var p("p"), i("i"), p2("p2"), i2("i2"), i3("i3");
  const Stmt fill = parallel(
      p, 4, vectorized(i, n, ir::make_store(all, {p, i}, ir::load(x, {p, i}) * ir::load(x, {p, i}))));
  const Stmt use = parallel(
      p2, 4,
      ir::make_allocate(
          mine,
          ir::make_seq(
              {loop(i2, n, ir::make_store(mine, {i2}, ir::load(all, {p2, Expr(n - 1) - Expr(i2)}))),
               loop(i3, n,
                    ir::make_store(y, {p2, i3}, ir::load(mine, {i3}) + ir::float_imm(DType::kF32, 1)))})));
  const ir::Program program{"workspace", {x}, {y}, ir::make_allocate(all, ir::make_seq({fill, use}))};
  check(program);
  const auto kernel = test::backend().compile(program, test::local_devices()[0], {});
  EXPECT_GE(kernel->shared_workspace_bytes, 4 * n * 4);
  EXPECT_GE(kernel->thread_workspace_bytes, n * 4);
  EXPECT_LT(kernel->thread_workspace_bytes, n * 4 + 128);
}

// Multiples of a loop's variable become induction variables: in part of a parallel loop they start
// at its first iteration; some decrease; some are used under a condition or divided.
TEST(Program, MultiplesOfTheVariableOfALoop) {
  const Buffer x = make_buffer("X", DType::kF32, {500});
  const Buffer y = make_buffer("Y", DType::kF32, {300});
  const Buffer z = make_buffer("Z", DType::kF32, {100});
  const Buffer w = make_buffer("W", DType::kF32, {100});
  const Var p("p"), i("i"), j("j"), k("k");
  const Stmt strided = parallel(
      p, 100, ir::make_store(y, {Expr(p) * 3}, ir::load(x, {Expr(p) * 5}) + ir::load(x, {Expr(p) * 5 + 4})));
  const Stmt rest = loop(
      i, 100,
      ir::make_seq({ir::make_store(y, {Expr(i) * 3 + 1}, ir::load(x, {Expr(499) - Expr(i) * 4})),
                    ir::make_store(y, {Expr(299) - Expr(i) * 3}, ir::load(x, {Expr(i) * 3 + Expr(i) * 2}))}));
  const Stmt guarded = loop(j, 100,
                            ir::make_seq({ir::make_store(z, {j}, ir::float_imm(DType::kF32, 1)),
                                          ir::make_if(Expr(j) * 7 < Expr(350),
                                                      ir::make_store(z, {j}, ir::load(x, {Expr(j) * 7})))}));
  const Stmt divided =
      loop(k, 100, ir::make_store(w, {k}, ir::load(x, {ir::floormod(Expr(k) * 37, Expr(500))})));
  check({"multiples", {x}, {y, z, w}, ir::make_seq({strided, rest, guarded, divided})});
}

TEST(Program, UnrollPragmaAndStridedBuffers) {
  const Buffer x = make_buffer("X", DType::kF32, {3, 5, 7}, ir::MemoryScope::kGlobal, {64, 8, 1});
  const Buffer y = make_buffer("Y", DType::kF32, {3});
  const Buffer in = make_buffer("I", DType::kF32, {3, 5, 7});
  const Var a("a"), b("b"), c("c"), a2("a2"), b2("b2"), c2("c2");
  const Stmt copy = loop(a, 3, loop(b, 5, loop(c, 7, ir::make_store(x, {a, b, c}, ir::load(in, {a, b, c})))),
                         ForKind::kSerial, 512);
  const Stmt sum = loop(
      a2, 3,
      ir::make_seq(
          {ir::make_store(y, {a2}, ir::float_imm(DType::kF32, 0)),
           loop(b2, 5, loop(c2, 7, ir::make_store(y, {a2}, ir::load(y, {a2}) + ir::load(x, {a2, b2, c2}))))}),
      ForKind::kSerial, 16);
  check({"unroll", {in}, {y}, ir::make_allocate(x, ir::make_seq({copy, sum}))});
}

// Each unrolled copy has its own memory, which cached addresses of an earlier copy must not be used
// for.
TEST(Program, BuffersAllocatedInUnrolledLoops) {
  const Buffer x = make_buffer("X", DType::kF32, {4, 7});
  const Buffer y = make_buffer("Y", DType::kF32, {4, 3});
  const Buffer t = make_buffer("t", DType::kF32, {7}, ir::MemoryScope::kLocal);
  const Var o("o"), i("i"), k("k");
  const Stmt body = ir::make_allocate(
      t, ir::make_seq({loop(k, 7, ir::make_store(t, {k}, ir::load(x, {i, k}))),
                       ir::make_store(y, {i, o}, ir::load(t, {o}) + ir::load(t, {Expr(o) + 3}))}));
  check({"unrolled", {x}, {y}, loop(o, 3, unrolled(i, 4, body), ForKind::kSerial)});
}

TEST(Program, FusedIndicesWithDivisions) {
  const Buffer x = make_buffer("X", DType::kF32, {6, 8, 10});
  const Buffer y = make_buffer("Y", DType::kF32, {480});
  const Var f("f"), v("v");
  for (const int64_t lanes : {1, 4, 5, 16, 32}) {
    const Expr at = Expr(f) * lanes + Expr(v);
    const Expr value =
        ir::load(x, {ir::floordiv(at, 80), ir::floormod(ir::floordiv(at, 10), 8), ir::floormod(at, 10)}) +
        ir::cast(DType::kF32, ir::floormod(Expr(0) - at, 7)) +
        ir::cast(DType::kF32, ir::floordiv(Expr(3) - at, 4));
    check({"fused", {x}, {y}, loop(f, 480 / lanes, vectorized(v, lanes, ir::make_store(y, {at}, value)))});
  }
}

// --- errors

ir::Program copy_program() {
  const Buffer a = make_buffer("A", DType::kF32, {8});
  const Buffer b = make_buffer("B", DType::kF32, {8});
  const Var i("i");
  return {"copy", {a}, {b}, loop(i, 8, ir::make_store(b, {i}, ir::load(a, {i})))};
}

TEST(LlvmCode, UnknownCpuAndFeature) {
  target::Device device = test::local_devices()[0];
  device.processor = "znver99";
  auto kernel = test::backend().compile(copy_program(), device, {});
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(kernel.error().message(), HasSubstr("LLVM does not know the CPU 'znver99' for x86-64"));
  device = test::local_devices()[0];
  device.features.push_back("+warp-drive");
  kernel = test::backend().compile(copy_program(), device, {});
  ASSERT_FALSE(kernel.ok());
  EXPECT_THAT(kernel.error().message(), HasSubstr("does not know the feature '+warp-drive'"));
}

TEST(LlvmCode, DevicesWithoutCodeGenerator) {
  const auto gpu = test::backend().compile(copy_program(), target::find_device("v100").value(), {});
  ASSERT_FALSE(gpu.ok());
  EXPECT_EQ(gpu.error().code, ErrorCode::kUnsupported);
  target::Device old;
  old.name = "old";
  old.arch = "x86-64";
  EXPECT_THAT(test::backend().compile(copy_program(), old, {}).error().message(), HasSubstr("needs SSE4.2"));
}

TEST(Errors, GpuLoopsAndBadSymbols) {
  ir::Program program = copy_program();
  ir::For thread = *ir::as<ir::For>(program.body);
  thread.kind = ForKind::kThread;
  thread.thread = ir::ThreadAxis::kBlockX;
  program.body = ir::make_for(thread);
  const auto kernel = test::backend().compile(program, test::local_devices()[0], {});
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(kernel.error().message(), HasSubstr("GPU thread axis"));
  EXPECT_THAT(
      test::backend().compile(copy_program(), test::local_devices()[0], {.symbol = "a b"}).error().message(),
      HasSubstr("symbol 'a b'"));
}

TEST(Errors, DamagedObjects) {
  EXPECT_EQ(test::backend().load({}, "kernel").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(test::backend().load({'x', 'y'}, "kernel").error().code, ErrorCode::kCorrupt);
  const auto kernel = test::backend().compile(copy_program(), test::local_devices()[0], {});
  const auto missing = test::backend().load(kernel->object, "other");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr("no such symbol"));
}

TEST(LlvmCode, OtherArchitectureAndText) {
  const auto graviton = target::find_device("graviton2").value();
  const auto object = test::backend().compile(tiled_matmul(37, ForKind::kParallel), graviton, {});
  ASSERT_TRUE(object.ok()) << object.error().message();
  EXPECT_THAT(test::undefined_symbols(object->object), IsEmpty());
  EXPECT_THAT(*codegen::emit_assembly(tiled_matmul(32, ForKind::kSerial), graviton, {}), HasSubstr("fmla"));
  for (const char* name : {"xeon-8358", "xeon-8272cl", "e5-2673v4", "epyc-7452"})
    EXPECT_TRUE(test::backend()
                    .compile(tiled_matmul(37, ForKind::kParallel), target::find_device(name).value(), {})
                    .ok());
}

TEST(Compile, IsDeterministic) {
  const auto a = test::backend().compile(tiled_matmul(37, ForKind::kParallel), test::local_devices()[0], {});
  const auto b = test::backend().compile(tiled_matmul(37, ForKind::kParallel), test::local_devices()[0], {});
  EXPECT_EQ(a->object, b->object);
}

}  // namespace
}  // namespace tensorsmith::program_test
