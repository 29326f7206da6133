#include "engine/adapter/module_pattern.h"

#include <algorithm>

#include "engine/base/text/text.h"

namespace troupe::engine::adapter {
namespace {

constexpr std::size_t longest_text = 2000;

bool end_of(const std::string& module, const std::string& name) {
  return module == name ||
         (module.ends_with(name) && module[module.size() - name.size() - 1] == '.');
}

}  // namespace

bool ModulePattern::is_plain(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

Result<ModulePattern> ModulePattern::create(const std::string& text, const std::string& where) {
  if (text.empty() || text.size() > longest_text)
    return fail(Errc::bad_input, cat(where, ": a module's name has 1 to ", longest_text,
                                     " characters, found ", text.size()));
  ModulePattern pattern;
  pattern.text_ = text;
  if (is_plain(text)) return pattern;
  auto regex = tokenizer::Regex::compile(cat("\\A(?:", text, ")\\z"), where);
  RETURN_IF_ERROR(regex);
  pattern.regex_.emplace(std::move(*regex));
  return pattern;
}

bool ModulePattern::matches(const std::string& module) const {
  if (!regex_) return end_of(module, text_);
  std::vector<tokenizer::Range> found;
  regex_->find_all(module, found);
  return !found.empty();
}

bool ModulePattern::matches_suffix(const std::string& module) const {
  if (matches(module)) return true;
  if (!regex_) return false;
  for (std::size_t dot = module.find('.'); dot != std::string::npos;
       dot = module.find('.', dot + 1))
    if (matches(module.substr(dot + 1))) return true;
  return false;
}

Result<std::vector<ModulePattern>> patterns_of(const std::vector<std::string>& texts,
                                               const std::string& where) {
  std::vector<ModulePattern> out;
  for (const auto& text : texts) {
    auto pattern = ModulePattern::create(text, where);
    RETURN_IF_ERROR(pattern);
    out.push_back(std::move(*pattern));
  }
  return out;
}

}  // namespace troupe::engine::adapter
