#include "engine/tokenizer/chat_template.h"

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "engine/base/file.h"
#include "engine/base/text.h"
#include "engine/jinja/interpreter.h"
#include "engine/jinja/statement_parser.h"

namespace troupe::engine::tokenizer {

namespace fs = std::filesystem;

struct ChatTemplate::Parsed {
  std::string where, source;
  jinja::Block block;
  bool generation = false;
};

namespace {

constexpr std::size_t max_template_bytes = 1u << 20;

bool contains_generation(const jinja::Block& block) {
  for (const auto& statement : block)
    if (statement->kind == jinja::Stmt::Kind::generation || contains_generation(statement->body) ||
        contains_generation(statement->otherwise))
      return true;
  return false;
}

std::tm parse_time(const std::string& text) {
  std::tm out{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &out);
  if (!end || *end)
    jinja::raise(cat("\"now\" must look like 2025-01-15T12:00:00, found ", quote(text)));
  return out;
}

jinja::Value strftime_function(const std::optional<std::string>& now) {
  return jinja::make_function(
      "function", [now](jinja::Runtime&, jinja::Arguments& arguments) -> jinja::Value {
        std::tm time{};
        const std::time_t seconds = std::time(nullptr);
        if (now)
          time = parse_time(*now);
        else
          ::localtime_r(&seconds, &time);
        const jinja::Value* format = arguments.find(0, "format");
        if (!format) jinja::raise("strftime_now needs a format");
        std::string text = jinja::to_text(*format, "strftime_now's format");
        if (text.size() > 1000) jinja::raise("strftime_now: the format is too long");
        for (std::size_t at = text.find("%f"); at != std::string::npos; at = text.find("%f", at))
          text.replace(at, 2, "000000");
        char buffer[8192];
        return std::string(buffer, std::strftime(buffer, sizeof buffer, text.c_str(), &time));
      });
}

// The first field that is not null of those in which a message may carry its reasoning.
const Json* reasoning_of(const Json& message) {
  for (const char* name : {"reasoning_content", "thinking", "reasoning"})
    if (const Json* found = message.find(name); found && !found->is_null()) return found;
  return nullptr;
}

// As transformers 5 (_alias_reasoning_fields): the reasoning is "reasoning_content", and "thinking"
// of a message without that field.
Json with_reasoning_aliases(Json messages) {
  for (Json& message : messages.array()) {
    const Json* found = reasoning_of(message);
    if (!found) continue;
    Json reasoning = *found;
    if (!message.find("thinking"))
      message.object().insert(message.object().begin(), {"thinking", reasoning});
    message.set("reasoning_content", std::move(reasoning));
  }
  return messages;
}

void define_input(jinja::Interpreter& interpreter, const RenderInput& input) {
  using jinja::Value;
  interpreter.define("strftime_now", strftime_function(input.now));
  const Json::Array none;
  const auto& messages = input.messages.is_array() ? input.messages.array() : none;
  const bool aliased = std::any_of(messages.begin(), messages.end(),
                                   [](const Json& message) { return reasoning_of(message); });
  interpreter.define("messages", Value::from_json(aliased ? with_reasoning_aliases(input.messages)
                                                          : input.messages));
  interpreter.define("tools", Value::from_json(input.tools));
  interpreter.define("documents", Value::from_json(input.documents));
  interpreter.define("add_generation_prompt", input.add_generation_prompt);
  if (input.bos_token) interpreter.define("bos_token", *input.bos_token);
  if (input.eos_token) interpreter.define("eos_token", *input.eos_token);
  if (input.kwargs.is_null()) return;
  if (!input.kwargs.is_object())
    jinja::raise(cat("\"kwargs\" must be an object, found ", input.kwargs.type_name()));
  for (const auto& [name, value] : input.kwargs.object())
    interpreter.define(name, Value::from_json(value));
}

Result<std::string> from_config(const std::string& path, const std::string& name) {
  auto config = read_json(path);
  RETURN_IF_ERROR(config);
  const Json* found = config->find("chat_template");
  if (found && found->is_string()) return found->string();
  if (found && found->is_array()) {
    for (const Json& item : found->array()) {
      const Json *item_name = item.find("name"), *text = item.find("template");
      if (item_name && item_name->is_string() && item_name->string() == name && text &&
          text->is_string())
        return text->string();
    }
    return fail(Errc::not_found,
                cat(path, ": \"chat_template\" has no template called ", quote(name)));
  }
  return fail(Errc::not_found,
              cat(path, ": no \"chat_template\"; a chat needs one, or give a template file"));
}

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string source, std::string where) {
  if (source.size() > max_template_bytes)
    return fail(Errc::bad_input, cat(where, ": a template of ", source.size(), " bytes; at most ",
                                     max_template_bytes, " are read"));
  std::size_t bad = 0;
  if (!valid_utf8(source, &bad))
    return fail(Errc::bad_input, cat(where, ": not UTF-8 at byte ", bad));
  auto parsed = std::make_shared<Parsed>();
  parsed->where = std::move(where);
  parsed->source = source;
  try {
    parsed->block = jinja::parse_template(std::move(source));
  } catch (const Failure& failure) {
    return fail(failure.error().code, cat(parsed->where, ": ", failure.error().what));
  }
  parsed->generation = contains_generation(parsed->block);
  return ChatTemplate(std::move(parsed));
}

Result<ChatTemplate> ChatTemplate::load(const std::string& path, const std::string& name) {
  std::error_code ignored;
  const fs::path given(path);
  const bool folder = fs::is_directory(given, ignored);
  fs::path file = folder ? given / "chat_template.jinja" : given;
  if (folder && !fs::exists(file, ignored)) file = given / "tokenizer_config.json";
  if (folder && !fs::exists(file, ignored))
    return fail(Errc::not_found, cat(path,
                                     ": neither chat_template.jinja nor tokenizer_config.json is "
                                     "there; a chat needs a template"));
  auto source = file.extension() == ".json" ? from_config(file.string(), name)
                                            : read_file(file.string(), max_template_bytes);
  RETURN_IF_ERROR(source);
  return parse(std::move(*source), file.string());
}

Result<Rendered> ChatTemplate::render(const RenderInput& input) const {
  try {
    jinja::Interpreter interpreter;
    define_input(interpreter, input);
    Rendered out;
    out.text = interpreter.run(parsed_->block);
    out.assistant_spans = interpreter.generations();
    return out;
  } catch (const Failure& failure) {
    return fail(failure.error().code, cat(parsed_->where, ": ", failure.error().what));
  }
}

bool ChatTemplate::has_generation() const {
  return parsed_->generation;
}

const std::string& ChatTemplate::source() const {
  return parsed_->source;
}

}  // namespace troupe::engine::tokenizer
