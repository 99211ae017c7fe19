// The schemas as documented for users.
#include <gtest/gtest.h>

#include <set>

#include "learn/latency/device_columns.h"
#include "learn/schemas.h"

namespace tensorsmith::learn::schema_test {
namespace {

TEST(Schemas, EveryColumnHasANameAUnitAndASentence) {
  std::set<std::string> schemas;
  for (const feature::Schema& schema : feature_schemas()) {
    EXPECT_TRUE(schemas.insert(schema.name).second) << schema.name;
    std::set<std::string> names;
    for (size_t c = 0; c < schema.columns.size(); ++c) {
      const feature::Column& column = schema.columns[c];
      EXPECT_TRUE(names.insert(column.name()).second) << schema.name << " " << column.name();
      EXPECT_EQ(schema.find(column.name()), c);
      EXPECT_FALSE(column.unit.empty()) << column.name();
      const std::string sentence = column.description();
      EXPECT_TRUE(sentence.ends_with('.') && sentence.find('%') == std::string::npos &&
                  (std::isupper(sentence[0]) != 0 || std::isdigit(sentence[0]) != 0))
          << schema.name << " " << column.name() << ": " << sentence;
      EXPECT_EQ(column.sentence.find('%') != std::string_view::npos, !column.subject.empty())
          << column.name() << ": a subject that the sentence has no place for";
    }
    EXPECT_FALSE(schema.find("no such column"));
  }
  EXPECT_EQ(schemas.count("per-store"), 1U);
  EXPECT_EQ(schemas.count("cpu-nests.resources"), 1U);
}

TEST(Schemas, DevicesAreLogarithms) {
  target::Device device;
  device.l3_bytes = 3072;
  device.figures = target::GpuFigures{.multiprocessors = 7};
  const auto row = device_columns(device);
  const feature::ColumnValues<kDeviceSchema> values(row);
  EXPECT_EQ(values["device.cores"], 3);
  EXPECT_EQ(values["device.l3_kib"], 2);
  EXPECT_EQ(values["device.gpu"], 1);
  EXPECT_EQ(values["device.warp_size"], 0);
}

}  // namespace
}  // namespace tensorsmith::learn::schema_test
