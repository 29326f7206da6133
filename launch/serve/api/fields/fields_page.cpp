#include "launch/serve/api/fields/fields_page.h"

#include "engine/base/text/text.h"
#include "launch/serve/api/fields/field_table.h"

namespace troupe::launch::serve::api {

namespace {

constexpr std::string_view head =
    "# Fields of requests\n\n"
    "This page is generated: `troupe explain --request-fields`. [Serving a model](serving.md) "
    "describes the endpoints.\n\n"
    "Each table has the fields that an endpoint knows, and which of OpenAI, Anthropic, vLLM, "
    "llama.cpp and SGLang define them, some\nat other endpoints only. Fields that are *refused* "
    "get "
    "status 400 with their name. `null` counts as absent everywhere, and so\ndoes the value in the "
    "last column. Fields that no table has are ignored, and the log names each of them once.\n";

/// Rows are shared by endpoints of OpenAI's and of Anthropic's API.
std::string peers_text(unsigned peers, const EndpointFields& table) {
  std::vector<std::string> names;
  const bool of_anthropic = table.path().starts_with("/v1/messages");
  if (peers & openai && !of_anthropic) names.emplace_back("OpenAI");
  if (peers & anthropic && of_anthropic) names.emplace_back("Anthropic");
  if (peers & vllm) names.emplace_back("vLLM");
  if (peers & llama) names.emplace_back("llama.cpp");
  if (peers & sglang) names.emplace_back("SGLang");
  return join(names, ", ");
}

std::string rows_text(const EndpointFields& table, Effect effect) {
  std::string out;
  for (const FieldRow* row : table.rows()) {
    if (row->effect != effect) continue;
    out += cat("| `", row->name, "` | ", peers_text(row->peers, table), " | ", row->note, " |");
    if (effect == Effect::refused) {
      if (row->absent.empty())
        out += " |";
      else
        out += cat(" `", row->absent, "` |");
    }
    out += '\n';
  }
  return out;
}

}  // namespace

std::string request_fields_page() {
  std::string out(head);
  for (const EndpointFields& table : field_tables()) {
    out +=
        cat("\n## ", table.path(), "\n\n| field | defined by | meaning, default |\n|---|---|---|\n",
            rows_text(table, Effect::acts));
    if (const std::string rows = rows_text(table, Effect::without_effect); !rows.empty())
      out += cat("\nWithout effect:\n\n| field | defined by | reason |\n|---|---|---|\n", rows);
    if (const std::string rows = rows_text(table, Effect::refused); !rows.empty())
      out += cat("\nRefused:\n\n| field | defined by | reason | accepted |\n|---|---|---|---|\n",
                 rows);
  }
  return out;
}

}  // namespace troupe::launch::serve::api
