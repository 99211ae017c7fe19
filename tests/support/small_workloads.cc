#include "support/small_workloads.h"

namespace tensorsmith::test::small {

using ir::Axis;
using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::OperationRef;
using ir::Var;

namespace {

Axis axis(const std::string& name, int64_t extent) { return {Var(name), extent}; }

Expr read(const OperationRef& op, std::vector<Expr> indices) {
  return ir::load(op->output(), std::move(indices));
}

Expr f32(double value) { return ir::float_imm(DType::kF32, value); }

ir::Workload make(std::vector<OperationRef> ops, const std::vector<OperationRef>& outputs) {
  ir::Workload w;
  w.operations = std::move(ops);
  for (const OperationRef& op : outputs) {
    for (const ir::Buffer& buffer : op->outputs) w.outputs.push_back(buffer);
  }
  return w;
}

OperationRef padded(const OperationRef& x, int64_t pad) {
  const auto& shape = x->output()->shape;
  const Axis n = axis("n", shape[0]);
  const Axis c = axis("c", shape[1]);
  const Axis h = axis("h", shape[2] + 2 * pad);
  const Axis w = axis("w", shape[3] + 2 * pad);
  const Expr hv = h.var;
  const Expr wv = w.var;
  const Expr inside =
      hv >= Expr(pad) && hv < Expr(shape[2] + pad) && wv >= Expr(pad) && wv < Expr(shape[3] + pad);
  return ir::compute("pad", {n, c, h, w}, {}, Combiner::kNone,
                     {ir::select(inside, read(x, {n.var, c.var, hv - Expr(pad), wv - Expr(pad)}), f32(0))});
}

}  // namespace

ir::Workload matmul(int64_t m, int64_t n, int64_t k, bool relu) {
  const auto a = ir::placeholder("A", DType::kF32, {m, k});
  const auto b = ir::placeholder("B", DType::kF32, {k, n}, true);
  const Axis i = axis("i", m);
  const Axis j = axis("j", n);
  const Axis kk = axis("k", k);
  const auto c =
      ir::compute("C", {i, j}, {kk}, Combiner::kSum, {read(a, {i.var, kk.var}) * read(b, {kk.var, j.var})});
  if (!relu) return make({a, b, c}, {c});
  const auto bias = ir::placeholder("bias", DType::kF32, {n}, true);
  const Axis x = axis("i", m);
  const Axis y = axis("j", n);
  const auto d =
      ir::compute("D", {x, y}, {}, Combiner::kNone, {read(c, {x.var, y.var}) + read(bias, {y.var})});
  const Axis p = axis("i", m);
  const Axis q = axis("j", n);
  const auto r = ir::compute("R", {p, q}, {}, Combiner::kNone, {ir::max(read(d, {p.var, q.var}), f32(0))});
  return make({a, b, c, bias, d, r}, {r});
}

ir::Workload conv2d(int64_t channels, int64_t size, int64_t outputs, int64_t kernel, int64_t stride,
                    int64_t pad) {
  const auto x = ir::placeholder("X", DType::kF32, {1, channels, size, size});
  const auto w = ir::placeholder("W", DType::kF32, {outputs, channels, kernel, kernel}, true);
  const auto bias = ir::placeholder("B", DType::kF32, {outputs}, true);
  const auto p = padded(x, pad);
  const int64_t out = (size + 2 * pad - kernel) / stride + 1;
  const Axis n = axis("n", 1);
  const Axis f = axis("f", outputs);
  const Axis y = axis("y", out);
  const Axis z = axis("x", out);
  const Axis rc = axis("rc", channels);
  const Axis ry = axis("ry", kernel);
  const Axis rx = axis("rx", kernel);
  const auto conv = ir::compute(
      "conv", {n, f, y, z}, {rc, ry, rx}, Combiner::kSum,
      {read(p, {n.var, rc.var, Expr(y.var) * Expr(stride) + ry.var, Expr(z.var) * Expr(stride) + rx.var}) *
       read(w, {f.var, rc.var, ry.var, rx.var})});
  const Axis n2 = axis("n", 1);
  const Axis f2 = axis("f", outputs);
  const Axis y2 = axis("y", out);
  const Axis z2 = axis("x", out);
  const auto biased = ir::compute("biased", {n2, f2, y2, z2}, {}, Combiner::kNone,
                                  {read(conv, {n2.var, f2.var, y2.var, z2.var}) + read(bias, {f2.var})});
  const Axis n3 = axis("n", 1);
  const Axis f3 = axis("f", outputs);
  const Axis y3 = axis("y", out);
  const Axis z3 = axis("x", out);
  const auto relu = ir::compute("relu", {n3, f3, y3, z3}, {}, Combiner::kNone,
                                {ir::max(read(biased, {n3.var, f3.var, y3.var, z3.var}), f32(0))});
  return make({x, w, bias, p, conv, biased, relu}, {relu});
}

ir::Workload depthwise(int64_t channels, int64_t size, int64_t kernel, int64_t stride, int64_t pad) {
  const auto x = ir::placeholder("X", DType::kF32, {1, channels, size, size});
  const auto w = ir::placeholder("W", DType::kF32, {channels, kernel, kernel}, true);
  const auto p = padded(x, pad);
  const int64_t out = (size + 2 * pad - kernel) / stride + 1;
  const Axis n = axis("n", 1);
  const Axis c = axis("c", channels);
  const Axis y = axis("y", out);
  const Axis z = axis("x", out);
  const Axis ry = axis("ry", kernel);
  const Axis rx = axis("rx", kernel);
  const auto conv = ir::compute(
      "dw", {n, c, y, z}, {ry, rx}, Combiner::kSum,
      {read(p, {n.var, c.var, Expr(y.var) * Expr(stride) + ry.var, Expr(z.var) * Expr(stride) + rx.var}) *
       read(w, {c.var, ry.var, rx.var})});
  return make({x, w, p, conv}, {conv});
}

ir::Workload softmax(int64_t rows, int64_t columns) {
  const auto x = ir::placeholder("X", DType::kF32, {rows, columns});
  const Axis i = axis("i", rows);
  const Axis k = axis("k", columns);
  const auto m = ir::compute("max", {i}, {k}, Combiner::kMax, {read(x, {i.var, k.var})});
  const Axis i1 = axis("i", rows);
  const Axis j1 = axis("j", columns);
  const auto e =
      ir::compute("exp", {i1, j1}, {}, Combiner::kNone,
                  {ir::call(ir::Intrinsic::kExp, {read(x, {i1.var, j1.var}) - read(m, {i1.var})})});
  const Axis i2 = axis("i", rows);
  const Axis k2 = axis("k", columns);
  const auto s = ir::compute("sum", {i2}, {k2}, Combiner::kSum, {read(e, {i2.var, k2.var})});
  const Axis i3 = axis("i", rows);
  const Axis j3 = axis("j", columns);
  const auto q =
      ir::compute("norm", {i3, j3}, {}, Combiner::kNone, {read(e, {i3.var, j3.var}) / read(s, {i3.var})});
  return make({x, m, e, s, q}, {q});
}

ir::Workload arg_max(int64_t rows, int64_t columns) {
  const auto x = ir::placeholder("X", DType::kF32, {rows, columns});
  const Axis i = axis("i", rows);
  const Axis k = axis("k", columns);
  const auto best = ir::compute("best", {i}, {k}, Combiner::kArgMax, {read(x, {i.var, k.var}), k.var});
  const Axis i2 = axis("i", rows);
  const Axis k2 = axis("k", columns);
  const auto sum = ir::compute("sum", {i2}, {k2}, Combiner::kSum, {read(x, {i2.var, k2.var})});
  return make({x, best, sum}, {best, sum});
}

ir::Workload reshape_chain(int64_t rows, int64_t columns) {
  const auto a = ir::placeholder("A", DType::kF32, {rows, columns});
  const Axis i = axis("i", rows);
  const Axis j = axis("j", columns);
  const auto b = ir::compute("B", {i, j}, {}, Combiner::kNone, {read(a, {i.var, j.var}) * f32(2)});
  const Axis f = axis("f", rows * columns);
  const auto c =
      ir::compute("flat", {f}, {}, Combiner::kNone,
                  {read(b, {ir::floordiv(f.var, Expr(columns)), ir::floormod(f.var, Expr(columns))})});
  const Axis p = axis("p", columns);
  const Axis q = axis("q", rows);
  const auto d =
      ir::compute("back", {p, q}, {}, Combiner::kNone, {read(c, {Expr(q.var) * Expr(columns) + p.var})});
  const Axis u = axis("u", columns);
  const Axis v = axis("v", rows);
  const auto e = ir::compute("E", {u, v}, {}, Combiner::kNone, {read(d, {u.var, v.var}) + f32(1)});
  return make({a, b, c, d, e}, {e});
}

ir::Workload gather(int64_t rows, int64_t columns, int64_t picks) {
  const auto table = ir::placeholder("table", DType::kF32, {rows, columns});
  const auto raw = ir::placeholder("indices", DType::kI64, {picks});
  const Axis i0 = axis("i", rows);
  const Axis j0 = axis("j", columns);
  const auto scaled =
      ir::compute("scaled", {i0, j0}, {}, Combiner::kNone, {read(table, {i0.var, j0.var}) * f32(3)});
  const Axis p = axis("p", picks);
  const Axis j = axis("j", columns);
  // Any index is brought into range.
  const Expr row = ir::floormod(read(raw, {p.var}), Expr(rows));
  const auto picked = ir::compute("picked", {p, j}, {}, Combiner::kNone, {read(scaled, {row, j.var})});
  const Axis p2 = axis("p", picks);
  const Axis j2 = axis("j", columns);
  const auto out =
      ir::compute("out", {p2, j2}, {}, Combiner::kNone, {read(picked, {p2.var, j2.var}) + f32(1)});
  return make({table, raw, scaled, picked, out}, {out});
}

ir::Workload concat_stencil(int64_t left, int64_t right) {
  const auto a = ir::placeholder("A", DType::kF32, {left});
  const auto b = ir::placeholder("B", DType::kF32, {right});
  const Axis i0 = axis("i", left);
  const auto a2 = ir::compute("A2", {i0}, {}, Combiner::kNone, {read(a, {i0.var}) + f32(1)});
  const Axis i1 = axis("i", right);
  const auto b2 = ir::compute("B2", {i1}, {}, Combiner::kNone, {read(b, {i1.var}) * f32(2)});
  const Axis i = axis("i", left + right);
  const auto c = ir::compute(
      "C", {i}, {}, Combiner::kNone,
      {ir::select(Expr(i.var) < Expr(left), read(a2, {i.var}), read(b2, {Expr(i.var) - Expr(left)}))});
  const Axis j = axis("j", left + right);
  const Expr last(left + right - 1);
  const auto d = ir::compute("D", {j}, {}, Combiner::kNone,
                             {read(c, {ir::max(Expr(j.var) - Expr(1), Expr(0))}) + read(c, {j.var}) +
                              read(c, {ir::min(Expr(j.var) + Expr(1), last)})});
  return make({a, b, a2, b2, c, d}, {d});
}

ir::Workload int8_matmul(int64_t m, int64_t n, int64_t k) {
  const auto a = ir::placeholder("A", DType::kU8, {m, k});
  const auto b = ir::placeholder("B", DType::kI8, {n, k}, true);
  const Axis i = axis("i", m);
  const Axis j = axis("j", n);
  const Axis kk = axis("k", k);
  const auto c = ir::compute(
      "C", {i, j}, {kk}, Combiner::kSum,
      {ir::cast(DType::kI32, read(a, {i.var, kk.var})) * ir::cast(DType::kI32, read(b, {j.var, kk.var}))});
  const Axis p = axis("i", m);
  const Axis q = axis("j", n);
  const auto r = ir::compute("R", {p, q}, {}, Combiner::kNone,
                             {ir::max(read(c, {p.var, q.var}), ir::int_imm(DType::kI32, 0))});
  return make({a, b, c, r}, {r});
}

ir::Workload bf16_matmul(int64_t m, int64_t n, int64_t k, bool constant_b) {
  const auto a = ir::placeholder("A", DType::kBF16, {m, k});
  const auto b = ir::placeholder("B", DType::kBF16, {k, n}, constant_b);
  const Axis i = axis("i", m), j = axis("j", n), kk = axis("k", k);
  const auto c = ir::compute(
      "C", {i, j}, {kk}, Combiner::kSum,
      {ir::cast(DType::kF32, read(a, {i.var, kk.var})) * ir::cast(DType::kF32, read(b, {kk.var, j.var}))});
  const Axis p = axis("i", m), q = axis("j", n);
  const auto r = ir::compute("R", {p, q}, {}, Combiner::kNone,
                             {read(c, {p.var, q.var}) + ir::float_imm(DType::kF32, 0.5)});
  return make({a, b, c, r}, {r});
}

ir::Workload bf16_conv2d(int64_t channels, int64_t size, int64_t outputs, int64_t kernel, int64_t stride,
                         int64_t pad) {
  const auto x = ir::placeholder("X", DType::kBF16, {1, channels, size, size});
  const auto w = ir::placeholder("W", DType::kBF16, {outputs, channels, kernel, kernel}, true);
  const Axis n = axis("n", 1), c = axis("c", channels), h = axis("h", size + 2 * pad),
             v = axis("w", size + 2 * pad);
  const Expr y = Expr(h.var) - Expr(pad), z = Expr(v.var) - Expr(pad);
  Expr element = ir::cast(DType::kF32, read(x, {n.var, c.var, y, z}));
  if (pad > 0)
    element = ir::select(y >= 0 && y < Expr(size) && z >= 0 && z < Expr(size), element,
                         ir::float_imm(DType::kF32, 0));
  const auto padded = ir::compute("pad", {n, c, h, v}, {}, Combiner::kNone, {element});
  const int64_t out = (size + 2 * pad - kernel) / stride + 1;
  const Axis on = axis("n", 1), ok = axis("k", outputs), oh = axis("h", out), ow = axis("w", out),
             rc = axis("rc", channels), rh = axis("rh", kernel), rw = axis("rw", kernel);
  const auto conv = ir::compute("conv", {on, ok, oh, ow}, {rc, rh, rw}, Combiner::kSum,
                                {read(padded, {on.var, rc.var, Expr(oh.var) * Expr(stride) + Expr(rh.var),
                                               Expr(ow.var) * Expr(stride) + Expr(rw.var)}) *
                                 ir::cast(DType::kF32, read(w, {ok.var, rc.var, rh.var, rw.var}))});
  const Axis p = axis("n", 1), q = axis("k", outputs), r = axis("h", out), s = axis("w", out);
  const auto result =
      ir::compute("R", {p, q, r, s}, {}, Combiner::kNone,
                  {ir::max(read(conv, {p.var, q.var, r.var, s.var}), ir::float_imm(DType::kF32, 0))});
  return make({x, w, padded, conv, result}, {result});
}

namespace {

// A tensor of bytes and the zero point that is subtracted from its elements.
struct Quantized {
  OperationRef data, zero;  // zero may be null: then the zero point is a literal
  int64_t literal = 0;
  bool each = false;

  Quantized(const std::string& name, std::vector<int64_t> shape, bool constant, int64_t zeros, Rng& rng) {
    const DType dtype = rng.bernoulli(0.5) ? DType::kU8 : DType::kI8;
    data = ir::placeholder(name, dtype, std::move(shape), constant, constant && rng.bernoulli(0.5));
    each = rng.bernoulli(0.3) && zeros > 0;
    const auto kind = rng.below(4);
    if (each || kind == 0) {
      zero = ir::placeholder(name + "z", dtype, {each ? zeros : 1}, constant);
    } else if (kind > 1) {
      literal = dtype == DType::kU8 ? rng.uniform_int(0, 255) : rng.uniform_int(-128, 127);
      if (rng.bernoulli(0.3)) literal = dtype == DType::kU8 ? 128 : 0;
    }
  }
  // Returns the element less the zero point at `position`, or 0 if `inside` does not hold.
  Expr centered(std::vector<Expr> indices, const Expr& position, const Expr& inside = {}) const {
    Expr value = ir::cast(DType::kI32, read(data, std::move(indices)));
    if (zero != nullptr) {
      value = value - ir::cast(DType::kI32, read(zero, {each ? position : Expr(0)}));
    } else if (literal != 0) {
      value = value - ir::int_imm(DType::kI32, literal);
    }
    return inside.defined() ? ir::select(inside, value, ir::int_imm(DType::kI32, 0)) : value;
  }
  void add_to(std::vector<OperationRef>& ops) const {
    ops.push_back(data);
    if (zero != nullptr) ops.push_back(zero);
  }
};

}  // namespace

ir::Workload quantized_matmul(int64_t m, int64_t n, int64_t k, Rng& rng) {
  std::vector<OperationRef> ops;
  const Quantized a("A", {m, k}, false, m, rng);
  const Quantized b("B", {k, n}, rng.bernoulli(0.7), n, rng);
  a.add_to(ops);
  b.add_to(ops);
  const Axis i = axis("i", m), ik = axis("k", k), bk = axis("k", k), bj = axis("j", n);
  ops.push_back(
      ir::compute("A.centered", {i, ik}, {}, Combiner::kNone, {a.centered({i.var, ik.var}, i.var)}));
  const OperationRef left = ops.back();
  ops.push_back(
      ir::compute("B.centered", {bk, bj}, {}, Combiner::kNone, {b.centered({bk.var, bj.var}, bj.var)}));
  const OperationRef right = ops.back();
  const Axis ci = axis("i", m), cj = axis("j", n), kk = axis("k", k);
  ops.push_back(ir::compute("C", {ci, cj}, {kk}, Combiner::kSum,
                            {read(left, {ci.var, kk.var}) * read(right, {kk.var, cj.var})}));
  const Axis p = axis("i", m), q = axis("j", n);
  ops.push_back(ir::compute("R", {p, q}, {}, Combiner::kNone,
                            {read(ops.back(), {p.var, q.var}) + ir::int_imm(DType::kI32, 7)}));
  return make(ops, {ops.back()});
}

ir::Workload quantized_conv2d(int64_t channels, int64_t size, int64_t outputs, int64_t kernel, int64_t stride,
                              int64_t pad, Rng& rng) {
  std::vector<OperationRef> ops;
  const Quantized x("X", {1, channels, size, size}, false, 0, rng);
  const Quantized w("W", {outputs, channels, kernel, kernel}, true, outputs, rng);
  x.add_to(ops);
  w.add_to(ops);
  const Axis n = axis("n", 1), c = axis("c", channels), h = axis("h", size + 2 * pad),
             v = axis("w", size + 2 * pad);
  const Expr y = Expr(h.var) - Expr(pad), z = Expr(v.var) - Expr(pad);
  Expr inside;
  if (pad > 0) inside = y >= 0 && y < Expr(size) && z >= 0 && z < Expr(size);
  ops.push_back(
      ir::compute("pad", {n, c, h, v}, {}, Combiner::kNone, {x.centered({n.var, c.var, y, z}, 0, inside)}));
  const OperationRef data = ops.back();
  const Axis o = axis("o", outputs), wc = axis("c", channels), wh = axis("rh", kernel),
             ww = axis("rw", kernel);
  ops.push_back(ir::compute("W.centered", {o, wc, wh, ww}, {}, Combiner::kNone,
                            {w.centered({o.var, wc.var, wh.var, ww.var}, o.var)}));
  const OperationRef weights = ops.back();
  const int64_t out = (size + 2 * pad - kernel) / stride + 1;
  const auto points = [&] {
    return std::vector<Axis>{axis("n", 1), axis("k", outputs), axis("h", out), axis("w", out)};
  };
  const std::vector<Axis> at = points();
  const Axis rc = axis("rc", channels), rh = axis("rh", kernel), rw = axis("rw", kernel);
  ops.push_back(ir::compute("conv", at, {rc, rh, rw}, Combiner::kSum,
                            {read(data, {at[0].var, rc.var, Expr(at[2].var) * Expr(stride) + rh.var,
                                         Expr(at[3].var) * Expr(stride) + rw.var}) *
                             read(weights, {at[1].var, rc.var, rh.var, rw.var})}));
  const std::vector<Axis> to = points();
  ops.push_back(ir::compute("R", to, {}, Combiner::kNone,
                            {ir::max(read(ops.back(), {to[0].var, to[1].var, to[2].var, to[3].var}),
                                     ir::int_imm(DType::kI32, -3))}));
  return make(ops, {ops.back()});
}

ir::Workload total_sum(int64_t rows, int64_t columns) {
  const auto x = ir::placeholder("X", DType::kF32, {rows, columns});
  const Axis i = axis("i", rows);
  const Axis j = axis("j", columns);
  const auto s = ir::compute("S", {}, {i, j}, Combiner::kSum, {read(x, {i.var, j.var})});
  return make({x, s}, {s});
}

ir::Workload random(Rng& rng) {
  const auto size = [&](int64_t low, int64_t high) { return rng.uniform_int(low, high); };
  switch (rng.below(16)) {
    case 0:
      return matmul(size(1, 13), size(1, 13), size(1, 13));
    case 1:
      return matmul(size(1, 13), size(1, 13), size(1, 13), true);
    case 2: {
      const int64_t kernel = size(1, 3);
      return conv2d(size(1, 5), size(kernel, 9), size(1, 6), kernel, size(1, 2), size(0, 1));
    }
    case 3: {
      const int64_t kernel = size(1, 3);
      return depthwise(size(1, 6), size(kernel, 9), kernel, size(1, 2), size(0, 1));
    }
    case 4:
      return softmax(size(1, 9), size(1, 17));
    case 5:
      return arg_max(size(1, 9), size(1, 17));
    case 6:
      return reshape_chain(size(1, 9), size(1, 9));
    case 7:
      return gather(size(1, 9), size(1, 9), size(1, 9));
    case 8:
      return concat_stencil(size(1, 9), size(1, 9));
    case 9:
      return int8_matmul(size(1, 9), size(1, 9), size(1, 17));
    case 10:  // a convolution that winograd accepts
      return conv2d(size(1, 5), size(3, 11), size(1, 6), 3, 1, size(0, 1));
    case 11:
      return quantized_matmul(size(1, 9), size(1, 20), size(1, 17), rng);
    case 12: {
      const int64_t kernel = size(1, 3);
      return quantized_conv2d(size(1, 9), size(kernel, 9), size(1, 18), kernel, size(1, 2), size(0, 1), rng);
    }
    case 13:
      return bf16_matmul(size(1, 9), size(1, 20), size(1, 17), rng.bernoulli(0.7));
    case 14: {
      const int64_t kernel = size(1, 3);
      return bf16_conv2d(size(1, 9), size(kernel, 9), size(1, 18), kernel, size(1, 2), size(0, 1));
    }
    default:
      return total_sum(size(1, 9), size(1, 17));
  }
}

}  // namespace tensorsmith::test::small
