#include "transports/mpi/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <string>

#include "engine/base/text/text.h"

namespace troupe::transports::mpi {
namespace {

constexpr auto what = "sharing memory";

/// A file of this length, or -1.
int create_file(std::size_t bytes) {
  const int file = memfd_create("troupe-messages", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    close(file);
    return -1;
  }
  return file;
}

std::byte* map(int file, std::size_t bytes) {
  if (file < 0) return nullptr;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

/// Process and file descriptor of rank 0.
std::array<int, 2> broadcast_place(const Session& session, MPI_Comm group, int file) {
  std::array<int, 2> place{getpid(), file};
  MPI_Request request;
  session.check_success(MPI_Ibcast(place.data(), 2, MPI_INT, 0, group, &request), what);
  session.wait(request, sizeof place, what);
  return place;
}

bool all_succeeded(const Session& session, MPI_Comm group, bool here) {
  const int mine = here ? 1 : 0;
  int all = 0;
  MPI_Request request;
  session.check_success(MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_MIN, group, &request), what);
  session.wait(request, sizeof all, what);
  return all == 1;
}

}  // namespace

std::unique_ptr<SharedSegment> SharedSegment::create(const Session& session, MPI_Comm group,
                                                     std::size_t bytes) {
  int rank = 0;
  MPI_Comm_rank(group, &rank);
  int file = rank == 0 ? create_file(bytes) : -1;
  const auto [process, number] = broadcast_place(session, group, file);
  if (rank > 0 && number >= 0)
    file = open(cat("/proc/", process, "/fd/", number).c_str(), O_RDWR | O_CLOEXEC);
  std::byte* const at = map(file, bytes);
  const bool shared = all_succeeded(session, group, at != nullptr);
  if (file >= 0) close(file);  // the others have opened it
  if (shared) return std::unique_ptr<SharedSegment>(new SharedSegment({at, bytes}));
  if (at) munmap(at, bytes);
  return nullptr;
}

SharedSegment::~SharedSegment() {
  munmap(bytes_.data(), bytes_.size());
}

}  // namespace troupe::transports::mpi
