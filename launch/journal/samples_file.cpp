#include "launch/journal/samples_file.h"

#include <cmath>

#include "engine/base/json/json.h"
#include "engine/base/text/base64.h"
#include "engine/base/text/terminal_text.h"
#include "engine/base/text/text.h"
#include "launch/journal/metrics_file.h"

namespace troupe::launch::journal {

namespace {

std::string answer_text(const Json& answer) {
  return answer.is_string() ? answer.string() : answer.dump();
}

algorithms::Sample from_line(const Json& line) {
  algorithms::Sample sample;
  const auto text = [&](const char* key) { return get_string(line, key, "sample").value_or(""); };
  const auto number = [&](const char* key) {
    return get_number(line, key, "sample").value_or(std::nan(""));
  };
  sample.sample_id =
      static_cast<std::uint64_t>(get_integer(line, "sample_id", "sample").value_or(0));
  sample.prompt = text("prompt");
  sample.completion = text("completion");
  sample.finish_reason = text("finish_reason");
  sample.reward = number("reward");
  sample.advantage = number("advantage");
  if (const Json* answer = line.find("answer")) sample.answer = *answer;
  if (const Json* parts = line.find("parts"); parts && parts->is_object()) {
    for (const auto& [name, value] : parts->object())
      sample.parts.emplace_back(name, value.is_number() ? value.number() : 0);
  }
  if (const Json* pieces = line.find("pieces"); pieces && pieces->is_array())
    for (const Json& piece : pieces->array())
      if (piece.is_array() && piece.array().size() == 2 && piece.array()[0].is_string())
        sample.pieces.emplace_back(piece.array()[0].string(), piece.array()[1] == Json(1));
  return sample;
}

template <class T>
Json list_of(const std::vector<T>& values) {
  Json::Array list;
  for (const T value : values) {
    if constexpr (std::is_floating_point_v<T>)
      list.emplace_back(static_cast<double>(value));
    else
      list.emplace_back(std::int64_t{value});
  }
  return Json(std::move(list));
}

/// "[completion] 26,62 [tool] :88 [completion] 88", each on a line of its own: what the policy
/// sampled, and what others wrote.
std::string completion_text(const algorithms::Sample& sample) {
  if (sample.pieces.empty()) return cat("\n[completion] ", for_terminal(sample.completion));
  std::string out;
  for (const auto& [text, sampled] : sample.pieces)
    out += cat(sampled ? "\n[completion] " : "\n[tool] ", for_terminal(text));
  return out;
}

/// Replaces invalid bytes by U+FFFD: JSON is UTF-8, the output of a model may not be.
std::string utf8(std::string_view text) {
  std::string out;
  for (std::size_t bad = 0; !valid_utf8(text, &bad); text.remove_prefix(bad + 1))
    out.append(text.substr(0, bad)).append("\xEF\xBF\xBD");
  return out.append(text);
}

}  // namespace

std::string sample_line(std::int64_t step, const algorithms::Sample& sample) {
  Json line, parts{Json::Object{}};
  line.set("step", step);
  line.set("sample_id", sample.sample_id);
  line.set("prompt", utf8(sample.prompt));
  line.set("completion", utf8(sample.completion));
  if (!sample.answer.is_null()) line.set("answer", sample.answer);
  line.set("finish_reason", sample.finish_reason);
  line.set("reward", std::isfinite(sample.reward) ? Json(sample.reward) : Json());
  line.set("advantage", sample.advantage);
  for (const auto& [name, value] : sample.parts) parts.set(name, value);
  line.set("parts", parts);
  Json::Array pieces;
  for (const auto& [text, sampled] : sample.pieces)
    pieces.emplace_back(Json::Array{Json(utf8(text)), Json(sampled ? 1 : 0)});
  if (!pieces.empty()) line.set("pieces", Json(std::move(pieces)));
  if (sample.ids.empty()) return line.dump() + "\n";
  line.set("prompt_ids", list_of(sample.prompt_ids));
  line.set("ids", list_of(sample.ids));
  line.set("logprobs", list_of(sample.logprobs));
  if (!sample.masks.all_whole()) {
    Json::Array masks;
    for (std::size_t token = 0; token < sample.masks.size(); ++token)
      masks.emplace_back(encode_base64(sample.masks[token]));
    line.set("sampling_masks", Json(std::move(masks)));
  }
  Json::Array versions;
  for (const auto& [version, count] : sample.versions)
    versions.emplace_back(Json::Array{Json(version), Json(std::int64_t{count})});
  line.set("versions", Json(std::move(versions)));
  if (!sample.sampled.empty()) line.set("sampled", list_of(sample.sampled));
  return line.dump() + "\n";
}

std::string sample_text(std::int64_t step, const algorithms::Sample& sample) {
  std::string out =
      cat("--- step ", step, ", sample ", sample.sample_id, ", reward ", to_text(sample.reward, 3),
          ", advantage ", to_text(sample.advantage, 3), ", ", sample.finish_reason);
  for (const auto& [name, value] : sample.parts)
    out += cat(", ", for_terminal(name), ' ', to_text(value, 3));
  out += cat("\n[prompt] ", for_terminal(sample.prompt), completion_text(sample));
  if (!sample.answer.is_null()) out += cat("\n[answer] ", for_terminal(answer_text(sample.answer)));
  return out + "\n\n";
}

Result<> rewrite_sample_texts(const OutputFolder& folder) {
  const std::string lines = folder.path_of("samples.jsonl");
  std::string text;
  for_each_line(lines, [&](const Json& line, std::string_view) {
    text += sample_text(get_integer(line, "step", lines).value_or(0), from_line(line));
  });
  // Without a sample left, an existing file is emptied, but none is created.
  if (text.empty() && !folder.contains("samples.txt")) return {};
  return folder.replace("samples.txt", text);
}

}  // namespace troupe::launch::journal
