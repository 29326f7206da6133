// AssembledAnswer: an answer that is put together from the pieces of one output, in a format with
// blocks: /v1/responses and /v1/messages. The whole answer and the stream have the same blocks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "launch/serve/api/answer_json.h"
#include "launch/serve/http/response.h"

namespace troupe::launch::serve::api {

class AssembledAnswer {
 public:
  virtual ~AssembledAnswer() = default;
  AssembledAnswer(const AssembledAnswer&) = delete;
  AssembledAnswer& operator=(const AssembledAnswer&) = delete;

  /// Adds a piece, and returns its events; those of the last piece, which has ChoicePart::finish,
  /// end the stream. `usage`: so far.
  virtual std::vector<http::Event> add(const ChoicePart& part, const Usage& usage) = 0;
  /// The last event of a stream that fails.
  virtual http::Event failed(const Error& error) = 0;
  /// The whole answer, after its last piece.
  virtual std::string whole() const = 0;
  /// Memory of what the answer repeats of its request.
  virtual std::size_t bytes() const { return 0; }

 protected:
  AssembledAnswer() = default;
};

}  // namespace troupe::launch::serve::api
