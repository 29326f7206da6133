#include "actors/roles/rules/json_lines.h"

#include <cmath>

#include "engine/base/text/text.h"

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
  line.set("answer", request.answer).set("row", request.row).set("messages", request.messages);
  return line.dump() + "\n";
}

std::string encode_group(std::uint64_t id, std::span<const protocol::RewardRequest> group) {
  Json::Array texts, ids;
  for (const auto& each : group) {
    texts.emplace_back(as_utf8(each.completion));
    Json::Array tokens;
    for (const std::int32_t token : each.completion_ids) tokens.emplace_back(token);
    ids.emplace_back(std::move(tokens));
  }
  const protocol::RewardRequest none;
  const auto& first = group.empty() ? none : group.front();
  Json line;
  line.set("id", id)
      .set("prompt", as_utf8(first.prompt))
      .set("completions", std::move(texts))
      .set("completion_ids", std::move(ids));
  line.set("answer", first.answer).set("row", first.row).set("messages", first.messages);
  return line.dump() + "\n";
}

namespace {

// The object of a line with its id, and the error if the program names one instead of `rewards`.
Result<Json> read_line(std::string_view line, const char* rewards, Response& answer) {
  const auto json = parse_json(line, "its answer", limits);
  if (!json || !json->is_object())
    return fail(Errc::bad_input,
                cat("it wrote the line ", quote(line, 200), ", which is not a JSON object",
                    !json && line.starts_with('{') ? cat(" (", json.error().what, ")") : "",
                    "; only answers may be written to standard output"));
  const Json *id = json->find("id"), *error = json->find("error");
  if (id == nullptr || !id->is_integer())
    return fail(Errc::bad_input, "its answer has no \"id\" that is a whole number");
  answer.id = id->integer();
  if (json->find(rewards) == nullptr && error != nullptr && error->is_string())
    answer.error = error->string().empty() ? "it named no reason" : error->string();
  return *json;
}

// A reward, or null: the rule does not apply to the completion.
Result<Scored> read_reward(const Json& reward, std::string_view name, const Json* parts) {
  Scored out;
  out.applies = !reward.is_null();
  if (out.applies) {
    const auto number = finite(reward, name);
    RETURN_IF_ERROR(number);
    out.reward = *number;
  }
  if (parts != nullptr && !parts->is_null()) RETURN_IF_ERROR(read_parts(*parts, out));
  return out;
}

}  // namespace

Result<Response> parse_answer(std::string_view line) {
  Response answer;
  const auto json = read_line(line, "reward", answer);
  RETURN_IF_ERROR(json);
  if (!answer.error.empty()) return answer;
  const Json* reward = json->find("reward");
  if (reward == nullptr) return fail(Errc::bad_input, "its answer has no \"reward\"");
  auto scored = read_reward(*reward, "reward", json->find("parts"));
  RETURN_IF_ERROR(scored);
  answer.scored.push_back(std::move(*scored));
  return answer;
}

namespace {

Result<> check_list(const Json* list, std::string_view name, std::size_t count) {
  if (list != nullptr && list->is_array() && list->array().size() == count) return {};
  return fail(Errc::bad_input,
              cat("its answer should have ", quote(name), ", a list of ", count, ", found ",
                  list == nullptr    ? "none"
                  : list->is_array() ? cat("a list of ", list->array().size())
                                     : list->type_name()));
}

}  // namespace

Result<Response> parse_group_answer(std::string_view line, std::size_t count) {
  Response answer;
  const auto json = read_line(line, "rewards", answer);
  RETURN_IF_ERROR(json);
  if (!answer.error.empty()) return answer;
  const Json *rewards = json->find("rewards"), *parts = json->find("parts");
  RETURN_IF_ERROR(check_list(rewards, "rewards", count));
  if (parts != nullptr) RETURN_IF_ERROR(check_list(parts, "parts", count));
  for (std::size_t i = 0; i < count; ++i) {
    auto scored = read_reward(rewards->array()[i], cat("rewards[", i, "]"),
                              parts == nullptr ? nullptr : &parts->array()[i]);
    RETURN_IF_ERROR(scored);
    answer.scored.push_back(std::move(*scored));
  }
  return answer;
}

}  // namespace troupe::actors::rules
