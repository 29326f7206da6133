#include "engine/tokenizer/prompt_type_file.h"

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"

namespace troupe::engine::tokenizer {
namespace {

constexpr std::size_t max_file_bytes = std::size_t{4} << 20;

class Reader {
 public:
  Reader(const Json& entry, std::string where) : entry_(entry), where_(std::move(where)) {}

  Result<PromptSlots> read() const {
    PromptSlots out;
    RETURN_IF_ERROR(text("name", out.name));
    RETURN_IF_ERROR(text("default_system", out.default_system));
    RETURN_IF_ERROR(slots("format_prefix", out.prefix));
    RETURN_IF_ERROR(slots("format_system", out.system));
    RETURN_IF_ERROR(slots("format_user", out.user));
    RETURN_IF_ERROR(slots("format_observation", out.observation));
    RETURN_IF_ERROR(slots("format_separator", out.separator));
    RETURN_IF_ERROR(flag("efficient_eos", out.eos_at_end));
    RETURN_IF_ERROR(answers(out));
    std::string kind;
    RETURN_IF_ERROR(text("template_class", kind));
    out.system_in_user = out.name.starts_with("llama2") || kind == "Llama2Template";
    return out;
  }

 private:
  Result<> text(std::string_view key, std::string& out) const {
    const Json* found = entry_.find(key);
    if (found == nullptr) return {};
    if (!found->is_string()) return wrong(key, "a text", *found);
    out = found->string();
    return {};
  }

  Result<> flag(std::string_view key, bool& out) const {
    const Json* found = entry_.find(key);
    if (found == nullptr) return {};
    if (!found->is_bool()) return wrong(key, "true or false", *found);
    out = found->boolean();
    return {};
  }

  // An answer without slots of its own ends with the end token, which replace_eos makes the first
  // stop word.
  Result<> answers(PromptSlots& out) const {
    if (entry_.find("format_assistant") != nullptr) return slots("format_assistant", out.assistant);
    if (out.eos_at_end) out.assistant = "{{content}}";
    bool replaced = false;
    RETURN_IF_ERROR(flag("replace_eos", replaced));
    if (!replaced || out.eos_at_end) return {};
    const Json* words = entry_.find("stop_words");
    if (words == nullptr || !words->is_array() || words->array().empty() ||
        !words->array()[0].is_string())
      return wrong("stop_words", "a text that replaces the end token (replace_eos)",
                   words == nullptr ? Json() : *words);
    out.assistant = cat("{{content}}", words->array()[0].string());
    return {};
  }

  Result<> slots(std::string_view key, std::string& out) const {
    const Json* format = entry_.find(key);
    if (format == nullptr) return {};
    const Json* list = format->find("slots");
    if (list == nullptr) return {};
    if (!list->is_array()) return wrong(key, "a list of slots", *list);
    out.clear();
    for (const Json& slot : list->array()) {
      auto piece = text_of(key, slot);
      RETURN_IF_ERROR(piece);
      out += *piece;
    }
    return {};
  }

  Result<std::string> text_of(std::string_view key, const Json& slot) const {
    if (slot.is_string()) return slot.string();
    if (const Json* token = slot.find("token"); token != nullptr && token->is_string())
      return token->string();
    if (slot.is_array() && slot.array().size() == 1 && slot.array()[0].is_string()) {
      const std::string& name = slot.array()[0].string();
      if (name == "bos_token" || name == "eos_token") return cat("{{", name, "}}");
    }
    return wrong(key, R"(slots of the form TEXT, ["bos_token"], ["eos_token"] or {"token": TEXT})",
                 slot);
  }

  tl::unexpected<Error> wrong(std::string_view key, std::string_view wanted,
                              const Json& found) const {
    return fail(Errc::bad_input,
                cat(where_, ": ", key, " must have ", wanted, ", found ", quote(found.dump(), 80)));
  }

  const Json& entry_;
  std::string where_;
};

}  // namespace

Result<PromptSlots> read_prompt_type(const std::string& path, const std::string& name) {
  const auto file = read_json(path, {.bytes = max_file_bytes});
  RETURN_IF_ERROR(file);
  if (!file->is_array())
    return fail(Errc::bad_input, cat(path,
                                     ": a template file is a list of prompt types, each with "
                                     "its name and slots; found another value"));
  std::string names;
  for (const Json& entry : file->array()) {
    const Json* own = entry.find("name");
    if (own == nullptr || !own->is_string()) continue;
    if (own->string() == name) return Reader(entry, cat(path, ", prompt type ", name)).read();
    names += cat(names.empty() ? "" : ", ", own->string());
  }
  return fail(Errc::not_found, cat(path, ": no prompt type ", quote(name), "; there are ",
                                   names.empty() ? "none" : names));
}

}  // namespace troupe::engine::tokenizer
