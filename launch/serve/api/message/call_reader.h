// CallReader: separates tool calls from the text of an answer while it arrives. The formats and
// their names are those of vLLM's tool parsers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/serve/api/message/call_scanner.h"
#include "launch/serve/api/message/marker_search.h"
#include "launch/serve/api/message/message_part.h"

namespace troupe::launch::serve::api {

enum class CallFormat : std::uint8_t {
  none,         ///< the text is the content
  hermes,       ///< <tool_call>{"name": .., "arguments": {..}}</tool_call> of Hermes and Qwen
  llama3_json,  ///< {"name": .., "parameters": {..}}; .. instead of a text; <|python_tag|> before
                ///< it
  mistral,      ///< [TOOL_CALLS][{"name": .., "arguments": {..}}, ..] or [TOOL_CALLS]name{..}
  list,         ///< [{"name": .., "parameters": {..}}, ..]: tool_choice "required"
  arguments,    ///< the text is the arguments of one function: tool_choice with its name
};

/// The names of --tool-call-parser.
std::vector<std::string> call_format_names();
/// Nothing for an unknown name.
std::optional<CallFormat> call_format_of(std::string_view name);
/// The format that a chat template shows to the model; none when it is not known.
CallFormat call_format_in(std::string_view chat_template);

class CallReader {
 public:
  /// `function`: its name for CallFormat::arguments.
  CallReader(CallFormat format, std::string function);

  /// Text that may be the beginning of a call is held back.
  void push(std::string_view text, MessagePart& part);
  /// The end of the text: what was held back is content.
  void finish(MessagePart& part);
  /// Calls so far.
  int calls() const { return calls_; }

 private:
  enum class State : std::uint8_t {
    text,       ///< content, until a marker
    begin,      ///< before a call
    object,     ///< in the object of a call
    name,       ///< in the name of [TOOL_CALLS]name{..}
    arguments,  ///< in its arguments
    end,        ///< behind a call
    rest,       ///< content until the end
  };

  void step(char c, MessagePart& part);
  void step_text(char c, MessagePart& part);
  void step_begin(char c, MessagePart& part);
  void step_object(char c, MessagePart& part);
  void step_name(char c, MessagePart& part);
  void step_arguments(char c, MessagePart& part);
  void step_end(char c, MessagePart& part);
  void begin_object(char c, MessagePart& part);
  void announce(const std::string& name, MessagePart& part);
  void add_arguments(const std::string& text, MessagePart& part) const;
  void give_up(MessagePart& part);
  bool marked() const { return format_ == CallFormat::hermes || format_ == CallFormat::mistral; }

  CallFormat format_;
  State state_;
  MarkerSearch marker_, closing_;
  CallScanner call_;
  ValueScanner value_;
  std::string name_;
  std::string held_;  // since the marker: content unless a call follows
  bool in_list_ = false, announced_ = false, skips_space_ = false;
  int calls_ = 0;
};

}  // namespace troupe::launch::serve::api
