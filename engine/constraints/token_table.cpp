#include "engine/constraints/token_table.h"

#include <algorithm>

namespace troupe::engine::constraints {

TokenTable::TokenTable(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
  for (std::size_t id = 0; id < tokens_.size(); ++id)
    if (!tokens_[id].empty()) ids_.push_back(static_cast<std::int32_t>(id));
  std::ranges::stable_sort(ids_, {}, [this](std::int32_t id) -> const std::string& {
    return tokens_[static_cast<std::size_t>(id)];
  });
  std::vector<std::size_t> path;  // nodes of the bytes of the last token
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back())
      nodes_[path.back()].skip = static_cast<std::int32_t>(nodes_.size());
  };
  const std::string* before = nullptr;
  for (std::size_t at = 0; at < ids_.size(); ++at) {
    const std::string& text = tokens_[static_cast<std::size_t>(ids_[at])];
    longest_ = std::max(longest_, text.size());
    std::size_t common = 0;
    if (before != nullptr) {
      const std::size_t shorter = std::min(before->size(), text.size());
      while (common < shorter && (*before)[common] == text[common]) ++common;
    }
    close(common);
    for (std::size_t i = common; i < text.size(); ++i) {
      path.push_back(nodes_.size());
      const auto first = static_cast<std::int32_t>(at);
      nodes_.push_back(
          {static_cast<unsigned char>(text[i]), static_cast<std::int32_t>(i), 0, first, first});
    }
    nodes_[path.back()].last = static_cast<std::int32_t>(at) + 1;
    if (common < text.size()) nodes_[path.back()].first = static_cast<std::int32_t>(at);
    before = &text;
  }
  close(0);
}

const std::string& TokenTable::bytes_of(std::int32_t token) const {
  static const std::string none;
  const auto at = static_cast<std::size_t>(token);
  return at < tokens_.size() ? tokens_[at] : none;
}

}  // namespace troupe::engine::constraints
