// Programs of users, linked with nothing but libtensorsmith_runtime.so, run a model.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include "tiny_model.h"

namespace tensorsmith::runtime::programs_test {
namespace {

int run_program(const char* program, std::string model) {
  std::string name = program;
  char* arguments[] = {name.data(), model.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawn(&child, program, nullptr, nullptr, arguments, environ) != 0) return -1;
  int state = 0;
  if (::waitpid(child, &state, 0) != child) return -1;
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

TEST(Programs, InC) {
  ScratchDirectory scratch;
  ASSERT_TRUE(TinyModel().write(scratch / "m").ok());
  EXPECT_EQ(run_program(C_PROGRAM, scratch / "m"), 0);
}

TEST(Programs, InCpp) {
  ScratchDirectory scratch;
  ASSERT_TRUE(TinyModel().write(scratch / "m").ok());
  EXPECT_EQ(run_program(CPP_PROGRAM, scratch / "m"), 0);
}

}  // namespace
}  // namespace tensorsmith::runtime::programs_test
