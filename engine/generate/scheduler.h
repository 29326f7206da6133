// Scheduler: plans which tokens of which sequences the next forward pass computes, and the pages of
// their keys and values. It works on lengths only, without model or clock, and on tokens for the
// prefix cache: equal calls give equal plans.
//
// Priority is the order of arrival. A step first takes the next token of every running sequence
// whose prompt is computed, then chunks of prompts, then admits waiting sequences. When no page is
// free, the youngest running sequence is preempted and recomputed later (Kwon et al. 2023,
// sec. 4.5).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "engine/generate/page_pool.h"
#include "engine/generate/prefix_cache.h"

namespace troupe::engine::generate {

struct SchedulerConfig {
  int page_size = 16;                  ///< tokens per page
  std::int32_t pages = 1024;           ///< pages in the cache
  std::int32_t max_sequences = 64;     ///< sequences running at the same time
  std::int32_t tokens_per_step = 512;  ///< at least max_sequences
  bool prefix_cache = false;           ///< keeps full pages for later sequences
  std::int32_t scored_per_step = 512;  ///< rows of prompts that are scored in a step; at least 1
};

/// Rows of one sequence in a forward pass: its tokens first .. first + count, the last `drafts` of
/// which are not known yet.
struct Work {
  std::uint64_t sequence = 0;
  std::int32_t first = 0, count = 0;
  /// The last row, without the drafts, is the sequence's last token: the next one is sampled.
  bool samples = false;
  std::vector<std::int32_t> pages;  ///< page table
  std::int32_t drafts = 0;
};

/// The first admission of a sequence, and how many of its tokens are cached already.
struct Admission {
  std::uint64_t sequence = 0;
  std::int32_t cached = 0;
};

/// A page to copy, in all layers, before the pass.
struct PageCopy {
  std::int32_t from = 0, to = 0;
};

struct ScheduledStep {
  std::vector<Work> work;
  std::vector<PageCopy> copies;  ///< in this order
  std::vector<std::uint64_t> preempted;
  std::vector<Admission> admitted;  ///< with a prefix cache only
  std::int32_t rows = 0, shared_pages = 0;
  std::int32_t scored = 0;  ///< rows of prompts that are scored
};

class Scheduler {
 public:
  explicit Scheduler(SchedulerConfig config);

  /// Pages of a sequence of `tokens` tokens, the last of which is not computed.
  std::int32_t pages_for(std::int64_t tokens) const;
  /// Queues a sequence; numbers must increase. Sequences of the same `prompt_group` have the same
  /// prompt. A sequence that could exceed the cache is a Bug: check pages_for(prompt + new tokens)
  /// first. `tokens`: for the prefix cache, the sequence's tokens, of which as many are read as
  /// append() has announced; they must outlive it. nullptr: none of its pages is found or kept.
  /// `context`: of its pages in the prefix cache.
  void add(std::uint64_t sequence, std::int32_t prompt_length, std::int32_t max_length,
           std::uint64_t prompt_group, const std::vector<std::int32_t>* tokens = nullptr,
           PrefixCache::Context context = {});
  /// Whether a sequence is left out of the plans that follow; held ones keep their pages.
  void hold(std::uint64_t sequence, bool held);
  /// The first token of its prompt that is scored, at least 1: the row before it and those up to
  /// the prompt's last token count for SchedulerConfig::scored_per_step, and are computed even
  /// where the prefix cache has them. nullopt: none is scored.
  void score_prompt(std::uint64_t sequence, std::optional<std::int32_t> first);
  /// Plans the next step; empty only without sequences, or when those that are not held wait for
  /// what held ones have. Planned rows count as computed.
  ScheduledStep plan();
  /// Adds rows for at most `wanted` draft tokens to a Work of the plan that samples, where rows and
  /// pages are left. Returns their number.
  std::int32_t add_drafts(ScheduledStep& plan, Work& work, std::int32_t wanted);
  /// Removes the last `count` drafts of a Work again.
  static void drop_drafts(ScheduledStep& plan, Work& work, std::int32_t count);
  /// Appends a token to a sequence; called after plan() for each Work that samples ... `computed`:
  /// it is a draft token of the plan, and another token follows in the same step.
  void append(std::uint64_t sequence, bool computed = false);
  /// ... or ends it. May be called at any time to cancel. Frees its pages.
  void finish(std::uint64_t sequence);
  /// No token was sampled after the plan: the next one computes the rows of the last tokens again.
  void repeat_samples(const ScheduledStep& plan);
  /// Nothing of the plan was computed (a step lacked memory): the next one computes its rows again,
  /// except for sequences that have ended since. The prefix cache is emptied.
  void undo(const ScheduledStep& plan);
  /// Drops the keys and values of a sequence: it waits and is recomputed from its first token.
  void recompute(std::uint64_t sequence);
  /// Drops all keys and values (the weights changed or a step failed): all running sequences wait
  /// again.
  void drop_cache();
  /// Running sequences leave their prompt group, and the prefix cache is emptied: no other sequence
  /// takes over their keys and values.
  void end_sharing();

  std::int32_t free_pages() const { return pool_.free_pages(); }
  /// Pages that only the prefix cache keeps; they are freed when others are needed.
  std::int32_t idle_pages() const { return pool_.idle_pages(); }
  std::size_t size() const { return waiting_.size() + running_.size(); }
  std::size_t running() const { return running_.size(); }

 private:
  static constexpr std::uint64_t no_group = ~std::uint64_t{0};
  struct Sequence {
    std::uint64_t number = 0, group = 0;
    std::int32_t prompt_length = 0, length = 0;
    // Tokens whose keys and values are cached before and after the current plan.
    std::int32_t ready = 0, cached = 0;
    bool admitted = false, held = false;
    std::optional<std::int32_t> scored_from;  // token of the prompt
    bool unsafe = false;  // has pages since the current plan that it may have to compute
    std::vector<std::int32_t> pages;
    const std::vector<std::int32_t>* tokens = nullptr;
    PrefixCache::Context context;
    std::int32_t kept = 0;  // full pages that are in the prefix cache
    std::int32_t pending() const { return length - cached; }
    bool planned() const { return cached > ready; }
    /// Rows that are not computed yet and come before those that are scored.
    std::int32_t before_scored() const {
      return scored_from ? std::max(*scored_from - 1 - cached, 0) : 0;
    }
    /// Rows that are not computed yet and are scored.
    std::int32_t to_score() const {
      return scored_from ? std::max(prompt_length - 1 - cached - before_scored(), 0) : 0;
    }
  };
  using Sequences = std::map<std::uint64_t, Sequence>;  // by number: in order of arrival
  struct Share {
    const std::vector<std::int32_t>* pages = nullptr;
    std::int32_t tokens = 0;
  };

  Sequence& at(std::uint64_t number);
  void plan_decodes(ScheduledStep& plan);
  void plan_prefills(ScheduledStep& plan);
  void admit(ScheduledStep& plan);
  bool admit_one(Sequence& sequence, bool alone, ScheduledStep& plan);
  std::vector<std::int32_t> cached_prefix(const Sequence& sequence);
  void keep_full_pages(Sequence& sequence);
  std::int32_t available_pages() const { return pool_.free_pages() + pool_.idle_pages(); }
  std::int32_t take_page();
  void clear_prefix_cache();
  Share find_share(const Sequence& sequence) const;
  bool leader_is_busy(const Sequence& sequence) const;
  std::int32_t rows_for(const Sequence& sequence, const ScheduledStep& plan) const;
  void take_work(Sequence& sequence, ScheduledStep& plan);
  bool grow(Sequence& sequence, ScheduledStep& plan);
  void release(Sequence& sequence);

  SchedulerConfig config_;
  PagePool pool_;
  std::optional<PrefixCache> prefixes_;
  Sequences waiting_;  // without pages
  Sequences running_;
};

}  // namespace troupe::engine::generate
