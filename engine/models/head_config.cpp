#include "engine/models/head_config.h"

#include <algorithm>
#include <array>

#include "engine/base/text/text.h"
#include "engine/models/families.h"

namespace troupe::engine::models {
namespace {

constexpr std::string_view sequence_suffix = "ForSequenceClassification",
                           token_suffix = "ForTokenClassification";
constexpr std::int64_t max_labels = 1 << 16;

Result<> check_problem(const Json& config, const std::string& where) {
  constexpr std::array known = {"regression", "single_label_classification",
                                "multi_label_classification"};
  const Json* problem = config.find("problem_type");
  if (!problem || problem->is_null()) return {};
  if (std::any_of(known.begin(), known.end(),
                  [&](const char* name) { return *problem == Json(name); }))
    return {};
  return fail(Errc::bad_input,
              cat(where,
                  ": \"problem_type\" must be regression, single_label_classification or "
                  "multi_label_classification, found ",
                  quote(problem->dump(), 40)));
}

Result<std::int64_t> read_labels(const Json& config, const std::string& where) {
  const Json* names = config.find("id2label");
  const bool named = names && !names->is_null();
  if (named && !names->is_object())
    return fail(Errc::bad_input, cat(where, ": \"id2label\" must be an object of names, found ",
                                     names->type_name()));
  const auto count = named ? static_cast<std::int64_t>(names->object().size()) : 2;
  ConfigReader in(config, where);
  const std::int64_t labels = in.size({"num_labels"}, 1, max_labels, count);
  RETURN_IF_ERROR(in.result());
  if (named && count != labels)
    return fail(Errc::bad_input, cat(where, ": \"num_labels\" is ", labels,
                                     ", but \"id2label\" names ", count, "; remove one of them"));
  if (labels > max_labels)
    return fail(Errc::bad_input,
                cat(where, ": \"id2label\" may name ", max_labels, " labels, found ", labels));
  if (labels < 1) return fail(Errc::bad_input, cat(where, ": \"id2label\" names no label"));
  return labels;
}

}  // namespace

std::string architecture_of(const Json& config) {
  const Json* names = config.find("architectures");
  return names && names->is_array() && !names->array().empty() && names->array()[0].is_string()
             ? names->array()[0].string()
             : "";
}

bool is_score_head(std::string_view suffix) {
  return suffix == sequence_suffix || suffix == token_suffix;
}

Result<> read_head(const Json& config, const std::string& where, DecoderSpec& spec) {
  const std::string architecture = architecture_of(config);
  if (!architecture.ends_with(sequence_suffix) && !architecture.ends_with(token_suffix)) return {};
  RETURN_IF_ERROR(check_problem(config, where));
  const auto labels = read_labels(config, where);
  RETURN_IF_ERROR(labels);
  spec.labels = static_cast<int>(*labels);
  spec.score_bias = architecture.ends_with(token_suffix);
  spec.architecture = architecture;
  return {};
}

void write_head(Json& config, int labels, bool bias) {
  std::string name = architecture_of(config);
  if (name.empty())  // old files have only a model_type
    if (const auto spec = read_spec(config, "config.json")) name = spec->architecture;
  const Family* family = find_family(name);
  const std::string stem = family == nullptr    ? name
                           : family->score_stem ? family->score_stem
                                                : family->stem;
  config.set("architectures", Json::Array{cat(stem, bias ? token_suffix : sequence_suffix)});
  const auto has = [&](std::string_view key) {
    const Json* names = config.find(key);
    return names && names->is_object() &&
           names->object().size() == static_cast<std::size_t>(labels);
  };
  if (!has("id2label") || !has("label2id")) {
    Json::Object names, numbers;
    for (int i = 0; i < labels; ++i) {
      names.emplace_back(cat(i), cat("LABEL_", i));
      numbers.emplace_back(cat("LABEL_", i), i);
    }
    config.set("id2label", std::move(names));
    config.set("label2id", std::move(numbers));
  }
  config.set("num_labels", labels);
  // transformers rejects single_label_classification with one class.
  const Json* problem = config.find("problem_type");
  if (labels == 1 && problem && *problem == Json("single_label_classification"))
    config.set("problem_type", "regression");
}

}  // namespace troupe::engine::models
