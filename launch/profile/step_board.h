// StepBoard: where the process that runs the algorithm shows all others of the run (of this
// machine) which step is the present one. A page of a file that all of them map: looking costs no
// more than a read of memory.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/error.h"

namespace troupe::launch {

class StepBoard {
 public:
  /// A new board, in the place of an old one; removed at its end. Errc::io.
  static Result<StepBoard> create(const std::string& path);
  /// One that was created before. Errc::io, not_found.
  static Result<StepBoard> open(const std::string& path);
  StepBoard(StepBoard&& other) noexcept;
  StepBoard& operator=(StepBoard&&) = delete;
  ~StepBoard();

  /// 0 before the first.
  std::int64_t step() const;
  void show(std::int64_t step);
  /// When it was created, on the steady clock, in nanoseconds: the zero of all traces of the run.
  std::int64_t origin() const;

 private:
  struct Page;
  StepBoard(Page* page, std::string owned) : page_(page), owned_(std::move(owned)) {}
  static Result<StepBoard> map(const std::string& path, int flags);
  Page* page_;
  std::string owned_;  ///< the path, of its creator
};

/// Nanoseconds of the steady clock, which the processes of a machine share.
std::int64_t steady_nanoseconds();

}  // namespace troupe::launch
