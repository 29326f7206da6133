#include "launch/tools/migration/shell/expand.h"

#include <array>

#include "launch/tools/migration/shell/scan.h"

namespace troupe::launch::tools::migration::shell {
namespace {

constexpr std::array<std::string_view, 23> parameter_operations{
    ":-", ":=", ":?", ":+", "##", "%%", "//", "/#", "/%", "^^", ",,", "-",
    "=",  "?",  "+",  "#",  "%",  "/",  "^",  ",",  ":",  "@",  "~"};

/// The end of a name, a number or a special parameter.
std::size_t end_of_parameter(std::string_view text, std::size_t at) {
  if (const auto end = end_of_name(text, at); end > at) return end;
  std::size_t end = at;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  if (end > at) return end;
  const bool special =
      at < text.size() && std::string_view("@*#?$!-").find(text[at]) != std::string_view::npos;
  return special ? at + 1 : at;
}

}  // namespace

std::optional<Parameter> parameter_of(std::string_view text) {
  Parameter out;
  std::size_t at = 0;
  if (text.size() > 1 && (text[0] == '#' || text[0] == '!') && end_of_parameter(text, 1) > 1 &&
      std::string_view("-?:+=%/").find(text[1]) == text.npos) {
    (text[0] == '#' ? out.length : out.indirect) = true;
    at = 1;
  }
  const std::size_t end = end_of_parameter(text, at);
  if (end == at) return std::nullopt;
  out.name = text.substr(at, end - at);
  at = end;
  if (at < text.size() && text[at] == '[') {
    std::size_t close = at + 1;
    while (close < text.size() && text[close] != ']') close = end_of_part(text, close);
    if (close >= text.size()) return std::nullopt;
    out.index = std::string(text.substr(at + 1, close - at - 1));
    at = close + 1;
  }
  if (at == text.size()) return out;
  for (const std::string_view each : parameter_operations)
    if (text.substr(at, each.size()) == each) {
      out.operation = each;
      out.word = text.substr(at + each.size());
      return out;
    }
  return std::nullopt;
}

}  // namespace troupe::launch::tools::migration::shell
