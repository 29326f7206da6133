#include "engine/data/layouts/columns.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"

namespace troupe::engine::data {
namespace {

// A member of an object, an item of a list.
const Json* inside(const Json& value, std::string_view part) {
  if (!value.is_array()) return value.find(part);
  const auto item = parse_number<std::size_t>(part);
  return item && *item < value.array().size() ? &value.array()[*item] : nullptr;
}

std::vector<std::string> words_of(const std::string& words) {
  std::istringstream in(words);
  return {std::istream_iterator<std::string>(in), {}};
}

Result<> check_names(const std::map<std::string, std::string>& names,
                     const std::vector<std::string>& known, std::string_view what) {
  for (const auto& [name, value] : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto near = nearest(name, known);
    return fail(Errc::usage, cat(what, quote(name), " is not known",
                                 near.empty() ? "" : "; did you mean " + near + "?",
                                 " Known: ", join(known, ", ")));
  }
  return {};
}

}  // namespace

tl::unexpected<Error> bad_row(std::string what) {
  return fail(Errc::bad_input, std::move(what));
}

std::string Columns::file_name(const std::string& name) const {
  const auto mapped = names_.find(name);
  return mapped == names_.end() ? name : mapped->second;
}

const Json* Columns::find(const std::string& name) const {
  const Json* value = look(name);
  if (!value) return nullptr;
  read_.insert(file_name(name));
  return value;
}

// Appends the member at `path` if it has not been read; of one that is read in part its members.
void Columns::add_unread(const std::string& path, const Json& value,
                         std::vector<std::string>& out) const {
  if (value.is_null() || read_.contains(path)) return;
  const std::string inside = path + ".";
  const auto first = read_.lower_bound(inside);
  if (first == read_.end() || !first->starts_with(inside)) return out.push_back(path);
  if (value.is_object())
    for (const auto& [key, member] : value.object()) add_unread(inside + key, member, out);
  if (value.is_array())
    for (std::size_t i = 0; i < value.array().size(); ++i)
      add_unread(cat(inside, i), value.array()[i], out);
}

std::vector<std::string> Columns::unread() const {
  std::vector<std::string> out;
  if (!row_.is_object()) return out;
  for (const auto& [key, value] : row_.object()) {
    const auto mapped = names_.find(key);
    const bool left_out = mapped != names_.end() && mapped->second.empty();
    if (!left_out) add_unread(key, value, out);
  }
  out.insert(out.end(), unread_.begin(), unread_.end());
  return out;
}

const Json* Columns::look(const std::string& name) const {
  const std::string path = file_name(name);
  if (path.empty()) return nullptr;
  const Json* value = row_.find(path);  // a key may have dots itself
  if (!value) {
    value = &row_;
    for (const auto part : split(path, '.'))
      if (value) value = inside(*value, part);
  }
  return value && !value->is_null() ? value : nullptr;
}

const Json* Columns::first(std::initializer_list<const char*> names) const {
  for (const auto* name : names)
    if (const auto* value = find(name)) return value;
  return nullptr;
}

const char* Columns::first_name(std::initializer_list<const char*> names) const {
  for (const auto* name : names)
    if (look(name)) return name;
  return *names.begin();
}

Json Columns::others(std::initializer_list<const char*> used) const {
  std::vector<std::string> taken;
  for (const auto* name : used) taken.push_back(file_name(name));
  Json::Object rest;
  for (const auto& [key, value] : row_.object())
    if (std::find(taken.begin(), taken.end(), key) == taken.end()) rest.emplace_back(key, value);
  return Json(std::move(rest));
}

Result<std::string> Columns::string(const std::string& name) const {
  const auto* value = find(name);
  if (value && value->is_string()) return value->string();
  return fail(Errc::bad_input, cat("expected text under ", quote(file_name(name)), ", found ",
                                   value ? value->type_name() : "nothing"));
}

Result<std::string> Columns::optional_string(const std::string& name) const {
  return look(name) ? string(name) : std::string();
}

Result<> check_column_names(const std::map<std::string, std::string>& names) {
  static const std::vector<std::string> known = words_of(
      "prompt completion response answer chosen rejected messages conversations tools system "
      "question problem solution instruction input context output history text input_ids labels "
      "completion_mask assistant_masks assistant_mask loss_mask attention_mask position_ids "
      "seq_lengths "
      "ground_truth prompt_input_ids prompt_attention_mask chosen_attention_mask "
      "rejected_attention_mask chosen_input_ids chosen_labels rejected_input_ids "
      "rejected_labels margin label completions value kto_tag steps mistake_index error_steps "
      "weight loss_weight sample_weight train images image videos video audios audio documents "
      "functions chat_template chat_template_kwargs");
  return check_names(names, known, "data.columns: the column ");
}

Result<> check_tag_names(const Tags& tags) {
  static const std::vector<std::string> known = {"role_tag",      "content_tag", "user_tag",
                                                 "assistant_tag", "system_tag",  "observation_tag",
                                                 "function_tag"};
  return check_names(tags, known, "data.tags: the tag ");
}

}  // namespace troupe::engine::data
