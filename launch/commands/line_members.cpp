#include "launch/commands/line_members.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/generate/sampling_params_json.h"
#include "engine/tokenizer/template_tokens.h"

namespace troupe::launch::commands {

namespace {

constexpr std::array<std::string_view, 8> other_members = {
    "prompt", "ids", "messages", "tools", "documents", "kwargs", "now", "add_generation_prompt"};

/// Number of insertions, deletions and replacements between two words (Levenshtein 1966).
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0u);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row.back();
}

/// The setting that `name` is a misspelling of, or "". Short names of columns ("id", "step") are
/// none.
std::string_view misspelled_setting(std::string_view name) {
  if (name.size() < 5) return "";
  const std::size_t most = name.size() < 8 ? 1 : 2;
  for (const std::string_view known : engine::generate::sampling_param_names())
    if (edits(name, known) <= most) return known;
  return "";
}

}  // namespace

Result<> LineMembers::check(const Json& line) {
  for (const auto& [name, value] : line.object()) {
    const auto settings = engine::generate::sampling_param_names();
    if (std::ranges::find(settings, name) != settings.end() ||
        std::ranges::find(other_members, name) != other_members.end() ||
        std::ranges::find(engine::tokenizer::token_roles, name) !=
            engine::tokenizer::token_roles.end() ||
        warned_.contains(name))
      continue;
    if (const auto meant = misspelled_setting(name); !meant.empty())
      return fail(Errc::bad_input,
                  cat("unknown member ", quote(name, 60), "; did you mean ", meant, "?"));
    warned_.insert(name);
    log_warning(cat("the member ", quote(name, 60), " of the input lines is not used"));
  }
  return {};
}

}  // namespace troupe::launch::commands
