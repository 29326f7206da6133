// PromptGroups: unfinished requests with the same prompt, whose keys and values are the same, so
// that they share its pages.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "engine/generate/generator.h"
#include "engine/generate/prefix_cache.h"

namespace troupe::engine::generate {

/// What the keys and values of a request depend on besides its tokens, and its salt.
PrefixCache::Context cache_context(const Request& request);

class PromptGroups {
 public:
  /// `shares`: false where keys depend on the length of their sequence; every request is then
  /// alone.
  explicit PromptGroups(bool shares) : shares_(shares) {}

  /// The number of the request's group. Requests whose prompts are scored are alone: all their rows
  /// are needed.
  std::uint64_t join(const Request& request);
  /// Once for each join().
  void leave(const Request& request);

 private:
  struct Group {
    std::uint64_t number = 0;
    std::size_t users = 0;
  };
  using Key = std::pair<std::vector<std::int32_t>, PrefixCache::Context>;
  bool is_alone(const Request& request) const { return !shares_ || request.scores_prompt(); }

  bool shares_;
  std::map<Key, Group> groups_;
  std::uint64_t numbers_ = 0;
};

}  // namespace troupe::engine::generate
