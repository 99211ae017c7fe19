#include "support/standard_workloads.h"

#include <functional>
#include <utility>

namespace tensorsmith::test::standard {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

Expr f32(double value) { return float_imm(DType::kF32, value); }

OperationRef relu_of(const std::string& name, const OperationRef& x) {
  std::vector<Axis> axes;
  std::vector<Expr> indices;
  for (size_t d = 0; d < x->spatial.size(); ++d) {
    axes.push_back({Var("r" + std::to_string(d)), x->spatial[d].extent});
    indices.emplace_back(axes.back().var);
  }
  return compute(name, std::move(axes), {}, Combiner::kNone, {max(load(x->output(), indices), f32(0))});
}

// Returns x padded by `pad` with zeros on both sides of dimensions 2 and 3; x itself if pad = 0.
OperationRef pad_of(const OperationRef& x, int64_t pad, std::vector<OperationRef>& operations) {
  if (pad == 0) return x;
  const std::vector<int64_t>& shape = x->output()->shape;
  const Var n("n");
  const Var c("c");
  const Var h("h");
  const Var w("w");
  const Expr inside =
      Expr(h) >= pad && Expr(h) < shape[2] + pad && Expr(w) >= pad && Expr(w) < shape[3] + pad;
  operations.push_back(compute(
      "pad", {{n, shape[0]}, {c, shape[1]}, {h, shape[2] + 2 * pad}, {w, shape[3] + 2 * pad}}, {},
      Combiner::kNone, {select(inside, load(x->output(), {n, c, Expr(h) - pad, Expr(w) - pad}), f32(0))}));
  return operations.back();
}

}  // namespace

Workload matmul(int64_t m, int64_t n, int64_t k, DType dtype) {
  const OperationRef a = placeholder("A", dtype, {m, k});
  const OperationRef b = placeholder("B", dtype, {k, n}, true);
  const Var i("i");
  const Var j("j");
  const Var r("k");
  const DType sum = is_float(dtype) ? dtype : DType::kI32;
  const OperationRef c =
      compute("C", {{i, m}, {j, n}}, {{r, k}}, Combiner::kSum,
              {cast(sum, load(a->output(), {i, r})) * cast(sum, load(b->output(), {r, j}))});
  return {{a, b, c}, {c->output()}};
}

Workload batch_matmul(int64_t b, int64_t m, int64_t n, int64_t k) {
  const OperationRef x = placeholder("A", DType::kF32, {b, m, k});
  const OperationRef y = placeholder("B", DType::kF32, {b, k, n});
  const Var p("b");
  const Var i("i");
  const Var j("j");
  const Var r("k");
  const OperationRef c = compute("C", {{p, b}, {i, m}, {j, n}}, {{r, k}}, Combiner::kSum,
                                 {load(x->output(), {p, i, r}) * load(y->output(), {p, r, j})});
  return {{x, y, c}, {c->output()}};
}

Workload dense_bias_relu(int64_t m, int64_t n, int64_t k) {
  const OperationRef x = placeholder("X", DType::kF32, {m, k});
  const OperationRef w = placeholder("W", DType::kF32, {n, k}, true);
  const OperationRef b = placeholder("B", DType::kF32, {n}, true);
  const Var i("i");
  const Var j("j");
  const Var r("k");
  const OperationRef dense = compute("dense", {{i, m}, {j, n}}, {{r, k}}, Combiner::kSum,
                                     {load(x->output(), {i, r}) * load(w->output(), {j, r})});
  const Var p("i");
  const Var q("j");
  const OperationRef bias = compute("bias_add", {{p, m}, {q, n}}, {}, Combiner::kNone,
                                    {load(dense->output(), {p, q}) + load(b->output(), {q})});
  const OperationRef out = relu_of("relu", bias);
  return {{x, w, b, dense, bias, out}, {out->output()}};
}

namespace {

enum class Epilogue { kNone, kBiasRelu, kBiasSilu };

Workload conv2d_of(const Conv2d& s, Epilogue epilogue) {
  const OperationRef x = placeholder("X", DType::kF32, {s.n, s.ci, s.h, s.w});
  const OperationRef w = placeholder("W", DType::kF32, {s.co, s.ci / s.groups, s.kh, s.kw}, true);
  const OperationRef b = placeholder("B", DType::kF32, {s.co}, true);
  Workload out{{x, w}, {}};
  if (epilogue != Epilogue::kNone) out.operations.push_back(b);
  const OperationRef padded = pad_of(x, s.pad, out.operations);
  const Var n("n");
  const Var c("f");
  const Var h("y");
  const Var v("x");
  const Var rc("rc");
  const Var ry("ry");
  const Var rx("rx");
  const Expr channel =
      s.groups == 1 ? Expr(rc) : floordiv(c, s.co / s.groups) * Expr(s.ci / s.groups) + Expr(rc);
  const OperationRef conv =
      compute("conv", {{n, s.n}, {c, s.co}, {h, s.out_h()}, {v, s.out_w()}},
              {{rc, s.ci / s.groups}, {ry, s.kh}, {rx, s.kw}}, Combiner::kSum,
              {load(padded->output(), {n, channel, Expr(h) * s.stride + Expr(ry) * s.dilation,
                                       Expr(v) * s.stride + Expr(rx) * s.dilation}) *
               load(w->output(), {c, rc, ry, rx})});
  out.operations.push_back(conv);
  if (epilogue != Epilogue::kNone) {
    const Var n2("n");
    const Var c2("f");
    const Var h2("y");
    const Var v2("x");
    out.operations.push_back(compute("bias_add", {{n2, s.n}, {c2, s.co}, {h2, s.out_h()}, {v2, s.out_w()}},
                                     {}, Combiner::kNone,
                                     {load(conv->output(), {n2, c2, h2, v2}) + load(b->output(), {c2})}));
    const OperationRef biased = out.operations.back();
    if (epilogue == Epilogue::kBiasRelu) {
      out.operations.push_back(relu_of("relu", biased));
    } else {
      // Like imported broadcasting operators: an axis of extent 1 is read at 0.
      const auto elementwise = [&](const char* name,
                                   const std::function<Expr(const std::vector<Expr>&)>& body) {
        const Var n3("n"), c3("f"), h3("y"), v3("x");
        const std::vector<Axis> axes{{n3, s.n}, {c3, s.co}, {h3, s.out_h()}, {v3, s.out_w()}};
        out.operations.push_back(
            compute(name, axes, {}, Combiner::kNone, {body({s.n == 1 ? Expr(0) : Expr(n3), c3, h3, v3})}));
        return out.operations.back();
      };
      const OperationRef sigmoid = elementwise("sigmoid", [&](const std::vector<Expr>& at) {
        return f32(1) / (f32(1) + call(Intrinsic::kExp, {-load(biased->output(), at)}));
      });
      elementwise("silu", [&](const std::vector<Expr>& at) {
        return load(biased->output(), at) * load(sigmoid->output(), at);
      });
    }
  }
  out.outputs = {out.operations.back()->output()};
  return out;
}

}  // namespace

Workload conv2d(const Conv2d& shape) { return conv2d_of(shape, Epilogue::kNone); }
Workload conv2d_bias_relu(const Conv2d& shape) { return conv2d_of(shape, Epilogue::kBiasRelu); }
Workload conv2d_bias_silu(const Conv2d& shape) { return conv2d_of(shape, Epilogue::kBiasSilu); }

Workload depthwise_conv2d(const Conv2d& s) {
  const OperationRef x = placeholder("X", DType::kF32, {s.n, s.ci, s.h, s.w});
  const OperationRef w = placeholder("W", DType::kF32, {s.ci, s.kh, s.kw}, true);
  Workload out{{x, w}, {}};
  const OperationRef padded = pad_of(x, s.pad, out.operations);
  const Var n("n");
  const Var c("c");
  const Var h("y");
  const Var v("x");
  const Var ry("ry");
  const Var rx("rx");
  out.operations.push_back(compute("depthwise", {{n, s.n}, {c, s.ci}, {h, s.out_h()}, {v, s.out_w()}},
                                   {{ry, s.kh}, {rx, s.kw}}, Combiner::kSum,
                                   {load(padded->output(), {n, c, Expr(h) * s.stride + Expr(ry) * s.dilation,
                                                            Expr(v) * s.stride + Expr(rx) * s.dilation}) *
                                    load(w->output(), {c, ry, rx})}));
  out.outputs = {out.operations.back()->output()};
  return out;
}

Workload row_means(int64_t rows, int64_t cols) {
  const OperationRef x = placeholder("X", DType::kF32, {rows, cols});
  const Axis i{Var("i"), rows}, j{Var("i"), rows}, k{Var("k"), cols};
  const OperationRef sum = compute("sum", {i}, {k}, Combiner::kSum, {load(x->output(), {i.var, k.var})});
  const OperationRef mean =
      compute("mean", {j}, {}, Combiner::kNone,
              {load(sum->output(), {j.var}) / ir::float_imm(DType::kF32, static_cast<double>(cols))});
  return {{x, sum, mean}, {mean->output()}};
}

Workload softmax(int64_t rows, int64_t cols) {
  const OperationRef x = placeholder("X", DType::kF32, {rows, cols});
  const auto row = [&] { return Axis{Var("i"), rows}; };
  const auto col = [&](const char* name) { return Axis{Var(name), cols}; };
  Axis i = row();
  Axis k = col("k");
  const OperationRef top = compute("max", {i}, {k}, Combiner::kMax, {load(x->output(), {i.var, k.var})});
  i = row();
  Axis j = col("j");
  const OperationRef exps =
      compute("exp", {i, j}, {}, Combiner::kNone,
              {call(Intrinsic::kExp, {load(x->output(), {i.var, j.var}) - load(top->output(), {i.var})})});
  i = row();
  k = col("k");
  const OperationRef sum = compute("sum", {i}, {k}, Combiner::kSum, {load(exps->output(), {i.var, k.var})});
  i = row();
  j = col("j");
  const OperationRef out = compute("div", {i, j}, {}, Combiner::kNone,
                                   {load(exps->output(), {i.var, j.var}) / load(sum->output(), {i.var})});
  return {{x, top, exps, sum, out}, {out->output()}};
}

Workload layernorm(int64_t rows, int64_t cols) {
  const OperationRef x = placeholder("X", DType::kF32, {rows, cols});
  const OperationRef gamma = placeholder("gamma", DType::kF32, {cols}, true);
  const OperationRef beta = placeholder("beta", DType::kF32, {cols}, true);
  const Expr inverse = f32(1.0 / static_cast<double>(cols));
  const auto row = [&] { return Axis{Var("i"), rows}; };
  const auto col = [&](const char* name) { return Axis{Var(name), cols}; };
  Axis i = row();
  Axis k = col("k");
  const OperationRef sum = compute("sum", {i}, {k}, Combiner::kSum, {load(x->output(), {i.var, k.var})});
  i = row();
  Axis j = col("j");
  const OperationRef centered =
      compute("centered", {i, j}, {}, Combiner::kNone,
              {load(x->output(), {i.var, j.var}) - load(sum->output(), {i.var}) * inverse});
  i = row();
  k = col("k");
  const Expr d = load(centered->output(), {i.var, k.var});
  const OperationRef squares = compute("squares", {i}, {k}, Combiner::kSum, {d * d});
  i = row();
  j = col("j");
  const Expr deviation = call(Intrinsic::kSqrt, {load(squares->output(), {i.var}) * inverse + f32(1e-5)});
  const OperationRef out =
      compute("normalized", {i, j}, {}, Combiner::kNone,
              {load(centered->output(), {i.var, j.var}) / deviation * load(gamma->output(), {j.var}) +
               load(beta->output(), {j.var})});
  return {{x, gamma, beta, sum, centered, squares, out}, {out->output()}};
}

Workload max_pool(int64_t n, int64_t c, int64_t h, int64_t w, int64_t kernel, int64_t stride, int64_t pad) {
  const OperationRef x = placeholder("X", DType::kF32, {n, c, h, w});
  const Var vn("n");
  const Var vc("c");
  const Var vy("y");
  const Var vx("x");
  const Var ry("ry");
  const Var rx("rx");
  const Expr y = Expr(vy) * stride + Expr(ry) - pad;
  const Expr z = Expr(vx) * stride + Expr(rx) - pad;
  Expr body = load(x->output(), {vn, vc, y, z});
  if (pad > 0) {
    body = select(y >= 0 && y < h && z >= 0 && z < w, body, identity_of(Combiner::kMax, DType::kF32));
  }
  const OperationRef out = compute("pool",
                                   {{vn, n},
                                    {vc, c},
                                    {vy, (h + 2 * pad - kernel) / stride + 1},
                                    {vx, (w + 2 * pad - kernel) / stride + 1}},
                                   {{ry, kernel}, {rx, kernel}}, Combiner::kMax, {body});
  return {{x, out}, {out->output()}};
}

Workload elementwise_chain(int64_t n) {
  const OperationRef x = placeholder("X", DType::kF32, {n});
  const OperationRef a = placeholder("a", DType::kF32, {n}, true);
  const OperationRef b = placeholder("b", DType::kF32, {n}, true);
  const Var i("i");
  const Var j("i");
  const Var k("i");
  const OperationRef scaled =
      compute("scaled", {{i, n}}, {}, Combiner::kNone, {load(x->output(), {i}) * load(a->output(), {i})});
  const OperationRef shifted = compute("shifted", {{j, n}}, {}, Combiner::kNone,
                                       {load(scaled->output(), {j}) + load(b->output(), {j})});
  const OperationRef out =
      compute("out", {{k, n}}, {}, Combiner::kNone, {call(Intrinsic::kTanh, {load(shifted->output(), {k})})});
  return {{x, a, b, scaled, shifted, out}, {out->output()}};
}

}  // namespace tensorsmith::test::standard
