// The texts around the messages of a conversation, as MindSpeed's template files write them, and
// the chat template that they make.
#pragma once

#include <string>

namespace troupe::engine::tokenizer {

/// Each text has placeholders: {{content}} for the message, {{idx}} for the number of the round,
/// counted from 0, {{bos_token}} and {{eos_token}}. Round 0 is prefix, system and user; each later
/// one is separator and user. The result of a tool has the position of a user's message.
struct PromptSlots {
  std::string name = {};
  std::string default_system = {};  ///< where the conversation has no system message
  std::string prefix = {};
  std::string system = "{{content}}";
  std::string user = "{{content}}";
  std::string observation = {};  ///< the result of a tool; empty: as `user`
  std::string assistant = "{{content}}{{eos_token}}";
  std::string separator = {};
  bool eos_at_end = false;      ///< one end token behind the last answer (efficient_eos)
  bool system_in_user = false;  ///< the system text is within the first user's text
};

/// Source of a Jinja template with a generation block around each answer.
std::string template_source(const PromptSlots& slots);

}  // namespace troupe::engine::tokenizer
