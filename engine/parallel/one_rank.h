// OneRank: a group of one rank. Operations copy and never wait.
#pragma once

#include <memory>
#include <string>

#include "engine/parallel/communicator.h"

namespace troupe::engine::parallel {

class OneRank final : public Communicator {
 public:
  OneRank();
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void broadcast(std::span<std::byte> data, int root, std::string_view what) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  std::string_view what) override;
  void all_to_all(std::span<const std::byte> mine, std::span<std::byte> theirs,
                  std::string_view what) override;
  void broadcast_idle(std::span<std::byte> data, int root, std::string_view what) override;
  /// A message to this rank itself. A wait that the other side has not been started for throws
  /// Errc::timeout at once.
  Pending start_send(std::span<const std::byte> data, int to, std::string_view what) override;
  Pending start_receive(std::span<std::byte> data, int from, std::string_view what) override;
  Pending start_all_gather(std::span<const std::byte> mine, std::span<std::byte> all, Counts counts,
                           std::string_view what) override;
  Pending start_all_to_all(std::span<const std::byte> mine, Counts sent,
                           std::span<std::byte> theirs, Counts received,
                           std::string_view what) override;
  Pending start_reduce_scatter(std::span<const float> values, Counts counts, std::span<float> part,
                               std::string_view what) override;
  std::unique_ptr<Communicator> split(int color, int key) override;
  void abort(std::string_view why) noexcept override;

  struct Message;
  struct State;

 private:
  Pending start_message(bool sends, Message message, std::string_view what);
  Pending start_copy(std::span<const std::byte> from, std::span<std::byte> to,
                     std::string_view what);

  std::shared_ptr<State> state_;
};

}  // namespace troupe::engine::parallel
