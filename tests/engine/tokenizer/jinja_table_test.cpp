// The template language against tables made with Jinja2 3.1.6, set up as transformers sets it up
// (tests/data/README.md says how).
#include <gtest/gtest.h>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/tokenizer/chat_template.h"

namespace troupe::engine::tokenizer {
namespace {

const std::string folder = std::string(TROUPE_TEST_DATA) + "/expected/chat/";

std::vector<Json> rows_of(const std::string& name) {
  const std::string text = value_or_throw(read_file(folder + name));
  std::vector<Json> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(value_or_throw(parse_json(text.substr(at, end - at), name)));
    at = end + 1;
  }
  return out;
}

Json member(const Json& object, std::string_view name) {
  const Json* found = object.find(name);
  return found ? *found : Json();
}

RenderInput render_input(const Json& conversation) {
  RenderInput input;
  input.messages = member(conversation, "messages");
  input.tools = member(conversation, "tools");
  input.documents = member(conversation, "documents");
  input.kwargs = member(conversation, "kwargs");
  input.tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  input.now = "2025-01-15T12:00:00";
  return input;
}

/// The text, or "error" where the template is refused or refuses.
std::string rendered_row(const std::string& source, const RenderInput& input) {
  const auto chat = ChatTemplate::parse(source, "test");
  if (!chat) return "error";
  const auto rendered = chat->render(input);
  return rendered ? rendered->text : "error";
}

// {"kwargs": what the templates are given}, then rows {"t": template, "x": text} or {"t": template}
// for an error.
TEST(JinjaTable, EveryTemplateOfTheTableIsRenderedAsJinja2RendersIt) {
  const auto rows = rows_of("language.jsonl");
  const RenderInput input = render_input(rows.at(0));
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const Json* expected = rows[i].find("x");
    const std::string& source = rows[i].find("t")->string();
    EXPECT_EQ(rendered_row(source, input), expected ? expected->string() : "error") << source;
  }
  EXPECT_GE(rows.size(), 150u);
}

// Rows: {"conversations"}, then {"style", "template"} each followed by its {"conversation",
// "add_generation_prompt", "x"?}.
TEST(JinjaTable, StylesOfKnownFamiliesRenderToolsDocumentsReasoningAndParts) {
  const auto rows = rows_of("styles.jsonl");
  const Json& conversations = *rows.at(0).find("conversations");
  std::string source, style;
  std::size_t styles = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (const Json* name = rows[i].find("style")) {
      style = name->string();
      source = rows[i].find("template")->string();
      ++styles;
      continue;
    }
    RenderInput input = render_input(*conversations.find(rows[i].find("conversation")->string()));
    input.add_generation_prompt = rows[i].find("add_generation_prompt")->boolean();
    const Json* expected = rows[i].find("x");
    EXPECT_EQ(rendered_row(source, input), expected ? expected->string() : "error")
        << style << " " << rows[i].dump();
  }
  EXPECT_EQ(styles, 17u);
}

}  // namespace
}  // namespace troupe::engine::tokenizer
