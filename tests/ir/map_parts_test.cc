#include "ir/map_parts.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace tensorsmith::ir::map_parts_test {
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

TEST(MapParts, KeepsTheNodeWhereNothingChanges) {
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

TEST(MapParts, PutsNewPartsInTheirPlaces) {
  const Stmt before = store(1), after = store(2);
  const std::vector<Stmt> olds = around(before), news = around(after);
  const auto replace = [&](const Stmt& part) { return part == before ? after : part; };
  for (size_t k = 0; k < olds.size(); ++k) EXPECT_EQ(print(map_parts(olds[k], replace)), print(news[k]));
}

// The caller decides about recursion: parts of parts are not visited.
TEST(MapParts, MapsNoPartsOfParts) {
  const Stmt inner = store(1);
  const Stmt s = make_seq({make_if(Expr(Var("i")) < 2, inner), store(2)});
  std::vector<Stmt> seen;
  map_parts(s, [&](const Stmt& part) {
    seen.push_back(part);
    return part;
  });
  EXPECT_EQ(seen, as<Seq>(s)->stmts);
}

}  // namespace
}  // namespace tensorsmith::ir::map_parts_test
