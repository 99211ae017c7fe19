#include <array>
#include <string>
#include <vector>

#include "feature/per_store.h"

namespace tensorsmith::feature {

namespace {

std::vector<std::string> make_names() {
  std::vector<std::string> names;
  for (const char* type : {"float_", "int_"}) {
    for (const char* op : {"mad", "addsub", "mul", "divmod", "cmp", "mathfunc", "otherfunc"})
      names.push_back(std::string(type) + op);
  }
  names.insert(names.end(), {"bool_op", "select_op"});
  for (const char* kind : {"vec_", "unroll_", "parallel_"}) {
    for (const char* what : {"num", "prod", "len"}) names.push_back(std::string(kind) + what);
    for (const char* position : {"None", "InnerSpatial", "MiddleSpatial", "OuterSpatial", "InnerReduce",
                                 "MiddleReduce", "OuterReduce", "Mixed"})
      names.push_back(std::string(kind) + "type." + position);
  }
  names.insert(names.end(), {"is_gpu", "blockIdx_x_len", "blockIdx_y_len", "blockIdx_z_len",
                             "threadIdx_x_len", "threadIdx_y_len", "threadIdx_z_len", "vthread_len"});
  for (int buffer = 0; buffer < 5; ++buffer) {
    for (const char* what :
         {"acc_type.Read", "acc_type.Write", "acc_type.ReadWrite", "bytes", "unique_bytes", "lines",
          "unique_lines", "reuse_type.LoopMultipleRead", "reuse_type.SerialMultipleReadWrite",
          "reuse_type.None", "reuse_dis_iter", "reuse_dis_bytes", "reuse_ct", "bytes_d_reuse_ct",
          "unique_bytes_d_reuse_ct", "lines_d_reuse_ct", "unique_lines_d_reuse_ct", "stride"})
      names.push_back("B" + std::to_string(buffer) + "." + what);
  }
  for (int i = 0; i < 10; ++i) names.push_back("arith_intensity_curve_" + std::to_string(i));
  names.insert(names.end(), {"alloc_size", "alloc_prod", "alloc_outer_prod", "alloc_inner_prod", "outer_prod",
                             "num_loops", "auto_unroll_max_step"});
  return names;
}

}  // namespace

const char* per_store_column_name(int column) {
  static const std::vector<std::string> kNames = make_names();
  TS_CHECK(static_cast<int>(kNames.size()) == kPerStoreWidth,
           "per-store schema with a wrong number of names");
  TS_CHECK(column >= 0 && column < kPerStoreWidth, "per_store_column_name: no such column");
  return kNames[static_cast<size_t>(column)].c_str();
}

}  // namespace tensorsmith::feature
