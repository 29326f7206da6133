// Requests: the MPI requests of one non-blocking operation. Every operation is a set of messages
// between pairs of ranks, in blocks, with a tag that stands for the operation's kind and name:
// calls that do not match never meet, and their deadline names them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/parallel/communicator.h"
#include "transports/mpi/mpi_session.h"

namespace troupe::transports::mpi {

class Requests final : public engine::parallel::Operation {
 public:
  Requests(std::shared_ptr<Session> session, MPI_Comm group, std::string_view kind,
           std::string_view what);

  void send(std::span<const std::byte> data, int to);
  void receive(std::span<std::byte> data, int from);
  /// Work on the received data: finish() calls it last. `scratch` stays alive until then.
  void then(std::function<void()> work) { then_ = std::move(work); }
  std::vector<float>& scratch() { return scratch_; }

  void finish(std::optional<std::chrono::nanoseconds> deadline) override;
  void abandon(std::string_view why) noexcept override { session_->abort(why); }

 private:
  void check_lengths(const std::vector<MPI_Status>& statuses) const;

  std::shared_ptr<Session> session_;
  MPI_Comm group_;
  std::string what_;
  int tag_;
  std::vector<MPI_Request> requests_;
  std::vector<int> expected_;  ///< bytes to receive; -1: a send
  std::size_t bytes_ = 0;
  std::function<void()> then_;
  std::vector<float> scratch_;
};

}  // namespace troupe::transports::mpi
