#include "launch/evaluation/answer_settings.h"

#include <algorithm>
#include <array>

#include "engine/base/text/text.h"

namespace troupe::launch::evaluation {

namespace {

/// Settings of beams; false for another key or a wrong value.
bool take_beams(const std::string& key, const Json& value, AnswerSettings& out) {
  if (key == "num_beams" && value.is_integer() && value.integer() >= 1 && value.integer() <= 64)
    out.beams = static_cast<int>(value.integer());
  else if (key == "length_penalty" && value.is_number())
    out.length_penalty = value.number();
  else
    return false;
  return true;
}

}  // namespace

Result<AnswerSettings> answer_settings(const TaskConfig& task) {
  AnswerSettings out;
  const auto wrong = [&](const std::string& key, const Json& value) {
    return fail(Errc::usage,
                cat(task.where, ": ", task.name, ": generation_kwargs: ", key, ' ', value.dump(),
                    " is not supported; there are until, max_gen_toks, "
                    "max_new_tokens, max_tokens, max_completion_tokens, do_sample, "
                    "temperature, num_beams and length_penalty"));
  };
  // The first of these that is given.
  constexpr std::array<std::string_view, 4> lengths = {"max_gen_toks", "max_new_tokens",
                                                       "max_tokens", "max_completion_tokens"};
  for (auto name = lengths.rbegin(); name != lengths.rend(); ++name)
    if (const Json* given = task.generation.find(*name)) {
      if (!given->is_integer() || given->integer() < 1) return wrong(std::string(*name), *given);
      out.new_tokens = given->integer();
    }
  bool samples = true;
  for (const auto& [key, value] : task.generation.object()) {
    if (key == "until") {
      for (const Json& stop : value.is_array() ? value.array() : Json::Array{value}) {
        if (!stop.is_string()) return wrong(key, value);
        out.stops.push_back(stop.string());
      }
    } else if (key == "do_sample" && value.is_bool()) {
      samples = value.boolean();
    } else if (key == "temperature" && value.is_number() && value.number() >= 0) {
      out.temperature = value.number();
    } else if (!take_beams(key, value, out) &&
               std::find(lengths.begin(), lengths.end(), key) == lengths.end()) {
      return wrong(key, value);
    }
  }
  if (!samples) out.temperature = 0;
  if (task.generation.find("until") == nullptr) out.stops = {task.fewshot_delimiter};
  return out;
}

}  // namespace troupe::launch::evaluation
