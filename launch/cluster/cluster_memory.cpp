#include "launch/cluster/cluster_memory.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "launch/memory/check_memory.h"
#include "launch/memory/memory.h"
#include "launch/memory/model_shares.h"
#include "launch/memory/rank_memory.h"
#include "launch/memory/what_fits.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/rewards.h"

namespace troupe::launch {

namespace {

std::uint64_t replicas_of(const RunConfig& own) {
  return std::max<std::uint64_t>(1, count_of(own.parallel.dp * own.parallel.cp));
}

void add_policy(const RunConfig& own, const engine::models::DecoderSpec& spec, GroupMemory& group) {
  for (const RankMemory& rank : memory_of_ranks(own, spec)) {
    const std::uint64_t bytes = rank.fixed() - rank.critic;  // a group of its own
    group.bytes += replicas_of(own) * bytes;
    group.largest = std::max(group.largest, bytes);
  }
}

/// A model with `each` bytes for a value.
void add_model(const RunConfig& own, const engine::models::DecoderSpec& spec, std::uint64_t each,
               GroupMemory& group) {
  const ModelShares shares(own, spec);
  group.bytes += replicas_of(own) * each * shares.all;
  group.largest += each * shares.largest;
}

void add_role(const NodeSpec& node, const RunConfig& own, const engine::models::DecoderSpec& spec,
              GroupMemory& group) {
  constexpr std::uint64_t f32 = 4;
  switch (node.role) {
    case Role::policy:
      return add_policy(own, spec, group);
    case Role::critic: {
      const std::uint64_t all = critic_bytes(own, spec);
      group.bytes += replicas_of(own) * count_of(own.parallel.tp * own.parallel.pp) * all;
      group.largest += all;
      return;
    }
    case Role::reference:
      return add_model(own, spec, f32, group);
    case Role::rollout:  // the weights in use, and those that replace them
      return add_model(own, spec, adapts(own) ? f32 : 2 * f32, group);
    case Role::reward:
      for (const RewardItem& item : value_or_throw(reward_items(own)))
        add_model(own, value_or_throw(engine::checkpoint::read_folder_spec(item.path())), f32,
                  group);
      return;
    case Role::verifier:
      return;
  }
}

}  // namespace

std::vector<GroupMemory> memory_of_groups(const RunConfig& config,
                                          const std::vector<NodeSpec>& nodes,
                                          const engine::models::DecoderSpec& spec) {
  std::vector<GroupMemory> groups;
  for (const NodeSpec& node : nodes) {
    groups.push_back({.name = node.name});
    add_role(node, config_on(node, config), spec, groups.back());
  }
  return groups;
}

Result<std::string> check_memory(const RunConfig& config, const std::vector<NodeSpec>& nodes,
                                 const engine::models::DecoderSpec& spec,
                                 const AvailableMemory& room) {
  MemoryNeed together;
  std::vector<std::string> parts;
  for (const GroupMemory& group : memory_of_groups(config, nodes, spec)) {
    const auto one = compare_memory({group.largest, group.largest}, 1, {{}, room.process},
                                    [&] { return cat("This is a process of ", group.name); });
    RETURN_IF_ERROR(one);
    together.fixed += group.bytes;
    if (group.bytes > 0) parts.push_back(cat(group.name, " ", bytes_text(group.bytes)));
  }
  together.all = std::max(together.fixed, memory_need(config, spec, true).all);
  return compare_memory(together, 1, {room.machine, {}}, [&] {
    return cat("By group: ", join(parts, ", "), ". ",
               what_fits(config, {.processes = 1, .threads = true, .room = {room.machine, {}}}));
  });
}

}  // namespace troupe::launch
