#include "launch/cluster/cluster_memory.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/checkpoint/load_decoder.h"
#include "launch/memory/check_memory.h"
#include "launch/memory/memory.h"
#include "launch/memory/model_shares.h"
#include "launch/memory/rank_memory.h"
#include "launch/memory/what_fits.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/rewards.h"

namespace troupe::launch::cluster {

namespace {

std::uint64_t replicas_of(const config::RunConfig& own) {
  return std::max<std::uint64_t>(1, memory::count_of(own.parallel.dp * own.parallel.cp));
}

void add_policy(const config::RunConfig& own, const engine::models::DecoderSpec& spec,
                GroupMemory& group) {
  for (const memory::RankMemory& rank : memory::memory_of_ranks(own, spec)) {
    const std::uint64_t bytes = rank.fixed() - rank.critic;  // a group of its own
    group.bytes += replicas_of(own) * bytes;
    group.largest = std::max(group.largest, bytes);
  }
}

/// A model with `each` bytes for a value.
void add_model(const config::RunConfig& own, const engine::models::DecoderSpec& spec,
               std::uint64_t each, GroupMemory& group) {
  const memory::ModelShares shares(own, spec);
  group.bytes += replicas_of(own) * each * shares.all;
  group.largest += each * shares.largest;
}

void add_role(const NodeSpec& node, const config::RunConfig& own,
              const engine::models::DecoderSpec& spec, GroupMemory& group) {
  constexpr std::uint64_t f32 = 4;
  switch (node.role) {
    case recipes::Role::policy:
      return add_policy(own, spec, group);
    case recipes::Role::critic: {
      const std::uint64_t all = memory::critic_bytes(own, spec);
      group.bytes += replicas_of(own) * memory::count_of(own.parallel.tp * own.parallel.pp) * all;
      group.largest += all;
      return;
    }
    case recipes::Role::reference:
      return add_model(own, spec, f32, group);
    case recipes::Role::rollout:  // the weights in use, and those that replace them
      return add_model(own, spec, recipes::adapts(own) ? f32 : 2 * f32, group);
    case recipes::Role::reward:
      for (const recipes::RewardItem& item : value_or_throw(recipes::reward_items(own)))
        add_model(own, value_or_throw(engine::checkpoint::read_folder_spec(item.path())), f32,
                  group);
      return;
    case recipes::Role::verifier:
      return;
  }
}

}  // namespace

std::vector<GroupMemory> memory_of_groups(const config::RunConfig& config,
                                          const std::vector<NodeSpec>& nodes,
                                          const engine::models::DecoderSpec& spec) {
  std::vector<GroupMemory> groups;
  for (const NodeSpec& node : nodes) {
    groups.push_back({.name = node.name});
    add_role(node, config_on(node, config), spec, groups.back());
  }
  return groups;
}

Result<std::string> check_memory(const config::RunConfig& config,
                                 const std::vector<NodeSpec>& nodes,
                                 const engine::models::DecoderSpec& spec,
                                 const AvailableMemory& room) {
  memory::MemoryNeed together;
  std::vector<std::string> parts;
  for (const GroupMemory& group : memory_of_groups(config, nodes, spec)) {
    const auto one =
        memory::compare_memory({group.largest, group.largest}, 1, {{}, room.process},
                               [&] { return cat("This is a process of ", group.name); });
    RETURN_IF_ERROR(one);
    together.fixed += group.bytes;
    if (group.bytes > 0) parts.push_back(cat(group.name, " ", memory::bytes_text(group.bytes)));
  }
  together.all = std::max(together.fixed, memory::memory_need(config, spec, true).all);
  return memory::compare_memory(together, 1, {room.machine, {}}, [&] {
    return cat(
        "By group: ", join(parts, ", "), ". ",
        memory::what_fits(config, {.processes = 1, .threads = true, .room = {room.machine, {}}}));
  });
}

}  // namespace troupe::launch::cluster
