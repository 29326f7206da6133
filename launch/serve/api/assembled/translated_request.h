// TranslatedRequest: a request of another format as one of /v1/chat/completions, whose reader
// checks and computes it.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "engine/base/json.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/generation_request.h"
#include "launch/serve/api/request_fields.h"

namespace troupe::launch::api {

struct TranslatedRequest {
  Json chat = Json::Object{};  ///< the body
  Json repeated;               ///< members that the answer repeats
  UnknownFields unknown;
};

/// A field of the chat request and the one of the other format that it comes from.
struct FieldName {
  std::string_view chat, own;
};

/// Copies the fields that mean the same in both formats: `names`, and vLLM's additions for
/// sampling and constraints (`seed`, `top_k`, `structured_outputs` ...).
void pass_fields(RequestFields& fields, std::initializer_list<std::string_view> names, Json& chat);

/// Refuses fields of /v1/chat/completions that the answer could not show or that have another name
/// here; null and false are accepted.
void refuse_chat_fields(RequestFields& fields, std::initializer_list<std::string_view> names);

/// Reads the chat request. Throws ApiFailure, which names the fields of the other format.
GenerationRequest read_translated(const TranslatedRequest& request,
                                  std::span<const FieldName> names, const ServedModel& model);

/// The failure with the names of the other format.
ApiFailure renamed(const ApiFailure& failure, std::span<const FieldName> names);

/// Runs `read`; an ApiFailure that names chat fields gets the names of the other format.
template <class F>
auto with_own_names(std::span<const FieldName> names, F&& read) {
  try {
    return read();
  } catch (const ApiFailure& failure) {
    throw renamed(failure, names);
  }
}

/// A text, or a list of parts whose types are among `types`, as content of a chat message. Throws
/// ApiFailure for other parts, by their type.
Json text_content(const Json& content, const std::string& where,
                  std::initializer_list<std::string_view> types);
/// The same as one text, with `between` between the parts.
std::string joined_text(const Json& content, std::string_view between);

}  // namespace troupe::launch::api
