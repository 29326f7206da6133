#include "launch/serve/api/pooling_request.h"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <limits>
#include <span>
#include <utility>

#include "engine/base/text/text.h"
#include "launch/serve/api/chat_messages.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/number_bytes.h"
#include "launch/serve/api/prompt_fields.h"
#include "launch/serve/api/request_bounds.h"

namespace troupe::launch::serve::api {

namespace {

constexpr std::size_t max_described = 256;  // texts of an answer whose metadata is a header

void check_endpoint(Pooling endpoint, const ServedModel& model) {
  if (endpoint == Pooling::embeddings && model.labels() > 0)
    refuse_unsupported("", "/v1/embeddings: the model has a score head; use /pooling or /classify");
  if (endpoint != Pooling::embeddings && endpoint != Pooling::pooling && model.labels() == 0)
    refuse_unsupported("", "the model has no score head; use /v1/embeddings");
  if ((endpoint == Pooling::score || endpoint == Pooling::rerank) && model.labels() != 1)
    refuse_unsupported("", cat("scores of pairs: the score head has ", model.labels(),
                               " labels, and one is needed; use /classify"));
  if (model.classifies_tokens() && endpoint != Pooling::pooling)
    refuse_unsupported("", "the model classifies tokens; use /pooling");
}

void check_tokens(const char* field, std::int64_t tokens) {
  if (tokens > max_pooled_tokens)
    refuse(field,
           cat("the texts have ", tokens, " tokens, those of the first text counted with each ",
               "text_2; allowed: ", max_pooled_tokens, " per request"));
}

/// That of these fields which the request has, or the first one.
std::string field_among(RequestFields& fields, std::initializer_list<const char*> names) {
  const char* found = nullptr;
  for (const char* name : names) {
    if (fields.find(name) == nullptr) continue;
    if (found != nullptr) refuse(name, cat(name, " is not allowed with ", found));
    found = name;
  }
  return found != nullptr ? found : *names.begin();
}

/// Pairs of texts, or one first text with each second one: the texts one after the other.
void read_pairs(RequestFields& fields, const ServedModel& model, PoolingRequest& request) {
  const bool add_special = fields.flag("add_special_tokens", true);
  const bool ranks = request.endpoint == Pooling::rerank;
  const std::string one = ranks ? "query" : field_among(fields, {"text_1", "queries", "data_1"});
  const std::string two = ranks ? field_among(fields, {"documents", "texts"})
                                : field_among(fields, {"text_2", "documents", "items", "data_2"});
  const Prompts first = read_prompts(fields, one, add_special, model);
  Prompts second = read_prompts(fields, two, false, model);
  if (ranks && (first.texts.empty() || second.texts.empty()))  // the answer repeats documents
    refuse(second.texts.empty() ? two : one,
           cat(second.texts.empty() ? two : one, ": expected a text or texts, found token ids"));
  if (first.ids.size() != 1 && (ranks || first.ids.size() != second.ids.size()))
    refuse(ranks ? one : two,
           cat(two, " has ", second.ids.size(), " texts, and ", one, " ", first.ids.size(),
               "; expected ", ranks ? "" : "as many, or ", "one ", one));
  std::int64_t tokens = 0;
  for (std::size_t n = 0; n < second.ids.size(); ++n)
    tokens += std::ssize(first.ids[first.ids.size() == 1 ? 0 : n]) + std::ssize(second.ids[n]);
  check_tokens(two.c_str(), tokens);  // before the first text is copied for each other one
  for (std::size_t n = 0; n < second.ids.size(); ++n) {
    request.texts.push_back(first.ids[first.ids.size() == 1 ? 0 : n]);
    request.texts.back().insert(request.texts.back().end(), second.ids[n].begin(),
                                second.ids[n].end());
  }
  request.scores_only = two == "texts";
  if (ranks) request.documents = std::move(second.texts);
}

/// What the answer of /rerank has. Follows read_pairs().
void read_ranking(RequestFields& fields, PoolingRequest& request) {
  const std::size_t count = request.texts.size();
  const auto top = fields.integer("top_n", 0, std::numeric_limits<std::int32_t>::max());
  request.top = top.value_or(0) == 0 ? count : std::min(count, static_cast<std::size_t>(*top));
  const bool text = fields.flag("return_text", !request.scores_only);
  if (!fields.flag("return_documents", text)) request.documents.clear();
}

void read_texts(RequestFields& fields, const ServedModel& model, PoolingRequest& request) {
  if (request.endpoint == Pooling::score) return read_pairs(fields, model, request);
  if (request.endpoint == Pooling::rerank) {
    read_pairs(fields, model, request);
    return read_ranking(fields, request);
  }
  if (field_among(fields, {"input", "messages"}) == "input") {
    const bool add_special = fields.flag("add_special_tokens", true);
    request.texts = read_prompts(fields, "input", add_special, model).ids;
    return;
  }
  const bool add_special = fields.flag("add_special_tokens", false);
  Conversation conversation = read_conversation(fields);
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
  const bool by_token = request.every_token;
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

/// vLLM's older names of use_activation are accepted. Embeddings have length 1 by default.
bool read_activation(RequestFields& fields, bool otherwise) {
  bool wanted = otherwise;
  for (const char* name : {"softmax", "activation"})
    if (fields.has(name)) wanted = fields.flag(name, wanted);
  return fields.flag("use_activation", wanted);
}

/// The task of /pooling: what the model has a head for, at one token or at all. Whether it names
/// an embedding.
bool read_task(RequestFields& fields, const ServedModel& model, PoolingRequest& request) {
  request.every_token = model.classifies_tokens();
  if (!fields.has("task")) return false;
  const auto task = fields.text("task");
  if (!task) return false;
  std::vector<std::string> known = {"embed", "token_embed"};
  if (model.labels() > 0) known = {model.classifies_tokens() ? "token_classify" : "classify"};
  if (std::ranges::find(known, *task) == known.end())
    refuse("task", cat("task: this model has ", join(known, " and "), ", found ", quote(*task)));
  request.every_token = task->starts_with("token_");
  return model.labels() == 0;
}

/// The index of a name among `names`; the first one when absent.
std::size_t read_name(RequestFields& fields, const char* field,
                      std::span<const std::string_view> names) {
  const auto name = fields.text(field);
  if (!name) return 0;
  const auto found = std::ranges::find(names, *name);
  if (found == names.end())
    refuse(field, cat(field, ": expected ",
                      join(std::vector<std::string>(names.begin(), names.end()), ", "), ", found ",
                      quote(*name)));
  return static_cast<std::size_t>(found - names.begin());
}

NumberFormat read_numbers(RequestFields& fields) {
  NumberFormat out;
  if (!fields.has("encoding_format")) return out;
  out.encoding =
      static_cast<NumberEncoding>(read_name(fields, "encoding_format", number_encodings));
  out.type = static_cast<NumberType>(read_name(fields, "embed_dtype", number_types));
  const auto order = fields.text("endianness").value_or("native");
  if (order != "native" && order != "little" && order != "big")
    refuse("endianness", cat("endianness: expected native, little or big, found ", quote(order)));
  out.big_endian = order == "big" || (order == "native" && std::endian::native == std::endian::big);
  return out;
}

const char* path_of(Pooling endpoint) {
  constexpr const char* paths[] = {"/pooling", "/classify", "/score", "/rerank", "/v1/embeddings"};
  return paths[static_cast<int>(endpoint)];
}

void truncate(RequestFields& fields, std::int64_t context, PoolingRequest& request) {
  const Truncation truncation = read_truncation(fields, context);
  for (auto& text : request.texts) truncation.apply(text, context);
}

}  // namespace

PoolingRequest read_pooling_request(const Json& body, Pooling endpoint, const ServedModel& model,
                                    UnknownFields& unknown) {
  check_endpoint(endpoint, model);
  RequestFields fields(body, fields_of(path_of(endpoint)));
  PoolingRequest request{.endpoint = endpoint};
  const bool embeds = read_task(fields, model, request) || endpoint == Pooling::embeddings;
  request.activation = read_activation(fields, embeds || endpoint != Pooling::pooling);
  request.numbers = read_numbers(fields);
  read_texts(fields, model, request);
  truncate(fields, model.context(), request);
  check_lengths(request, model);
  if (request.numbers.encoding == NumberEncoding::bytes && request.texts.size() > max_described)
    refuse("encoding_format",
           cat("encoding_format: bytes describes each text in a header, which has room for ",
               max_described, ", and the request has ", request.texts.size(),
               "; use bytes_only, or fewer texts"));
  unknown = fields.unknown();
  return request;
}

}  // namespace troupe::launch::serve::api
