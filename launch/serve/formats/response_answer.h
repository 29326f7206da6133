// ResponseAnswer: answers and streams of /v1/responses. Members and events are those of OpenAI's
// API reference and of the types of its Python client.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/serve/api/assembled_answer.h"
#include "launch/serve/formats/output_blocks.h"

namespace troupe::launch::serve::formats {

class ResponseAnswer final : public api::AssembledAnswer, private OutputBlocks::Listener {
 public:
  /// `repeated`: members of TranslatedRequest. `model`: its served name. `id`: of the HTTP request.
  ResponseAnswer(Json repeated, const api::GenerationRequest& request, const std::string& model,
                 const std::string& id);

  std::vector<http::Event> add(const api::ChoicePart& part, const api::Usage& usage) override;
  http::Event failed(const Error& error) override;
  std::string whole() const override { return response_.dump(); }
  std::size_t bytes() const override { return bytes_; }

 private:
  void opened(const OutputBlock& block) override;
  void grown(const OutputBlock& block, const std::string& piece) override;
  void closed(const OutputBlock& block) override;

  void begin();
  void finish(const api::ChoicePart& part, const api::Usage& usage);
  /// `members`: behind the type and the sequence number.
  void push(const char* type, Json::Object members);
  /// Event of a part of an item, with its ids.
  void push_of_part(const char* type, const OutputBlock& block, const char* name, Json value);
  std::string item_id(const OutputBlock& block) const;
  Json item(const OutputBlock& block, const char* status) const;
  Json::Array items() const;

  std::string id_;
  std::size_t bytes_;
  bool streams_;
  Json response_;  // as far as it is known
  OutputBlocks blocks_;
  std::vector<http::Event> events_;
  std::int64_t sequence_ = 0;
  bool begun_ = false;
  bool cut_off_ = false;  // by max_output_tokens
};

}  // namespace troupe::launch::serve::formats
