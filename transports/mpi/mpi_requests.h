// Requests: the messages of one operation. Every operation is a set of messages between pairs of
// ranks, with a tag that stands for the operation's kind and name: calls that do not match never
// meet, or are an error that names the operation.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/parallel/communicator.h"
#include "transports/mpi/mpi_session.h"
#include "transports/mpi/shared_messages.h"

namespace troupe::transports::mpi {

/// What the operations of a communicator have in common.
struct Link {
  std::shared_ptr<Session> session;
  MPI_Comm group;
  std::shared_ptr<SharedMessages> shared;  ///< null: the messages are MPI's
};

/// Kind and name of an operation. Blocking operations are matched by their kind only.
struct OperationName {
  std::string_view kind, what;
  Channel channel = Channel::collectives;
  bool blocking = false;
};

class Requests final : public engine::parallel::Operation {
 public:
  Requests(Link link, OperationName name);

  void send(std::span<const std::byte> data, int to);
  void receive(std::span<std::byte> data, int from);
  /// Work on the received data: finish() calls it last. `scratch` stays alive until then.
  void then(std::function<void()> work) { then_ = std::move(work); }
  std::vector<float>& scratch() { return scratch_; }

  void finish(std::optional<std::chrono::nanoseconds> deadline) override { wait(deadline, false); }
  /// Waits without a deadline and with little CPU until the first bytes arrive.
  void finish_idle() { wait(std::nullopt, true); }
  void abandon(std::string_view why) noexcept override {
    link_.session->abort(why, Errc::internal);
  }

 private:
  void wait(std::optional<std::chrono::nanoseconds> deadline, bool idle);
  std::vector<int> missing() const;
  void check_lengths(const std::vector<MPI_Status>& statuses) const;

  Link link_;
  Channel channel_;
  std::string what_;
  std::uint32_t tag_;
  int open_ = 0;  ///< messages through shared memory that are not complete
  std::vector<MPI_Request> requests_;
  std::vector<int> expected_;  ///< bytes to receive; -1: a send
  std::vector<int> peers_;     ///< the other rank of each request, in the group
  std::size_t bytes_ = 0;
  std::function<void()> then_;
  std::vector<float> scratch_;
};

}  // namespace troupe::transports::mpi
