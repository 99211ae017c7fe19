#include "learn/latency/tensorsmith_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "learn/latency/held_out.h"
#include "learn/latency/queries.h"
#include "learn/latency/tensorsmith_file.h"

namespace tensorsmith::learn {

namespace {

using feature::ProgramKind;
using Json = nlohmann::json;

constexpr const char* kDescription = "physics.json";  // tensor with the JSON text

// Throws JSON exceptions.
Status read_parts(const ModelFile& file, const Json& item, ProgramKind kind, TensorsmithParts& out) {
  const feature::SummarySchema& schema = feature::summary_schema(kind);
  // A kind without training programs contains nothing that a change of the columns could
  // invalidate.
  if (item.at("factors").empty() && item.at("members") == 0 && item.at("rank_members") == 0) return {};
  if (item.at("resources") != schema.resources.names() || item.at("columns") != schema.columns.names())
    return Error{ErrorCode::kMismatch, "",
                 "was trained on program summaries with other columns; train the model again"};
  TS_RETURN_IF_ERROR(out.base.read(item.at("factors"), schema.resources.columns.size()));
  TS_RETURN_IF_ERROR(out.correction.read(file, kind, item));
  return out.adaptation.read(file, kind, item);
}

// Throws JSON exceptions.
Status read_physics(const ModelFile& file, const Json& physics, TensorsmithModel& out) {
  if (physics.at("summary_version") != feature::kSummaryVersion)
    return Error{ErrorCode::kMismatch, "",
                 "was trained on another version of the program summaries; train the model again"};
  const int base = physics.at("base");
  const Json& kinds = physics.at("kinds");
  if (base < 0 || base > static_cast<int>(BaseFormula::kNone) || kinds.size() != feature::kProgramKinds)
    return corrupt_physics("physics is out of range");
  const TensorsmithRecipe recipe{static_cast<BaseFormula>(base), physics.at("device_columns"),
                                 physics.at("rank_weight")};
  if (!(recipe.rank_weight >= 0 && recipe.rank_weight <= 1))
    return corrupt_physics("weight of the rank members is out of range");
  out.set_recipe(recipe);
  size_t place = 0;
  for (const ProgramKind kind : kAllProgramKinds)
    TS_RETURN_IF_ERROR(read_parts(file, kinds[place++], kind, out.kinds[kind]));
  const auto calibration_of = [&](const Json& item) -> Result<TensorsmithCalibration*> {
    const int kind = item.at("kind");
    if (kind < 0 || kind >= feature::kProgramKinds)
      return corrupt_physics("calibration is for a kind that does not exist");
    return &out.kinds[static_cast<ProgramKind>(kind)].calibration;
  };
  for (const Json& item : physics.at("calibration")) {
    TS_ASSIGN_OR_RETURN(TensorsmithCalibration * calibration, calibration_of(item));
    TS_RETURN_IF_ERROR(calibration->read_scale(item));
  }
  for (const Json& item : physics.value("sizes", Json::array())) {  // older files have none
    TS_ASSIGN_OR_RETURN(TensorsmithCalibration * calibration, calibration_of(item));
    TS_RETURN_IF_ERROR(calibration->read_size(item));
  }
  return {};
}

// The programs of one kind on one device among the queries.
struct QueryPart {
  std::vector<feature::ProgramSummary> programs;
  std::vector<size_t> places;
};

void predict_part(const TensorsmithParts& model, const target::Device& device, const QueryPart& part,
                  std::span<Prediction> out) {
  std::vector<double> logs(part.places.size(), 0), disagreement(logs), ranks(logs);
  model.log_seconds(device, part.programs, logs, disagreement, ranks);
  for (size_t j = 0; j < logs.size(); ++j) {
    Prediction& predicted = out[part.places[j]];
    const ErrorScale scale = model.calibration.scale(part.programs[j].structure, device.name);
    predicted.seconds = std::exp(logs[j] - scale.shift);
    predicted.mean_seconds = std::exp(logs[j] - scale.mean_shift);
    predicted.ranking_seconds = std::exp(ranks[j] - scale.shift);
    predicted.log_sigma = scale.log_sigma;
    predicted.log_90 = scale.log_90;
    predicted.log_95 = scale.log_95;
    predicted.disagreement = disagreement[j];
  }
}

}  // namespace

bool TensorsmithParts::knows(feature::WorkloadStructure structure) const {
  // Without fitted factors, the base does not depend on the structure.
  return base.formula == BaseFormula::kResources ? base.knows_structure(structure) : !correction.empty();
}

void TensorsmithParts::log_seconds(const target::Device& device,
                                   std::span<const feature::ProgramSummary> programs, std::span<double> out,
                                   std::span<double> disagreement, std::span<double> ranks) const {
  if (adaptation.covers(base, device.name)) {
    adaptation.log_seconds(base, device, programs, out, disagreement);
    if (!ranks.empty()) std::ranges::copy(out, ranks.begin());
    return;
  }
  std::vector<float> rows;
  rows.reserve(programs.size() * (programs.empty() ? 0 : tree_row_width(programs[0].kind)));
  for (size_t i = 0; i < programs.size(); ++i) {
    const double seconds = base.seconds(programs[i], device.name);
    correction.columns.append_row(programs[i], seconds, rows);
    out[i] = std::log(seconds);
    if (!ranks.empty()) ranks[i] = out[i];
  }
  correction.add(rows, out, disagreement, ranks);
  adaptation.mix(base, device, programs, out, ranks);
}

void TensorsmithModel::set_recipe(const TensorsmithRecipe& recipe) {
  recipe_ = recipe;
  for (TensorsmithParts& kind : kinds) {
    kind.base.formula = recipe.base;
    kind.correction.columns.of_device = recipe.device_columns;
    kind.correction.columns.of_size = recipe.base == BaseFormula::kNone;
    kind.correction.rank_weight = recipe.rank_weight;
  }
}

Result<std::vector<Prediction>> TensorsmithModel::predict(std::span<const ProgramQuery> queries) const {
  QuerySummarizer summarizer;
  std::map<std::pair<ProgramKind, const target::Device*>, QueryPart> parts;
  std::vector<Prediction> out(queries.size());
  for (size_t i = 0; i < queries.size(); ++i) {
    const ProgramQuery& query = queries[i];
    if (query.summary == nullptr && query.trace == nullptr)
      return Error{ErrorCode::kInvalidArgument, "query " + std::to_string(i),
                   "has neither a summary nor a schedule trace, one of which this model needs"};
    feature::ProgramSummary program = query.summary != nullptr ? *query.summary : summarizer.summarize(query);
    const TensorsmithParts& kind = kinds[program.kind];
    if (!kind.knows(program.structure) && recipe_.base != BaseFormula::kNone) {
      out[i].seconds = program.roofline_seconds;
      out[i].unseen.kind = true;
      continue;
    }
    out[i].unseen.size = !kind.calibration.covers_size(program.structure, query.workload->flops);
    QueryPart& part = parts[{program.kind, query.device}];
    if (part.programs.empty()) part.programs.reserve(queries.size() - i);
    part.programs.push_back(std::move(program));
    part.places.push_back(i);
  }
  for (const auto& [key, part] : parts) predict_part(kinds[key.first], *key.second, part, out);
  UnseenEffects unseen(model_card);
  for (size_t i = 0; i < queries.size(); ++i) unseen.apply(*queries[i].device, out[i]);
  return out;
}

Status TensorsmithModel::save(const std::string& path) const {
  ModelFile file;
  file.card = model_card;
  Json physics = {{"summary_version", feature::kSummaryVersion},
                  {"base", recipe_.base},
                  {"device_columns", recipe_.device_columns},
                  {"rank_weight", recipe_.rank_weight},
                  {"kinds", Json::array()},
                  {"sizes", Json::array()},
                  {"calibration", Json::array()}};
  for (const ProgramKind kind : kAllProgramKinds) {
    const TensorsmithParts& parts = kinds[kind];
    const feature::SummarySchema& schema = feature::summary_schema(kind);
    Json item = {{"name", to_string(kind)},
                 {"resources", schema.resources.names()},
                 {"columns", schema.columns.names()},
                 {"factors", parts.base.to_json()}};
    parts.adaptation.write(file, kind, item);
    parts.correction.write(file, kind, item);
    parts.calibration.write(kind, physics["calibration"], physics["sizes"]);
    physics["kinds"].push_back(std::move(item));
  }
  const std::string text = physics.dump();
  const std::vector<uint8_t> bytes(text.begin(), text.end());
  file.add<uint8_t>(kDescription, {std::ssize(bytes)}, bytes);
  return write_model_file(file, path);
}

Result<std::unique_ptr<CostModel>> TensorsmithModel::from_file(ModelFile file) {
  auto model = std::make_unique<TensorsmithModel>(TensorsmithRecipe());
  TS_ASSIGN_OR_RETURN(const auto text, file.values<uint8_t>(kDescription, {-1}));
  const Json physics = parse_json<Json>({reinterpret_cast<const char*>(text.data()), text.size()});
  if (physics.is_discarded()) return corrupt_physics("physics is not JSON");
  try {
    TS_RETURN_IF_ERROR(read_physics(file, physics, *model));
  } catch (const nlohmann::json::exception&) {
    return corrupt_physics("physics lacks an entry or has one of the wrong type");
  }
  model->model_card = std::move(file.card);
  return std::unique_ptr<CostModel>(std::move(model));
}

}  // namespace tensorsmith::learn
