// Shared memory: other processes read it where it lies, nobody changes it, and a name leads to
// nothing else.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "engine/base/memory/shared_memory.h"

namespace troupe {
namespace {

using testing::HasSubstr;

std::unique_ptr<SharedMemory> sealed(std::size_t bytes, char value) {
  auto memory = value_or_throw(SharedMemory::create(bytes));
  const std::vector<std::byte> half(bytes / 2, static_cast<std::byte>(value));
  value_or_throw(memory->append(half));
  value_or_throw(memory->append(half));
  value_or_throw(memory->seal());
  return memory;
}

TEST(SharedMemory, IsReadByAnotherProcess) {
  const auto memory = sealed(100000, 'a');
  const SharedMemoryName name = memory->name();
  const pid_t child = ::fork();
  if (child == 0) {
    const auto found = SharedMemory::open(name, 100000);
    const bool same = found && std::ranges::all_of((*found)->bytes(), [](std::byte each) {
                        return each == static_cast<std::byte>('a');
                      });
    ::_exit(same ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SharedMemory, OutlivesItsOwner) {
  auto memory = sealed(5000, 'b');
  const auto found = value_or_throw(SharedMemory::open(memory->name(), 5000));
  memory.reset();
  EXPECT_EQ(found->bytes()[4999], static_cast<std::byte>('b'));
}

TEST(SharedMemory, CannotBeTruncatedOrWrittenTo) {
  const auto memory = sealed(5000, 'c');
  const std::string path = "/proc/self/fd/" + std::to_string(memory->name().file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_NE(::ftruncate(file, 0), 0);
  EXPECT_NE(::ftruncate(file, 1 << 20), 0);
  EXPECT_EQ(::write(file, "x", 1), -1);
  EXPECT_EQ(::mmap(nullptr, 5000, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), MAP_FAILED);
  ::close(file);
}

TEST(SharedMemory, IsFoundByItsTokenOnly) {
  const auto memory = sealed(5000, 'd');
  SharedMemoryName name = memory->name();
  name.token[3] = name.token[3] == '0' ? '1' : '0';
  EXPECT_EQ(SharedMemory::open(name, 5000).error().code, Errc::not_found);
  name = memory->name();
  name.file = 0;
  EXPECT_EQ(SharedMemory::open(name, 5000).error().code, Errc::not_found);
  name = memory->name();
  name.process = -1;
  EXPECT_EQ(SharedMemory::open(name, 5000).error().code, Errc::not_found);
}

TEST(SharedMemory, OfAnotherSizeIsRefused) {
  const auto memory = sealed(5000, 'e');
  EXPECT_THAT(SharedMemory::open(memory->name(), 6000).error().what,
              HasSubstr("expected 6000 bytes, found 5000"));
}

TEST(SharedMemory, ThatItsOwnerCanStillChangeIsRefused) {
  const auto memory = value_or_throw(SharedMemory::create(5000));
  EXPECT_EQ(SharedMemory::open(memory->name(), 5000).error().code, Errc::bad_input);
}

TEST(SharedMemory, MoreThanTheMachineHasIsAnError) {
  const auto memory = SharedMemory::create(std::size_t{1} << 60);
  ASSERT_FALSE(memory);
  EXPECT_THAT(memory.error().what, HasSubstr("shared memory of 1152921504606846976 bytes"));
}

}  // namespace
}  // namespace troupe
