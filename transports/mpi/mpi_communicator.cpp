// MpiCommunicator: the Communicator port over messages between pairs of ranks.
#include "transports/mpi/mpi_communicator.h"
#include <algorithm>
#include <cstring>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/parallel/blocks.h"
#include "transports/mpi/event_counts.h"
#include "transports/mpi/mpi_requests.h"
#include "transports/mpi/mpi_session.h"
#include "transports/mpi/rank_states.h"

namespace troupe::transports::mpi {
namespace {

using engine::parallel::block_begin, engine::parallel::check_all_gather,
    engine::parallel::check_all_to_all, engine::parallel::check_reduce_scatter,
    engine::parallel::sum_blocks;
using engine::parallel::Counts, engine::parallel::Pending;

class MpiCommunicator final : public engine::parallel::Communicator {
 public:
  MpiCommunicator(std::shared_ptr<Session> session, MPI_Comm group)
      : link_{.session = std::move(session), .group = group, .shared = nullptr} {
    MPI_Comm_rank(group, &rank_);
    MPI_Comm_size(group, &size_);
    if (size_ > 1 && link_.session->shares_memory())
      link_.shared = SharedMessages::create(link_.session, group);
  }
  ~MpiCommunicator() override {
    link_.shared.reset();
    const auto locked = link_.session->lock();
    if (link_.group != MPI_COMM_WORLD) MPI_Comm_free(&link_.group);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void broadcast(std::span<std::byte> data, int root, std::string_view what) override {
    broadcast_tree(data, root, what, false);
  }
  void broadcast_idle(std::span<std::byte> data, int root, std::string_view what) override {
    broadcast_tree(data, root, what, true);
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  std::string_view what) override {
    check(all.size() == mine.size() * ranks(), "all_gather: `all` holds one block per rank");
    const std::vector<std::size_t> counts(ranks(), mine.size());
    all_gather_messages(mine, all, counts, {"all_gather", what, Channel::collectives, true})
        ->finish(std::nullopt);
  }

  void all_to_all(std::span<const std::byte> mine, std::span<std::byte> theirs,
                  std::string_view what) override {
    const std::size_t block = mine.size() / ranks();
    check(theirs.size() == mine.size() && block * ranks() == mine.size(),
          "all_to_all: expected one block of equal size per rank");
    const std::vector<std::size_t> counts(ranks(), block);
    all_to_all_messages(mine, counts, theirs, counts,
                        {"all_to_all", what, Channel::collectives, true})
        ->finish(std::nullopt);
  }

  Pending start_send(std::span<const std::byte> data, int to, std::string_view what) override {
    auto started = requests({"message", what, Channel::transfers});
    started->send(data, peer(to, "send"));
    return {std::move(started), what};
  }

  Pending start_receive(std::span<std::byte> data, int from, std::string_view what) override {
    auto started = requests({"message", what, Channel::transfers});
    started->receive(data, peer(from, "receive"));
    return {std::move(started), what};
  }

  Pending start_all_gather(std::span<const std::byte> mine, std::span<std::byte> all, Counts counts,
                           std::string_view what) override {
    check_all_gather(mine, all, counts, rank_, size_, what);
    return {all_gather_messages(mine, all, counts, {"all_gather", what}), what};
  }

  Pending start_all_to_all(std::span<const std::byte> mine, Counts sent,
                           std::span<std::byte> theirs, Counts received,
                           std::string_view what) override {
    check_all_to_all(mine, sent, theirs, received, size_, what);
    return {all_to_all_messages(mine, sent, theirs, received, {"all_to_all", what}), what};
  }

  Pending start_reduce_scatter(std::span<const float> values, Counts counts, std::span<float> part,
                               std::string_view what) override {
    check_reduce_scatter(values, counts, part, rank_, size_, what);
    auto started = requests({"reduce_scatter", what});
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
    link_.session->check_success(MPI_Ibarrier(link_.group, &request), what);
    link_.session->wait(request, 0, what);  // MPI_Comm_split itself has no deadline
    MPI_Comm part;
    link_.session->check_success(MPI_Comm_split(link_.group, color, key, &part), what);
    return std::make_unique<MpiCommunicator>(link_.session, part);
  }

  void abort(std::string_view why) noexcept override { link_.session->abort(why); }

 private:
  static void copy(std::span<const std::byte> from, std::span<std::byte> to) {
    if (!from.empty() && from.data() != to.data()) std::memcpy(to.data(), from.data(), from.size());
  }

  /// The ranks after this one first, so that not all send to the same rank at once.
  template <class Visit>
  void each_other_rank(const Visit& visit) const {
    for (int i = 1; i < size_; ++i) visit((rank_ + i) % size_);
  }

  std::unique_ptr<Requests> all_gather_messages(std::span<const std::byte> mine,
                                                std::span<std::byte> all, Counts counts,
                                                const OperationName& name) const {
    auto started = requests(name);
    std::size_t at = 0;
    for (int r = 0; r < size_; at += counts[r++]) {
      if (r != rank_)
        started->receive(all.subspan(at, counts[r]), r);
      else
        copy(mine, all.subspan(at, counts[r]));
    }
    each_other_rank([&](int r) { started->send(mine, r); });
    return started;
  }

  std::unique_ptr<Requests> all_to_all_messages(std::span<const std::byte> mine, Counts sent,
                                                std::span<std::byte> theirs, Counts received,
                                                const OperationName& name) const {
    auto started = requests(name);
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
    return started;
  }

  /// Along a binomial tree: each rank receives from its parent and then sends to its children.
  void broadcast_tree(std::span<std::byte> data, int root, std::string_view what, bool idle) {
    check(root >= 0 && root < size_, "the root of a broadcast is a rank of the group");
    const int place = (rank_ - root + size_) % size_;
    const OperationName name{"broadcast", what, Channel::collectives, true};
    int bit = 1;  // of the parent: the lowest bit of `place`
    while (bit < size_ && !(place & bit)) bit <<= 1;
    if (place > 0) {
      const auto received = requests(name);
      received->receive(data, (rank_ - bit + size_) % size_);
      if (idle)
        received->finish_idle();
      else
        received->finish(std::nullopt);
    }
    const auto sent = requests(name);
    for (int child = bit >> 1; child > 0; child >>= 1)
      if (place + child < size_) sent->send(data, (rank_ + child) % size_);
    sent->finish(std::nullopt);
  }

  std::unique_ptr<Requests> requests(const OperationName& name) const {
    return std::make_unique<Requests>(link_, name);
  }
  std::size_t ranks() const { return static_cast<std::size_t>(size_); }
  int peer(int rank, std::string_view kind) const {
    check(rank >= 0 && rank < size_, cat(kind, ": not a rank of the group"));
    return rank;
  }

  Link link_;
  int rank_ = 0, size_ = 1;
};

}  // namespace
}  // namespace troupe::transports::mpi

extern "C" __attribute__((visibility("default"))) void troupe_start_mpi(
    troupe::transports::mpi::MpiOptions options,
    troupe::Result<std::unique_ptr<troupe::engine::parallel::Communicator>>& world) {
  using namespace troupe::transports::mpi;
  auto session = Session::start(std::move(options));
  if (!session) {
    world = troupe::fail(std::move(session.error()));
    return;
  }
  if ((*session)->shares_memory()) {
    (*session)->use(EventCounts::create(**session));
    // The states end before the session that owns them.
    (*session)->use(RankStates::create(**session, [own = session->get()] {
      return own->options().reports.total_pieces() + own->moves();
    }));
  }
  world = std::make_unique<MpiCommunicator>(std::move(*session), MPI_COMM_WORLD);
}
