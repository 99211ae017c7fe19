#include "slow_reference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

namespace tensorsmith::feature::testing {

namespace {

using Point = std::map<const ir::VarNode*, int64_t>;

int64_t evaluate(const ir::Expr& e, const Point& point) {
  if (const auto* imm = ir::as<ir::IntImm>(e)) return imm->value;
  if (const auto* ref = ir::as<ir::VarRef>(e)) return point.at(ref->var.get());
  const auto& binary = *ir::as<ir::Binary>(e);
  const int64_t a = evaluate(binary.a, point), b = evaluate(binary.b, point);
  switch (binary.op) {
    case ir::BinaryOp::kAdd:
      return a + b;
    case ir::BinaryOp::kSub:
      return a - b;
    case ir::BinaryOp::kMul:
      return a * b;
    case ir::BinaryOp::kFloorDiv:
      return static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
    case ir::BinaryOp::kFloorMod:
      return ((a % b) + b) % b;
    default:
      throw std::logic_error("slow reference: operator");
  }
}

struct LoopInfo {
  const ir::For* loop;
  int64_t extent;
};
struct Access {
  ir::Buffer buffer;
  bool read = false, write = false;
  std::vector<std::vector<ir::Expr>> tuples;
};
struct Statement {
  std::vector<LoopInfo> loops;
  const ir::Store* store;
  double executions = 1;
  std::map<std::string, double> ops;
  std::vector<Access> accesses;
  int64_t unroll_step = 0;
};

struct Collected {
  std::vector<Statement> statements;
  std::vector<std::pair<ir::Buffer, double>> allocations;  // with the number of executions
};

void collect(const ir::Stmt& s, std::vector<LoopInfo>& loops, Collected& out) {
  const double executions = std::accumulate(loops.begin(), loops.end(), 1.0, [](double p, const LoopInfo& l) {
    return p * static_cast<double>(l.extent);
  });
  if (const auto* loop = ir::as<ir::For>(s)) {
    loops.push_back({loop, *ir::as_int(loop->extent)});
    collect(loop->body, loops, out);
    loops.pop_back();
  } else if (const auto* seq = ir::as<ir::Seq>(s)) {
    for (const auto& child : seq->stmts) collect(child, loops, out);
  } else if (const auto* allocate = ir::as<ir::Allocate>(s)) {
    collect(allocate->body, loops, out);
    out.allocations.emplace_back(allocate->buffer, executions);
  } else if (const auto* branch = ir::as<ir::IfThenElse>(s)) {
    collect(branch->then_body, loops, out);
    if (branch->else_body) collect(branch->else_body, loops, out);
  } else if (const auto* store = ir::as<ir::Store>(s)) {
    Statement st{loops, store, executions, {}, {}, 0};
    for (const LoopInfo& l : loops) {
      if (l.loop->auto_unroll_max_step != 0) st.unroll_step = l.loop->auto_unroll_max_step;
    }
    st.accesses.push_back({store->buffer, false, true, {store->indices}});
    const std::function<void(const ir::Expr&)> walk = [&](const ir::Expr& e) {
      if (const auto* binary = ir::as<ir::Binary>(e)) {
        const std::string type = ir::is_float(binary->a.dtype()) ? "float_" : "int_";
        switch (binary->op) {
          case ir::BinaryOp::kAdd:
          case ir::BinaryOp::kSub:
            st.ops[type + "addsub"] += 1;
            break;
          case ir::BinaryOp::kMul:
            st.ops[type + "mul"] += 1;
            break;
          case ir::BinaryOp::kMax:
            st.ops[type + "cmp"] += 1;
            break;
          default:
            st.ops[type + "divmod"] += 1;
        }
        walk(binary->a);
        walk(binary->b);
      } else if (const auto* call = ir::as<ir::Call>(e)) {
        st.ops["float_mathfunc"] += 1;
        for (const auto& arg : call->args) walk(arg);
      } else if (const auto* cast = ir::as<ir::Cast>(e)) {
        walk(cast->a);
      } else if (const auto* load = ir::as<ir::Load>(e)) {
        auto it = std::find_if(st.accesses.begin(), st.accesses.end(),
                               [&](const Access& a) { return a.buffer == load->buffer; });
        if (it == st.accesses.end())
          it = st.accesses.insert(st.accesses.end(), {load->buffer, false, false, {}});
        it->read = true;
        if (!it->write) it->tuples.push_back(load->indices);
        for (const auto& index : load->indices) walk(index);
      }
    };
    walk(store->value);
    out.statements.push_back(std::move(st));
  }
}

// Extents of the box that is accessed while the loops from `level` on run and the outer ones are at
// 0.
std::vector<int64_t> box(const Statement& st, const Access& access, size_t level) {
  std::vector<int64_t> low(access.buffer->shape.size(), INT64_MAX),
      high(access.buffer->shape.size(), INT64_MIN);
  Point point;
  for (const LoopInfo& l : st.loops) point[l.loop->var.get()] = 0;
  const std::function<void(size_t)> run = [&](size_t at) {
    if (at == st.loops.size()) {
      for (const auto& tuple : access.tuples) {
        for (size_t d = 0; d < tuple.size(); ++d) {
          const int64_t v = evaluate(tuple[d], point);
          low[d] = std::min(low[d], v);
          high[d] = std::max(high[d], v);
        }
      }
      return;
    }
    for (int64_t v = 0; v < st.loops[at].extent; ++v) {
      point[st.loops[at].loop->var.get()] = v;
      run(at + 1);
    }
    point[st.loops[at].loop->var.get()] = 0;
  };
  run(level);
  std::vector<int64_t> lengths;
  for (size_t d = 0; d < low.size(); ++d) lengths.push_back(high[d] - low[d] + 1);
  return lengths;
}

int64_t elements(const std::vector<int64_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{1}, std::multiplies<>());
}

// Distance by which the address moves in one step of the loop, counting only the innermost
// dimension that moves; 0 if none does.
int64_t step_of(const Statement& st, const Access& access, size_t loop) {
  int64_t best = 0;
  for (const auto& tuple : access.tuples) {
    Point here, there;
    for (const LoopInfo& l : st.loops) here[l.loop->var.get()] = there[l.loop->var.get()] = 0;
    there[st.loops[loop].loop->var.get()] = 1;
    int64_t stride = 1;
    for (size_t d = tuple.size(); d-- > 0;) {
      const int64_t move = std::abs(evaluate(tuple[d], there) - evaluate(tuple[d], here));
      if (move != 0) {
        if (best == 0 || move * stride < best) best = move * stride;
        break;
      }
      stride *= access.buffer->shape[d];
    }
  }
  return best;
}

double slog(double x) { return std::log2(x + 1); }

}  // namespace

FeatureMatrix slow_per_store(const ir::Program& program, int cacheline_bytes) {
  Collected collected;
  std::vector<LoopInfo> loops;
  collect(program.body, loops, collected);
  for (const auto& output : program.outputs) collected.allocations.emplace_back(output, 1.0);

  // (loop, buffer) -> elements of each access so far, in program order.
  std::map<const ir::For*, std::vector<std::pair<ir::Buffer, int64_t>>> touched;
  std::vector<ir::Buffer> order;
  std::map<ir::Buffer, std::map<std::string, double>> rows;
  for (const Statement& st : collected.statements) {
    const ir::Buffer& written = st.store->buffer;
    if (std::find(order.begin(), order.end(), written) == order.end()) order.push_back(written);
    auto& row = rows[written];
    for (const auto& [name, count] : st.ops) row["+" + name] += count * st.executions;
    const size_t depth = st.loops.size();
    std::vector<double> ops_at, bytes_at;
    double float_ops = 0;
    for (const auto& [name, count] : st.ops) float_ops += name.starts_with("float_") ? count : 0;
    for (size_t level = depth; level-- > 0;) {
      double bytes = 0;
      for (const Access& access : st.accesses) {
        const int64_t n = elements(box(st, access, level));
        touched[st.loops[level].loop].emplace_back(access.buffer, n);
        bytes += static_cast<double>(n * ir::bytes_of(access.buffer->dtype));
      }
      float_ops *= static_cast<double>(st.loops[level].extent);
      ops_at.push_back(float_ops);
      bytes_at.push_back(bytes);
    }
    if (row.count("stored") != 0 && st.executions < row["outer_prod"]) continue;
    row["stored"] = 1;
    for (const auto& [prefix, kind] : {std::pair{"vec_", ir::ForKind::kVectorized},
                                       {"unroll_", ir::ForKind::kUnrolled},
                                       {"parallel_", ir::ForKind::kParallel}}) {
      const std::string p = prefix;
      row[p + "num"] = row[p + "len"] = row[p + "type.Mixed"] = 0;
      row[p + "type.None"] = 1;
      double product = 1;
      for (const LoopInfo& l : st.loops) {
        if (l.loop->kind != kind) continue;
        row[p + "num"] += 1;
        row[p + "len"] = static_cast<double>(l.extent);
        product *= static_cast<double>(l.extent);
        row[p + "prod"] = product;
        row[p + "type.Mixed"] = 1;
        row[p + "type.None"] = 0;
      }
    }
    for (const char* name : {"blockIdx_x_len", "blockIdx_y_len", "blockIdx_z_len", "threadIdx_x_len",
                             "threadIdx_y_len", "threadIdx_z_len", "vthread_len"})
      row[name] = 1;
    for (int i = 0; i < 10; ++i) {
      double& point = row["arith_intensity_curve_" + std::to_string(i)];
      point = 0;
      if (depth == 0 || float_ops == 0) continue;
      const double x = ops_at.back() * (i + 1) / 10;
      size_t at = 0;
      while (ops_at[at] < x - 1e-4) ++at;
      const auto y = [&](size_t j) { return ops_at[j] / bytes_at[j]; };
      point = at == 0
                  ? y(0)
                  : y(at - 1) + (y(at) - y(at - 1)) * (x - ops_at[at - 1]) / (ops_at[at] - ops_at[at - 1]);
    }
    row["outer_prod"] = st.executions;
    row["num_loops"] = static_cast<double>(depth);
    row["auto_unroll_max_step"] = static_cast<double>(st.unroll_step);

    std::vector<std::map<std::string, double>> buffers;
    for (const Access& access : st.accesses) {
      std::map<std::string, double> b;
      b["acc_type.Read"] = access.read && !access.write;
      b["acc_type.Write"] = access.write && !access.read;
      b["acc_type.ReadWrite"] = access.read && access.write;
      const double size = ir::bytes_of(access.buffer->dtype);
      b["bytes"] = st.executions * size;
      b["unique_bytes"] = size;
      b["lines"] = b["unique_lines"] = 1;
      b["stride"] = 0;
      b["reuse_type.None"] = 1;
      b["reuse_ct"] = b["reuse_dis_iter"] = b["reuse_dis_bytes"] = 0;
      if (depth > 0) {
        for (const auto& [buffer, n] : touched[st.loops[0].loop]) {
          if (buffer != access.buffer) continue;
          b["unique_bytes"] = static_cast<double>(n) * size;
          break;
        }
        double lines = st.executions, step = 0;
        for (size_t l = depth; l-- > 0;) {
          step = static_cast<double>(step_of(st, access, l));
          if (step != 0) {
            if (l + 1 == depth) b["stride"] = step;
            break;
          }
          lines /= static_cast<double>(st.loops.back().extent);
        }
        b["lines"] = std::max(1.0, lines * std::min(1.0, step * size / cacheline_bytes));
        double continuous = size;
        const auto written_box = box(st, st.accesses[0], 0);
        for (size_t d = std::min(written_box.size(), access.buffer->shape.size()); d-- > 0;) {
          if (written_box[d] == access.buffer->shape[d]) {
            continuous *= static_cast<double>(written_box[d]);
            break;
          }
        }
        b["unique_lines"] =
            std::max(1.0, b["unique_bytes"] / std::min(continuous, static_cast<double>(cacheline_bytes)));
        double iterations = 1, all_bytes = -1;
        for (size_t l = depth; l-- > 0;) {
          double each = 0, sum = 0, smallest = INFINITY;
          int count = 0;
          for (const auto& [buffer, n] : touched[st.loops[l].loop]) {
            each += ir::bytes_of(buffer->dtype);
            sum += static_cast<double>(n * ir::bytes_of(buffer->dtype));
            if (buffer == access.buffer) {
              ++count;
              smallest = std::min(smallest, static_cast<double>(n));
            }
          }
          const auto extent = static_cast<double>(st.loops[l].extent);
          if (step_of(st, access, l) == 0) {
            b["reuse_type.None"] = 0;
            b["reuse_type.LoopMultipleRead"] = 1;
            b["reuse_dis_iter"] = iterations;
            b["reuse_dis_bytes"] = all_bytes < 0 ? each : all_bytes;
            b["reuse_ct"] = extent;
            break;
          }
          iterations *= extent;
          all_bytes = sum;
          if (count > 1) {
            b["reuse_type.None"] = 0;
            b["reuse_type.SerialMultipleReadWrite"] = 1;
            b["reuse_dis_iter"] = smallest / extent;
            b["reuse_dis_bytes"] = sum / extent;
            b["reuse_ct"] = count - 1;
            break;
          }
        }
      }
      for (const char* name : {"bytes", "unique_bytes", "lines", "unique_lines"})
        b[std::string(name) + "_d_reuse_ct"] = b["reuse_ct"] > 0 ? b[name] / b["reuse_ct"] : b[name] * 2;
      buffers.push_back(std::move(b));
    }
    std::reverse(buffers.begin(), buffers.end());
    std::stable_sort(buffers.begin(), buffers.end(), [](const auto& x, const auto& y) {
      return std::pair(x.at("lines"), x.at("bytes")) > std::pair(y.at("lines"), y.at("bytes"));
    });
    std::erase_if(row, [](const auto& item) { return item.first.starts_with("B"); });
    for (size_t i = 0; i < buffers.size() && i < 5; ++i) {
      for (const auto& [name, value] : buffers[i]) row["B" + std::to_string(i) + "." + name] = value;
    }
  }
  for (const auto& [buffer, executions] : collected.allocations) {
    auto& row = rows[buffer];
    const auto n = static_cast<double>(buffer->num_elements());
    row["alloc_size"] = n * ir::bytes_of(buffer->dtype);
    row["alloc_prod"] = n * executions;
    row["alloc_outer_prod"] = executions;
    row["alloc_inner_prod"] = row["outer_prod"] / executions;
  }
  FeatureMatrix matrix;
  for (const auto& buffer : order) {
    auto& row = rows[buffer];
    ++matrix.rows;
    for (const Column& column : kPerStoreColumns) {
      const std::string name = column.name();
      const double value = row.count("+" + name) != 0 ? row["+" + name] : row[name];
      const bool plain = name.find("type.") != std::string::npos || name == "is_gpu";
      matrix.values.push_back(static_cast<float>(plain ? value : slog(value)));
    }
  }
  return matrix;
}

}  // namespace tensorsmith::feature::testing
