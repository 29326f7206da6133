#include "engine/generate/prompt_groups.h"

#include "engine/nn/lora_rows.h"

namespace troupe::engine::generate {

PrefixCache::Context cache_context(const Request& request) {
  PrefixCache::Context context;
  if (request.adapter == nullptr && request.cache_salt.empty()) return context;
  const std::uint64_t number = request.adapter ? request.adapter->number() : 0;
  context = {static_cast<std::int32_t>(number), static_cast<std::int32_t>(number >> 32)};
  for (const char each : request.cache_salt) context.push_back(each);
  return context;
}

std::uint64_t PromptGroups::join(const Request& request) {
  if (is_alone(request)) return ++numbers_;
  Group& group = groups_[{request.prompt, cache_context(request)}];
  if (group.users++ == 0) group.number = ++numbers_;
  return group.number;
}

void PromptGroups::leave(const Request& request) {
  if (is_alone(request)) return;
  const auto group = groups_.find({request.prompt, cache_context(request)});
  if (group == groups_.end()) return;  // join() threw
  if (--group->second.users == 0) groups_.erase(group);
}

}  // namespace troupe::engine::generate
