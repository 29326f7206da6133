// A toy of a sharded actor: every rank adds up its part of the numbers, and the group adds up the
// parts.
#pragma once

#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "actors/runtime/message.h"
#include "engine/base/errors/check.h"
#include "engine/base/json/fields.h"
#include "engine/parallel/all_reduce.h"
#include "engine/parallel/grid.h"
#include "engine/parallel/shard.h"

namespace troupe::test {

enum class Fault { none, failure, same_failure, bug };
constexpr auto names_of(Fault) {
  return std::to_array<std::string_view>({"none", "failure", "same_failure", "bug"});
}

/// Sum of the numbers times a factor. Large arrays are sent as raw parts.
struct Total {
  using Reply = std::vector<double>;
  static constexpr std::string_view name = "total";
  std::vector<double> numbers;
  std::string note;
};
inline auto fields(Total& m) {
  return std::tie(m.numbers, m.note);
}

/// Fails on rank `rank` with `fault`, after its last collective or (early) before it.
struct Stumble {
  using Reply = void;
  static constexpr std::string_view name = "stumble";
  int rank = 0;
  Fault fault = Fault::none;
  bool early = false;
};
inline auto fields(Stumble& m) {
  return std::tie(m.rank, m.fault, m.early);
}

class Toy {
 public:
  using Handled = actors::Messages<Total, Stumble>;
  explicit Toy(engine::parallel::Mesh mesh) : mesh_(std::move(mesh)) {}

  std::vector<double> on(Total message) {
    ++handled_;
    auto& world = mesh_.world();
    const auto part = engine::parallel::even_range(
        static_cast<std::int64_t>(message.numbers.size()), world.rank(), world.size());
    std::vector<double> sums{std::accumulate(message.numbers.begin() + part.begin,
                                             message.numbers.begin() + part.end, 0.0),
                             static_cast<double>(part.size())};
    engine::parallel::all_reduce_sum(world, std::span(sums), "the parts of the total");
    sums.push_back(static_cast<double>(handled_));
    sums.push_back(static_cast<double>(message.note.size()));
    return sums;
  }

  Result<> on(Stumble message) {
    ++handled_;
    auto& world = mesh_.world();
    if (!message.early) engine::parallel::barrier(world, "the last collective");
    if (message.fault == Fault::same_failure) return fail(Errc::bad_input, "row 7 is empty");
    if (message.rank == world.rank()) {
      if (message.fault == Fault::failure) throw Failure(Error{Errc::io, "the disk is gone"});
      check(message.fault != Fault::bug, "two and two make five");
    }
    if (message.early) engine::parallel::barrier(world, "what a rank never comes to");
    return {};
  }

 private:
  engine::parallel::Mesh mesh_;
  int handled_ = 0;
};

}  // namespace troupe::test
