#include "tests/actors/sandbox/memory_attacks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace {

constexpr long most = 1024;  // MiB
constexpr std::size_t mib = 1 << 20;

void touch(char* memory, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 4096) const_cast<volatile char*>(memory)[i] = 1;
}

// Calls `take` for the MiB that it took, until it gets none.
long repeat(const std::function<long()>& take) {
  long held = 0;
  for (long got = 1; held < most && got > 0; held += got) got = take();
  return held;
}

char* map(std::size_t bytes, int flags, int file = -1) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

long private_memory() {
  return repeat([] {
    char* memory = map(8 * mib, MAP_PRIVATE | MAP_ANONYMOUS);
    if (memory != nullptr) touch(memory, 8 * mib);
    return memory != nullptr ? 8 : 0;
  });
}

long sysv_shared_memory() {
  return repeat([] {
    const int id = ::shmget(IPC_PRIVATE, 16 * mib, IPC_CREAT | 0600);
    void* memory = id >= 0 ? ::shmat(id, nullptr, 0) : reinterpret_cast<void*>(-1);
    if (memory == reinterpret_cast<void*>(-1)) return 0;
    touch(static_cast<char*>(memory), 16 * mib);
    ::shmdt(memory);
    return 16;
  });
}

long write_mib(int file, long count) {
  const std::vector<char> block(mib, 'x');
  long written = 0;
  while (written < count &&
         ::write(file, block.data(), block.size()) == static_cast<ssize_t>(block.size()))
    ++written;
  return written;
}

long memory_files() {
  return repeat([] { return write_mib(::memfd_create("a", 0), 16); });
}

long files_in(const std::string& folder) {
  static int count = 0;
  return repeat([&] {
    const std::string name =
        folder + "/f" + std::to_string(::getpid()) + "-" + std::to_string(++count);
    const int file = ::open(name.c_str(), O_CREAT | O_WRONLY, 0600);
    const long written = write_mib(file, 8);
    ::close(file);
    return written;
  });
}

// Files without a name and without a descriptor, that only a mapping keeps.
long mapped_deleted_files() {
  return repeat([] {
    const int file = ::open("mapped", O_CREAT | O_RDWR | O_TRUNC, 0600);
    char* memory = ::ftruncate(file, 8 * mib) == 0 ? map(8 * mib, MAP_SHARED, file) : nullptr;
    const long written = memory != nullptr ? write_mib(file, 8) : 0;
    ::unlink("mapped");
    ::close(file);
    return written;
  });
}

// Pages that are in no page table.
long shared_mappings() {
  return repeat([] {
    char* memory = map(4 * mib, MAP_SHARED | MAP_ANONYMOUS);
    if (memory == nullptr) return 0;
    touch(memory, 4 * mib);
    ::madvise(memory, 4 * mib, MADV_DONTNEED);
    return 4;
  });
}

// One page keeps all memory of its mapping.
long remains_of(int flags, int file, std::size_t bytes) {
  return repeat([&] {
    char* memory = map(bytes, flags, file);
    if (memory == nullptr) return 0L;
    touch(memory, bytes);
    ::munmap(memory + 4096, bytes - 4096);
    return static_cast<long>(bytes / mib);
  });
}

long socket_buffers() {
  const std::vector<char> block(mib, 'x');
  const int large = 64 << 20;
  long bytes = 0;
  for (int ends[2]; ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0;)
    for (const int end : ends) {
      ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
      for (ssize_t sent; (sent = ::write(end, block.data(), block.size())) > 0;) bytes += sent;
    }
  return bytes / static_cast<long>(mib);
}

long pipes() {
  const std::vector<char> block(mib, 'x');
  long bytes = 0;
  for (int ends[2]; ::pipe2(ends, O_NONBLOCK) == 0;) {
    ::fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
    for (ssize_t sent; (sent = ::write(ends[1], block.data(), block.size())) > 0;) bytes += sent;
  }
  return bytes / static_cast<long>(mib);
}

// Pages of private memory that a pipe keeps after they are unmapped.
long pages_in_pipes() {
  long held = 0;
  for (int ends[2]; ::pipe2(ends, O_NONBLOCK) == 0;) {
    char* memory = map(4 * mib, MAP_PRIVATE | MAP_ANONYMOUS);
    if (memory == nullptr) break;
    ::madvise(memory, 4 * mib, MADV_HUGEPAGE);
    touch(memory, 4 * mib);
    iovec page{memory, 4096};
    if (::vmsplice(ends[1], &page, 1, 0) > 0) held += 2;
    ::munmap(memory, 4 * mib);
  }
  return held;
}

long semaphores() {
  int sets = 0;
  while (sets < 1000 && ::semget(IPC_PRIVATE, 32000, IPC_CREAT | 0600) >= 0) ++sets;
  return sets;
}

long message_queues() {
  const std::vector<char> message(8192 + sizeof(long), 1);
  long bytes = 0;
  for (int count = 0; count < 1000; ++count) {
    const int queue = ::msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    if (queue < 0) break;
    while (::msgsnd(queue, message.data(), 8192, IPC_NOWAIT) == 0) bytes += 8192;
  }
  if (::syscall(SYS_mq_open, "troupe-test", O_CREAT | O_RDWR, 0600, nullptr) >= 0) bytes += mib;
  return bytes / static_cast<long>(mib);
}

}  // namespace

const std::map<std::string, std::function<long()>>& memory_attacks() {
  constexpr int no_file = MAP_SHARED | MAP_ANONYMOUS;
  static const std::map<std::string, std::function<long()>> all{
      {"private_memory", private_memory},
      {"sysv_shared_memory", sysv_shared_memory},
      {"memory_files", memory_files},
      {"posix_shared_memory", [] { return files_in("/dev/shm"); }},
      {"working_folder", [] { return files_in("."); }},
      {"other_folders",
       [] { return files_in("/tmp") + files_in("/var/tmp") + files_in("/run/lock"); }},
      {"mapped_deleted_files", mapped_deleted_files},
      {"shared_mappings", shared_mappings},
      {"remains_of_small_mappings", [] { return remains_of(no_file, -1, 4 * mib); }},
      {"remains_of_large_mappings", [] { return remains_of(no_file, -1, 64 * mib); }},
      {"zero_device", [] { return remains_of(MAP_SHARED, ::open("/dev/zero", O_RDWR), 64 * mib); }},
      {"socket_buffers", socket_buffers},
      {"pipes", pipes},
      {"pages_in_pipes", pages_in_pipes},
      {"semaphores", semaphores},
      {"message_queues", message_queues},
  };
  return all;
}
