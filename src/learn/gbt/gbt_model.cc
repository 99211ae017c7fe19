#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/input_file.h"
#include "base/json_text.h"
#include "learn/cost_model.h"
#include "learn/gbt/forest.h"
#include "learn/gbt/gbt_fit.h"
#include "record/jsonl.h"

namespace tensorsmith::learn {

namespace {

constexpr const char* kFormat = "tensorsmith gbt model";
constexpr int kFormatVersion = 1;
constexpr const char* kSchema = "per-store";
constexpr int64_t kMaxFileBytes = int64_t{1} << 30;

class GbtModel final : public CostModel {
 public:
  explicit GbtModel(Forest forest) : forest_(std::move(forest)) {}

  std::vector<float> predict(std::span<const Sample> programs) const override {
    // Rows of several programs are evaluated together: single programs would leave the pipeline empty.
    constexpr size_t kRows = 1024;
    constexpr auto kWidth = static_cast<size_t>(feature::kPerStoreWidth);
    std::vector<float> scores(programs.size(), 0.0F);
    std::vector<float> rows, predicted;
    size_t begin = 0;
    while (begin < programs.size()) {
      rows.clear();
      size_t end = begin;
      for (; end < programs.size() && rows.size() < kRows * kWidth; ++end) {
        const auto& values = programs[end].features->values;
        rows.insert(rows.end(), values.begin(), values.end());
      }
      predicted.resize(rows.size() / kWidth);
      forest_.predict(rows, predicted);
      size_t row = 0;
      for (size_t p = begin; p < end; ++p) {
        for (int r = 0; r < programs[p].features->rows; ++r) scores[p] += predicted[row++];
      }
      begin = end;
    }
    return scores;
  }
  std::string name() const override { return "gbt"; }
  const Forest& forest() const { return forest_; }

 private:
  Forest forest_;
};

class GbtTrainer final : public Trainer {
 public:
  explicit GbtTrainer(const GbtOptions& options) : options_(options) {}
  Result<std::unique_ptr<CostModel>> train(std::span<const TrainingProgram> programs) override {
    TS_ASSIGN_OR_RETURN(PackSumFit fit, fit_gbt(programs, options_));
    return std::unique_ptr<CostModel>(std::make_unique<GbtModel>(std::move(fit.forest)));
  }

 private:
  GbtOptions options_;
};

}  // namespace

std::unique_ptr<Trainer> make_gbt_trainer(const GbtOptions& options) {
  return std::make_unique<GbtTrainer>(options);
}

Status save_gbt_model(const CostModel& model, const std::string& path) {
  const auto* gbt = dynamic_cast<const GbtModel*>(&model);
  if (gbt == nullptr)
    return Error{ErrorCode::kInvalidArgument, path, "the model '" + model.name() + "' cannot be saved"};
  const std::string header = nlohmann::json{{"format", kFormat},
                                            {"version", kFormatVersion},
                                            {"schema", kSchema},
                                            {"schema_version", feature::kPerStoreVersion}}
                                 .dump();
  TS_ASSIGN_OR_RETURN(auto writer, record::AtomicFileWriter::open(path));
  TS_RETURN_IF_ERROR(writer->write_line(header));
  TS_RETURN_IF_ERROR(writer->write_line(gbt->forest().to_json()));
  return writer->commit();
}

Result<std::unique_ptr<CostModel>> load_gbt_model(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const std::string text, read_input(path, kMaxFileBytes));
  const size_t line = std::min(text.find('\n'), text.size());
  const auto header = parse_json<nlohmann::json>(std::string_view(text).substr(0, line));
  if (header.is_discarded() || !header.is_object() || header.value("format", nlohmann::json()) != kFormat)
    return Error{ErrorCode::kCorrupt, path, "is no gbt cost model"};
  if (header.value("version", nlohmann::json()) != kFormatVersion ||
      header.value("schema", nlohmann::json()) != kSchema ||
      header.value("schema_version", nlohmann::json()) != feature::kPerStoreVersion)
    return Error{ErrorCode::kMismatch, path,
                 "was made for another version of the features or of this program; train it again"};
  auto forest = Forest::from_json(std::string_view(text).substr(std::min(line + 1, text.size())));
  if (!forest.ok()) return Error{ErrorCode::kCorrupt, path, forest.error().reason};
  if (forest->width() != feature::kPerStoreWidth)
    return Error{ErrorCode::kMismatch, path, "has " + std::to_string(forest->width()) + " features a row"};
  return std::unique_ptr<CostModel>(std::make_unique<GbtModel>(std::move(forest).value()));
}

}  // namespace tensorsmith::learn
