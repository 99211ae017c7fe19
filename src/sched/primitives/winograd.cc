// winograd(stage, m)
//   Arguments: a 3x3 convolution; m = 2 or 4, the outputs of a tile per dimension: F(m x m, 3 x 3).
//   Rewrite: the convolution is computed by Winograd's minimal filtering (Lavin & Gray 2015, "Fast Algorithms
//     for Convolutional Neural Networks"): with a = m + 2, a tile of m x m outputs takes a x a multiplications
//     per channel instead of 9 m x m. Five stages are inserted before the stage C, whose number grows by five.
//     Channels are innermost in all of them, so that the transforms vectorize across channels:
//       C.data[n, h, w, ic]               the data with channels innermost, 0 beyond its border
//       C.rows[n, th, i, w, ic]           = sum_r BT[i, r] data[n, th * m + r, w, ic]
//       C.input[i, j, n, th, tw, ic]      = sum_r BT[j, r] rows[n, th, i, tw * m + r, ic]
//       C.product[i, j, n, th, tw, oc]    = sum_ic input[i, j, n, th, tw, ic] * U[i, j, ic, oc]
//       C.columns[n, h, tw, j, oc]        = sum_i AT[h % m, i] product[i, j, n, h / m, tw, oc]
//       C[n, oc, h, w]                    = sum_j AT[w % m, j] columns[n, h, w / m, j, oc]
//     All sums except that over ic are written out as expressions, with one branch for each value of the first
//     index: a loop over it should be unrolled. The constant placeholder W is replaced by U = G W GT, which is
//     computed ahead of time.
//   Checks: C[n, k, h, w] = sum_{c, r, s} X[n, c, h + r, w + s] * W[k, c, r, s] of f32 with 3 x 3 kernels, at
//     root, its loops untouched; X and W may be casts of shorter floats; W is a constant that no other stage
//     reads and has neither a layout nor a transform yet.
//
//     C (1 x 64 x 56 x 56)    winograd C, 4    =>    C.product: 36 products of 196 x 64 with 64 x 64
#include <functional>
#include <ranges>

#include "ir/analysis.h"
#include "ir/linear.h"
#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"

namespace tensorsmith::sched::primitives {

namespace {

using ir::Expr;
using Row = std::vector<double>;
using Matrix = std::vector<Row>;
using Term = std::function<Expr(int64_t)>;  // the factor of a row's entry at a position

// Y = AT [(G g GT) . (BT d B)] A
struct Transforms {
  Matrix bt, g, at;
};

const Transforms& transforms(int64_t m) {
  static const Transforms kF2 = {
      {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
      {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}},
      {{1, 1, 1, 0}, {0, 1, -1, -1}},
  };
  // Points 0, 5/8, -5/8, 3/2, -3/2, infinity. Errors are half those of the usual 1, -1, 2, -2,
  // because the factors have similar magnitudes, and all entries of BT and AT are exact floats.
  static const Transforms kF4 = {
      {{225. / 256, 0, -169. / 64, 0, 1, 0},
       {0, -45. / 32, -9. / 4, 5. / 8, 1, 0},
       {0, 45. / 32, -9. / 4, -5. / 8, 1, 0},
       {0, -75. / 128, -25. / 64, 3. / 2, 1, 0},
       {0, 75. / 128, -25. / 64, -3. / 2, 1, 0},
       {0, 225. / 256, 0, -169. / 64, 0, 1}},
      {{256. / 225, 0, 0},
       {-2048. / 2975, -256. / 595, -32. / 119},
       {-2048. / 2975, 256. / 595, -32. / 119},
       {128. / 1071, 64. / 357, 32. / 119},
       {128. / 1071, -64. / 357, 32. / 119},
       {0, 0, 1}},
      {{1, 1, 1, 1, 1, 0},
       {0, 5. / 8, -5. / 8, 3. / 2, -3. / 2, 0},
       {0, 25. / 64, 25. / 64, 9. / 4, 9. / 4, 0},
       {0, 125. / 512, -125. / 512, 27. / 8, -27. / 8, 1}},
  };
  return m == 2 ? kF2 : kF4;
}

Expr constant(ir::DType dtype, double value) { return ir::float_imm(dtype, value); }

// Computes sum += coefficient * term; an undefined sum is 0.
void add_scaled(Expr& sum, double coefficient, const Expr& term) {
  if (coefficient == 0) return;
  if (!sum.defined()) {
    sum = coefficient == 1 ? term : coefficient == -1 ? -term : constant(term.dtype(), coefficient) * term;
  } else if (coefficient == 1 || coefficient == -1) {
    sum = coefficient > 0 ? sum + term : sum - term;
  } else {
    sum = sum + constant(term.dtype(), coefficient) * term;
  }
}

// Returns the sum of row[r] * term(r), written so that the rows of the points p and -p share
// subexpressions: their entries agree at even positions and have opposite signs at odd ones.
Expr combine_even_odd(const Row& row, const Term& term) {
  Expr even;
  Expr odd;
  double sign = 0;  // sign of the first odd entry
  for (size_t r = 0; r < row.size(); ++r) {
    if (row[r] == 0) continue;
    if (r % 2 == 1 && sign == 0) sign = row[r] < 0 ? -1 : 1;
    add_scaled(r % 2 == 0 ? even : odd, r % 2 == 0 ? row[r] : row[r] * sign, term(r));
  }
  if (!odd.defined()) return even;
  if (!even.defined()) return sign > 0 ? odd : -odd;
  return sign > 0 ? even + odd : even - odd;
}

// Returns the same sum for rows that share sums and differences of the terms of p and -p, which are
// at positions 1 and 2, and 3 and 4.
Expr combine_pairs(const Row& row, const Term& term) {
  Expr sum;
  const size_t last = row.size() - 1;
  add_scaled(sum, row[0], term(0));
  for (size_t r = 1; r + 1 < last; r += 2) {
    const Expr a = term(r);
    const Expr b = term(r + 1);
    add_scaled(sum, row[r], row[r] == row[r + 1] ? a + b : a - b);
  }
  add_scaled(sum, row[last], term(last));
  return sum;
}

// Returns value(rows[index]), as branches: index == 0 ? value(rows[0]) : index == 1 ? ...
Expr choose(const Expr& index, const Matrix& rows, const std::function<Expr(const Row&)>& value) {
  Expr result = value(rows.back());
  int64_t i = std::ssize(rows) - 1;
  for (const Row& row : std::views::reverse(rows) | std::views::drop(1))
    result = ir::select(index == Expr(--i), value(row), result);
  return result;
}

// The parts of the convolution that the checks have found.
struct Convolution {
  ir::Buffer data, weights;
  int64_t batch = 1, in_channels = 1, out_channels = 1, height = 1, width = 1;
};

// Returns whether the index is the sum of these variables.
bool is_sum_of(const Expr& index, const std::vector<ir::Var>& vars) {
  const ir::LinearSum sum = ir::linearize(index);
  if (sum.bad || sum.constant != 0 || sum.terms.size() != vars.size()) return false;
  for (const ir::Var& var : vars) {
    if (sum.coefficient_of(var) != 1) return false;
  }
  return true;
}

Result<Convolution> match(const ir::Operation& op) {
  const Error no = illegal("stage '" + op.name +
                           "' is not a convolution C[n, k, h, w] = sum_{c, r, s} X[n, c, h + r, "
                           "w + s] * W[k, c, r, s] of f32 with 3 x 3 kernels");
  if (op.combiner != ir::Combiner::kSum || op.spatial.size() != 4 || op.reduce.size() != 3) return no;
  if (op.output()->dtype != ir::DType::kF32) return no;
  const auto* product = ir::as<ir::Binary>(op.bodies.front());
  if (product == nullptr || product->op != ir::BinaryOp::kMul) return no;
  const auto element = [](const Expr& e) {
    const auto* cast = ir::as<ir::Cast>(e);
    const bool widens =
        cast != nullptr && ir::is_float(cast->a.dtype()) && cast->a.dtype() != ir::DType::kF64;
    return ir::as<ir::Load>(widens ? cast->a : e);
  };
  const ir::Load* data = element(product->a);
  const ir::Load* weights = element(product->b);
  if (data == nullptr || weights == nullptr || data->indices.size() != 4 || weights->indices.size() != 4)
    return no;
  const auto spatial = [&](size_t i) { return op.spatial[i].var; };
  const auto reduce = [&](size_t i) { return op.reduce[i].var; };
  if (op.reduce[1].extent != 3 || op.reduce[2].extent != 3) return no;
  if (!is_sum_of(data->indices[0], {spatial(0)}) || !is_sum_of(data->indices[1], {reduce(0)}) ||
      !is_sum_of(data->indices[2], {spatial(2), reduce(1)}) ||
      !is_sum_of(data->indices[3], {spatial(3), reduce(2)}))
    return no;
  if (!is_sum_of(weights->indices[0], {spatial(1)}) || !is_sum_of(weights->indices[1], {reduce(0)}) ||
      !is_sum_of(weights->indices[2], {reduce(1)}) || !is_sum_of(weights->indices[3], {reduce(2)}))
    return no;
  if (weights->buffer->shape != std::vector<int64_t>{op.spatial[1].extent, op.reduce[0].extent, 3, 3})
    return no;
  return Convolution{data->buffer,         weights->buffer,      op.spatial[0].extent, op.reduce[0].extent,
                     op.spatial[1].extent, op.spatial[2].extent, op.spatial[3].extent};
}

ir::Axis axis(const char* name, int64_t extent) { return {ir::Var(name), extent}; }

// Computes U[i, j, ic, oc] = sum_{r, s} G[i, r] W[oc, ic, r, s] G[j, s] in double precision, since
// it is done only once.
std::shared_ptr<const ir::Workload> transform_weights(const ir::OperationRef& weights,
                                                      const std::string& name, const Convolution& conv,
                                                      const Matrix& g) {
  const int64_t a = std::ssize(g);
  const std::vector<ir::Axis> half = {axis("i", a), axis("s", 3), axis("ic", conv.in_channels),
                                      axis("oc", conv.out_channels)};
  const auto sum = [&](const Row& row, const Term& term) {
    Expr result;
    for (size_t r = 0; r < 3; ++r) add_scaled(result, row[r], term(r));
    return result;
  };
  const ir::OperationRef columns = ir::compute(
      name + ".columns", half, {}, ir::Combiner::kNone, {choose(half[0].var, g, [&](const Row& row) {
        return sum(row, [&](int64_t r) {
          return ir::cast(ir::DType::kF64,
                          ir::load(weights->output(), {half[3].var, half[2].var, Expr(r), half[1].var}));
        });
      })});
  const std::vector<ir::Axis> full = {axis("i", a), axis("j", a), axis("ic", conv.in_channels),
                                      axis("oc", conv.out_channels)};
  const ir::OperationRef result =
      ir::compute(name, full, {}, ir::Combiner::kNone, {choose(full[1].var, g, [&](const Row& row) {
                    return ir::cast(ir::DType::kF32, sum(row, [&](int64_t s) {
                                      return ir::load(columns->output(),
                                                      {full[0].var, Expr(s), full[2].var, full[3].var});
                                    }));
                  })});
  auto workload = std::make_shared<ir::Workload>();
  workload->operations = {weights, columns, result};
  workload->outputs = result->outputs;
  return workload;
}

// Returns an error if the step is not legal for the convolution `s` with the weights `w`.
Status check_winograd(const Schedule& schedule, StageId s, StageId w) {
  const Stage& stage = schedule.stages[s];
  const ir::OperationRef& op = stage.op;
  if (stage.attach != AttachKind::kRoot)
    return illegal("stage '" + op->name + "' is attached to a loop; apply winograd before compute_at");
  TS_RETURN_IF_ERROR(check_loops_untouched(schedule, s));
  if (stage.layout)
    return illegal("stage '" + op->name + "' has a packed layout; apply winograd before pack_layout");
  const ir::OperationRef& weights = schedule.stages[w].op;
  const std::string weights_name = "'" + weights->name + "'";
  if (!weights->is_placeholder() || !weights->is_constant)
    return illegal("the weights " + weights_name + " are not constant");
  if (schedule.stages[w].transform)
    return illegal("the weights " + weights_name + " are transformed ahead of time already");
  if (schedule.stages[w].layout)
    return illegal("the weights " + weights_name +
                   " have a packed layout; apply winograd before pack_layout");
  if (schedule.consumers_of(w) != std::vector{s})
    return illegal("the weights " + weights_name + " are also read by other stages");
  return {};
}

// Makes the placeholder U, which replaces the weights.
Stage transformed_weights(const ir::OperationRef& weights, const std::string& name, const Convolution& conv,
                          const Matrix& g) {
  Stage prepared = Stage::create(weights);
  prepared.transform = transform_weights(weights, name, conv, g);
  auto constant_op = std::make_shared<ir::Operation>(*weights);
  constant_op->name = name;
  constant_op->outputs = prepared.transform->outputs;
  constant_op->spatial.clear();
  for (const int64_t extent : constant_op->output()->shape) constant_op->spatial.push_back(axis("d", extent));
  prepared.set_op(constant_op);
  return prepared;
}

// Makes the operations between the data and the result, in this order: padded data, transform of its
// rows, of its columns, product with the transformed weights, and inverse transform of the columns.
std::vector<ir::OperationRef> operations_before_result(const Schedule& schedule, const std::string& base,
                                                       const Convolution& conv, int64_t m,
                                                       const ir::Buffer& transformed) {
  const Transforms& matrices = transforms(m);
  const int64_t a = m + 2;
  const int64_t tiles_h = (conv.height + m - 1) / m;
  const int64_t tiles_w = (conv.width + m - 1) / m;
  const ir::Axis n = axis("n", conv.batch);
  const ir::Axis th = axis("th", tiles_h);
  const ir::Axis tw = axis("tw", tiles_w);
  const ir::Axis ic = axis("ic", conv.in_channels);
  const ir::Axis oc = axis("oc", conv.out_channels);
  const ir::Axis i = axis("i", a);
  const ir::Axis j = axis("j", a);
  const ir::Axis x = axis("x", tiles_w * m + 2);
  // Each operation needs axes of its own.
  const auto stage_of = [&](const char* suffix, const std::vector<ir::Axis>& axes,
                            const std::vector<ir::Axis>& reduce, const Expr& body) {
    const std::vector<ir::Axis> own = fresh_axes(axes);
    const std::vector<ir::Axis> own_reduce = fresh_axes(reduce);
    ir::VarMap map;
    for (size_t k = 0; k < axes.size(); ++k) map[axes[k].var.get()] = own[k].var;
    for (size_t k = 0; k < reduce.size(); ++k) map[reduce[k].var.get()] = own_reduce[k].var;
    return ir::compute(unique_name(schedule, base + "." + suffix), own, own_reduce,
                       reduce.empty() ? ir::Combiner::kNone : ir::Combiner::kSum,
                       {ir::substitute(body, map)});
  };
  std::vector<ir::OperationRef> ops;
  {
    const ir::Axis y = axis("y", tiles_h * m + 2);
    Expr body = ir::cast(ir::DType::kF32, ir::load(conv.data, {n.var, ic.var, y.var, x.var}));
    Expr inside;
    const auto require = [&](const ir::Axis& index, int64_t limit) {
      if (index.extent <= limit) return;
      const Expr condition = Expr(index.var) < Expr(limit);
      inside = inside.defined() ? inside && condition : condition;
    };
    require(y, conv.data->shape[2]);
    require(x, conv.data->shape[3]);
    if (inside.defined()) body = ir::select(inside, body, constant(ir::DType::kF32, 0));
    ops.push_back(stage_of("data", {n, y, x, ic}, {}, body));
  }
  const auto last = [&] { return ops.back()->output(); };
  ops.push_back(stage_of("rows", {n, th, i, x, ic}, {}, choose(i.var, matrices.bt, [&](const Row& row) {
                           return combine_even_odd(row, [&](int64_t r) {
                             return ir::load(last(),
                                             {n.var, Expr(th.var) * Expr(m) + Expr(r), x.var, ic.var});
                           });
                         })));
  ops.push_back(stage_of("input", {i, j, n, th, tw, ic}, {}, choose(j.var, matrices.bt, [&](const Row& row) {
                           return combine_even_odd(row, [&](int64_t r) {
                             return ir::load(
                                 last(), {n.var, th.var, i.var, Expr(tw.var) * Expr(m) + Expr(r), ic.var});
                           });
                         })));
  ops.push_back(stage_of("product", {i, j, n, th, tw, oc}, {ic},
                         ir::load(last(), {i.var, j.var, n.var, th.var, tw.var, ic.var}) *
                             ir::load(transformed, {i.var, j.var, ic.var, oc.var})));
  {
    // Only whole tiles are computed, so no conditions are needed; rows beyond the last are not
    // read.
    const ir::Axis h = axis("h", tiles_h * m);
    const Expr tile = ir::floordiv(h.var, m);
    ops.push_back(stage_of("columns", {n, h, tw, j, oc}, {},
                           choose(ir::floormod(h.var, m), matrices.at, [&](const Row& row) {
                             return combine_pairs(row, [&](int64_t r) {
                               return ir::load(last(), {Expr(r), j.var, n.var, tile, tw.var, oc.var});
                             });
                           })));
  }
  return ops;
}

// Makes the operation that replaces the convolution: the inverse transform of the rows.
ir::OperationRef inverse_of_rows(const ir::Operation& convolution, const ir::Buffer& columns, int64_t m) {
  auto result = std::make_shared<ir::Operation>(convolution);
  result->spatial = fresh_axes(convolution.spatial);
  result->reduce.clear();
  result->combiner = ir::Combiner::kNone;
  const Expr width = result->spatial[3].var;
  result->bodies = {choose(ir::floormod(width, m), transforms(m).at, [&](const Row& row) {
    return combine_pairs(row, [&](int64_t r) {
      return ir::load(columns, {result->spatial[0].var, result->spatial[2].var, ir::floordiv(width, m),
                                Expr(r), result->spatial[1].var});
    });
  })};
  return result;
}

}  // namespace

Status apply(Schedule& schedule, const Winograd& step) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_computed_stage(schedule, step.stage));
  const Stage& stage = schedule.stages[s];
  const ir::OperationRef op = stage.op;
  if (step.m != 2 && step.m != 4) return invalid("m is " + std::to_string(step.m) + "; it must be 2 or 4");
  TS_ASSIGN_OR_RETURN(const Convolution conv, match(*op));
  const StageId w = schedule.producer_of(conv.weights.get());
  TS_RETURN_IF_ERROR(check_winograd(schedule, s, w));

  const ir::OperationRef& weights = schedule.stages[w].op;
  Stage prepared = transformed_weights(weights, unique_name(schedule, weights->name + ".winograd"), conv,
                                       transforms(step.m).g);
  const std::vector<ir::OperationRef> ops =
      operations_before_result(schedule, op->name, conv, step.m, prepared.op->output());
  Stage rest = Stage::create(inverse_of_rows(*op, ops.back()->output(), step.m));
  rest.scope = stage.scope;
  rest.auto_unroll_max_step = stage.auto_unroll_max_step;
  schedule.stages[s] = std::move(rest);
  schedule.stages[w] = std::move(prepared);
  StageId place = s;
  for (const ir::OperationRef& made : ops) {
    insert_stage(schedule, place, Stage::create(made));
    ++place;
  }
  return {};
}

}  // namespace tensorsmith::sched::primitives
