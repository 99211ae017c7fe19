// Measures the speed of generated kernels and of code generation.
//
//   bench_codegen [DEVICE] [--asm|--ir|--c CASE] [--compile TIMES] [--backend llvm|c]
//   bench_codegen sampled [OPERATOR...] [--samples N] [--repeat N] [--seed S] [--device D] [--each]
//                 [--save DIR] [--against DIR]
//
// The first form runs hand-scheduled programs. It prints their GFLOP/s beside the measured peak of the
// machine, which is the rate of generated FMA chains in registers. The cases are interleaved: each
// round runs every case once. Printed are the best and the median round. The second form measures
// candidates sampled from design spaces (sampled_kernels.h).
// the best and the median round count.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <new>
#include <string>

#include "codegen/c/codegen.h"
#include "codegen/llvm/codegen.h"
#include "peak_rate.h"
#include "sampled_kernels.h"

namespace tensorsmith {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::ForKind;
using ir::Stmt;
using ir::Var;

struct Case {
  std::string name;
  ir::Program program;
  double flops;
};

Stmt loop(const Var& v, int64_t extent, Stmt body, ForKind kind = ForKind::kSerial) {
  return ir::make_for({v, extent, kind, ir::ThreadAxis::kNone, 0, std::move(body)});
}
Stmt vectorized(const Var& v, int64_t extent, Stmt body) {
  return loop(v, extent, std::move(body), ForKind::kVectorized);
}
Buffer f32(const char* name, std::vector<int64_t> shape, ir::MemoryScope scope = ir::MemoryScope::kGlobal) {
  return ir::make_buffer(name, DType::kF32, std::move(shape), scope);
}
Expr zero() { return ir::float_imm(DType::kF32, 0); }

// C = A * B, with B packed into panels of `columns` columns: Bp[n / columns, k, columns]. The register
// tile has `rows` rows and `columns` columns.
Case matmul(int64_t n, int64_t rows, int64_t lanes, int64_t vectors) {
  const int64_t columns = lanes * vectors;
  const Buffer a = f32("A", {n, n}), b = f32("B", {n / columns, n, columns}), c = f32("C", {n, n});
  const Buffer acc = f32("acc", {rows, columns}, ir::MemoryScope::kLocal);
  const Var jo("jo"), io("io"), k("k"), i("i"), j("j"), v("v"), i1("i1"), j1("j1"), v1("v1"), i2("i2"),
      j2("j2"), v2("v2");
  const auto column = [&](const Var& x, const Var& y) { return Expr(x) * lanes + Expr(y); };
  const Stmt init = loop(
      i1, rows, loop(j1, vectors, vectorized(v1, lanes, ir::make_store(acc, {i1, column(j1, v1)}, zero()))));
  const Stmt update =
      ir::make_store(acc, {i, column(j, v)},
                     ir::load(acc, {i, column(j, v)}) +
                         ir::load(a, {Expr(io) * rows + Expr(i), k}) * ir::load(b, {jo, k, column(j, v)}));
  const Stmt reduce = loop(k, n, loop(i, rows, loop(j, vectors, vectorized(v, lanes, update))));
  const Stmt write = loop(
      i2, rows,
      loop(j2, vectors,
           vectorized(v2, lanes,
                      ir::make_store(c, {Expr(io) * rows + Expr(i2), Expr(jo) * columns + column(j2, v2)},
                                     ir::load(acc, {i2, column(j2, v2)})))));
  const Stmt tile = ir::make_allocate(acc, ir::make_seq({init, reduce, write}));
  return {"matmul" + std::to_string(n) + "_" + std::to_string(rows) + "x" + std::to_string(columns),
          {"matmul", {a, b}, {c}, loop(jo, n / columns, loop(io, n / rows, tile))},
          2.0 * static_cast<double>(n * n * n)};
}

// 3x3 convolution of 64 channels, 56 x 56, padding 1: X[4, 56, 56, 16], W[co / columns, ci, 3, 3,
// columns]. The padding is a separate stage or, with pad_inline, a select inside the reduction.
Case conv(int64_t width, int64_t lanes, int64_t vectors, bool pad_inline) {
  const int64_t columns = lanes * vectors;
  const int64_t blocks = 64 / columns;
  const Buffer x = f32("X", {64, 56, 56}), w = f32("W", {blocks, 64, 3, 3, columns}),
               y = f32("Y", {blocks, 56, 56, columns});
  const Buffer padded = f32("padded", {64, 58, 58});
  const Buffer acc = f32("acc", {width, columns}, ir::MemoryScope::kLocal);
  const Var ci("ci"), ph("ph"), pw("pw"), cb("cb"), h("h"), wo("wo"), c("c"), kh("kh"), kw("kw"), i("i"),
      j("j"), v("v"), i1("i1"), j1("j1"), v1("v1"), i2("i2"), j2("j2"), v2("v2");
  const auto column = [&](const Var& a, const Var& b) { return Expr(a) * lanes + Expr(b); };
  const auto read_padded = [&](const Expr& channel, const Expr& row, const Expr& col) {
    return ir::select(row >= Expr(1) && row < Expr(57) && col >= Expr(1) && col < Expr(57),
                      ir::load(x, {channel, row - 1, col - 1}), zero());
  };
  const Stmt pad =
      loop(ci, 64, loop(ph, 58, loop(pw, 58, ir::make_store(padded, {ci, ph, pw}, read_padded(ci, ph, pw)))));
  const Stmt init = loop(
      i1, width, loop(j1, vectors, vectorized(v1, lanes, ir::make_store(acc, {i1, column(j1, v1)}, zero()))));
  const Expr row = Expr(h) + Expr(kh);
  const Expr col = Expr(wo) * width + Expr(i) + Expr(kw);
  const Expr in = pad_inline ? read_padded(c, row, col) : ir::load(padded, {c, row, col});
  const Stmt update =
      ir::make_store(acc, {i, column(j, v)},
                     ir::load(acc, {i, column(j, v)}) + in * ir::load(w, {cb, c, kh, kw, column(j, v)}));
  const Stmt reduce =
      loop(c, 64, loop(kh, 3, loop(kw, 3, loop(i, width, loop(j, vectors, vectorized(v, lanes, update))))));
  const Stmt write =
      loop(i2, width,
           loop(j2, vectors,
                vectorized(v2, lanes,
                           ir::make_store(y, {cb, h, Expr(wo) * width + Expr(i2), column(j2, v2)},
                                          ir::max(ir::load(acc, {i2, column(j2, v2)}), zero())))));
  const Stmt tile = ir::make_allocate(acc, ir::make_seq({init, reduce, write}));
  const Stmt compute = loop(cb, blocks, loop(h, 56, loop(wo, 56 / width, tile)));
  const Stmt body = pad_inline ? compute : ir::make_allocate(padded, ir::make_seq({pad, compute}));
  return {std::string(pad_inline ? "conv_inline_" : "conv_") + std::to_string(width) + "x" +
              std::to_string(columns),
          {"conv", {x, w}, {y}, body},
          2.0 * 64 * 64 * 56 * 56 * 9};
}

// y = f(x) over 64k elements: the throughput of a math function, counted as 1 flop per element.
Case elementwise(ir::Intrinsic f, int64_t lanes) {
  const Buffer x = f32("x", {65536}), y = f32("y", {65536});
  const Var i("i"), v("v");
  const Expr at = Expr(i) * lanes + Expr(v);
  return {std::string(ir::to_string(f)),
          {"elementwise",
           {x},
           {y},
           loop(i, 65536 / lanes,
                vectorized(v, lanes, ir::make_store(y, {at}, ir::call(f, {ir::load(x, {at})}))))},
          65536};
}

struct Aligned {
  explicit Aligned(size_t bytes) : data(::operator new(bytes + 64, std::align_val_t(64))) {
    auto* f = static_cast<float*>(data);
    for (size_t i = 0; i < bytes / 4; ++i) f[i] = static_cast<float>(i % 17) / 17 - 0.5F;
  }
  ~Aligned() { ::operator delete(data, std::align_val_t(64)); }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  void* data;
};

struct Running {
  Case what;
  std::unique_ptr<codegen::LoadedKernel> kernel;
  double codegen_ms = 0;
  size_t object_bytes = 0;
  std::vector<std::unique_ptr<Aligned>> blocks;
  std::vector<void*> buffers;
  TensorsmithKernelContext context{};
  std::vector<double> seconds;
};

double seconds_of(const std::function<void()>& fn) {
  const auto start = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int run(int argc, char** argv) {
  std::string spec = "local";
  std::string assembly_of;
  std::string form;
  const codegen::Backend* backend = &codegen::default_backend();
  int compilations = 5;
  for (int a = 1; a < argc; ++a) {
    const std::string word = argv[a];
    if ((word == "--asm" || word == "--ir" || word == "--c") && a + 1 < argc) {
      form = word.substr(2);
      assembly_of = argv[++a];
    } else if (word == "--backend" && a + 1 < argc) {
      const auto found = codegen::find_backend(argv[++a]);
      if (!found.ok()) {
        std::fprintf(stderr, "%s\n", found.error().message().c_str());
        return 1;
      }
      backend = *found;
    } else if (std::strcmp(argv[a], "--compile") == 0 && a + 1 < argc) {
      compilations = std::atoi(argv[++a]);
    } else {
      spec = argv[a];
    }
  }
  const Result<target::Device> device = target::find_device(spec);
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.error().message().c_str());
    return 1;
  }
  const int64_t lanes = device->cpu().vector_bytes / 4;
  const bool many = device->cpu().vector_registers >= 32;
  const bench::PeakProgram peak = bench::peak_program(*device);
  std::vector<Case> cases = {{"peak", peak.program, peak.flops},
                             matmul(512, 8, lanes, 2),
                             matmul(512, 4, lanes, 2),
                             matmul(512, 16, lanes, 1),
                             conv(many ? 14 : 4, lanes, 2, false),
                             conv(many ? 14 : 4, lanes, 2, true),
                             conv(many ? 28 : 8, lanes, 1, false)};
  for (const ir::Intrinsic f : {ir::Intrinsic::kExp, ir::Intrinsic::kLog, ir::Intrinsic::kTanh,
                                ir::Intrinsic::kErf, ir::Intrinsic::kSin, ir::Intrinsic::kSqrt})
    cases.push_back(elementwise(f, lanes));

  std::vector<Running> all;
  for (Case& c : cases) {
    if (!assembly_of.empty()) {
      if (c.name != assembly_of) continue;
      const auto c_text = [&]() -> Result<std::string> {
        TS_ASSIGN_OR_RETURN(const codegen::CSource source, codegen::emit_c(c.program, *device, {}));
        return source.text;
      };
      const auto text = form == "c"    ? c_text()
                        : form == "ir" ? codegen::emit_llvm_ir(c.program, *device, {})
                                       : codegen::emit_assembly(c.program, *device, {});
      std::puts(text.ok() ? text->c_str() : text.error().message().c_str());
      return 0;
    }
    Running r;
    std::vector<double> times;
    for (int t = 0; t < compilations; ++t) {
      const std::clock_t begin = std::clock();  // CPU time, so that other load does not count
      const auto compiled = backend->compile(c.program, *device, {});
      if (!compiled.ok()) {
        std::fprintf(stderr, "%s: %s\n", c.name.c_str(), compiled.error().message().c_str());
        return 1;
      }
      times.push_back(1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
      if (t > 0) continue;
      auto loaded = backend->load(compiled->object, compiled->symbol);
      if (!loaded.ok()) return 1;
      r.kernel = std::move(loaded).value();
      r.object_bytes = compiled->object.size();
      r.blocks.push_back(std::make_unique<Aligned>(static_cast<size_t>(compiled->shared_workspace_bytes)));
      r.context.shared_workspace = r.blocks.back()->data;
      r.blocks.push_back(std::make_unique<Aligned>(static_cast<size_t>(compiled->thread_workspace_bytes)));
      r.context.thread_workspace = r.blocks.back()->data;
      r.context.num_threads = 1;
    }
    std::sort(times.begin(), times.end());
    r.codegen_ms = times[times.size() / 2];
    for (const auto* buffers : {&c.program.inputs, &c.program.outputs}) {
      for (const Buffer& b : *buffers) {
        r.blocks.push_back(std::make_unique<Aligned>(static_cast<size_t>(b->num_elements()) * 4));
        r.buffers.push_back(r.blocks.back()->data);
      }
    }
    r.what = std::move(c);
    all.push_back(std::move(r));
  }
  if (!assembly_of.empty()) {
    std::fprintf(stderr, "no case '%s'\n", assembly_of.c_str());
    return 1;
  }
  for (int round = 0; round < 40; ++round)
    for (Running& r : all)
      r.seconds.push_back(seconds_of([&] { r.kernel->function()(&r.context, r.buffers.data()); }));
  std::printf("%-20s %10s %10s %8s %10s %8s\n", "case", "best GF/s", "median", "of peak", "codegen ms",
              "object");
  double peak_rate = 0;
  for (Running& r : all) {
    std::sort(r.seconds.begin(), r.seconds.end());
    const double best = r.what.flops / r.seconds.front() * 1e-9;
    const double median = r.what.flops / r.seconds[r.seconds.size() / 2] * 1e-9;
    if (r.what.name == "peak") peak_rate = best;
    std::printf("%-20s %10.2f %10.2f %7.1f%% %10.2f %8zu\n", r.what.name.c_str(), best, median,
                100 * best / peak_rate, r.codegen_ms, r.object_bytes);
  }
  return 0;
}

}  // namespace
}  // namespace tensorsmith

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "sampled") == 0)
    return tensorsmith::bench::run_sampled(argc - 2, argv + 2);
  return tensorsmith::run(argc, argv);
}
