// Ring: a stream of bytes from one process to another, in memory that both have mapped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::transports::mpi {

/// A ring buffer with one writer and one reader, without locks (Lamport 1983, "Specifying
/// concurrent program modules"). Both processes construct it over the same memory, which begins as
/// zeros.
class Ring {
 public:
  /// Bytes written and read since the beginning; each in a line of the cache of its own.
  struct Positions {
    alignas(64) std::uint64_t written;
    alignas(64) std::uint64_t read;
    alignas(64) std::uint64_t full;  ///< 1: the writer waits for room
  };

  Ring(Positions& positions, std::span<std::byte> buffer)
      : positions_(&positions), buffer_(buffer) {}

  /// Bytes that can be written, for the writer.
  std::size_t room() const { return buffer_.size() - (own(written()) - other(read())); }
  /// Bytes that can be read, for the reader.
  std::size_t available() const { return other(written()) - own(read()); }
  /// Appends as many bytes as there is room for; their number.
  std::size_t write(std::span<const std::byte> bytes);
  /// Removes as many bytes as are available and fit; their number.
  std::size_t read(std::span<std::byte> bytes);
  /// The writer waits for room; it reads room() once more before it sleeps.
  void set_full() { Position(positions_->full).store(1); }
  /// Whether the writer waits, for the reader after a read(). True once for each set_full().
  bool take_full() {
    const Position full(positions_->full);
    return own(full) != 0 && full.exchange(0) != 0;
  }

 private:
  using Position = std::atomic_ref<std::uint64_t>;
  static_assert(Position::is_always_lock_free);  // then it works between processes

  Position written() const { return Position(positions_->written); }
  Position read() const { return Position(positions_->read); }
  static std::uint64_t own(Position position) { return position.load(std::memory_order_relaxed); }
  static std::uint64_t other(Position position) { return position.load(std::memory_order_acquire); }

  Positions* positions_;
  std::span<std::byte> buffer_;
};

}  // namespace troupe::transports::mpi
