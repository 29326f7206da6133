#include "launch/commands/import/variables.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "engine/base/text.h"

namespace troupe::launch {
namespace {

constexpr const char* advice =
    "; write the settings of the command into the script, or into a YAML file";

tl::unexpected<Error> too_large(std::string_view what, std::size_t limit) {
  return fail(Errc::usage, cat("expected at most ", limit, " bytes of ", what,
                               " of the script, found more", advice));
}

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// The end of the name that begins at `begin`.
std::size_t end_of_name(std::string_view word, std::size_t begin) {
  while (begin < word.size() && in_name(word[begin])) ++begin;
  return begin;
}

// The brace that closes the one before `begin`; npos without one.
std::size_t closing_brace(std::string_view word, std::size_t begin) {
  int open = 1;
  for (std::size_t at = begin; at < word.size(); ++at) {
    if (word.substr(at, 2) == "${") ++open;
    if (word[at] == '}' && --open == 0) return at;
  }
  return std::string_view::npos;
}

// Defaults are copied once for each depth, so the depth is checked before any is read.
int depth_of(std::string_view word) {
  int depth = 0, deepest = 0;
  for (std::size_t at = 0; at < word.size(); ++at) {
    if (word.substr(at, 2) == "${") deepest = std::max(deepest, ++depth);
    if (word[at] == '}' && depth > 0) --depth;
  }
  return deepest;
}

}  // namespace

Result<> Variables::assign(const std::string& name, std::string value) {
  const std::string* before = find(name);
  const std::size_t bytes = bytes_ + value.size() - (before && name != "HOME" ? before->size() : 0);
  if (bytes > max_bytes) return too_large("the values of the variables", max_bytes);
  bytes_ = bytes;
  values_[name] = std::move(value);
  return {};
}

Result<std::string> Variables::expand(std::string_view word) {
  if (word.find('$') == std::string_view::npos) return std::string(word);
  if (depth_of(word) > max_depth)
    return fail(Errc::usage, cat("expected at most ", max_depth,
                                 " variables within defaults of others, found more in ",
                                 quote(word, 80), advice));
  std::string out;
  RETURN_IF_ERROR(append(word, out));
  expanded_ += out.size();
  if (expanded_ > max_expanded) return too_large("the words", max_expanded);
  return out;
}

const std::string* Variables::find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

Result<> Variables::append(std::string_view word, std::string& out) const {
  for (std::size_t at = 0; at < word.size(); ++at) {
    if (out.size() > max_bytes) return too_large("a word", max_bytes);
    if (word[at] != '$') {
      out += word[at];
      continue;
    }
    const bool braces = word.substr(at, 2) == "${";
    const std::size_t begin = at + (braces ? 2 : 1), end = end_of_name(word, begin);
    const std::string* value = find(word.substr(begin, end - begin));
    if (braces && word.substr(end, 2) == ":-") {
      const std::size_t close = closing_brace(word, end + 2);
      if (close != std::string_view::npos) {
        if (value)
          out += *value;
        else
          RETURN_IF_ERROR(append(word.substr(end + 2, close - end - 2), out));
        at = close;
        continue;
      }
    }
    if (!value || (braces && word.substr(end, 1) != "}")) {
      out += word[at];
      continue;
    }
    out += *value;
    at = end - (braces ? 0 : 1);
  }
  return {};
}

}  // namespace troupe::launch
