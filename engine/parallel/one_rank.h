// OneRank: a group of one rank. Collectives copy and never wait.
#pragma once

#include <string>

#include "engine/parallel/communicator.h"

namespace troupe::engine::parallel {

class OneRank final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void broadcast(std::span<std::byte> data, int root, std::string_view what) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  std::string_view what) override;
  void all_to_all(std::span<const std::byte> mine, std::span<std::byte> theirs,
                  std::string_view what) override;
  void broadcast_idle(std::span<std::byte> data, int root, std::string_view what) override;
  std::unique_ptr<Communicator> split(int color, int key) override;
  void abort(std::string_view why) noexcept override;

 private:
  void enter(std::string_view what) const;

  std::string abort_message_;  // empty: not aborted
};

}  // namespace troupe::engine::parallel
