#include "engine/generate/prompt_lookup.h"

#include <algorithm>

namespace troupe::engine::generate {

namespace {

/// The end of the latest occurrence of the last `length` tokens before the last one; 0: none.
std::size_t earlier_end(std::span<const std::int32_t> tokens, std::size_t length) {
  if (tokens.size() <= length) return 0;
  const auto wanted = tokens.last(length);
  for (std::size_t end = tokens.size() - 1; end >= length; --end) {
    if (tokens[end - 1] == wanted.back() &&
        std::ranges::equal(tokens.subspan(end - length, length), wanted))
      return end;
  }
  return 0;
}

}  // namespace

std::vector<std::int32_t> look_up_draft(std::span<const std::int32_t> tokens, std::size_t count) {
  std::size_t end = earlier_end(tokens, 3);
  if (end == 0) end = earlier_end(tokens, 2);
  if (end == 0) return {};
  // A text that repeats itself continues beyond its last token: copy the copy, as LZ77 does.
  std::vector<std::int32_t> draft;
  for (std::size_t i = end; draft.size() < count; ++i)
    draft.push_back(i < tokens.size() ? tokens[i] : draft[i - tokens.size()]);
  return draft;
}

std::int64_t propose_by_lookup(ScheduledStep& plan, Scheduler& scheduler, SequenceStates& sequences,
                               std::int32_t count) {
  std::int64_t drafted = 0;
  for (Work& work : plan.work) {
    if (!work.samples) continue;
    SequenceState& state = sequences.at(work.sequence);
    std::vector<std::int32_t> draft =
        look_up_draft(state.tokens, static_cast<std::size_t>(state.draft_tokens(count)));
    // Nothing follows an end token.
    draft.erase(std::ranges::find_first_of(draft, state.end_tokens), draft.end());
    draft.resize(static_cast<std::size_t>(
        scheduler.add_drafts(plan, work, static_cast<std::int32_t>(draft.size()))));
    drafted += std::ssize(draft);
    state.proposed = state.tokens;
    state.proposed.insert(state.proposed.end(), draft.begin(), draft.end());
  }
  return drafted;
}

}  // namespace troupe::engine::generate
