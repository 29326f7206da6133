// MessageAnswer: answers and streams of /v1/messages, Anthropic's Messages API, and its errors.
#pragma once

#include <string>
#include <vector>

#include "launch/serve/api/assembled_answer.h"
#include "launch/serve/formats/output_blocks.h"
#include "launch/serve/http/response.h"

namespace troupe::launch::serve::formats {

/// A response of http::error_response() in the form of Anthropic's API:
/// {"type": "error", "error": {"type": TYPE, "message": ...}}, whose type follows from the status.
http::Response anthropic_error(http::Response response);

class MessageAnswer final : public api::AssembledAnswer, private OutputBlocks::Listener {
 public:
  /// `model`: its served name. `id`: of the HTTP request.
  MessageAnswer(const api::GenerationRequest& request, const std::string& model,
                const std::string& id);

  std::vector<http::Event> add(const api::ChoicePart& part, const api::Usage& usage) override;
  http::Event failed(const Error& error) override;
  std::string whole() const override { return message_.dump(); }

 private:
  void opened(const OutputBlock& block) override;
  void grown(const OutputBlock& block, const std::string& piece) override;
  void closed(const OutputBlock& block) override;

  void begin(const api::Usage& usage);
  void finish(const api::ChoicePart& part, const api::Usage& usage);
  void push(const char* type, Json::Object members);
  /// `begins`: as a block is before its first piece.
  Json content_block(const OutputBlock& block, bool begins) const;

  std::string id_;
  bool streams_;
  Json message_;
  OutputBlocks blocks_;
  std::vector<http::Event> events_;
  bool begun_ = false;
};

}  // namespace troupe::launch::serve::formats
