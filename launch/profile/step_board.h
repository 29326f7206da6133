// StepBoard: publishes the current step to all processes of the run on this machine, through a page
// of a file that all of them map. Reading it costs one memory access.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/errors/error.h"

namespace troupe::launch::profile {

class StepBoard {
 public:
  /// Creates a board, replacing an old one; the destructor removes it. Errc::io.
  static Result<StepBoard> create(const std::string& path);
  /// Opens an existing board. Errc::io, not_found.
  static Result<StepBoard> open(const std::string& path);
  StepBoard(StepBoard&& other) noexcept;
  StepBoard& operator=(StepBoard&&) = delete;
  ~StepBoard();

  /// The current step; 0 before the first.
  std::int64_t step() const;
  void publish(std::int64_t step);
  /// Time of creation on the steady clock in nanoseconds: the start of all traces of the run.
  std::int64_t origin() const;

 private:
  struct Page;
  StepBoard(Page* page, std::string owned) : page_(page), owned_(std::move(owned)) {}
  static Result<StepBoard> map(const std::string& path, int flags);
  Page* page_;
  std::string owned_;  ///< path of the file, in its creator only
};

/// Nanoseconds of the steady clock, which all processes of a machine share.
std::int64_t steady_nanoseconds();

}  // namespace troupe::launch::profile
