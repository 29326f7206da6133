#include "engine/data/layouts/unread.h"

#include <algorithm>
#include <charconv>

#include "engine/base/text.h"

namespace troupe::engine::data {
namespace {

bool is_empty_value(const Json& value) {
  return (value.is_string() && value.string().empty()) ||
         (value.is_array() && value.array().empty()) ||
         (value.is_object() && value.object().empty());
}

// A number other than 1, or false; in a csv file everything is text.
bool is_weight(const Json& value) {
  if (value.is_string()) {
    const std::string& text = value.string();
    double number = 1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return text == "false" || text == "False" || (whole && number != 1);
  }
  return (value.is_bool() && !value.boolean()) || (value.is_number() && value.number() != 1);
}

struct Kind {
  std::string_view why;
  bool (*changes)(const Json& value);
  std::vector<std::string_view> names;
};

const std::vector<Kind>& kinds() {
  constexpr auto is_given = [](const Json& value) { return !is_empty_value(value); };
  static const std::vector<Kind> all = {
      {"weights of rows are not supported",
       is_weight,
       {"weight", "loss_weight", "sample_weight", "train"}},
      {"only text is trained on",
       is_given,
       {"images", "image", "videos", "video", "audios", "audio"}},
      {"it belongs to the prompt, and rows of this layout have no place for it",
       is_given,
       {"system", "context", "input", "history", "tools", "functions", "documents", "chat_template",
        "chat_template_kwargs"}}};
  return all;
}

}  // namespace

Result<> check_unread(const Columns& row, const std::vector<std::string>& unread) {
  for (const std::string& key : unread) {
    const Json* value = row.row().find(key);
    if (!value) continue;  // a path into a column that is read in part
    for (const Kind& kind : kinds())
      // A column whose name data.columns gives to another one is not meant by that name.
      if (std::ranges::find(kind.names, key) != kind.names.end() && row.file_name(key) == key &&
          kind.changes(*value))
        return bad_row(cat("the column ", quote(key),
                           " is not read and would change the result: ", kind.why,
                           ". Set data.columns.", key, " to \"\" to leave the column out"));
  }
  return {};
}

}  // namespace troupe::engine::data
