// Formulas of users: their values compared with C++ arithmetic, and the places of errors.
#include "ir/formula.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

namespace tensorsmith::ir::formula_test {
namespace {

constexpr std::array<std::string_view, 2> kNames{"x", "y"};

double value(std::string_view text, double x, double y) {
  const auto formula = Formula::parse(text, kNames);
  EXPECT_TRUE(formula.ok()) << text << ": " << formula.error().message();
  return formula.ok() ? formula->value(std::array{x, y}) : 0;
}

TEST(Formula, ComputesInDoublePrecision) {
  const double x = 0.1, y = 3e9;
  EXPECT_EQ(value("x", x, y), x);
  EXPECT_EQ(value("x * (1 + y / 1e6)", x, y), x * (1 + y / 1e6));
  EXPECT_EQ(value("x + 0.1*y", x, y), x + 0.1 * y);
  EXPECT_EQ(value("2 + 3 * x - y / 4 / 2", x, y), 2 + 3 * x - y / 4 / 2);
  EXPECT_EQ(value("-x + -2", x, y), -x - 2);
  EXPECT_EQ(value("1 / 3", x, y), 1.0 / 3.0);      // no division of integers
  EXPECT_EQ(value("16777217", x, y), 16777217.0);  // not rounded to f32
  EXPECT_EQ(value("max(x, y) + min(x, 2)", x, y), y + x);
  EXPECT_DOUBLE_EQ(value("sqrt(y) + pow(x, 2)", x, y), std::sqrt(y) + x * x);
  EXPECT_EQ(value("select(y > 1e6, 10 * x, x)", x, y), 10 * x);
  EXPECT_EQ(value("select(y > 1e6, 10 * x, x)", x, 5), x);
}

TEST(Formula, KnowsItsVariables) {
  const auto formula = Formula::parse("1 + y * 2", kNames);
  ASSERT_TRUE(formula.ok());
  EXPECT_FALSE(formula->uses(0));
  EXPECT_TRUE(formula->uses(1));
}

TEST(Formula, ErrorsSayWhereAndWhatWasExpected) {
  const auto error = [](std::string_view text) {
    const auto formula = Formula::parse(text, kNames);
    EXPECT_FALSE(formula.ok()) << text;
    if (formula.ok()) return std::string();
    EXPECT_EQ(formula.error().code, ErrorCode::kInvalidArgument);
    return formula.error().message();
  };
  EXPECT_EQ(error(""), "1:1: expected an expression, found the end of the text");
  EXPECT_EQ(error("x +"), "1:4: expected an expression, found the end of the text");
  EXPECT_EQ(error("x * (1 + y"), "1:11: expected ')', found the end of the text");
  EXPECT_EQ(error("x y"), "1:3: expected an operator or the end of the text, found 'y'");
  EXPECT_EQ(error("2 x"), "1:3: expected an operator or the end of the text, found 'x'");
  EXPECT_EQ(error("x + z"), "1:5: no variable is called z");
  EXPECT_EQ(error("cube(x)"), "1:1: no function is called 'cube'");
  EXPECT_EQ(error("x > y"), "1:1: expected a number, but the formula has type bool");
  EXPECT_EQ(error("min(x)"), "1:1: 'min' takes 2 arguments, not 1");
  EXPECT_NE(error("1e999 * x").find("does not fit f64"), std::string::npos);
  EXPECT_NE(error(std::string(10000, '(')).find("nested too deeply"), std::string::npos);
}

}  // namespace
}  // namespace tensorsmith::ir::formula_test
