#include "actors/sandbox/memory_cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "actors/roles/rules/command.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/actors/sandbox/marked.h"

namespace troupe::actors::sandbox {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

// Files like those of a cgroup file system.
class FakeCgroup : public testing::Test {
 protected:
  FakeCgroup() {
    ::mkdtemp(path_.data());
    fs::create_directories(path_ + "/user/run.scope");
  }
  ~FakeCgroup() override { fs::remove_all(path_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name) << text;
  }
  std::string read(const std::string& name) const { return read_proc_file(path_ + "/" + name); }
  std::string own() const { return path_ + "/user/run.scope"; }

  std::string path_ = testing::TempDir() + "troupe-cgroup-XXXXXX";
};

TEST_F(FakeCgroup, OfVersion2LimitsMemoryAndSwap) {
  write("user/run.scope/cgroup.controllers", "cpu memory pids\n");
  write("user/run.scope/cgroup.subtree_control", "");
  write("user/run.scope/cgroup.procs", "");
  const auto parent = cgroup_parent_at(own());
  ASSERT_TRUE(parent) << parent.error().what;
  EXPECT_EQ(parent->version, CgroupParent::Version::v2);
  const auto group = MemoryCgroup::create(*parent, "reward-1", 512u << 20);
  ASSERT_TRUE(group) << group.error().what;
  EXPECT_EQ(read("user/run.scope/cgroup.subtree_control"), "+memory");
  EXPECT_EQ(read("user/run.scope/reward-1/memory.max"), "536870912");
  EXPECT_EQ(read("user/run.scope/reward-1/memory.swap.max"), "0");
  EXPECT_EQ(read("user/run.scope/reward-1/memory.oom.group"), "1");
  ASSERT_TRUE(group->add(4321));
  EXPECT_EQ(read("user/run.scope/reward-1/cgroup.procs"), "4321");
  EXPECT_FALSE(group->exceeded());
  write("user/run.scope/reward-1/memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n");
  EXPECT_TRUE(group->exceeded());
}

// A cgroup with processes cannot have children with limits.
TEST_F(FakeCgroup, OfVersion2MovesItsProcessesFirst) {
  write("user/run.scope/cgroup.controllers", "memory\n");
  write("user/run.scope/cgroup.subtree_control", "");
  write("user/run.scope/cgroup.procs", "77\n");
  ASSERT_TRUE(MemoryCgroup::create({CgroupParent::Version::v2, own()}, "reward-1", 1 << 20));
  EXPECT_EQ(read("user/run.scope/troupe/cgroup.procs"), "77");
  EXPECT_EQ(read("user/run.scope/cgroup.subtree_control"), "+memory");
}

TEST_F(FakeCgroup, OfVersion1LimitsMemory) {
  write("user/run.scope/memory.limit_in_bytes", "9223372036854771712\n");
  const auto parent = cgroup_parent_at(own());
  ASSERT_TRUE(parent) << parent.error().what;
  EXPECT_EQ(parent->version, CgroupParent::Version::v1);
  const auto group = MemoryCgroup::create(*parent, "reward-1", 1 << 20);
  ASSERT_TRUE(group) << group.error().what;
  EXPECT_EQ(read("user/run.scope/reward-1/memory.limit_in_bytes"), "1048576");
  write("user/run.scope/reward-1/memory.oom_control", "under_oom 0\noom_kill 2\n");
  EXPECT_TRUE(group->exceeded());
}

TEST_F(FakeCgroup, WithoutAMemoryControllerIsRefused) {
  write("user/run.scope/cgroup.controllers", "cpu pids\n");
  EXPECT_THAT(cgroup_parent_at(own()).error().what, HasSubstr("has no memory controller"));
  EXPECT_THAT(cgroup_parent_at(path_).error().what,
              HasSubstr("expected a directory of a cgroup file system"));
}

// Root owns every cgroup; the attribute states that one is delegated.
TEST_F(FakeCgroup, OfThisProcessIsUsedWhenItIsDelegated) {
  write("user/run.scope/cgroup.controllers", "memory\n");
  const std::string mounts =
      cat("30 23 0:26 / ", path_, " rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  const bool owned = ::geteuid() != 0;
  EXPECT_EQ(delegated_cgroup(mounts, "0::/user/run.scope\n").has_value(), owned);
  if (::system(cat("setfattr -n trusted.delegate -v 1 ", own(), " 2>/dev/null").c_str()) == 0) {
    const auto found = delegated_cgroup(mounts, "0::/user/run.scope\n");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->path, own());
  }
  EXPECT_FALSE(delegated_cgroup(mounts, "0::/elsewhere\n"));
  EXPECT_FALSE(delegated_cgroup("", "0::/user/run.scope\n"));
}

// A group below that of this test, in the kernel's own file system.
class RealCgroup : public testing::Test {
 protected:
  void SetUp() override {
    const char* given = std::getenv("TROUPE_TEST_CGROUP");
    if (given == nullptr || !cgroup_parent_at(given))
      GTEST_SKIP() << "SKIP: TROUPE_TEST_CGROUP names no directory for memory cgroups";
    parent_ = given;
  }
  std::string parent_;
};

TEST_F(RealCgroup, BoundsEveryAttackAt600MiB) {
  for (const Isolation isolation : {Isolation::namespaces, Isolation::limits})
    for (const char* how : {"private_memory", "posix_shared_memory", "shared_mappings",
                            "remains_of_small_mappings", "socket_buffers", "pipes"}) {
      rules::CommandOptions options;
      options.run = {hostile_program(), "holds_memory", cat("cgroup-", ::getpid()), how};
      options.timeout = options.startup = 60;
      options.limits = {.isolation = isolation, .processes = 4};
      options.limits.memory_cgroup = parent_;
      rules::Command command(options, "reward[0]");
      const protocol::RewardRequest request{"a question", "bad", "an answer"};
      const auto result = command.score({&request, 1})[0];
      for (const auto& group : fs::directory_iterator(parent_)) {
        if (!group.path().filename().string().starts_with("troupe-reward-")) continue;
        for (const char* name : {"memory.max_usage_in_bytes", "memory.peak"}) {
          const std::string peak = read_proc_file((group.path() / name).string());
          EXPECT_LE(std::strtoull(peak.c_str(), nullptr, 10) >> 20, 600) << how;
        }
      }
      if (!result) {
        EXPECT_THAT(result.error().what, testing::StartsWith("memory: ")) << how;
      }
    }
}

}  // namespace
}  // namespace troupe::actors::sandbox
