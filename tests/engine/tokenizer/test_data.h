// Paths and small readers that the tokenizer's tests share.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe::engine::tokenizer {

inline const std::string data = TROUPE_TEST_DATA;

inline std::vector<TokenId> ids_of(const Json& list) {
  std::vector<TokenId> out;
  for (const Json& id : list.array()) out.push_back(static_cast<TokenId>(id.integer()));
  return out;
}

}  // namespace troupe::engine::tokenizer
