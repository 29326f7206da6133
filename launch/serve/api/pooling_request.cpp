#include "launch/serve/api/pooling_request.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <ctime>
#include <span>

#include "engine/base/text.h"
#include "launch/serve/api/chat_messages.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/prompt_fields.h"
#include "launch/serve/api/request_bounds.h"

namespace troupe::launch::api {

namespace {

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// RFC 4648, of the little-endian bytes.
std::string base64(std::span<const float> values) {
  std::string bytes;
  for (const float value : values)
    for (int shift = 0; shift < 32; shift += 8)
      bytes += static_cast<char>(std::bit_cast<std::uint32_t>(value) >> shift & 0xFFU);
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto byte = [&](std::size_t k) {
      return at + k < bytes.size() ? static_cast<unsigned char>(bytes[at + k]) : 0U;
    };
    const std::uint32_t word = byte(0) << 16U | byte(1) << 8U | byte(2);
    const std::size_t digits = std::min<std::size_t>(bytes.size() - at, 3) + 1;
    for (std::size_t k = 0; k < 4; ++k)
      out += k < digits ? base64_digits[word >> (18 - 6 * k) & 63U] : '=';
  }
  return out;
}

const char* id_prefix(Pooling endpoint) {
  constexpr const char* names[] = {"pool", "classify", "score", "embd"};
  return names[static_cast<int>(endpoint)];
}

void check_endpoint(Pooling endpoint, const ServedModel& model) {
  if (endpoint == Pooling::embeddings && model.labels() > 0)
    refuse_unsupported("", "/v1/embeddings: the model has a score head; use /pooling or /classify");
  if (endpoint != Pooling::embeddings && endpoint != Pooling::pooling && model.labels() == 0)
    refuse_unsupported("", "the model has no score head; use /v1/embeddings");
  if (endpoint == Pooling::score && model.labels() != 1)
    refuse_unsupported("", cat("/score: the score head has ", model.labels(),
                               " labels, and one is needed; use /classify"));
  if (model.classifies_tokens() && endpoint != Pooling::pooling)
    refuse_unsupported("", "the model classifies tokens; use /pooling");
}

void check_tokens(const char* field, std::int64_t tokens) {
  if (tokens > max_pooled_tokens)
    refuse(field, cat("the texts have ", tokens, " tokens, those of text_1 counted with each ",
                      "text_2; allowed: ", max_pooled_tokens, " per request"));
}

/// Pairs of text_1 and text_2, or one text_1 with each text_2: the texts one after the other.
void read_pairs(RequestFields& fields, const ServedModel& model, PoolingRequest& request) {
  const bool add_special = fields.flag("add_special_tokens", true);
  const Prompts first = read_prompts(fields, "text_1", add_special, model);
  const Prompts second = read_prompts(fields, "text_2", false, model);
  if (first.ids.size() != 1 && first.ids.size() != second.ids.size())
    refuse("text_2", cat("text_2 has ", second.ids.size(), " texts, and text_1 ", first.ids.size(),
                         "; expected as many, or one text_1"));
  std::int64_t tokens = 0;
  for (std::size_t n = 0; n < second.ids.size(); ++n)
    tokens += std::ssize(first.ids[first.ids.size() == 1 ? 0 : n]) + std::ssize(second.ids[n]);
  check_tokens("text_2", tokens);  // before text_1 is copied for each text_2
  for (std::size_t n = 0; n < second.ids.size(); ++n) {
    request.texts.push_back(first.ids[first.ids.size() == 1 ? 0 : n]);
    request.texts.back().insert(request.texts.back().end(), second.ids[n].begin(),
                                second.ids[n].end());
  }
}

void read_texts(RequestFields& fields, const ServedModel& model, PoolingRequest& request) {
  if (request.endpoint == Pooling::score) return read_pairs(fields, model, request);
  if (fields.find("messages") == nullptr) {
    const bool add_special = fields.flag("add_special_tokens", true);
    request.texts = read_prompts(fields, "input", add_special, model).ids;
    return;
  }
  const bool add_special = fields.flag("add_special_tokens", false);
  auto conversation = read_conversation(fields);
  conversation.add_generation_prompt = fields.flag("add_generation_prompt", false);
  const std::string text = value_or_refuse("messages", model.render(std::move(conversation)));
  request.texts.push_back(value_or_refuse("messages", model.encode(text, add_special)));
}

void check_lengths(const PoolingRequest& request, const ServedModel& model) {
  if (request.texts.size() > max_sequences)
    refuse("input", cat(request.texts.size(), " texts; allowed: ", max_sequences, " per request"));
  std::int64_t tokens = 0;
  for (const auto& text : request.texts) tokens += std::ssize(text);
  check_tokens("input", tokens);
  const bool by_token = model.classifies_tokens();
  const std::int64_t columns = model.labels() > 0 ? model.labels() : model.width();
  const std::int64_t values = (by_token ? tokens : std::ssize(request.texts)) * columns;
  if (values > max_pooled_values)
    refuse("input",
           cat("the answer would have ", values, " numbers (", by_token ? "tokens" : "texts", " x ",
               columns, "); allowed: ", max_pooled_values));
  for (const auto& text : request.texts) {
    if (text.empty()) refuse("input", "input: a text has no tokens");
    if (std::ssize(text) > model.context())
      throw ApiFailure(
          400, {cat("This model's maximum context length is ", model.context(),
                    " tokens. However, a text has ", text.size(), " tokens. Reduce its length."),
                "invalid_request_error", "input", "context_length_exceeded"});
  }
}

/// vLLM's older names of use_activation are accepted.
bool read_activation(RequestFields& fields, Pooling endpoint) {
  bool wanted = endpoint == Pooling::classify || endpoint == Pooling::score;
  for (const char* name : {"softmax", "activation", "use_activation"})
    wanted = fields.flag(name, wanted);
  return wanted;
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

Json row_json(const PoolingRequest& request, std::span<const float> row) {
  Json::Array out;
  if (request.activation)
    for (const double value : probabilities(row)) out.emplace_back(value);
  else
    for (const float value : row) out.emplace_back(static_cast<double>(value));
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

Json embedding_json(const PoolingRequest& request, std::span<const float> values) {
  const std::vector<float> unit = normalized(values);
  if (request.base64) return base64(unit);
  Json::Array out;
  for (const float value : unit) out.emplace_back(static_cast<double>(value));
  return out;
}

Json class_json(const PoolingRequest& request, const ServedModel& model,
                std::span<const float> values) {
  const auto best = static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
  return Json::Object{{"label", model.label(best)},
                      {"probs", row_json(request, values)},
                      {"num_classes", static_cast<std::int64_t>(values.size())}};
}

Json rows_json(const PoolingRequest& request, const ServedModel& model,
               std::span<const float> values) {
  if (!model.classifies_tokens()) return row_json(request, values);
  const auto columns = static_cast<std::size_t>(model.labels());
  Json::Array rows;
  for (std::size_t at = 0; at < values.size(); at += columns)
    rows.push_back(row_json(request, values.subspan(at, columns)));
  return rows;
}

Json entry_json(const PoolingRequest& request, const ServedModel& model,
                std::span<const float> values) {
  if (request.endpoint == Pooling::classify) return class_json(request, model, values);
  if (request.endpoint == Pooling::score)
    return Json::Object{{"object", "score"}, {"score", row_json(request, values).array()[0]}};
  if (request.endpoint == Pooling::embeddings)
    return Json::Object{{"object", "embedding"}, {"embedding", embedding_json(request, values)}};
  return Json::Object{{"object", "pooling"}, {"data", rows_json(request, model, values)}};
}

}  // namespace

PoolingRequest read_pooling_request(const Json& body, Pooling endpoint, const ServedModel& model,
                                    UnknownFields& unknown) {
  check_endpoint(endpoint, model);
  RequestFields fields(body);
  fields.ignore({"model", "user", "priority", "request_id"});
  PoolingRequest request{.endpoint = endpoint};
  request.activation = read_activation(fields, endpoint);
  if (request.activation && model.labels() == 0)
    refuse_unsupported("use_activation", "use_activation: the model has no score head");
  const auto format = fields.text("encoding_format").value_or("float");
  if (format != "float" && (format != "base64" || endpoint != Pooling::embeddings))
    refuse("encoding_format", "encoding_format: expected float, or base64 for embeddings");
  request.base64 = format == "base64";
  fields.unsupported("dimensions", "an embedding has all its dimensions");
  fields.unsupported("truncate_prompt_tokens", "shorten the text");
  read_texts(fields, model, request);
  check_lengths(request, model);
  unknown = fields.unknown();
  return request;
}

std::string pooling_answer(const PoolingRequest& request, const ServedModel& model,
                           const std::string& id, const std::vector<std::vector<float>>& values) {
  Json out = Json::Object{{"id", cat(id_prefix(request.endpoint), "-", id)},
                          {"object", "list"},
                          {"created", static_cast<std::int64_t>(std::time(nullptr))},
                          {"model", model.name()}};
  std::string text = out.dump();
  text.pop_back();
  text += ",\"data\":[";
  std::int64_t tokens = 0;
  for (std::size_t n = 0; n < values.size(); ++n) {
    Json entry = Json::Object{{"index", static_cast<std::int64_t>(n)}};
    const Json members = entry_json(request, model, values[n]);
    for (const auto& [name, value] : members.object()) entry.set(name, value);
    if (n > 0) text += ',';
    text += entry.dump();
    tokens += std::ssize(request.texts[n]);
  }
  const Json usage =
      Json::Object{{"prompt_tokens", tokens}, {"total_tokens", tokens}, {"completion_tokens", 0}};
  return text += "],\"usage\":" + usage.dump() + "}";
}

}  // namespace troupe::launch::api
