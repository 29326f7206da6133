// Chat templates render a conversation as one text. The language is Jinja2 as configured by
// transformers, executed by engine/jinja.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"
#include "engine/tokenizer/template_tokens.h"

namespace troupe::engine::tokenizer {

/// The variables of a template.
struct RenderInput {
  Json messages;   ///< an array of {"role", "content", ...}
  Json tools;      ///< null: None
  Json documents;  ///< null: None
  bool add_generation_prompt = false;
  TemplateTokens tokens;  ///< bos_token, eos_token and the others
  Json kwargs;            ///< an object whose members become variables; null: none
  /// The time of strftime_now, "2025-01-15T12:00:00"; absent: the local time.
  std::optional<std::string> now;
};

struct Rendered {
  std::string text;
  /// Output of {% generation %} blocks: half-open ranges of code points of `text`, in order.
  std::vector<std::pair<std::size_t, std::size_t>> assistant_spans;
};

/// A parsed template. Immutable; copies share it; render may be called from several threads at
/// once.
class ChatTemplate {
 public:
  /// `where` (a path) starts every message. Errc::bad_input with the line of a syntax error.
  static Result<ChatTemplate> parse(std::string source, std::string where);

  /// Reads the templates of a model folder, or of a file: chat_template.jinja, and those of
  /// additional_chat_templates under their names; else "chat_template" of tokenizer_config.json (a
  /// text, or a list of named texts). As in transformers, "default" renders conversations, and
  /// "tool_use", where there is one, those with tools; another `name` is taken alone.
  /// Errc::not_found when there is none.
  static Result<ChatTemplate> load(const std::string& path, const std::string& name = "default");

  /// Errc::bad_input if the template raises an exception, uses an undefined value, or exceeds its
  /// limits (5 million steps, 16 MiB).
  Result<Rendered> render(const RenderInput& input) const;

  /// Whether a template has {% generation %} blocks, which mark the assistant's text.
  bool has_generation() const;

  /// Its text, as chat_template.jinja holds it; a template for tools is a branch of it.
  std::string source() const;

 private:
  struct Parsed;
  explicit ChatTemplate(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
  std::shared_ptr<const Parsed> parsed_;
  std::shared_ptr<const Parsed> with_tools_;  // null: as parsed_
};

}  // namespace troupe::engine::tokenizer
