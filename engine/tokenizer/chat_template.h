// Chat templates: how a model writes a conversation as one text. The language is Jinja2's, as
// transformers sets it up, run by an interpreter of ours.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/json.h"

namespace troupe::engine::tokenizer {

/// What a template is rendered with.
struct RenderInput {
  Json messages;   ///< an array of {"role", "content", ...}
  Json tools;      ///< null: None
  Json documents;  ///< null: None
  bool add_generation_prompt = false;
  std::optional<std::string> bos_token;  ///< absent: undefined
  std::optional<std::string> eos_token;
  Json kwargs;  ///< an object whose members become variables; null: none
  std::optional<std::string>
      now;  ///< "2025-01-15T12:00:00", what strftime_now sees; absent: the local time
};

struct Rendered {
  std::string text;
  /// What {% generation %} blocks wrote: half-open ranges of code points of `text`, in order.
  std::vector<std::pair<std::size_t, std::size_t>> assistant_spans;
};

/// A parsed template. Immutable; copies share it; render may be called from several threads at
/// once.
class ChatTemplate {
 public:
  /// `where` (a path) starts every message. Errc::bad_input with the line for what is not the
  /// language.
  static Result<ChatTemplate> parse(std::string source, std::string where);

  /// Reads the template of a model folder, or of a file: chat_template.jinja, else "chat_template"
  /// of tokenizer_config.json (a text, or a list of named texts, of which `name` is taken).
  /// Errc::not_found when there is none.
  static Result<ChatTemplate> load(const std::string& path, const std::string& name = "default");

  /// Errc::bad_input when the template refuses the conversation, uses what is undefined, or exceeds
  /// its limits (5 million steps, 16 MiB).
  Result<Rendered> render(const RenderInput& input) const;

  /// Whether the template has {% generation %} blocks, so that spans say which text is the
  /// assistant's.
  bool has_generation() const;

 private:
  struct Parsed;
  explicit ChatTemplate(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace troupe::engine::tokenizer
