// Which tasks share a kernel class, and the distance between their shapes.
#include "search/kernel_class.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/standard_workloads.h"

namespace tensorsmith::search::kernel_class_test {
namespace {

using namespace tensorsmith::test::standard;

TEST(KernelClass, IsTheSequenceOfOperatorsWhateverTheShapes) {
  EXPECT_EQ(kernel_class(matmul(4, 5, 6)), kernel_class(matmul(64, 32, 16)));
  EXPECT_NE(kernel_class(matmul(4, 5, 6)), kernel_class(dense_bias_relu(4, 5, 6)));
  EXPECT_NE(kernel_class(softmax(4, 5)), kernel_class(layernorm(4, 5)));
  EXPECT_EQ(kernel_class_text(0xab), "00000000000000ab");
}

TEST(KernelClass, DistanceAddsTheLogarithmsOfTheExtents) {
  EXPECT_EQ(shape_distance(matmul(4, 5, 6), matmul(4, 5, 6)), 0);
  EXPECT_NEAR(shape_distance(matmul(4, 5, 6), matmul(8, 5, 2)), std::log(2.0) + std::log(3.0), 1e-12);
  EXPECT_EQ(shape_distance(matmul(4, 5, 6), matmul(8, 5, 2)),
            shape_distance(matmul(8, 5, 2), matmul(4, 5, 6)));
  // For a layer with a bias, the matrix product counts.
  EXPECT_NEAR(shape_distance(dense_bias_relu(4, 5, 6), dense_bias_relu(4, 5, 12)), std::log(2.0), 1e-12);
}

}  // namespace
}  // namespace tensorsmith::search::kernel_class_test
