// MpiCommunicator: the Communicator port over MPI's non-blocking collectives.
#include "transports/mpi/mpi_communicator.h"
#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/text.h"
#include "engine/parallel/blocks.h"
#include "transports/mpi/mpi_requests.h"
#include "transports/mpi/mpi_session.h"

namespace troupe::transports::mpi {
namespace {

using engine::parallel::block_begin, engine::parallel::check_all_gather,
    engine::parallel::check_all_to_all, engine::parallel::check_reduce_scatter,
    engine::parallel::sum_blocks;
using engine::parallel::Counts, engine::parallel::Pending;

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
    session_->in_blocks(mine.size(), [&](std::size_t begin, std::size_t n) {
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
    session_->in_blocks(block, [&](std::size_t begin, std::size_t n) {
      const Block part(n, block);
      MPI_Request request;
      session_->check_success(
          MPI_Ialltoall(mine.data() + begin, 1, part.type(), theirs.data() + begin, 1, part.type(),
                        group_, &request),
          what);
      session_->wait(request, n * size_, what);
    });
  }

  Pending start_send(std::span<const std::byte> data, int to, std::string_view what) override {
    auto started = requests("message", what);
    started->send(data, peer(to, "send"));
    return {std::move(started), what};
  }

  Pending start_receive(std::span<std::byte> data, int from, std::string_view what) override {
    auto started = requests("message", what);
    started->receive(data, peer(from, "receive"));
    return {std::move(started), what};
  }

  Pending start_all_gather(std::span<const std::byte> mine, std::span<std::byte> all, Counts counts,
                           std::string_view what) override {
    check_all_gather(mine, all, counts, rank_, size_, what);
    auto started = requests("all_gather", what);
    std::size_t at = 0;
    for (int r = 0; r < size_; at += counts[r++]) {
      if (r != rank_)
        started->receive(all.subspan(at, counts[r]), r);
      else
        copy(mine, all.subspan(at, counts[r]));
    }
    each_other_rank([&](int r) { started->send(mine, r); });
    return {std::move(started), what};
  }

  Pending start_all_to_all(std::span<const std::byte> mine, Counts sent,
                           std::span<std::byte> theirs, Counts received,
                           std::string_view what) override {
    check_all_to_all(mine, sent, theirs, received, size_, what);
    auto started = requests("all_to_all", what);
    const auto block = [&](int r) { return mine.subspan(block_begin(sent, r), sent[r]); };
    std::size_t at = 0;
    for (int r = 0; r < size_; at += received[r++]) {
      const auto from = theirs.subspan(at, received[r]);
      if (r != rank_) {
        started->receive(from, r);
      } else {
        check(sent[r] == received[r], "all_to_all: the counts of a rank with itself differ");
        copy(block(r), from);
      }
    }
    each_other_rank([&](int r) { started->send(block(r), r); });
    return {std::move(started), what};
  }

  Pending start_reduce_scatter(std::span<const float> values, Counts counts, std::span<float> part,
                               std::string_view what) override {
    check_reduce_scatter(values, counts, part, rank_, size_, what);
    auto started = requests("reduce_scatter", what);
    std::vector<float>& theirs = started->scratch();
    theirs.resize(part.size() * static_cast<std::size_t>(size_ - 1));
    std::vector<const float*> blocks;
    std::size_t at = 0;
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) {
        blocks.push_back(values.data() + block_begin(counts, rank_));
        continue;
      }
      blocks.push_back(theirs.data() + at);
      started->receive(std::as_writable_bytes(std::span(theirs).subspan(at, part.size())), r);
      at += part.size();
    }
    each_other_rank([&](int r) {
      started->send(std::as_bytes(values.subspan(block_begin(counts, r), counts[r])), r);
    });
    started->then([blocks = std::move(blocks), part] { sum_blocks(blocks, part); });
    return {std::move(started), what};
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
  static void copy(std::span<const std::byte> from, std::span<std::byte> to) {
    if (!from.empty() && from.data() != to.data()) std::memcpy(to.data(), from.data(), from.size());
  }

  /// The ranks after this one first, so that not all send to the same rank at once.
  template <class Visit>
  void each_other_rank(const Visit& visit) const {
    for (int i = 1; i < size_; ++i) visit((rank_ + i) % size_);
  }

  void broadcast_blocks(std::span<std::byte> data, int root, std::string_view what, bool idle) {
    check(root >= 0 && root < size_, "the root of a broadcast is a rank of the group");
    session_->in_blocks(data.size(), [&](std::size_t begin, std::size_t n) {
      MPI_Request request;
      session_->check_success(
          MPI_Ibcast(data.data() + begin, static_cast<int>(n), MPI_BYTE, root, group_, &request),
          what);
      session_->wait(request, n, what, idle && begin == 0);
    });
  }

  std::unique_ptr<Requests> requests(std::string_view kind, std::string_view what) const {
    return std::make_unique<Requests>(session_, group_, kind, what);
  }
  int peer(int rank, std::string_view kind) const {
    check(rank >= 0 && rank < size_, cat(kind, ": not a rank of the group"));
    return rank;
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
