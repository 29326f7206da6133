#include "engine/tokenizer/base/replacement.h"

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/tokenizer/base/growth.h"

namespace troupe::engine::tokenizer {

Result<Pattern> Pattern::from_json(const Json* pattern, std::string_view where) {
  const Json* text = pattern ? pattern->find("String") : nullptr;
  if (text && text->is_string() && !text->string().empty()) return literal(text->string());
  if (!text) text = pattern ? pattern->find("Regex") : nullptr;
  if (!text || !text->is_string())
    return fail(Errc::bad_input,
                cat(where, ": \"pattern\" must be {\"String\": text} or {\"Regex\": text}, found ",
                    quote(pattern ? pattern->dump() : "nothing", 60)));
  auto regex = Regex::compile(text->string(), where);
  RETURN_IF_ERROR(regex);
  Pattern out;
  out.regex_ = std::move(*regex);
  return out;
}

Pattern Pattern::literal(std::string text) {
  Pattern out;
  out.text_ = std::move(text);
  return out;
}

void Pattern::find_all(std::string_view text, std::vector<Range>& out) const {
  if (regex_) return regex_->find_all(text, out);
  for (std::size_t at = text.find(text_); at != std::string_view::npos;
       at = text.find(text_, at + text_.size()))
    out.push_back({at, at + text_.size()});
}

Result<Replacement> Replacement::from_json(const Json& object, std::string_view where) {
  auto content = get_string(object, "content", where);
  RETURN_IF_ERROR(content);
  auto pattern = Pattern::from_json(object.find("pattern"), where);
  RETURN_IF_ERROR(pattern);
  return Replacement(std::move(*pattern), std::move(*content));
}

bool Replacement::apply(std::string& text, std::size_t limit, std::string_view who) const {
  std::vector<Range> matches;
  pattern_.find_all(text, matches);
  if (matches.empty()) return false;
  std::size_t size = text.size();
  for (const Range& match : matches) size += content_.size() - (match.end - match.begin);
  check_growth(size, limit, who);
  std::string out;
  out.reserve(size);
  std::size_t from = 0;
  for (const Range& match : matches) {
    out.append(text, from, match.begin - from).append(content_);
    from = match.end;
  }
  out.append(text, from);
  text = std::move(out);
  return content_.empty() && matches.front().begin == 0 && matches.front().end > 0;
}

}  // namespace troupe::engine::tokenizer
