// PoolingRequest: what /pooling, /classify, /score, /rerank and /v1/embeddings ask for. Names,
// defaults and answers are those of vLLM, and of the OpenAI API for embeddings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/json/json.h"
#include "launch/serve/api/generation_request.h"
#include "launch/serve/api/number_bytes.h"
#include "launch/serve/api/served_model.h"

namespace troupe::launch::serve::api {

enum class Pooling : std::uint8_t { pooling, classify, score, rerank, embeddings };

struct PoolingRequest {
  Pooling endpoint = Pooling::pooling;
  std::vector<std::vector<std::int32_t>> texts;
  /// Probabilities instead of the outputs of the score head: the sigmoid of one, the softmax of
  /// several. Of hidden states: their length is 1.
  bool activation = false;
  bool every_token = false;  ///< values of each token instead of the last one's
  NumberFormat numbers;
  // rerank:
  std::vector<std::string> documents;  ///< by text; empty: they are not returned
  bool scores_only = false;            ///< of /rerank: the answer is a list, without a frame
  std::size_t top = 0;                 ///< documents in the answer
};

/// Reads a body. Throws ApiFailure; also where the endpoint does not fit the model.
PoolingRequest read_pooling_request(const Json& body, Pooling endpoint, const ServedModel& model,
                                    UnknownFields& unknown);

}  // namespace troupe::launch::serve::api
