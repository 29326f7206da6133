// MpiCommunicator: the Communicator port over MPI's non-blocking collectives.
#include "transports/mpi/mpi_communicator.h"
#include <algorithm>

#include "engine/base/check.h"
#include "transports/mpi/mpi_session.h"

namespace troupe::transports::mpi {
namespace {

/// MPI datatype of a block of `bytes` bytes, repeated every `stride` bytes.
class Block {
 public:
  Block(std::size_t bytes, std::size_t stride) {
    MPI_Datatype plain;
    MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &plain);
    MPI_Type_create_resized(plain, 0, static_cast<MPI_Aint>(stride), &type_);
    MPI_Type_commit(&type_);
    MPI_Type_free(&plain);
  }
  ~Block() { MPI_Type_free(&type_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  MPI_Datatype type() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

class MpiCommunicator final : public engine::parallel::Communicator {
 public:
  MpiCommunicator(std::shared_ptr<Session> session, MPI_Comm group)
      : session_(std::move(session)), group_(group) {
    MPI_Comm_rank(group_, &rank_);
    MPI_Comm_size(group_, &size_);
  }
  ~MpiCommunicator() override {
    if (group_ != MPI_COMM_WORLD) MPI_Comm_free(&group_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void broadcast(std::span<std::byte> data, int root, std::string_view what) override {
    broadcast_blocks(data, root, what, false);
  }
  void broadcast_idle(std::span<std::byte> data, int root, std::string_view what) override {
    broadcast_blocks(data, root, what, true);
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  std::string_view what) override {
    check(all.size() == mine.size() * size_, "all_gather: `all` holds one block per rank");
    in_blocks(mine.size(), [&](std::size_t begin, std::size_t n) {
      const Block from_each(n, mine.size());
      MPI_Request request;
      session_->check_success(
          MPI_Iallgather(mine.data() + begin, static_cast<int>(n), MPI_BYTE, all.data() + begin, 1,
                         from_each.type(), group_, &request),
          what);
      session_->wait(request, n * size_, what);
    });
  }

  void all_to_all(std::span<const std::byte> mine, std::span<std::byte> theirs,
                  std::string_view what) override {
    const std::size_t block = mine.size() / size_;
    check(theirs.size() == mine.size() && block * size_ == mine.size(),
          "all_to_all: expected one block of equal size per rank");
    in_blocks(block, [&](std::size_t begin, std::size_t n) {
      const Block part(n, block);
      MPI_Request request;
      session_->check_success(
          MPI_Ialltoall(mine.data() + begin, 1, part.type(), theirs.data() + begin, 1, part.type(),
                        group_, &request),
          what);
      session_->wait(request, n * size_, what);
    });
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    constexpr auto what = "splitting the group";
    check(color >= 0, "split: the color must not be negative");
    MPI_Request request;
    session_->check_success(MPI_Ibarrier(group_, &request), what);
    session_->wait(request, 0, what);  // MPI_Comm_split itself has no deadline
    MPI_Comm part;
    session_->check_success(MPI_Comm_split(group_, color, key, &part), what);
    return std::make_unique<MpiCommunicator>(session_, part);
  }

  void abort(std::string_view why) noexcept override { session_->abort(why); }

 private:
  void broadcast_blocks(std::span<std::byte> data, int root, std::string_view what, bool idle) {
    check(root >= 0 && root < size_, "the root of a broadcast is a rank of the group");
    in_blocks(data.size(), [&](std::size_t begin, std::size_t n) {
      MPI_Request request;
      session_->check_success(
          MPI_Ibcast(data.data() + begin, static_cast<int>(n), MPI_BYTE, root, group_, &request),
          what);
      session_->wait(request, n, what, idle && begin == 0);
    });
  }

  /// Calls work(begin, length) for each block of `bytes` bytes, and once for 0 bytes, so that every
  /// collective synchronizes the ranks.
  template <class Work>
  void in_blocks(std::size_t bytes, const Work& work) const {
    for (std::size_t begin = 0; begin == 0 || begin < bytes; begin += session_->max_block_bytes())
      work(begin, std::min(bytes - begin, session_->max_block_bytes()));
  }

  std::shared_ptr<Session> session_;
  MPI_Comm group_;
  int rank_ = 0, size_ = 1;
};

}  // namespace
}  // namespace troupe::transports::mpi

extern "C" __attribute__((visibility("default"))) void troupe_start_mpi(
    troupe::transports::mpi::MpiOptions options,
    troupe::Result<std::unique_ptr<troupe::engine::parallel::Communicator>>& world) {
  using namespace troupe::transports::mpi;
  auto session = Session::start(std::move(options));
  if (session)
    world = std::make_unique<MpiCommunicator>(std::move(*session), MPI_COMM_WORLD);
  else
    world = troupe::fail(std::move(session.error()));
}
