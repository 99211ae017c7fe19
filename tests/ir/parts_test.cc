#include "ir/parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "ir/text.h"

namespace tensorsmith::ir::parts_test {
namespace {

const Buffer y = make_buffer("y", DType::kF32, {8});
Stmt store(double value) { return make_store(y, {Expr(int64_t{0})}, float_imm(DType::kF32, value)); }

// Returns one statement of each kind that has parts, around `inner`; the branch has no else.
std::vector<Stmt> around(const Stmt& inner) {
  const Buffer local = make_buffer("local", DType::kF32, {4}, MemoryScope::kLocal);
  const Var i("i");
  For loop{i, 4, ForKind::kVectorized};
  loop.auto_unroll_max_step = 16;
  loop.body = inner;
  return {make_for(loop), make_if(Expr(i) < 2, inner), make_if(Expr(i) < 2, store(7), inner),
          make_seq({store(7), inner}), make_allocate(local, inner)};
}

TEST(Parts, KeepsTheNodeWhereNothingChanges) {
  for (const Stmt& s : around(store(1))) {
    int parts = 0;
    EXPECT_EQ(map_parts(s,
                        [&](const Stmt& part) {
                          EXPECT_NE(part, nullptr);
                          ++parts;
                          return part;
                        }),
              s);
    EXPECT_GT(parts, 0);
  }
  EXPECT_EQ(map_parts(nullptr, [](const Stmt&) { return store(1); }), nullptr);
}

TEST(Parts, PutsNewPartsInTheirPlaces) {
  const Stmt before = store(1), after = store(2);
  const std::vector<Stmt> olds = around(before), news = around(after);
  const auto replace = [&](const Stmt& part) { return part == before ? after : part; };
  for (size_t k = 0; k < olds.size(); ++k) EXPECT_EQ(print(map_parts(olds[k], replace)), print(news[k]));
}

// The caller decides about recursion: parts of parts are not visited.
TEST(Parts, MapsNoPartsOfParts) {
  const Stmt inner = store(1);
  const Stmt s = make_seq({make_if(Expr(Var("i")) < 2, inner), store(2)});
  std::vector<Stmt> seen;
  map_parts(s, [&](const Stmt& part) {
    seen.push_back(part);
    return part;
  });
  EXPECT_EQ(seen, as<Seq>(s)->stmts);
}

TEST(Parts, ListsTheStatementsInsideAStatement) {
  const Stmt inner = store(1);
  for (const Stmt& s : around(inner)) {
    std::vector<Stmt> listed, mapped;
    for_each_part(s, [&](const Stmt& part) { listed.push_back(part); });
    map_parts(s, [&](const Stmt& part) {
      mapped.push_back(part);
      return part;
    });
    EXPECT_EQ(listed, mapped);
    EXPECT_NE(std::find(listed.begin(), listed.end(), inner), listed.end());
  }
}

TEST(Parts, ListsAndReplacesOperandsInTheirOrder) {
  const Expr a = Expr(Var("a")), b = Expr(Var("b")), c = a < b;
  const Buffer table = make_buffer("t", DType::kF32, {8, 8});
  const std::vector<std::pair<Expr, std::vector<Expr>>> cases = {
      {Expr(int64_t{1}), {}},
      {a, {}},
      {-a, {a}},
      {a / b, {a, b}},
      {select(c, a, b), {c, a, b}},
      {cast(DType::kF32, a), {a}},
      {call(Intrinsic::kAbs, {a}), {a}},
      {load(table, {b, a}), {b, a}},
  };
  for (const auto& [e, operands] : cases) {
    std::vector<const ExprNode*> listed, mapped, expected;
    for (const Expr& operand : operands) expected.push_back(operand.get());
    for_each_part(e, [&](const Expr& part) { listed.push_back(part.get()); });
    const Expr same = map_parts(e, [&](const Expr& part) {
      mapped.push_back(part.get());
      return part;
    });
    EXPECT_EQ(listed, expected);
    EXPECT_EQ(mapped, expected);
    EXPECT_TRUE(same.same_as(e));
    const Expr other =
        map_parts(e, [&](const Expr& part) { return part.same_as(a) ? Expr(Var("z")) : part; });
    EXPECT_EQ(other.same_as(e), std::find(expected.begin(), expected.end(), a.get()) == expected.end());
  }
}

TEST(Parts, ListsTheExpressionsOfAStatementItself) {
  const auto own = [](const Stmt& s) {
    std::string text;
    for_each_own_expr(s, [&](const Expr& e) { text += print(e) + ";"; });
    return text;
  };
  const std::vector<Stmt> outer = around(store(1));
  EXPECT_EQ(own(outer[0]), "4;");
  EXPECT_EQ(own(outer[1]), "i < 2;");
  EXPECT_EQ(own(outer[3]), "");
  EXPECT_EQ(own(outer[4]), "");
  EXPECT_EQ(own(make_store(y, {Expr(Var("k"))}, load(y, {Expr(Var("m"))}))), "y[m];k;");
}

}  // namespace
}  // namespace tensorsmith::ir::parts_test
