// Tables and numbers for display.
#pragma once

#include <string>
#include <vector>

namespace tensorsmith::tools {

// A table with aligned columns, numbers right-aligned; the first row is the header. Cells are made
// printable.
class Table {
 public:
  explicit Table(std::vector<std::string> header);
  void add(std::vector<std::string> row);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// "1.234 ms", "56.7 us", "2.10 s"; "-" if not finite.
std::string format_seconds(double seconds);
// "3.71 GFLOP".
std::string format_flops(double flops);
// "1:02:03", "2:05", "7 s".
std::string format_duration(double seconds);
// "12.3 MB".
std::string format_bytes(double bytes);

}  // namespace tensorsmith::tools
