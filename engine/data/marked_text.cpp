#include "engine/data/marked_text.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/data/layouts/messages.h"

namespace troupe::engine::data {
namespace {

float weight_of(const Json& message) {
  const auto* weight = message.find("loss_weight");
  return weight && weight->is_number() ? static_cast<float>(weight->number()) : 1.0f;
}

std::vector<std::size_t> answers(const Json::Array& messages, std::size_t from) {
  std::vector<std::size_t> out;
  for (auto i = from; i < messages.size(); ++i)
    if (is_assistant(messages[i])) out.push_back(i);
  return out;
}

Json first_messages(const Json::Array& messages, std::size_t count) {
  return Json(Json::Array(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(count)));
}

// Where answer `i` stands in `full`, by what the template makes of the messages before it and with
// it. Empty: it rewrites what came before.
Result<std::optional<MarkedText::Span>> find_answer(const Json::Array& messages, std::size_t i,
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

// The prompt as generation sees it, then the answer as it stands in the row.
Result<MarkedText> answer_behind_prompt(const Json::Array& messages, const Json& tools,
                                        const TextEncoder& encoder) {
  auto before = render(first_messages(messages, messages.size() - 1), true, tools, encoder);
  RETURN_IF_ERROR(before);
  const auto* content = messages.back().find("content");
  MarkedText out;
  out.text = cat(before->text, content->string());
  out.trained.push_back({before->text.size(), out.text.size(), weight_of(messages.back())});
  out.append_end = true;
  return out;
}

// What the template's blocks hold is trained on: block by block where there is one an answer; all
// of them alike where a template has more or fewer (reasoning apart, answers in a row as one) and
// the answers' weights do not differ. False: there is no telling.
bool mark_blocks(const std::vector<std::pair<std::size_t, std::size_t>>& blocks,
                 const Json::Array& messages, const std::vector<std::size_t>& turns,
                 MarkedText& out) {
  const float first = weight_of(messages[turns.front()]);
  const bool alike = std::all_of(turns.begin(), turns.end(),
                                 [&](std::size_t i) { return weight_of(messages[i]) == first; });
  if (blocks.empty() || (blocks.size() != turns.size() && !alike)) return false;
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    check(blocks[k].first <= blocks[k].second && blocks[k].second <= out.text.size(),
          "a chat template's assistant span lies outside its text");
    out.trained.push_back({blocks[k].first, blocks[k].second,
                           blocks.size() == turns.size() ? weight_of(messages[turns[k]]) : first});
  }
  return true;
}

Result<MarkedText> mark_chat(const Json::Array& messages, std::size_t prompt_size,
                             const Json& tools, const TextEncoder& encoder) {
  const auto turns = answers(messages, prompt_size);
  if (turns.empty())
    return fail(Errc::bad_input, "the completion has no message of the assistant to train on");
  auto full = render(Json(messages), false, tools, encoder);
  RETURN_IF_ERROR(full);
  MarkedText out{.text = std::move(full->text)};
  // Blocks speak of every answer of the conversation, so they fit only when all of them are meant.
  if (prompt_size == 0 && mark_blocks(full->assistant_spans, messages, turns, out)) return out;
  for (const auto i : turns) {
    const auto span = find_answer(messages, i, out.text, tools, encoder);
    RETURN_IF_ERROR(span);
    if (*span) {
      out.trained.push_back(**span);
      continue;
    }
    if (turns.size() == 1 && i + 1 == messages.size() && !messages[i].find("tool_calls"))
      return answer_behind_prompt(messages, tools, encoder);
    return fail(Errc::bad_input, cat("the model's chat template renders earlier turns differently "
                                     "when later ones follow (message ",
                                     i + 1,
                                     "), so the assistant's turns cannot be told apart; use a "
                                     "template with {% generation %} blocks, or one answer a row"));
  }
  return out;
}

}  // namespace

Result<RenderedChat> render(const Json& messages, bool add_generation_prompt, const Json& tools,
                            const TextEncoder& encoder) {
  if (!encoder.has_chat_template())
    return fail(Errc::unsupported,
                "the rows are conversations, and the model has no chat template: put a "
                "chat_template.jinja beside the model, or use rows "
                "of plain text (prompt and completion)");
  auto chat = encoder.render_chat(messages, add_generation_prompt, tools);

  return chat;
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
