#include "launch/serve/api/pooling_answer.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <span>
#include <utility>

#include "engine/base/text/base64.h"
#include "engine/base/text/text.h"
#include "launch/serve/api/number_bytes.h"

namespace troupe::launch::serve::api {

namespace {

const char* id_prefix(Pooling endpoint) {
  constexpr const char* names[] = {"pool", "classify", "score", "rerank", "embd"};
  return names[static_cast<int>(endpoint)];
}

std::vector<double> probabilities(std::span<const float> row) {
  if (row.size() == 1) return {1 / (1 + std::exp(-static_cast<double>(row[0])))};
  const auto largest = static_cast<double>(*std::ranges::max_element(row));
  std::vector<double> out;
  double sum = 0;
  for (const float value : row) {
    out.push_back(std::exp(static_cast<double>(value) - largest));
    sum += out.back();
  }
  for (double& value : out) value /= sum;
  return out;
}

/// The embedding with length 1.
std::vector<float> normalized(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
  std::vector<float> out;
  for (const float value : values) out.push_back(static_cast<float>(value * scale));
  return out;
}

/// The numbers of a row as they are reported.
std::vector<float> reported_row(const PoolingRequest& request, const ServedModel& model,
                                std::span<const float> row) {
  if (!request.activation) return {row.begin(), row.end()};
  if (model.labels() == 0) return normalized(row);
  const std::vector<double> values = probabilities(row);
  return {values.begin(), values.end()};
}

Json row_json(const PoolingRequest& request, const ServedModel& model, std::span<const float> row) {
  Json::Array out;
  if (request.activation && model.labels() > 0)
    for (const double value : probabilities(row)) out.emplace_back(value);
  else
    for (const float value : reported_row(request, model, row))
      out.emplace_back(static_cast<double>(value));
  return out;
}

Json class_json(const PoolingRequest& request, const ServedModel& model,
                std::span<const float> values) {
  const auto best = static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
  return Json::Object{{"label", model.label(best)},
                      {"probs", row_json(request, model, values)},
                      {"num_classes", static_cast<std::int64_t>(values.size())}};
}

/// Of a row of the answer.
std::size_t columns_of(const PoolingRequest& request, const ServedModel& model,
                       std::span<const float> values) {
  if (!request.every_token) return values.size();
  return static_cast<std::size_t>(model.labels() > 0 ? model.labels() : model.width());
}

Json rows_json(const PoolingRequest& request, const ServedModel& model,
               std::span<const float> values) {
  const std::size_t columns = columns_of(request, model, values);
  std::vector<float> numbers;
  Json::Array rows;
  for (std::size_t at = 0; at < values.size(); at += columns) {
    const auto row = values.subspan(at, columns);
    if (request.numbers.encoding == NumberEncoding::json) {
      rows.push_back(row_json(request, model, row));
      continue;
    }
    for (const float value : reported_row(request, model, row)) numbers.push_back(value);
  }
  if (request.numbers.encoding == NumberEncoding::base64)
    return encode_base64(bytes_of(numbers, request.numbers));
  return request.every_token ? Json(std::move(rows)) : std::move(rows.front());
}

double score_of(const PoolingRequest& request, const ServedModel& model,
                std::span<const float> values) {
  return row_json(request, model, values).array()[0].number();
}

Json entry_json(const PoolingRequest& request, const ServedModel& model,
                std::span<const float> values) {
  if (request.endpoint == Pooling::classify) return class_json(request, model, values);
  if (request.endpoint == Pooling::score)
    return Json::Object{{"object", "score"}, {"score", score_of(request, model, values)}};
  if (request.endpoint == Pooling::embeddings)
    return Json::Object{{"object", "embedding"}, {"embedding", rows_json(request, model, values)}};
  return Json::Object{{"object", "pooling"}, {"data", rows_json(request, model, values)}};
}

std::int64_t tokens_of(const PoolingRequest& request) {
  std::int64_t tokens = 0;
  for (const auto& text : request.texts) tokens += std::ssize(text);
  return tokens;
}

/// The best documents first.
std::string ranking_answer(const PoolingRequest& request, const ServedModel& model,
                           const std::string& id, const std::vector<std::vector<float>>& values) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t n = 0; n < values.size(); ++n)
    order.emplace_back(-score_of(request, model, values[n]), n);
  std::ranges::sort(order);
  Json::Array results;
  for (const auto& [negative, n] : std::span(order).first(request.top)) {
    Json entry = Json::Object{{"index", static_cast<std::int64_t>(n)}};
    if (!request.documents.empty() && request.scores_only)
      entry.set("text", request.documents[n]);
    else if (!request.documents.empty())
      entry.set("document", Json::Object{{"text", request.documents[n]}});
    results.push_back(entry.set(request.scores_only ? "score" : "relevance_score", -negative));
  }
  if (request.scores_only) return Json(std::move(results)).dump();
  const std::int64_t tokens = tokens_of(request);
  const Json out =
      Json::Object{{"id", cat(id_prefix(request.endpoint), "-", id)},
                   {"model", model.name()},
                   {"usage", Json::Object{{"prompt_tokens", tokens}, {"total_tokens", tokens}}},
                   {"results", std::move(results)}};
  return out.dump();
}

/// The bytes of all texts one after the other. `bytes` describes them in the header "metadata".
http::Response bytes_answer(const PoolingRequest& request, const ServedModel& model,
                            const std::string& id, const std::vector<std::vector<float>>& values) {
  http::Response response{.content_type = "application/octet-stream"};
  Json::Array items;
  for (const std::vector<float>& each : values) {
    const std::size_t columns = columns_of(request, model, each), begin = response.body.size();
    for (std::size_t at = 0; at < each.size(); at += columns)
      response.body += bytes_of(reported_row(request, model, std::span(each).subspan(at, columns)),
                                request.numbers);
    Json::Array shape;
    if (request.every_token) shape.emplace_back(static_cast<std::int64_t>(each.size() / columns));
    shape.emplace_back(static_cast<std::int64_t>(columns));
    items.push_back(Json::Object{{"index", std::ssize(items)},
                                 {"embed_dtype", std::string(name_of(request.numbers.type))},
                                 {"endianness", request.numbers.big_endian ? "big" : "little"},
                                 {"start", static_cast<std::int64_t>(begin)},
                                 {"end", std::ssize(response.body)},
                                 {"shape", std::move(shape)}});
  }
  if (request.numbers.encoding == NumberEncoding::bytes_only) return response;
  const std::int64_t tokens = tokens_of(request);
  const Json described =
      Json::Object{{"id", cat(id_prefix(request.endpoint), "-", id)},
                   {"created", static_cast<std::int64_t>(std::time(nullptr))},
                   {"model", model.name()},
                   {"data", std::move(items)},
                   {"usage", Json::Object{{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
  response.headers.push_back({"metadata", described.dump()});
  return response;
}

}  // namespace

http::Response pooling_answer(const PoolingRequest& request, const ServedModel& model,
                              const std::string& id,
                              const std::vector<std::vector<float>>& values) {
  if (request.endpoint == Pooling::rerank)
    return {.body = ranking_answer(request, model, id, values)};
  if (request.numbers.encoding >= NumberEncoding::bytes)
    return bytes_answer(request, model, id, values);
  Json out = Json::Object{{"id", cat(id_prefix(request.endpoint), "-", id)},
                          {"object", "list"},
                          {"created", static_cast<std::int64_t>(std::time(nullptr))},
                          {"model", model.name()}};
  std::string text = out.dump();
  text.pop_back();
  text += ",\"data\":[";
  for (std::size_t n = 0; n < values.size(); ++n) {
    Json entry = Json::Object{{"index", static_cast<std::int64_t>(n)}};
    const Json members = entry_json(request, model, values[n]);
    for (const auto& [name, value] : members.object()) entry.set(name, value);
    if (n > 0) text += ',';
    text += entry.dump();
  }
  const std::int64_t tokens = tokens_of(request);
  const Json usage =
      Json::Object{{"prompt_tokens", tokens}, {"total_tokens", tokens}, {"completion_tokens", 0}};
  return {.body = text += "],\"usage\":" + usage.dump() + "}"};
}

}  // namespace troupe::launch::serve::api
