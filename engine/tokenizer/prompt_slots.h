// The texts around the messages of a conversation, as MindSpeed's template files write them, and
// the chat template that they make.
#pragma once

#include <string>
#include <string_view>

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

/// The frame of any message in formats that write its role out, such as ChatML.
struct RoleFrame {
  std::string_view answer;   ///< begins an answer; the end of the user's text
  std::string_view message;  ///< with {{role}} and {{content}}
};
/// The frame whose `answer` the user's text ends with; nullptr: messages have no frame of their
/// own.
const RoleFrame* role_frame(const PromptSlots& slots);

/// Source of a Jinja template with a generation block around each answer. The first message may be
/// the system's. A message of another role than user, assistant, tool and observation, and a later
/// system message, is written in its place in the frame of its role; without a frame the template
/// raises an exception that names the role.
std::string template_source(const PromptSlots& slots);

}  // namespace troupe::engine::tokenizer
