// Pending: the handle of a non-blocking operation of a Communicator.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::engine::parallel {

/// A started operation, as an implementation of Communicator provides it. One of the two functions
/// is called, once.
class Operation {
 public:
  virtual ~Operation() = default;
  /// Waits until the operation is complete at this rank: its buffers can be reused. Throws as
  /// Communicator does; Errc::timeout after `deadline` (absent: the deadline of the group).
  virtual void finish(std::optional<std::chrono::nanoseconds> deadline) = 0;
  /// Aborts the group, because nobody will wait. No other rank reads the buffers afterwards.
  virtual void abandon(std::string_view why) noexcept = 0;
};

/// Owns a started operation. The buffers of the operation stay valid and unchanged until wait()
/// returns, and its communicator lives until then. Operations may be waited for in another order
/// than they were started. Destroying a handle that was not waited for is a Bug, which aborts the
/// group and names the operation; while an exception unwinds the stack the destructor waits
/// instead, because the other ranks still need this rank's data.
class Pending {
 public:
  Pending() = default;  ///< nothing to wait for
  Pending(std::unique_ptr<Operation> operation, std::string_view what);
  ~Pending();
  Pending(Pending&& other) noexcept = default;
  /// Drops the operation that this handle had, as the destructor does.
  Pending& operator=(Pending&& other) noexcept;

  /// Whether there is an operation to wait for.
  explicit operator bool() const { return operation_ != nullptr; }
  /// Name of the operation.
  const std::string& what() const { return what_; }
  /// Waits as Operation::finish() does. Without an operation, returns at once.
  void wait(std::optional<std::chrono::nanoseconds> deadline = std::nullopt);

 private:
  void drop() noexcept;

  std::unique_ptr<Operation> operation_;
  std::string what_;
};

}  // namespace troupe::engine::parallel
