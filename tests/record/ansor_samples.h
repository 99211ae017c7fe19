// Records and workloads in Ansor's format, made for the tests.
#pragma once

#include <string>

namespace tensorsmith::record::testing {

// Maps workload keys to compute DAGs: a fully connected layer, a padded convolution, a reduction.
inline const std::string kWorkloads = R"JSON({
  "[\"dense\", 64, 32, 48]": {"flops": 200704.0, "compute_dag":
    "A = PLACEHOLDER [64, 32]\nB = PLACEHOLDER [32, 48]\nC(i, j) += (A[i, k]*B[k, j])\nR(i, j) = max(C[i, j], 0f)"},
  "[\"conv\", 2, 8, 14, 14, 16, 3]": {"compute_dag":
    "data = PLACEHOLDER [2, 8, 14, 14]\npad(i0, i1, i2, i3) = tir.if_then_else(((((i2 >= 1) && (i2 < 15)) && (i3 >= 1)) && (i3 < 15)), data[i0, i1, (i2 - 1), (i3 - 1)], 0f)\nweight = PLACEHOLDER [16, 8, 3, 3]\nconv(n, f, y, x) += (pad[n, rc, (y + ry), (x + rx)]*weight[f, rc, ry, rx])"},
  "[\"sum\", 256, 100]": {"compute_dag":
    "data = PLACEHOLDER [256, 100]\nred(i) += data[i, k]"}
})JSON";

inline std::string line(const std::string& key, const std::string& target, const std::string& steps,
                        const std::string& result) {
  std::string escaped;
  for (char c : key) escaped += c == '"' ? "\\\"" : std::string(1, c);
  return R"({"i":[[")" + escaped + R"(",")" + target + R"(",[16,64,64,0,0,0,0,0],"",2,[]],[[],)" + steps +
         R"(]],"r":)" + result + R"(,"v":"v0.6"})";
}

// Tiled, fused into the relu, parallel and vectorized.
inline std::string dense_line(int tile_j = 8,
                              const std::string& result = "[[0.001,0.002,0.003],0,1.5,1700000000]") {
  return line(
      R"(["dense", 64, 32, 48])", "llvm",
      R"([["SP",2,0,64,[4,8],1],["SP",2,3,48,[2,)" + std::to_string(tile_j) +
          R"(],1],["SP",2,6,32,[4],1],["RE",2,[0,3,1,4,6,2,7,5]],["FSP",3,0,0,1],["FSP",3,2,1,1],["RE",3,[0,2,1,3]],["CA",2,3,1],["FU",3,[0,1]],["AN",3,0,3],["PR",2,0,"auto_unroll_max_step$16"],["AN",2,7,2],["AN",3,2,2]])",
      result);
}

// A GPU kernel: thread tiles in registers, both inputs copied to shared memory by all threads.
inline std::string conv_line() {
  return line(
      R"(["conv", 2, 8, 14, 14, 16, 3])", "cuda",
      R"([["CHW",3,"local"],["SP",3,0,2,[1,1,1,1],1],["SP",3,5,16,[1,4,2,1],1],["SP",3,10,14,[1,7,1,2],1],["SP",3,15,14,[2,1,7,1],1],["SP",3,20,8,[2,2],1],["SP",3,23,3,[1,3],1],["SP",3,26,3,[1,1],1],["RE",3,[0,5,10,15,1,6,11,16,2,7,12,17,20,23,26,21,24,27,3,8,13,18,22,25,28,4,9,14,19]],["FSP",4,0,1,3],["FSP",4,4,2,3],["FSP",4,8,3,3],["FSP",4,12,4,3],["RE",4,[0,4,8,12,1,5,9,13,2,6,10,14,3,7,11,15]],["CA",3,4,11],["CHR",2,"shared",[3]],["CA",3,4,14],["CHR",1,"shared",[4]],["CA",2,5,14],["CI",1],["FU",6,[0,1,2,3]],["AN",6,0,5],["FU",6,[1,2,3,4]],["AN",6,1,4],["FU",6,[2,3,4,5]],["AN",6,2,6],["FU",4,[0,1,2,3]],["SP",4,0,72,[1],1],["AN",4,1,2],["FFSP",4,0,[4,3,2,1],1,1],["AN",4,1,6],["FU",2,[0,1,2,3]],["SP",2,0,36,[2],1],["AN",2,1,2],["FFSP",2,0,[4,3,2,1],1,1],["AN",2,1,6],["PR",5,0,"auto_unroll_max_step$64"]])",
      "[[0.0005],0,4.5,1700000001]");
}

// A reduction by all threads of a block.
inline std::string sum_line() {
  return line(R"(["sum", 256, 100])", "cuda",
              R"([["SP",1,1,100,[32],1],["AN",1,2,6],["AN",1,0,5],["PR",1,0,"auto_unroll_max_step$16"]])",
              "[[0.00001],0,4.5,1700000002]");
}

}  // namespace tensorsmith::record::testing
