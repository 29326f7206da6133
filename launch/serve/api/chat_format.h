// ChatFormat: an endpoint whose requests and answers are translated to and from those of
// /v1/chat/completions, which checks and computes them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/json/json.h"
#include "launch/serve/api/assembled_answer.h"
#include "launch/serve/api/failure.h"
#include "launch/serve/api/generation_request.h"
#include "launch/serve/api/served_model.h"
#include "launch/serve/http/router.h"

namespace troupe::launch::serve::api {

/// A request of the other format as a chat request.
struct TranslatedRequest {
  Json chat = Json::Object{};  ///< the body
  Json repeated;               ///< members that the answer repeats
  UnknownFields unknown;
};

/// A field of the chat request and the one of the other format that it comes from.
struct FieldName {
  std::string_view chat, own;
};

struct ChatFormat {
  using Read = std::function<TranslatedRequest(const Json& body, const ServedModel& model)>;
  /// `model`: its served name. `id`: of the HTTP request.
  using Answer = std::function<std::unique_ptr<AssembledAnswer>(
      Json repeated, const GenerationRequest& request, const std::string& model,
      const std::string& id)>;

  std::string path;
  std::shared_ptr<const http::ClientForm> form;  ///< of the route
  Read read;                                     ///< throws ApiFailure
  std::span<const FieldName> names;
  Answer answer;  ///< nullptr: the answer is {"input_tokens": N} of the prompt
};

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

}  // namespace troupe::launch::serve::api
