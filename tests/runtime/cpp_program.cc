// A user's program in C++ that uses the wrapper; like c_program.c it returns 0 if everything is as
// documented.
#include <cstdio>
#include <cstring>

#include "tensorsmith.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    tensorsmith_runtime::Model("/nonexistent");
    return 3;
  } catch (const tensorsmith_runtime::Error& e) {
    if (e.status() != TS_NOT_FOUND || !std::strstr(e.what(), "/nonexistent")) return 4;
  }
  try {
    tensorsmith_runtime::Model::on(argv[1], "opencl:0");
    return 8;
  } catch (const tensorsmith_runtime::Error& e) {
    if (e.status() != TS_UNSUPPORTED || !std::strstr(e.what(), "opencl:0")) return 9;
  }
  try {
    tensorsmith_runtime::Model model(argv[1], 1);
    if (model.inputs().size() != 1 || model.input(0).shape != std::vector<int64_t>{4, 8}) return 5;
    std::vector<float> x(model.input(0).bytes / sizeof(float), 0.0F),
        y(model.output(0).bytes / sizeof(float));
    int32_t count = -1;
    model.run({x.data()}, {y.data(), &count});
    if (count < 0 || !model.output(1).shape.empty()) return 6;
    try {
      model.run({}, {});
      return 7;
    } catch (const std::invalid_argument&) {
    }
    tensorsmith_runtime::Model moved = std::move(model);
    moved.run({x.data()}, {y.data(), &count});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
