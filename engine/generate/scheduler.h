// Scheduler: which tokens of which sequences the next forward pass takes, and in which pages their
// keys and values lie. Pure bookkeeping over lengths: it knows no model, no token and no clock, and
// the same calls always give the same plans.
//
// Order of arrival is rank. A step first takes the next token of every running sequence whose
// prompt is done, then chunks of prompts, then admits waiting sequences. When no page is left the
// youngest running sequence gives up its pages and is computed again later (Kwon et al. 2023,
// sec. 4.5, recomputation).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/generate/page_pool.h"

namespace troupe::engine::generate {

struct SchedulerConfig {
  int page_size = 16;                  ///< tokens a page
  std::int32_t pages = 1024;           ///< in the cache
  std::int32_t max_sequences = 64;     ///< running at the same time
  std::int32_t tokens_per_step = 512;  ///< at least max_sequences
};

/// Rows of one sequence in a forward pass: its tokens first .. first + count.
struct Work {
  std::uint64_t sequence = 0;
  std::int32_t first = 0, count = 0;
  bool samples = false;  ///< the last row is the sequence's last token: a new one follows from it
  std::vector<std::int32_t> pages;  ///< page table, enough for the rows
};

/// Keys and values to copy, in all layers, before the pass.
struct PageCopy {
  std::int32_t from = 0, to = 0;
};

struct Plan {
  std::vector<Work> work;
  std::vector<PageCopy> copies;  ///< in this order
  std::vector<std::uint64_t> preempted;
  std::int32_t rows = 0, shared_pages = 0;
};

class Scheduler {
 public:
  explicit Scheduler(SchedulerConfig config);

  /// Pages that a sequence of `tokens` tokens needs when the last of them is not fed any more.
  std::int32_t pages_for(std::int64_t tokens) const;
  /// Queues a sequence; numbers must rise. Sequences of the same `prompt_group` have the same
  /// prompt. A sequence that could grow beyond the whole cache is a Bug: ask pages_for(prompt + new
  /// tokens) first.
  void add(std::uint64_t sequence, std::int32_t prompt_length, std::int32_t max_length,
           std::uint64_t prompt_group);
  /// The next step. Empty only when there is no sequence. What it lists counts as computed.
  Plan plan();
  /// After a plan, for each work that samples: the sequence has one token more ...
  void append(std::uint64_t sequence);
  /// ... or is done (also: cancelled, at any time). Its pages are free.
  void finish(std::uint64_t sequence);
  /// Its keys and values are void: it waits again, and is computed from its first token on.
  void recompute(std::uint64_t sequence);
  /// Drops all cached keys and values (the weights changed): everything running waits again.
  void drop_cache();

  std::int32_t free_pages() const { return pool_.free_pages(); }
  std::size_t size() const { return sequences_.size(); }
  std::size_t running() const;

 private:
  struct Sequence {
    std::uint64_t number = 0, group = 0;
    std::int32_t prompt_length = 0, length = 0;
    std::int32_t ready = 0, cached = 0;  // tokens whose keys and values are in the pages before and
                                         // after the plan being made
    bool running = false;
    std::vector<std::int32_t> pages;
    std::int32_t pending() const { return length - cached; }
    bool planned() const { return cached > ready; }
  };
  struct Share {
    const Sequence* donor = nullptr;
    std::int32_t tokens = 0;
  };

  Sequence& at(std::uint64_t number);
  void plan_decodes(Plan& plan);
  void plan_prefills(Plan& plan);
  void admit(Plan& plan);
  bool admit_one(Sequence& sequence, bool alone, Plan& plan);
  Share find_share(const Sequence& sequence) const;
  bool leader_is_busy(const Sequence& sequence) const;
  void take_work(Sequence& sequence, Plan& plan);
  bool grow(Sequence& sequence, Plan& plan);
  void release(Sequence& sequence);

  SchedulerConfig config_;
  PagePool pool_;
  std::vector<Sequence> sequences_;  // in order of arrival
};

}  // namespace troupe::engine::generate
