// Steps of measured Ansor records apply at the positions they name: our numbering of stages and loops is
// Ansor's. Only the structure is replayed: tensors are integers of made-up extents.
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "sched/step.h"
#include "support/ansor_records.h"

namespace tensorsmith::sched {
namespace {

using Json = nlohmann::json;

const std::string kData = TENSORSMITH_SOURCE_DIR "/../shared/data/ansor/";

// "name(i, j) += expr" as text -> operations over i64 tensors. Functions of floats are dropped, only what is
// read at which index is kept.
class DagParser {
 public:
  Result<ir::Workload> parse(const std::string& dag) {
    size_t at = 0;
    while (at < dag.size()) {
      const size_t end = std::min(dag.find('\n', at), dag.size());
      line(dag.substr(at, end - at));
      at = end + 1;
    }
    workload_.outputs = {workload_.operations.back()->output()};
    if (failed_) return Error{ErrorCode::kUnsupported, "", "cannot parse: " + dag};
    return workload_;
  }

 private:
  void line(const std::string& text) {
    const size_t placeholder = text.find(" = PLACEHOLDER [");
    if (placeholder != std::string::npos) {
      std::vector<int64_t> shape;
      for (const auto& v : Json::parse(text.substr(text.find('[')))) shape.push_back(v.get<int64_t>());
      add(ir::placeholder(text.substr(0, placeholder), ir::DType::kI64, shape));
      return;
    }
    const size_t open = text.find('(');
    const size_t close = text.find(')');
    const size_t equals = text.find("= ", close);
    if (open == std::string::npos || equals == std::string::npos) {
      failed_ = true;
      return;
    }
    axes_.clear();
    reduce_.clear();
    std::vector<ir::Axis> spatial;
    text_ = text.substr(open + 1, close - open - 1);
    at_ = 0;
    while (at_ < text_.size()) {
      const std::string name = word();
      spatial.push_back({ir::Var(name), 64});
      axes_[name] = spatial.back().var;
      accept(",");
      skip();
    }
    const std::string op = text.substr(close + 1, equals - close - 1);
    text_ = text.substr(equals + 2);
    at_ = 0;
    const ir::Expr body = as_int(expression(0));
    skip();
    if (at_ != text_.size()) failed_ = true;
    const ir::Combiner combiner = reduce_.empty()                       ? ir::Combiner::kNone
                                  : op.find("max") != std::string::npos ? ir::Combiner::kMax
                                  : op.find("min") != std::string::npos ? ir::Combiner::kMin
                                                                        : ir::Combiner::kSum;
    add(ir::compute(text.substr(0, open), spatial, reduce_, combiner, {body}));
  }

  void add(ir::OperationRef op) {
    ops_[op->name] = op;
    workload_.operations.push_back(std::move(op));
  }

  static ir::Expr as_int(const ir::Expr& e) {
    return e.dtype() == ir::DType::kI64 ? e : ir::cast(ir::DType::kI64, e);
  }
  static ir::Expr as_bool(const ir::Expr& e) { return e.dtype() == ir::DType::kBool ? e : e != ir::Expr(0); }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(const std::string& token) {
    skip();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  std::string word() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    if (at_ == begin) {
      failed_ = true;
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  ir::Expr expression(int level) {
    static const std::vector<std::vector<std::string>> kOperators = {
        {"||"}, {"&&"}, {"<=", ">=", "==", "!=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}};
    if (level == static_cast<int>(kOperators.size())) return primary();
    ir::Expr left = expression(level + 1);
    while (true) {
      std::string op;
      for (const std::string& o : kOperators[static_cast<size_t>(level)]) {
        if (accept(o)) {
          op = o;
          break;
        }
      }
      if (op.empty() || failed_) return left;
      const ir::Expr right = expression(level + 1);
      if (op == "||") {
        left = as_bool(left) || as_bool(right);
      } else if (op == "&&") {
        left = as_bool(left) && as_bool(right);
      } else {
        const ir::Expr a = as_int(left);
        const ir::Expr b = as_int(right);
        left = op == "<="   ? a <= b
               : op == ">=" ? a >= b
               : op == "==" ? a == b
               : op == "!=" ? a != b
               : op == "<"  ? a < b
               : op == ">"  ? a > b
               : op == "+"  ? a + b
               : op == "-"  ? a - b
               : op == "*"  ? a * b
               : op == "/"  ? a / b
                            : ir::floormod(a, b);
      }
    }
  }

  std::vector<ir::Expr> arguments(const std::string& close) {
    std::vector<ir::Expr> args;
    while (!failed_ && !accept(close)) {
      args.push_back(expression(0));
      accept(",");
    }
    return args;
  }

  ir::Expr primary() {
    if (accept("(")) {
      const ir::Expr e = expression(0);
      if (!accept(")")) failed_ = true;
      return e;
    }
    if (accept("-")) return ir::Expr(0) - as_int(primary());
    if (accept("!")) return !as_bool(primary());
    const std::string name = word();
    if (failed_) return ir::Expr(0);
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) {
      if (name.back() == 'e') {  // 1e-05f
        if (!accept("-")) accept("+");
        word();
        return ir::Expr(1);
      }
      return ir::Expr(static_cast<int64_t>(std::stod(name)));
    }
    if (accept("[")) {
      const auto op = ops_.find(name);
      std::vector<ir::Expr> indices;
      for (const ir::Expr& e : arguments("]")) indices.push_back(as_int(e));
      if (op == ops_.end() || indices.size() != op->second->spatial.size()) {
        failed_ = true;
        return ir::Expr(0);
      }
      return ir::load(op->second->output(), indices);
    }
    if (accept("(")) {
      const std::vector<ir::Expr> args = arguments(")");
      if (args.empty()) return ir::Expr(0);
      if ((name == "select" || name == "tir.if_then_else") && args.size() == 3)
        return ir::select(as_bool(args[0]), as_int(args[1]), as_int(args[2]));
      if (name == "max") return ir::max(as_int(args[0]), as_int(args[1]));
      if (name == "min") return ir::min(as_int(args[0]), as_int(args[1]));
      if (name == "floordiv") return ir::floordiv(as_int(args[0]), as_int(args[1]));
      if (name == "floormod") return ir::floormod(as_int(args[0]), as_int(args[1]));
      ir::Expr sum = as_int(args[0]);
      for (size_t i = 1; i < args.size(); ++i) sum = sum + as_int(args[i]);
      return sum;
    }
    const auto axis = axes_.find(name);
    if (axis != axes_.end()) return axis->second;
    reduce_.push_back({ir::Var(name), 64});
    axes_[name] = reduce_.back().var;
    return reduce_.back().var;
  }

  ir::Workload workload_;
  std::map<std::string, ir::OperationRef> ops_;
  std::map<std::string, ir::Var> axes_;
  std::vector<ir::Axis> reduce_;
  std::string text_;
  size_t at_ = 0;
  bool failed_ = false;
};

TEST(AnsorSteps, RecordsApplyStepByStep) {
  std::ifstream file(kData + "workloads.json");
  if (!file) GTEST_SKIP() << "no " << kData << "workloads.json";
  const Json workloads = Json::parse(file);
  std::map<std::string, ir::Workload> parsed;
  for (const auto& [key, value] : workloads.items()) {
    auto workload = DagParser().parse(value["compute_dag"].get<std::string>());
    ASSERT_TRUE(workload.ok()) << workload.error().message();
    parsed[key] = *workload;
  }
  for (const char* name : {"v100", "k80", "mi50", "xeon8358"}) {
    const std::vector<std::string> lines = test::zst_lines(kData + name + ".jsonl.zst", 20);
    if (lines.empty()) GTEST_SKIP() << "cannot decompress " << name << ".jsonl.zst";
    int failures = 0;
    for (const std::string& line : lines) {
      const Json record = Json::parse(line);
      const Json& state = record["i"];
      const std::string key = state[0][0];
      const auto workload = parsed.find(key);
      ASSERT_NE(workload, parsed.end()) << key;
      ScheduleBuilder builder(workload->second);
      for (const Json& s : state[1][1]) {
        const Status status = builder.apply(test::ansor_step(s));
        if (status.ok()) continue;
        if (++failures <= 3)
          ADD_FAILURE() << name << ": " << status.error().message() << "\n"
                        << workloads[key]["compute_dag"].get<std::string>() << "\n"
                        << state[1][1].dump();
        break;
      }
      ASSERT_TRUE(infer_bounds(builder.schedule()).ok());
    }
    EXPECT_EQ(failures, 0) << "of " << lines.size() << " records of " << name;
  }
}

}  // namespace
}  // namespace tensorsmith::sched
