// The schemas as documented for users.
#include <gtest/gtest.h>

#include <set>

#include "learn/latency/device_columns.h"
#include "learn/schemas.h"
#include "support/golden.h"

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

// The page is what `tensorsmith dataset schema` prints.
TEST(Schemas, ThePageListsThem) {
  std::string page =
      "# Features\n\n"
      "This page lists the inputs of cost models that describe programs and devices, column by column and in "
      "their order. `tensorsmith dataset\n"
      "schema NAME` prints one of these tables. A column contains x or a logarithm of x; slog(x) = sign(x) "
      "log2(abs(x) + 1), so slog(0) = 0. The\n"
      "values in per-store rows are for all runs of the row's statement together, unless the "
      "description says otherwise; \"it\" is the statement.\n"
      "\n"
      "A test writes this page from the schemas in `src/feature` and `src/learn`: "
      "`TENSORSMITH_UPDATE_GOLDEN=1` rewrites it.\n"
      "\n"
      "Programs on CPUs are tiled in Ansor's order of loops, S0 S1 R0 S2 R1 S3 (S: spatial, R: reduce):\n"
      "\n"
      "- chunk: an iteration of the parallel loop; round: as many chunks as there are cores;\n"
      "- innermost tile: the loops R1 and S3, with accumulators in registers;\n"
      "- middle tile: S2 and the loops inside it; reduce step: an iteration of R0;\n"
      "- step's tile: the part of the operands that a middle tile reads in one reduce step;\n"
      "- outer tile: S1 and the loops inside it.\n";
  for (const feature::Schema& schema : feature_schemas()) page += "\n" + to_markdown(schema);
  test::expect_golden("../docs/features.md", page);
}

TEST(Schemas, DevicesAreLogarithms) {
  target::Device device;
  device.cores = 7;
  device.l3_bytes = 3072;
  device.kind = target::DeviceKind::kGpu;
  const auto row = device_columns(device);
  const feature::ColumnValues<kDeviceSchema> values(row);
  EXPECT_EQ(values["device.cores"], 3);
  EXPECT_EQ(values["device.l3_kib"], 2);
  EXPECT_EQ(values["device.gpu"], 1);
  EXPECT_EQ(values["device.warp_size"], 0);
}

}  // namespace
}  // namespace tensorsmith::learn::schema_test
