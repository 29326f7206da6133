#include "actors/roles/rules/command/json_lines.h"

#include <cmath>

#include "engine/base/text.h"

namespace troupe::actors::rules {
namespace {

constexpr std::size_t max_parts = 64, max_name_bytes = 64;
// Names of parts become names of metrics and appear in samples.txt.
constexpr std::string_view name_characters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./ -";
constexpr JsonLimits limits{.depth = 8, .bytes = std::size_t{16} << 20};

// Replaces every byte of `text` that is not part of a character by U+FFFD.
std::string as_utf8(std::string_view text) {
  std::string out;
  for (std::size_t bad = 0; !valid_utf8(text, &bad); text.remove_prefix(bad + 1)) {
    out += text.substr(0, bad);
    out += "\xEF\xBF\xBD";
  }
  return out += text;
}

Result<double> finite(const Json& value, std::string_view name) {
  if (!value.is_number())
    return fail(Errc::bad_input,
                cat(quote(name), " should be a number, it is ", quote(value.dump(), 40)));
  if (!(std::abs(value.number()) <= max_reward))
    return fail(Errc::bad_input, cat(quote(name), " is ", value.number(), ", beyond ", max_reward));
  return value.number();
}

Result<> read_parts(const Json& parts, Scored& into) {
  if (!parts.is_object())
    return fail(Errc::bad_input,
                cat("\"parts\" should be an object of numbers, it is ", parts.type_name()));
  if (parts.object().size() > max_parts)
    return fail(Errc::bad_input, cat("\"parts\" has ", parts.object().size(), " members, at most ",
                                     max_parts, " are read"));
  for (const auto& [name, value] : parts.object()) {
    if (name.empty() || name.size() > max_name_bytes)
      return fail(Errc::bad_input,
                  cat("a part's name should have 1 to ", max_name_bytes, " bytes: ", quote(name)));
    if (name.find_first_not_of(name_characters) != std::string::npos)
      return fail(Errc::bad_input, cat("a part's name should consist of letters, digits and \"_./ "
                                       "-\": ",
                                       quote(name)));
    const auto number = finite(value, name);
    RETURN_IF_ERROR(number);
    into.parts.emplace_back(name, *number);
  }
  return {};
}

}  // namespace

std::string encode_request(std::uint64_t id, const protocol::RewardRequest& request) {
  Json line;
  line.set("id", id)
      .set("prompt", as_utf8(request.prompt))
      .set("completion", as_utf8(request.completion));
  line.set("answer", request.answer);
  return line.dump() + "\n";
}

Result<Response> parse_answer(std::string_view line) {
  const auto json = parse_json(line, "its answer", limits);
  if (!json || !json->is_object())
    return fail(Errc::bad_input,
                cat("it wrote the line ", quote(line, 200), ", which is not a JSON object",
                    !json && line.starts_with('{') ? cat(" (", json.error().what, ")") : "",
                    "; only answers may be written to standard output"));
  const Json *id = json->find("id"), *reward = json->find("reward"), *parts = json->find("parts");
  if (id == nullptr || !id->is_integer())
    return fail(Errc::bad_input, "its answer has no \"id\" that is a whole number");
  if (reward == nullptr) return fail(Errc::bad_input, "its answer has no \"reward\"");
  Response answer{id->integer(), {}};
  const auto number = finite(*reward, "reward");
  RETURN_IF_ERROR(number);
  answer.scored.reward = *number;
  if (parts != nullptr) RETURN_IF_ERROR(read_parts(*parts, answer.scored));
  return answer;
}

}  // namespace troupe::actors::rules
