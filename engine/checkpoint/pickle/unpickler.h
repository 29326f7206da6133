// Unpickler: the stack machine of Python pickles (CPython: Lib/pickletools.py lists the opcodes),
// which builds a PickleGraph and calls nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/checkpoint/pickle/pickle_graph.h"

namespace troupe::engine::checkpoint {

class Unpickler {
 public:
  /// The pickle outlives this object.
  Unpickler(std::span<const std::byte> pickle, std::string where, const PickleLimits& limits)
      : pickle_(pickle), where_(std::move(where)), limits_(limits) {}
  /// Runs to the STOP opcode. See read_pickle for the errors.
  Result<PickleGraph> run();

 private:
  using Items = std::vector<PickleId>;

  tl::unexpected<Error> wrong(std::string_view what) const;
  tl::unexpected<Error> refused(std::string_view what) const;
  Result<> step(std::uint8_t opcode);
  // Each returns false for an opcode that is not its own.
  Result<bool> push_constant(std::uint8_t opcode);
  Result<bool> push_text(std::uint8_t opcode);
  Result<bool> change_stack(std::uint8_t opcode);
  Result<bool> use_memo(std::uint8_t opcode);
  Result<bool> make_container(std::uint8_t opcode);
  Result<bool> fill_container(std::uint8_t opcode);
  Result<bool> make_object(std::uint8_t opcode);
  Result<> check_protocol();
  Result<> apply(std::uint8_t opcode, const Items& items);

  Result<std::uint64_t> number(std::size_t bytes);
  Result<std::string_view> take(std::uint64_t bytes);
  Result<std::string_view> line();
  Result<> push(PickleNode node);
  Result<> push_counted(std::size_t width, PickleKind kind);
  Result<> push_long(std::uint64_t bytes);
  Result<> push_global(std::string module, std::string_view name);
  Result<PickleId> pop();
  /// In the order in which they were pushed.
  Result<Items> pop_several(int count);
  Result<Items> pop_to_mark();
  Result<PickleId> top() const;
  Result<> attach(PickleId parent, const Items& items, bool pairs);
  Result<> remember(std::uint64_t index);
  Result<> recall(std::uint64_t index);
  Result<> call(PickleId callable, PickleId arguments);

  std::span<const std::byte> pickle_;
  std::string where_;
  const PickleLimits& limits_;
  std::size_t at_ = 0;
  std::size_t opcode_at_ = 0;
  bool stopped_ = false;
  PickleGraph graph_;
  Items stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PickleId> memo_;
};

}  // namespace troupe::engine::checkpoint
