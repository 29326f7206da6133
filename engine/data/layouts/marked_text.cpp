#include "engine/data/layouts/marked_text.h"

#include <algorithm>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/data/layouts/messages.h"
#include "engine/data/layouts/shown.h"

namespace troupe::engine::data {
namespace {

float weight_of(const Json& message) {
  const auto* weight = message.find("loss_weight");
  return weight && weight->is_number() ? static_cast<float>(weight->number()) : 1.0f;
}

std::vector<std::size_t> find_assistant_messages(const Json::Array& messages, std::size_t from) {
  std::vector<std::size_t> out;
  for (auto i = from; i < messages.size(); ++i)
    if (is_assistant(messages[i])) out.push_back(i);
  return out;
}

Json first_messages(const Json::Array& messages, std::size_t count) {
  return Json(Json::Array(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(count)));
}

// The range of assistant message `i` in `full`, found by rendering the messages before it and up to
// it. nullopt if the template renders earlier messages differently when later ones follow.
Result<std::optional<MarkedText::Span>> find_message(const Json::Array& messages, std::size_t i,
                                                     const std::string& full, const Json& tools,
                                                     const TextEncoder& encoder) {
  auto before = render(first_messages(messages, i), true, tools, encoder);
  RETURN_IF_ERROR(before);
  std::size_t end = full.size();
  if (i + 1 < messages.size()) {
    auto after = render(first_messages(messages, i + 1), false, tools, encoder);
    RETURN_IF_ERROR(after);
    if (!full.starts_with(after->text)) return std::nullopt;
    end = after->text.size();
  }
  if (!full.starts_with(before->text) || before->text.size() > end) return std::nullopt;
  return MarkedText::Span{before->text.size(), end, weight_of(messages[i])};
}

std::string_view without_trailing_space(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}
std::string_view without_leading_space(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

// The part of `answer` behind the tags that `opening`, the text that begins an answer for
// generation, ends with: "<think>\n" and "<think>\nT</think>A" give "T</think>A". The longest text
// of tags counts, such as an empty block of reasoning; white space at their borders may differ.
std::string_view behind_opening(std::string_view opening, std::string_view answer) {
  const auto tags = without_trailing_space(opening);
  if (!tags.ends_with('>') && !tags.ends_with(']')) return answer;
  for (auto at = tags.find_first_of("<["); at != tags.npos; at = tags.find_first_of("<[", at + 1)) {
    auto rest = without_leading_space(answer);
    if (!rest.starts_with(tags.substr(at))) continue;
    rest.remove_prefix(tags.size() - at);
    const auto space = opening.substr(tags.size());
    if (rest.starts_with(space)) rest.remove_prefix(space.size());
    return rest;
  }
  return answer;
}

// What follows `opening` when the model writes the message.
Result<std::string> answer_behind(std::string_view opening, const Json& message) {
  const std::string& content = message.find("content")->string();
  const auto* reasoning = reasoning_of(message);
  if (!reasoning) return std::string(behind_opening(opening, content));
  const auto tags = without_trailing_space(opening);
  const auto at = tags.rfind('<');
  if (at == tags.npos || !tags.ends_with('>') || tags.substr(at).starts_with("</"))
    return fail(Errc::bad_input,
                "the chat template shows the answer without its reasoning; use a template that "
                "renders reasoning_content");
  return cat(*reasoning, "\n</", tags.substr(at + 1), "\n\n", content);
}

// The prompt as rendered for generation, followed by the last message as the model writes it.
Result<MarkedText> prompt_and_answer_text(const Json::Array& messages, const Json& tools,
                                          const TextEncoder& encoder) {
  auto before = render(first_messages(messages, messages.size() - 1), true, tools, encoder);
  RETURN_IF_ERROR(before);
  const auto closed = render(first_messages(messages, messages.size() - 1), false, tools, encoder);
  const bool extends = closed && before->text.starts_with(closed->text);
  const auto answer = answer_behind(
      std::string_view(before->text).substr(extends ? closed->text.size() : 0), messages.back());
  RETURN_IF_ERROR(answer);
  MarkedText out;
  out.text = cat(before->text, *answer);
  out.trained.push_back({before->text.size(), out.text.size(), weight_of(messages.back())});
  out.append_end = true;
  return out;
}

// Trains on the template's generation blocks: each block with the weight of its message if there is
// one block per assistant message, else all blocks with the same weight, provided that the messages
// do not differ in weight. False if the blocks cannot be assigned.
bool mark_blocks(const std::vector<std::pair<std::size_t, std::size_t>>& blocks,
                 const Json::Array& messages, const std::vector<std::size_t>& assistant_messages,
                 MarkedText& out) {
  const float first = weight_of(messages[assistant_messages.front()]);
  const bool alike = std::all_of(assistant_messages.begin(), assistant_messages.end(),
                                 [&](std::size_t i) { return weight_of(messages[i]) == first; });
  if (blocks.empty() || (blocks.size() != assistant_messages.size() && !alike)) return false;
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    check(blocks[k].first <= blocks[k].second && blocks[k].second <= out.text.size(),
          "a chat template's assistant span lies outside its text");
    out.trained.push_back({blocks[k].first, blocks[k].second,
                           blocks.size() == assistant_messages.size()
                               ? weight_of(messages[assistant_messages[k]])
                               : first});
  }
  return true;
}

Result<MarkedText> mark_chat(const Json::Array& messages, std::size_t prompt_size,
                             const Json& tools, const TextEncoder& encoder) {
  const auto assistant_messages = find_assistant_messages(messages, prompt_size);
  if (assistant_messages.empty())
    return fail(Errc::bad_input, "the completion has no assistant message to train on");
  auto full = render(Json(messages), false, tools, encoder);
  RETURN_IF_ERROR(full);
  MarkedText out{.text = std::move(full->text)};
  RETURN_IF_ERROR(check_tools_shown(Json(messages), tools, out.text, false, encoder));
  // The blocks cover every assistant message, so they apply only if all of them are trained on.
  if (prompt_size == 0 && mark_blocks(full->assistant_spans, messages, assistant_messages, out)) {
    RETURN_IF_ERROR(check_reasoning_shown(Json(messages), tools, out.text, encoder));
    return out;
  }
  for (const auto i : assistant_messages) {
    const auto span = find_message(messages, i, out.text, tools, encoder);
    RETURN_IF_ERROR(span);
    if (*span) {
      out.trained.push_back(**span);
      continue;
    }
    if (assistant_messages.size() == 1 && i + 1 == messages.size() &&
        !messages[i].find("tool_calls"))
      return prompt_and_answer_text(messages, tools, encoder);
    return fail(Errc::bad_input, cat("the chat template renders earlier messages differently when "
                                     "later ones follow (message ",
                                     i + 1,
                                     "), so the assistant messages cannot be located; use a "
                                     "template with {% generation %} blocks, or one assistant "
                                     "message per row"));
  }
  RETURN_IF_ERROR(check_reasoning_shown(Json(messages), tools, out.text, encoder));
  return out;
}

}  // namespace

Result<RenderedChat> render(const Json& messages, bool add_generation_prompt, const Json& tools,
                            const TextEncoder& encoder) {
  if (!encoder.has_chat_template())
    return fail(Errc::unsupported,
                "the rows are conversations, but the model has no chat template: set chat_template "
                "to a template file or to the name of a prompt type (chatml, qwen, llama3, ...), "
                "or use rows of plain text (prompt and completion)");
  return encoder.render_chat(messages, add_generation_prompt, tools);
}

Result<std::string> render_prompt(const Json& messages, const Json& tools,
                                  const TextEncoder& encoder) {
  const bool continues = is_assistant(messages.array().back());
  auto whole = render(messages, !continues, tools, encoder);
  RETURN_IF_ERROR(whole);
  RETURN_IF_ERROR(check_tools_shown(messages, tools, whole->text, !continues, encoder));
  if (!continues) return std::move(whole->text);
  const std::string& content = messages.array().back().find("content")->string();
  const auto stripped = without_leading_space(without_trailing_space(content));
  const auto at = stripped.empty() ? std::string::npos : whole->text.rfind(stripped);
  if (at == std::string::npos)
    return fail(Errc::bad_input,
                "the prompt ends with a message of the assistant, which the answer continues, but "
                "the chat template does not show that message as it is");
  const auto spaced = without_leading_space(content);
  const bool kept = std::string_view(whole->text).substr(at).starts_with(spaced);
  return whole->text.substr(0, at + (kept ? spaced.size() : stripped.size()));
}

Result<MarkedText> mark_text(const Json& prompt, const Json& completion, const Json& tools,
                             const TextEncoder& encoder) {
  if (completion.is_string()) {
    check(prompt.is_null() || prompt.is_string(),
          "a sample's prompt and completion are both text or both messages");
    const std::string before = prompt.is_null() ? "" : prompt.string();
    MarkedText out{.text = before + completion.string(), .add_special = true, .append_end = true};
    out.trained.push_back({before.size(), out.text.size(), 1});
    return out;
  }
  auto messages = prompt.is_null() ? Json::Array{} : prompt.array();
  const auto prompt_size = messages.size();
  messages.insert(messages.end(), completion.array().begin(), completion.array().end());
  return mark_chat(messages, prompt_size, tools, encoder);
}

}  // namespace troupe::engine::data
