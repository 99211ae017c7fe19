// Programs with more live vectors than registers: the emitted code does not spill vectors that it
// can reload, and computes the same values.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "codegen/isas.h"
#include "codegen/llvm/codegen.h"
#include "codegen/runner.h"
#include "ir/text.h"

namespace tensorsmith::reload_test {
namespace {

// Replaces $x by the value of x.
std::string filled(std::string text, const std::vector<std::pair<std::string, int>>& values) {
  for (const auto& [name, value] : values)
    text = std::regex_replace(text, std::regex("\\$" + name), std::to_string(value));
  return text;
}

size_t count(const ir::Program& program, const target::Device& device, const char* instruction) {
  const auto code = codegen::emit_assembly(program, device, {});
  EXPECT_TRUE(code.ok()) << code.error().message();
  if (!code.ok()) return 0;
  const std::regex expression(instruction);
  return static_cast<size_t>(std::distance(std::sregex_iterator(code->begin(), code->end(), expression), {}));
}
// Counts instructions that access a vector on the stack.
size_t spills(const ir::Program& program, const target::Device& device) {
  return count(program, device, R"(\n[^\n]*\(%rsp[^\n]*%[yz]mm|\n[^\n]*%[yz]mm[^\n]*\(%rsp)");
}
// Counts instructions that store a vector on the stack.
size_t stored(const ir::Program& program, const target::Device& device) {
  return count(program, device, R"(\n[^\n]*%[yz]mm\d+, [^\n]*\(%rsp)");
}

void expect_as_interpreted(const ir::Program& program) {
  constexpr uint64_t kSeed = 3;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Rng rng(kSeed);
  std::vector<lower::Tensor> inputs;
  for (const ir::Buffer& input : program.inputs)
    inputs.push_back(lower::random_tensor(input->dtype, input->shape, rng));
  const auto want = lower::run(program, inputs);
  ASSERT_TRUE(want.ok()) << want.error().message();
  for (const target::Device& device : test::local_devices()) {
    const auto got = test::compile_and_run(program, device, inputs);
    ASSERT_TRUE(got.ok()) << got.error().message();
    EXPECT_EQ(test::compare((*got)[0], (*want)[0], 1e-4, 1e-4), "") << device.name;
  }
}

ir::Program parsed(const std::string& text) {
  auto program = ir::parse_program(text);
  EXPECT_TRUE(program.ok()) << program.error().message() << "\n" << text;
  return program.ok() ? *program : ir::Program{};
}

// The reduction is completely unrolled, so that the weights are invariant in the loop over pixels.
ir::Program unrolled_reduction(int rows, int lanes) {
  return parsed(filled(R"(program kernel {
  input X: f32[24, 100, $lanes]
  input W: f32[24, $rows]
  output Y: f32[$rows, 100, $lanes]
  for p in 100 {
    alloc acc: f32[$rows, $lanes] {
      unrolled k in $rows {
        vectorized j in $lanes {
          acc[k, j] = 0.0
        }
      }
      unrolled r in 24 {
        unrolled k in $rows {
          vectorized j in $lanes {
            acc[k, j] = acc[k, j] + W[r, k] * X[r, p, j]
          }
        }
      }
      unrolled k in $rows {
        vectorized j in $lanes {
          Y[k, p, j] = acc[k, j]
        }
      }
    }
  }
}
)",
                       {{"rows", rows}, {"lanes", lanes}}));
}

// As above, but the weights are in a buffer of the program: it is written, but not in the loop,
// which writes to other buffers.
ir::Program unrolled_reduction_of_a_copy(int rows, int lanes) {
  return parsed(filled(R"(program kernel {
  input X: f32[24, 100, $lanes]
  input W: f32[24, $rows]
  output Y: f32[$rows, 100, $lanes]
  alloc copy: f32[24, $rows] {
    for r in 24 {
      for k in $rows {
        copy[r, k] = W[r, k] * 2.0
      }
    }
    for p in 100 {
      alloc acc: f32[$rows, $lanes] {
        unrolled k in $rows {
          vectorized j in $lanes {
            acc[k, j] = 0.0
          }
        }
        unrolled r in 24 {
          unrolled k in $rows {
            vectorized j in $lanes {
              acc[k, j] = acc[k, j] + copy[r, k] * X[r, p, j]
            }
          }
        }
        unrolled k in $rows {
          vectorized j in $lanes {
            Y[k, p, j] = acc[k, j]
          }
        }
      }
    }
  }
}
)",
                       {{"rows", rows}, {"lanes", lanes}}));
}

// A window of 5 steps over rows: each element is read in up to five steps.
ir::Program window(int rows, int lanes) {
  return parsed(filled(R"(program kernel {
  input X: f32[30, $elements]
  input W: f32[30, 5, $lanes]
  output Y: f32[$rows, $lanes]
  alloc acc: f32[$rows, $lanes] {
    unrolled h in $rows {
      vectorized j in $lanes {
        acc[h, j] = 0.0
      }
    }
    for c in 30 {
      unrolled r in 5 {
        unrolled h in $rows {
          vectorized j in $lanes {
            acc[h, j] = acc[h, j] + X[c, h + r] * W[c, r, j]
          }
        }
      }
    }
    unrolled h in $rows {
      vectorized j in $lanes {
        Y[h, j] = acc[h, j]
      }
    }
  }
}
)",
                       {{"rows", rows}, {"lanes", lanes}, {"elements", rows + 4}}));
}

// A window of 3 steps with several vectors of weights.
ir::Program wide_window(int rows, int vectors, int lanes) {
  return parsed(filled(R"(program kernel {
  input X: f32[30, $elements]
  input W: f32[30, 3, $vectors, $lanes]
  output Y: f32[$rows, $vectors, $lanes]
  alloc acc: f32[$rows, $vectors, $lanes] {
    unrolled h in $rows {
      unrolled v in $vectors {
        vectorized j in $lanes {
          acc[h, v, j] = 0.0
        }
      }
    }
    for c in 30 {
      unrolled r in 3 {
        unrolled h in $rows {
          unrolled v in $vectors {
            vectorized j in $lanes {
              acc[h, v, j] = acc[h, v, j] + X[c, h + r] * W[c, r, v, j]
            }
          }
        }
      }
    }
    unrolled h in $rows {
      unrolled v in $vectors {
        vectorized j in $lanes {
          Y[h, v, j] = acc[h, v, j]
        }
      }
    }
  }
}
)",
                       {{"rows", rows}, {"vectors", vectors}, {"lanes", lanes}, {"elements", rows + 2}}));
}

TEST(Reload, WeightsThatDoNotChangeInALoop) {
  EXPECT_EQ(spills(unrolled_reduction(8, 8), test::device_with("avx2")), 0U);
  EXPECT_EQ(spills(unrolled_reduction(16, 16), test::device_with("avx512")), 0U);
  expect_as_interpreted(unrolled_reduction(8, 8));
  expect_as_interpreted(unrolled_reduction(16, 16));
}

TEST(Reload, WhatIsWrittenElsewhere) {
  EXPECT_EQ(stored(unrolled_reduction_of_a_copy(8, 8), test::device_with("avx2")), 0U);
  EXPECT_EQ(stored(unrolled_reduction_of_a_copy(16, 16), test::device_with("avx512")), 0U);
  expect_as_interpreted(unrolled_reduction_of_a_copy(8, 8));
  expect_as_interpreted(unrolled_reduction_of_a_copy(16, 16));
}

// 12 accumulators, 3 vectors and a broadcast element: a load that is hoisted from the next step
// finds no free register.
TEST(Reload, StepsThatTakeAllRegisters) {
  EXPECT_EQ(spills(wide_window(4, 3, 8), test::device_with("avx2")), 0U);
  EXPECT_EQ(spills(wide_window(9, 3, 16), test::device_with("avx512")), 0U);
  expect_as_interpreted(wide_window(4, 3, 8));
  expect_as_interpreted(wide_window(9, 3, 16));
}

TEST(Reload, ElementsThatStepsOfAWindowShare) {
  // A broadcast takes a register here, and LLVM spills some values once; before, there were 60
  // spills.
  EXPECT_LE(spills(window(12, 8), test::device_with("avx2")), 20U);
  EXPECT_EQ(spills(window(24, 16), test::device_with("avx512")), 0U);
  expect_as_interpreted(window(12, 8));
  expect_as_interpreted(window(24, 16));
}

// Spilled vectors do not cross cache lines, wherever the caller's stack ends.
TEST(Reload, WhatIsStillSpilledIsAligned) {
  const ir::Program program = window(20, 8);
  const target::Device device = test::device_with("avx2");
  ASSERT_GT(stored(program, device), 0U);
  EXPECT_EQ(count(program, device,
                  R"(\n\tvmovu[^\n]*%ymm\d+, [^\n]*\(%rsp|\n\tvmovdqu[^\n]*%ymm\d+, [^\n]*\(%rsp)"),
            0U);
  EXPECT_EQ(count(program, device, R"(andq\t\$-32, %rsp)"), 1U);
}

// Each row is replaced by a sum over all rows, one after the other: a reload must read the current
// value.
TEST(Reload, RowsThatAreWrittenBetweenTheirUses) {
  expect_as_interpreted(parsed(R"(program kernel {
  input X: f32[40, 16]
  input W: f32[40, 40]
  output Y: f32[40, 16]
  for m in 40 {
    vectorized j in 16 {
      Y[m, j] = X[m, j]
    }
  }
  unrolled k in 40 {
    alloc sum: f32[16] {
      vectorized j in 16 {
        sum[j] = 0.0
      }
      unrolled m in 40 {
        vectorized j in 16 {
          sum[j] = sum[j] + Y[m, j] * W[k, m]
        }
      }
      vectorized j in 16 {
        Y[k, j] = sum[j] * 0.125
      }
    }
  }
}
)"));
}

// Elements are loaded first, and broadcast only after their memory has been overwritten.
TEST(Reload, ElementsThatAreReplacedBeforeTheirUse) {
  expect_as_interpreted(parsed(R"(program kernel {
  input X: f32[24, 16]
  output Y: f32[24, 16]
  for m in 24 {
    vectorized j in 16 {
      Y[m, j] = X[m, j]
    }
  }
  alloc kept: f32[24] {
    unrolled m in 24 {
      kept[m] = Y[m, 3]
    }
    unrolled m in 24 {
      vectorized j in 16 {
        Y[m, j] = 2.0
      }
    }
    alloc acc: f32[20, 16] {
      unrolled k in 20 {
        vectorized j in 16 {
          acc[k, j] = 0.0
        }
      }
      unrolled r in 4 {
        unrolled k in 20 {
          vectorized j in 16 {
            acc[k, j] = acc[k, j] + kept[k + r] * X[r, j]
          }
        }
      }
      unrolled k in 20 {
        vectorized j in 16 {
          Y[k, j] = acc[k, j]
        }
      }
    }
  }
}
)"));
}

}  // namespace
}  // namespace tensorsmith::reload_test
