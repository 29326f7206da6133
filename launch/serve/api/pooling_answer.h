// The answers of /pooling, /classify, /score, /rerank and /v1/embeddings.
#pragma once

#include <string>
#include <vector>

#include "launch/serve/api/pooling_request.h"
#include "launch/serve/http/response.h"

namespace troupe::launch::serve::api {

/// `values` [columns], or [tokens, columns] of every token, by text. `id`: of the HTTP request.
http::Response pooling_answer(const PoolingRequest& request, const ServedModel& model,
                              const std::string& id, const std::vector<std::vector<float>>& values);

}  // namespace troupe::launch::serve::api
