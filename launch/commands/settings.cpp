#include "launch/commands/settings.h"

#include <limits>

#include "engine/base/text.h"

namespace troupe::launch {

namespace {

Result<> read_number(const Json& line, const char* key, double& to, bool& greedy) {
  if (!line.find(key)) return {};
  const auto value = get_number(line, key, "the line");
  if (!value) return fail(value.error());
  to = *value;
  greedy = false;
  return {};
}

template <class Integer>
Result<> read_integer(const Json& line, const char* key, Integer& to) {
  if (!line.find(key)) return {};
  const auto value = get_integer(line, key, "the line");
  if (!value) return fail(value.error());
  if (*value < 0 || *value > std::numeric_limits<std::int32_t>::max()) {
    return fail(Errc::bad_input, cat(key, " = ", *value, ": from 0 to ", std::numeric_limits<std::int32_t>::max(), " is expected"));
  }
  to = static_cast<Integer>(*value);
  return {};
}

Result<> read_stop(const Json& line, std::vector<std::string>& to) {
  const Json* stop = line.find("stop");
  if (!stop || stop->is_null()) return {};
  to.clear();
  const Json::Array one{*stop};
  for (const Json& each : stop->is_array() ? stop->array() : one) {
    if (!each.is_string()) return fail(Errc::bad_input, cat("stop: a text or a list of texts is expected, found ", each.type_name()));
    to.push_back(each.string());
  }
  return {};
}

}  // namespace

Result<> read_settings(const Json& line, engine::generate::SamplingParams& sampling) {
  bool greedy = sampling.greedy, penalties = true;
  for (auto [key, to] : {std::pair{"temperature", &sampling.temperature}, {"top_p", &sampling.top_p}, {"min_p", &sampling.min_p}}) {
    if (auto read = read_number(line, key, *to, greedy); !read) return read;
  }
  for (auto [key, to] : {std::pair{"repetition_penalty", &sampling.repetition_penalty}, {"presence_penalty", &sampling.presence_penalty}}) {
    if (auto read = read_number(line, key, *to, penalties); !read) return read;
  }
  if (line.find("top_k")) greedy = false;
  if (auto read = read_integer(line, "top_k", sampling.top_k); !read) return read;
  if (auto read = read_integer(line, "max_new_tokens", sampling.max_new_tokens); !read) return read;
  if (auto read = read_integer(line, "top_logprobs", sampling.top_logprobs); !read) return read;
  if (auto read = read_integer(line, "seed", sampling.seed); !read) return read;
  sampling.greedy = greedy;
  return read_stop(line, sampling.stop_strings);
}

}  // namespace troupe::launch
