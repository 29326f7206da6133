#include "engine/tokenizer/chat_template.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>

#include "engine/base/files/file.h"
#include "engine/base/files/file_names.h"
#include "engine/base/text/text.h"
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
  for (const auto& [name, text] : input.tokens) interpreter.define(name, text);
  if (input.kwargs.is_null()) return;
  if (!input.kwargs.is_object())
    jinja::raise(cat("\"kwargs\" must be an object, found ", input.kwargs.type_name()));
  for (const auto& [name, value] : input.kwargs.object())
    interpreter.define(name, Value::from_json(value));
}

struct Source {
  std::string text, where;
};
using Named = std::map<std::string, Source>;

Result<Named> from_config(const std::string& path) {
  auto config = read_json(path);
  RETURN_IF_ERROR(config);
  const Json* found = config->find("chat_template");
  Named out;
  if (found && found->is_string()) out["default"] = {found->string(), path};
  if (found && found->is_array())
    for (const Json& item : found->array()) {
      const Json *name = item.find("name"), *text = item.find("template");
      if (name && name->is_string() && text && text->is_string())
        out.insert_or_assign(name->string(),
                             Source{text->string(), cat(path, ", template ", name->string())});
    }
  if (out.empty())
    return fail(Errc::not_found,
                cat(path, ": no \"chat_template\"; a chat needs one, or give a template file"));
  return out;
}

// chat_template.jinja and additional_chat_templates/NAME.jinja, which replace the templates of
// tokenizer_config.json.
Result<Named> from_files(const fs::path& folder) {
  Named out;
  const auto add = [&](const std::string& name, const fs::path& file) -> Result<> {
    auto text = read_file(file.string(), max_template_bytes);
    RETURN_IF_ERROR(text);
    out[name] = {std::move(*text), file.string()};
    return {};
  };
  std::error_code ignored;
  if (const auto file = folder / "chat_template.jinja"; fs::exists(file, ignored))
    RETURN_IF_ERROR(add("default", file));
  const auto more = folder / additional_templates_folder;
  for (const std::string& name : file_names(more.string(), ".jinja"))
    RETURN_IF_ERROR(add(fs::path(name).stem().string(), more / name));
  return out;
}

Result<Named> templates_of(const std::string& path) {
  std::error_code ignored;
  const fs::path given(path);
  if (fs::is_directory(given, ignored)) {
    auto files = from_files(given);
    if (!files || !files->empty()) return files;
    const fs::path config = given / "tokenizer_config.json";
    if (fs::exists(config, ignored)) return from_config(config.string());
    return fail(Errc::not_found, cat(path,
                                     ": neither chat_template.jinja nor tokenizer_config.json is "
                                     "there; a chat needs a template"));
  }
  if (given.extension() == ".json") return from_config(path);
  auto text = read_file(path, max_template_bytes);
  RETURN_IF_ERROR(text);
  return Named{{"default", {std::move(*text), path}}};
}

// A template as one branch of another: the newline behind a tag is not part of it (trim_blocks),
// nor is the last newline of a template.
std::string branch(std::string_view tag, std::string_view source) {
  if (source.ends_with('\n')) source.remove_suffix(1);
  return cat(tag, "\n", source);
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
  auto named = templates_of(path);
  RETURN_IF_ERROR(named);
  const auto found = named->find(name);
  if (found == named->end()) {
    std::vector<std::string> names;
    for (const auto& each : *named) names.push_back(each.first);
    return fail(Errc::not_found, cat(path, ": no chat template called ", quote(name),
                                     "; there are ", join(names, ", ")));
  }
  auto out = parse(std::move(found->second.text), found->second.where);
  RETURN_IF_ERROR(out);
  if (const auto tools = named->find("tool_use"); name == "default" && tools != named->end()) {
    auto other = parse(std::move(tools->second.text), tools->second.where);
    RETURN_IF_ERROR(other);
    out->with_tools_ = std::move(other->parsed_);
  }
  return out;
}

Result<Rendered> ChatTemplate::render(const RenderInput& input) const {
  const Parsed& chosen = with_tools_ && !input.tools.is_null() ? *with_tools_ : *parsed_;
  try {
    jinja::Interpreter interpreter;
    define_input(interpreter, input);
    Rendered out;
    out.text = interpreter.run(chosen.block);
    out.assistant_spans = interpreter.generations();
    return out;
  } catch (const Failure& failure) {
    return fail(failure.error().code, cat(chosen.where, ": ", failure.error().what));
  }
}

bool ChatTemplate::has_generation() const {
  return parsed_->generation || (with_tools_ && with_tools_->generation);
}

std::string ChatTemplate::source() const {
  if (!with_tools_) return parsed_->source;
  return cat(branch("{% if tools is not none %}", with_tools_->source),
             branch("{%+ else %}", parsed_->source), "{%+ endif %}");
}

}  // namespace troupe::engine::tokenizer
