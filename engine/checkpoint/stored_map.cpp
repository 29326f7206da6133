#include "engine/checkpoint/stored_map.h"

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "engine/base/text/text.h"

namespace troupe::engine::checkpoint {
namespace {

bool holds(const nn::Parameter& parameter, const models::StoredTensor& tensor,
           const models::Rows& rows) {
  const Shape shape = parameter.logical_shape();
  const bool same =
      tensor.vector ? shape.rank() == 1 : shape.rank() == 2 && shape[1] == tensor.columns;
  const bool whole = tensor.rows.size() > 1 || rows.count == shape[0];
  return same && whole && rows.first + rows.count <= shape[0];
}

enum class Match { here, none, elsewhere };

// Whether the tensor consists of these parameters. A tensor that is one parameter under its own
// name may have another shape.
Match match_of(const models::StoredTensor& tensor, const nn::Parameters& parameters) {
  for (const auto& rows : tensor.rows) {
    const nn::Parameter* parameter = parameters.find(rows.parameter);
    if (parameter == nullptr) return Match::none;
    if (!holds(*parameter, tensor, rows))
      return tensor.plain() && tensor.name == rows.parameter ? Match::none : Match::elsewhere;
  }
  return Match::here;
}

bool names_a_family(const Json& config) {
  return config.find("architectures") != nullptr || config.find("model_type") != nullptr;
}

}  // namespace

models::StoredTensor unchanged(const nn::Parameter& parameter, std::string name) {
  const Shape shape = parameter.logical_shape();
  const bool vector = shape.rank() < 2;
  const std::int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  return {std::move(name),
          false,
          {{parameter.name, 0, rows, {}}},
          vector ? 1 : shape.count() / std::max<std::int64_t>(rows, 1),
          vector};
}

Result<std::vector<models::StoredTensor>> stored_map(const Json& config, const std::string& where,
                                                     const nn::Parameters& parameters) {
  std::vector<models::StoredTensor> out;
  std::unordered_set<std::string> placed;
  if (names_a_family(config)) {
    const auto spec = models::read_spec(config, where);
    RETURN_IF_ERROR(spec);
    for (auto& tensor : models::stored_tensors(*spec)) {
      const auto match = match_of(tensor, parameters);
      if (match == Match::elsewhere)
        return fail(Errc::bad_input, cat(where, ": describes another model: the shape of ",
                                         tensor.name, " differs"));
      if (match == Match::none) continue;
      for (const auto& rows : tensor.rows) placed.insert(rows.parameter);
      out.push_back(std::move(tensor));
    }
  }
  for (const auto& parameter : parameters.all())
    if (!parameter.adapter && !placed.contains(parameter.name))
      out.push_back(unchanged(parameter, parameter.name));
  return out;
}

Result<std::vector<models::StoredTensor>> stored_in(const std::string& folder,
                                                    const nn::Parameters& parameters, bool tied) {
  const std::string path = folder + "/config.json";
  if (!std::filesystem::exists(path)) return stored_map(Json(), path, parameters);
  auto config = read_json(path, {.bytes = 16u << 20});
  RETURN_IF_ERROR(config);
  if (config->is_object()) config->set("tie_word_embeddings", tied);
  return stored_map(*config, path, parameters);
}

}  // namespace troupe::engine::checkpoint
