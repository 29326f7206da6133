// Admission: the bound on the staleness of samples. Samples are never discarded for their age; they
// are not started before the bound allows it (AReaL, Fu et al. 2025, arXiv:2505.24298 sec. 5.1).
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/check.h"

namespace troupe::algorithms {

/// Counts prompts. With version v of the weights (v batches are trained), batches of B prompts and
/// a staleness of at most eta, (eta + v + 1) B prompts may have been started: batch b, counted from
/// 0, starts when version b - eta exists.
class Admission {
 public:
  struct Limits {
    std::int64_t batch = 1;      ///< prompts of a batch (B)
    std::int64_t eta = 0;        ///< maximum staleness in batches
    std::int64_t in_flight = 1;  ///< prompts that are sampled at a time, at least `batch`
  };
  /// `version`: of the weights at the start, after as many batches.
  Admission(const Limits& limits, std::int64_t version)
      : limits_(limits), version_(version), accepted_(version * limits.batch) {
    check(limits.batch > 0 && limits.eta >= 0 && limits.in_flight >= limits.batch,
          "Admission: expected a batch of at least 1, eta of at least 0 and in_flight of at least "
          "one batch");
  }

  /// Prompts that may start now.
  std::int64_t capacity() const {
    const std::int64_t fresh = (limits_.eta + version_ + 1) * limits_.batch - accepted_ - running_;
    return std::min(fresh, limits_.in_flight - running_);
  }
  bool admits_batch() const { return capacity() >= limits_.batch; }

  void start(std::int64_t prompts) {
    check(prompts <= capacity(), "Admission: more prompts were started than it admits");
    running_ += prompts;
  }
  /// Started prompts whose samples were rejected; others are started in their place.
  void reject(std::int64_t prompts) {
    check(prompts <= running_, "Admission: more prompts were rejected than are running");
    running_ -= prompts;
  }
  /// Started prompts whose samples are part of a batch.
  void accept(std::int64_t prompts) {
    check(prompts <= running_, "Admission: more prompts were accepted than are running");
    running_ -= prompts;
    accepted_ += prompts;
  }
  /// A batch was trained: there is a new version.
  void trained() { ++version_; }

  std::int64_t version() const { return version_; }
  std::int64_t running() const { return running_; }

 private:
  Limits limits_;
  std::int64_t version_, accepted_, running_ = 0;
};

}  // namespace troupe::algorithms
