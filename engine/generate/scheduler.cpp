#include "engine/generate/scheduler.h"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/base/errors/check.h"

namespace troupe::engine::generate {

Scheduler::Scheduler(SchedulerConfig config) : config_(config), pool_(config.pages) {
  check(config.page_size >= 1 && config.pages >= 1 && config.max_sequences >= 1,
        "Scheduler: sizes must be positive");
  check(config.tokens_per_step >= config.max_sequences,
        "Scheduler: every running sequence needs a row in a step");
  check(config.scored_per_step >= 1, "Scheduler: a prompt could never be scored");
  if (config.prefix_cache) prefixes_.emplace(config.page_size, config.pages);
}

std::int32_t Scheduler::pages_for(std::int64_t tokens) const {
  // The last token is sampled and never computed.
  const std::int64_t fed = std::max<std::int64_t>(tokens - 1, 1);
  return static_cast<std::int32_t>((fed + config_.page_size - 1) / config_.page_size);
}

void Scheduler::add(std::uint64_t sequence, std::int32_t prompt_length, std::int32_t max_length,
                    std::uint64_t prompt_group, const std::vector<std::int32_t>* tokens,
                    PrefixCache::Context context) {
  for (const Sequences* all : {&waiting_, &running_})
    check(all->empty() || all->rbegin()->first < sequence, "Scheduler: numbers must increase");
  check(prompt_length >= 1 && max_length > prompt_length,
        "Scheduler: expected a prompt and space for a token");
  check(pages_for(max_length) <= config_.pages, "Scheduler: the cache cannot hold the sequence");
  waiting_.emplace_hint(waiting_.end(), sequence,
                        Sequence{.number = sequence,
                                 .group = prompt_group,
                                 .prompt_length = prompt_length,
                                 .length = prompt_length,
                                 .pages = {},
                                 .tokens = prefixes_ ? tokens : nullptr,
                                 .context = std::move(context)});
}

Scheduler::Sequence& Scheduler::at(std::uint64_t number) {
  Sequences& all = running_.contains(number) ? running_ : waiting_;
  const auto found = all.find(number);
  check(found != all.end(), "Scheduler: no such sequence");
  return found->second;
}

void Scheduler::hold(std::uint64_t sequence, bool held) {
  at(sequence).held = held;
}

void Scheduler::score_prompt(std::uint64_t sequence, std::optional<std::int32_t> first) {
  check(!first || *first >= 1, "Scheduler: no row precedes the first token");
  at(sequence).scored_from = first;
}

ScheduledStep Scheduler::plan() {
  ScheduledStep plan;
  for (auto& [number, s] : running_) {
    s.ready = s.cached;
    s.unsafe = false;
  }
  plan_decodes(plan);
  plan_prefills(plan);
  if (plan.preempted.empty()) admit(plan);
  const auto held = [](const auto& entry) { return entry.second.held; };
  check(size() == 0 || !plan.work.empty() || std::ranges::any_of(running_, held) ||
            std::ranges::any_of(waiting_, held),
        "Scheduler: no work for the sequences");
  return plan;
}

void Scheduler::plan_decodes(ScheduledStep& plan) {
  for (auto& [number, s] : running_) {
    if (s.held || s.pending() != 1) continue;
    if (!grow(s, plan)) return;  // it was the last one
    take_work(s, plan);
  }
}

void Scheduler::plan_prefills(ScheduledStep& plan) {
  for (auto& [number, s] : running_) {
    if (!s.held && !s.planned() && rows_for(s, plan) > 0) take_work(s, plan);
  }
}

/// Allocates a page for the next token. Preempts the youngest sequences; false when that includes
/// the sequence itself.
bool Scheduler::grow(Sequence& sequence, ScheduledStep& plan) {
  const auto needed = static_cast<std::size_t>((sequence.length - 1) / config_.page_size) + 1;
  while (sequence.pages.size() < needed) {
    if (available_pages() > 0) {
      sequence.pages.push_back(take_page());
      continue;
    }
    // Decodes are planned oldest first: the youngest running sequence has no work in this plan yet.
    Sequence& youngest = running_.rbegin()->second;
    check(!youngest.planned(), "Scheduler: a planned sequence is preempted");
    plan.preempted.push_back(youngest.number);
    release(youngest);
    if (&youngest == &sequence) return false;
  }
  return true;
}

void Scheduler::admit(ScheduledStep& plan) {
  std::size_t count = running();
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    Sequence& s = (next++)->second;  // admit_one() may move it
    if (count >= static_cast<std::size_t>(config_.max_sequences) ||
        plan.rows >= config_.tokens_per_step)
      return;
    if (s.held) continue;
    // A sequence that waits for a shared prompt counts as running: otherwise other prompts take its
    // slot, and the shared pages are gone when it is admitted. One whose prompt is scored keeps its
    // place as well where the step scores no more.
    // The prefix cache may have all rows before the scored ones.
    const bool full = s.to_score() > 0 && plan.scored >= config_.scored_per_step;
    const bool waits = leader_is_busy(s) || full || rows_for(s, plan) == 0;
    if (!waits && !admit_one(s, count == 0, plan)) return;
    ++count;
  }
}

bool Scheduler::admit_one(Sequence& sequence, bool alone, ScheduledStep& plan) {
  Share share = find_share(sequence);
  const std::vector<std::int32_t> prefix = cached_prefix(sequence);
  const auto known = static_cast<std::int32_t>(prefix.size()) * config_.page_size;
  if (known > share.tokens) share = {&prefix, known};
  const std::int32_t whole = share.tokens / config_.page_size,
                     rest = share.tokens % config_.page_size;
  const std::int32_t needed = (sequence.length - 1) / config_.page_size + 1 - whole;
  // Keep a few pages free while others run: a sequence admitted into the last page would be
  // preempted at once.
  const std::int32_t reserve = alone ? 0 : config_.pages / 64;
  for (std::int32_t i = 0; i < whole; ++i) {
    sequence.pages.push_back((*share.pages)[i]);
    pool_.share(sequence.pages.back());  // no longer idle
  }
  if (needed + reserve > available_pages()) {
    release(sequence);
    return false;
  }
  for (std::int32_t i = 0; i < needed; ++i) sequence.pages.push_back(take_page());
  // Both sequences write to the page in which the shared part ends: copy it now, so that no page
  // with two holders is ever written.
  if (rest > 0) plan.copies.push_back({(*share.pages)[whole], sequence.pages[whole]});
  plan.shared_pages += whole;
  sequence.ready = sequence.cached = share.tokens;
  running_.insert(waiting_.extract(sequence.number));  // keeps its address
  sequence.unsafe = true;
  if (prefixes_ && !std::exchange(sequence.admitted, true))
    plan.admitted.push_back({sequence.number, share.tokens});
  take_work(sequence, plan);
  return true;
}

/// Finds the longest cached part of the same prompt. The last known token is always computed: its
/// logits are needed.
Scheduler::Share Scheduler::find_share(const Sequence& sequence) const {
  Share best;
  if (sequence.group == no_group) return best;
  for (const auto& [number, s] : running_) {
    if (s.group != sequence.group) continue;
    const std::int32_t tokens = std::min({s.ready, sequence.prompt_length, sequence.length - 1});
    if (tokens > best.tokens) best = {&s.pages, tokens};
  }
  return best;
}

/// Whether another sequence is computing the prompt: waiting avoids computing it twice.
bool Scheduler::leader_is_busy(const Sequence& sequence) const {
  const std::int32_t wanted = std::min(sequence.prompt_length, sequence.length - 1);
  bool busy = false;
  if (sequence.group == no_group) return busy;
  for (const auto& [number, s] : running_) {
    if (s.group != sequence.group) continue;
    if (s.ready >= wanted) return false;
    busy = true;
  }
  return busy;
}

/// The next rows of a sequence for which the plan has room.
std::int32_t Scheduler::rows_for(const Sequence& sequence, const ScheduledStep& plan) const {
  const std::int32_t rows = std::min(sequence.pending(), config_.tokens_per_step - plan.rows);
  const std::int32_t scored = config_.scored_per_step - plan.scored;
  return sequence.to_score() > scored ? std::min(rows, sequence.before_scored() + scored) : rows;
}

void Scheduler::take_work(Sequence& sequence, ScheduledStep& plan) {
  const std::int32_t count = rows_for(sequence, plan);
  check(count > 0, "Scheduler: work without rows");
  const std::int32_t first = sequence.cached;
  plan.scored += std::clamp(count - sequence.before_scored(), 0, sequence.to_score());
  sequence.cached += count;
  keep_full_pages(sequence);
  plan.work.push_back({sequence.number, first, count, sequence.pending() == 0, sequence.pages});
  plan.rows += count;
}

/// The pages of the longest known prefix. The last known token, and the rows that are scored, are
/// always computed.
std::vector<std::int32_t> Scheduler::cached_prefix(const Sequence& sequence) {
  if (sequence.tokens == nullptr || sequence.group == no_group) return {};
  const std::int32_t most =
      std::min(sequence.length, sequence.scored_from.value_or(sequence.length)) - 1;
  return prefixes_->match(std::span(*sequence.tokens).first(static_cast<std::size_t>(most)),
                          sequence.context);
}

/// Enters the full pages of the tokens that are computed after this plan. Sequences that are
/// admitted in the same plan use them: a pass writes all keys of a layer before it reads them.
void Scheduler::keep_full_pages(Sequence& sequence) {
  if (sequence.tokens == nullptr || sequence.group == no_group) return;
  const std::int32_t size = config_.page_size;
  for (; (sequence.kept + 1) * size <= sequence.cached; ++sequence.kept) {
    std::int32_t& page = sequence.pages[sequence.kept];
    const std::int32_t before =
        sequence.kept == 0 ? PrefixCache::no_page : sequence.pages[sequence.kept - 1];
    const auto tokens = std::span(*sequence.tokens)
                            .subspan(static_cast<std::size_t>(sequence.kept * size),
                                     static_cast<std::size_t>(size));
    const std::int32_t known = prefixes_->find(before, tokens, sequence.context);
    if (known == PrefixCache::no_page) {
      prefixes_->insert(before, tokens, page, pool_, sequence.context);
    } else if (known != page) {
      // Another sequence has computed the same. This plan still writes to the own page; the next
      // one replaces it.
      if ((sequence.kept + 1) * size > sequence.ready) return;
      pool_.share(known);
      pool_.release(std::exchange(page, known));
      sequence.unsafe = true;
    }
  }
}

std::int32_t Scheduler::take_page() {
  if (pool_.free_pages() == 0) prefixes_->evict(pool_);
  return pool_.take();
}

void Scheduler::clear_prefix_cache() {
  if (prefixes_) prefixes_->clear(pool_);
}

std::int32_t Scheduler::add_drafts(ScheduledStep& plan, Work& work, std::int32_t wanted) {
  check(work.samples && work.drafts == 0, "Scheduler: drafts for a Work that samples nothing");
  Sequence& s = at(work.sequence);
  std::int32_t count = std::min(wanted, config_.tokens_per_step - plan.rows);
  const std::int32_t needed = (s.length + count - 1) / config_.page_size + 1;
  while (std::ssize(s.pages) < needed && available_pages() > 0) s.pages.push_back(take_page());
  count = std::min(count, static_cast<std::int32_t>(s.pages.size()) * config_.page_size - s.length);
  work.pages = s.pages;
  work.drafts = count;
  work.count += count;
  plan.rows += count;
  return count;
}

void Scheduler::drop_drafts(ScheduledStep& plan, Work& work, std::int32_t count) {
  check(count <= work.drafts, "Scheduler: the work has fewer drafts");
  work.drafts -= count;
  work.count -= count;
  plan.rows -= count;
}

void Scheduler::append(std::uint64_t sequence, bool computed) {
  Sequence& s = at(sequence);
  check(s.pending() == 0 || waiting_.contains(sequence),
        "Scheduler: append to a sequence that is not fully computed");
  ++s.length;
  if (computed) ++s.cached;
}

void Scheduler::finish(std::uint64_t sequence) {
  release(at(sequence));
  waiting_.erase(sequence);
}

void Scheduler::repeat_samples(const ScheduledStep& plan) {
  for (const Work& work : plan.work) {
    if (!work.samples) continue;
    Sequence& s = at(work.sequence);
    // A page in the prefix cache may have other holders and is never written again.
    if (--s.cached < s.kept * config_.page_size) release(s);
  }
}

void Scheduler::undo(const ScheduledStep& plan) {
  for (const Work& work : plan.work) {
    const auto found = running_.find(work.sequence);
    if (found != running_.end()) found->second.cached = work.first;
  }
  for (auto next = running_.begin(); next != running_.end();) {
    Sequence& s = (next++)->second;
    s.kept = 0;
    // It has started, or was given a page of the prefix cache in place of its own.
    if (s.unsafe) release(s);
  }
  clear_prefix_cache();  // of pages that were not computed
}

void Scheduler::recompute(std::uint64_t sequence) {
  release(at(sequence));
}

void Scheduler::drop_cache() {
  while (!running_.empty()) release(running_.rbegin()->second);
  clear_prefix_cache();
}

void Scheduler::end_sharing() {
  for (auto& [number, s] : running_) s.group = no_group;
  clear_prefix_cache();
}

void Scheduler::release(Sequence& sequence) {
  for (const std::int32_t page : sequence.pages) pool_.release(page);
  sequence.pages.clear();
  sequence.ready = sequence.cached = sequence.kept = 0;
  sequence.unsafe = false;
  if (auto moved = running_.extract(sequence.number)) waiting_.insert(std::move(moved));
}

}  // namespace troupe::engine::generate
