// Hosts of a cluster file, the placement of ranks, and the commands that start them.
#include "launch/cluster/hosts.h"

#include <gmock/gmock.h>

#include "engine/base/text/shell_word.h"
#include "launch/cluster/assignment.h"
#include "launch/cluster/cluster_file.h"
#include "launch/cluster/host_command.h"
#include "launch/cluster/sbatch.h"

namespace troupe::launch {
namespace {

using cluster::RankBlock;
using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty, testing::Not;

config::RunConfig sft() {
  config::RunConfig config;
  config.algorithm = "sft";
  config.model = "M";
  config.output = "O";
  config.data.paths = {"D"};
  return config;
}

config::RunConfig grpo() {
  config::RunConfig config = sft();
  config.algorithm = "grpo";
  config.reward = {{"exact_match", 1, "", {}}};
  return config;
}

constexpr const char* hosts =
    "controller: {address: 10.0.0.1, port: 7000}\n"
    "mpi: {network: 10.0.0.0/24, ports: 20000-20099}\n"
    "hosts: [{name: a, slots: 2, address: 10.0.0.1}, {name: b, slots: 3},\n"
    "        {name: c, slots: 4, address: root@10.0.0.3, program: /opt/troupe/bin/troupe}]\n";

std::vector<cluster::NodeSpec> placed(const std::string& groups, const config::RunConfig& config) {
  return value_or_throw(cluster::placed_nodes_of(
      value_or_throw(cluster::parse_cluster(cat(hosts, groups), "c.yaml", config))));
}

std::string refusal(const std::string& text, const config::RunConfig& config = sft()) {
  const auto file = cluster::parse_cluster(text, "c.yaml", config);
  if (!file) return file.error().what;
  const auto nodes = cluster::placed_nodes_of(*file);
  return nodes ? "accepted" : nodes.error().what;
}

TEST(ClusterHosts, AreRead) {
  const auto file = value_or_throw(
      cluster::parse_cluster(cat(hosts, "groups: [{role: policy}]"), "c.yaml", sft()));
  EXPECT_EQ(file.hosts.controller_address, "10.0.0.1");
  EXPECT_EQ(file.hosts.controller_port, 7000);
  EXPECT_EQ(file.hosts.mpi_network, "10.0.0.0/24");
  EXPECT_EQ(file.hosts.mpi_ports.first, 20000);
  EXPECT_EQ(file.hosts.mpi_ports.last, 20099);
  ASSERT_EQ(file.hosts.all.size(), 3u);
  EXPECT_EQ(file.hosts.all[1].address, "b");
  EXPECT_EQ(file.hosts.all[2].program, "/opt/troupe/bin/troupe");
  EXPECT_TRUE(file.hosts.is_here(file.hosts.all[0]));
  EXPECT_FALSE(file.hosts.is_here(file.hosts.all[1]));
}

TEST(ClusterHosts, GroupsTakeWholeHostsFirst) {
  const auto nodes = placed(
      "groups: [{role: policy, parallel: {dp: 3}}, {role: rollout, count: 3}, {role: verifier}]",
      grpo());
  std::vector<std::vector<RankBlock>> blocks;
  for (const auto& node : nodes) blocks.push_back(node.blocks);
  EXPECT_THAT(blocks, ElementsAre(ElementsAre(RankBlock{"b", 3}), ElementsAre(RankBlock{"a", 1}),
                                  ElementsAre(RankBlock{"a", 1}), ElementsAre(RankBlock{"c", 1}),
                                  ElementsAre(RankBlock{"c", 1})));
}

TEST(ClusterHosts, LargerGroupsAreDividedInBlocks) {
  const auto nodes = placed("groups: [{role: policy, hosts: [c, a], parallel: {dp: 6}}]", sft());
  EXPECT_THAT(nodes[0].blocks, ElementsAre(RankBlock{"c", 4}, RankBlock{"a", 2}));
  EXPECT_EQ(cluster::ranks_together(nodes[0], nodes), 4);
}

TEST(ClusterHosts, MistakesAreNamed) {
  const auto with = [&](const std::string& groups) { return refusal(cat(hosts, groups)); };
  EXPECT_THAT(with("groups: [{role: policy, hosts: [a, b], parallel: {dp: 6}}]"),
              HasSubstr("c.yaml:5: policy: expected 6 free slots, found 2 on a, 3 on b"));
  EXPECT_THAT(with("groups: [{role: policy, host: elsewhere}]"),
              HasSubstr("found \"elsewhere\"; they are a, b, c"));
  EXPECT_THAT(with("groups: [{role: policy, host: a, hosts: [b]}]"), HasSubstr("not both"));
  EXPECT_THAT(with("groups: [{role: policy, hosts: [a, a]}]"), HasSubstr("named twice"));
  EXPECT_THAT(refusal("groups: [{role: policy, host: a}]"), HasSubstr("the file has no hosts"));
  const auto host = [&](const std::string& text) {
    return refusal(
        cat("controller: {address: 10.0.0.1}\nhosts: [", text, "]\ngroups: [{role: policy}]"));
  };
  EXPECT_THAT(host("{slots: 1}"), HasSubstr("needs the key name"));
  EXPECT_THAT(host("{name: a, slots: 0}"), HasSubstr("slots: expected an integer from 1 to 1024"));
  EXPECT_THAT(host("{name: a}, {name: a}"), HasSubstr("its name is that of an earlier host"));
  EXPECT_THAT(host("{name: a}, {name: b, address: a}"), HasSubstr("its address is that"));
  EXPECT_THAT(host("{name: -oProxyCommand=x}"), HasSubstr("name: expected"));
  EXPECT_THAT(host("{name: a, address: 'x y'}"), HasSubstr("address: expected"));
  EXPECT_THAT(host("{name: a, program: troupe}"), HasSubstr("absolute path"));
  EXPECT_THAT(host("{name: a, slot: 1}"), HasSubstr("did you mean slots?"));
  EXPECT_THAT(refusal("hosts: [{name: a}]\ngroups: [{role: policy}]"),
              HasSubstr("controller is missing"));
  EXPECT_THAT(refusal("controller: {address: here}\ngroups: [{role: policy}]"),
              HasSubstr("expected an IPv4 address"));
  EXPECT_THAT(refusal("mpi: {ports: 20000}\ngroups: [{role: policy}]"), HasSubstr("mpi.ports"));
  EXPECT_THAT(refusal("mpi: {ports: 20000-20003}\ngroups: [{role: policy}]"),
              HasSubstr("at least 16 ports"));
}

constexpr const char* controller = "tcp://10.0.0.1:7000";

/// How the policy of a cluster file is started.
Result<cluster::HostStart> started(const std::string& policy, bool network_namespace,
                                   const std::string& file_hosts = hosts) {
  const auto file = value_or_throw(
      cluster::parse_cluster(cat(file_hosts, "groups: [", policy, "]"), "c.yaml", sft()));
  return cluster::host_start(value_or_throw(cluster::placed_nodes_of(file))[0], file.hosts,
                             {.mpi = {"/scratch", network_namespace},
                              .local_endpoint = "ipc://here",
                              .tcp_endpoint = controller,
                              .divided_groups = 2,
                              .divided_number = 1});
}

TEST(ClusterHosts, OneHostIsReachedBySsh) {
  const auto start = started("{role: policy, host: c}", true);
  if (!start && start.error().code == Errc::not_found) GTEST_SKIP() << start.error().what;
  ASSERT_TRUE(start);
  EXPECT_EQ(start->endpoint, controller);
  EXPECT_THAT(start->command, testing::Contains("BatchMode=yes"));
  EXPECT_EQ(start->command[start->command.size() - 2], "root@10.0.0.3");
  EXPECT_THAT(start->command.back(), HasSubstr("exec '/opt/troupe/bin/troupe' 'worker'"));
}

// Ranks in a network namespace reach the controller through a socket that ssh forwards.
TEST(ClusterHosts, RanksOfAnotherHostOpenNoPorts) {
  const auto start = started("{role: policy, host: c, parallel: {dp: 2}}", true);
  if (!start && start.error().code == Errc::not_found) GTEST_SKIP() << start.error().what;
  ASSERT_TRUE(start);
  EXPECT_THAT(start->endpoint, testing::MatchesRegex("ipc:///tmp/troupe-[0-9a-f]{32}"));
  const std::string socket = start->endpoint.substr(6);
  EXPECT_THAT(start->command, testing::IsSupersetOf({std::string("-R"), socket + ":10.0.0.1:7000",
                                                     std::string("ExitOnForwardFailure=yes")}));
  const std::string& script = start->command.back();
  EXPECT_THAT(script, HasSubstr("'/opt/troupe/bin/troupe' 'loopback' '--' 'mpirun'"));
  EXPECT_THAT(script, HasSubstr(cat("; code=$?; rm -f ", socket, "; exit $code; }")));
  EXPECT_THAT(script, Not(HasSubstr("/scratch")));
  EXPECT_EQ(started("{role: policy, host: c, parallel: {dp: 2}}", false)->endpoint, controller);
}

TEST(ClusterHosts, SeveralHostsAreOneMpirun) {
  const std::string policy = "{role: policy, hosts: [b, c], parallel: {dp: 6}}";
  const auto start = started(policy, true);
  if (!start && start.error().code == Errc::not_found) GTEST_SKIP() << start.error().what;
  ASSERT_TRUE(start);
  EXPECT_EQ(start->endpoint, controller);
  const std::string words = join(start->command, " ");
  EXPECT_THAT(words, HasSubstr("--mca btl_tcp_port_min_v4 20008 --mca btl_tcp_port_range_v4 92"));
  EXPECT_THAT(words, HasSubstr("--mca oob_tcp_dynamic_ipv4_ports 20004-20007"));
  EXPECT_THAT(words, HasSubstr("--mca oob_tcp_keepalive_time 1"));
  EXPECT_THAT(words, HasSubstr("--host b:3 --wdir "));
  EXPECT_THAT(words, HasSubstr(" : --host root@10.0.0.3:3 --wdir "));
  const std::string no_mpi =
      "controller: {address: 10.0.0.1}\nhosts: [{name: b, slots: 3}, {name: c, slots: 3}]\n";
  const auto refused = started(policy, true, no_mpi);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("set mpi: {network: ...}"));
}

TEST(ClusterHosts, BatchScriptsQuoteTheCommand) {
  const auto file = value_or_throw(cluster::parse_cluster(
      cat(hosts, "groups: [{role: policy, parallel: {dp: 3}}]"), "c.yaml", sft()));
  const std::string script = cluster::sbatch_script(
      value_or_throw(cluster::placed_nodes_of(file)), file.hosts,
      {"run.sh", "/bin/troupe", "c.yaml", {"train", "--set", "reward=[it's]"}, 2});
  EXPECT_THAT(script, testing::StartsWith("#!/bin/bash\n"));
  for (const char* line : {"#SBATCH --nodelist=a,b,c ", "#SBATCH --ntasks-per-node=4 ",
                           "#SBATCH --cpus-per-task=2 ", "#SBATCH --no-kill "})
    EXPECT_THAT(script, HasSubstr(line));
  EXPECT_THAT(script, HasSubstr("run=('/bin/troupe' 'launch' '--cluster' 'c.yaml' '--via' 'slurm' "
                                "'--' 'train' '--set' 'reward=[it'\\''s]')\n"));
}

TEST(ClusterHosts, AssignmentsKeepWhatIsCompared) {
  cluster::Assignment assignment;
  assignment.node = "policy";
  assignment.config = sft();
  assignment.build = "troupe 0.1.0";
  assignment.ranks_together = 3;
  assignment.inputs = {{"/m/config.json", 12, "0123"}, {"/m/it's", 0, ""}};
  const auto back = value_or_throw(cluster::assignment_of(to_line(assignment)));
  EXPECT_EQ(back.build, "troupe 0.1.0");
  EXPECT_EQ(back.ranks_together, 3);
  EXPECT_EQ(back.inputs, assignment.inputs);
}

TEST(ClusterHosts, ShellWordsComeBack) {
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(ClusterHosts, RolesCompareTheFilesThatTheyRead) {
  engine::checkpoint::Identity identity;
  for (const char* name :
       {"model", "tokenizer", "reference", "critic.model", "reward model r", "data"})
    identity.parts.push_back({name, {{name, 1, "x", cat("/", name)}}});
  const auto paths = [&](recipes::Role role) {
    std::vector<std::string> out;
    for (const auto& file : value_or_throw(cluster::inputs_of(identity, role, "/nowhere")))
      out.push_back(file.path);
    return out;
  };
  EXPECT_THAT(paths(recipes::Role::rollout), ElementsAre("/model", "/tokenizer"));
  EXPECT_THAT(paths(recipes::Role::reward), ElementsAre("/tokenizer", "/reward model r"));
  EXPECT_THAT(paths(recipes::Role::verifier), IsEmpty());
}

}  // namespace
}  // namespace troupe::launch
