#include "launch/commands/tokenize.h"

#include <iostream>

#include "engine/tokenizer/tokenizer.h"
#include "launch/commands/json_lines.h"

namespace troupe::launch {

namespace {

Json json_of(const std::vector<engine::tokenizer::TokenId>& ids) {
  Json::Array out;
  out.reserve(ids.size());
  for (const auto id : ids) out.emplace_back(std::int64_t{id});
  return out;
}

}  // namespace

int tokenize(const TokenizeOptions& options) {
  const auto tokenizer = value_or_throw(engine::tokenizer::Tokenizer::load(options.model));
  const auto encode = [&](const Json& line) -> Result<Json> {
    const auto text = get_string(line, "text", "the line");
    RETURN_IF_ERROR(text);
    return Json(Json::Object{{"ids", json_of(tokenizer.encode(*text, options.special))}});
  };
  const auto decode = [&](const Json& line) -> Result<Json> {
    const auto ids = ids_of(line, static_cast<std::int64_t>(tokenizer.vocab_size()));
    RETURN_IF_ERROR(ids);
    return Json(Json::Object{{"text", tokenizer.decode(*ids, true)}});
  };
  std::ios::sync_with_stdio(false);
  value_or_throw(options.decode ? answer_lines(std::cin, std::cout, decode)
                                : answer_lines(std::cin, std::cout, encode));
  return 0;
}

}  // namespace troupe::launch
