// MessageReader: the parts of an assistant's message - reasoning, content and tool calls - in a
// text that arrives in pieces. A whole answer is read as one piece.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/serve/api/message/call_reader.h"
#include "launch/serve/api/message/marker_search.h"
#include "launch/serve/api/message/message_part.h"

namespace troupe::launch::serve::api {

/// Where reasoning stands in an answer. The names are those of vLLM's reasoning parsers.
enum class ReasoningFormat : std::uint8_t {
  none,         ///< reasoning is content
  qwen3,        ///< <think>..</think> at the beginning
  deepseek_r1,  ///< ..</think>: the prompt ends with <think>, or the model begins with it
};

/// The names of --reasoning-parser.
std::vector<std::string> reasoning_format_names();
/// Nothing for an unknown name.
std::optional<ReasoningFormat> reasoning_format_of(std::string_view name);

/// How an answer is read.
struct MessageFormat {
  CallFormat calls = CallFormat::none;
  std::string function;  ///< the name of CallFormat::arguments
  ReasoningFormat reasoning = ReasoningFormat::none;
  bool reasoning_open = false;  ///< the answer begins within the reasoning

  /// Whether there is anything but content.
  bool has_parts() const { return calls != CallFormat::none || reasoning != ReasoningFormat::none; }
};

/// Whether reasoning begins at the end of a prompt of this text, and whether it ends there.
bool opens_reasoning(std::string_view prompt);
bool closes_reasoning(std::string_view prompt);

class MessageReader {
 public:
  explicit MessageReader(const MessageFormat& format);

  /// What the text adds. Markers and beginnings of them are not part of it.
  MessagePart push(std::string_view text);
  /// The end of the text: the rest, which was held back.
  MessagePart finish();
  bool in_reasoning() const { return state_ == State::reasoning; }
  /// Tool calls so far.
  int calls() const { return calls_.calls(); }

 private:
  enum class State : std::uint8_t { begin, reasoning, after };

  void step(char c, MessagePart& part);
  void step_begin(char c, MessagePart& part);

  State state_;
  bool open_;
  bool forced_;       // nothing but calls follows the reasoning
  std::string held_;  // space before <think>
  MarkerSearch opening_, closing_;
  CallReader calls_;
};

}  // namespace troupe::launch::serve::api
