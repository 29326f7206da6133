#include "launch/serve/formats/output_blocks.h"

#include <algorithm>
#include <utility>

namespace troupe::launch::serve::formats {

namespace {

constexpr int all_calls = -1;

}  // namespace

bool OutputBlocks::has_calls() const {
  return std::ranges::any_of(
      blocks_, [](const OutputBlock& block) { return block.kind == BlockKind::call; });
}

void OutputBlocks::close(Listener& listener) {
  if (std::exchange(open_, false)) listener.closed(blocks_.back());
}

void OutputBlocks::open(BlockKind kind, const api::CallPart& call, Listener& listener) {
  close(listener);
  blocks_.push_back({.kind = kind, .index = blocks_.size(), .name = call.name, .call = call.index});
  open_ = true;
  listener.opened(blocks_.back());
}

void OutputBlocks::grow(BlockKind kind, const std::string& piece, Listener& listener) {
  if (piece.empty()) return;
  if (!open_ || blocks_.back().kind != kind) open(kind, {.index = -1}, listener);
  blocks_.back().text += piece;
  listener.grown(blocks_.back(), piece);
}

/// `only`: the pieces of this call, or all_calls.
void OutputBlocks::add_calls(const std::vector<api::CallPart>& calls, int only,
                             Listener& listener) {
  for (const api::CallPart& each : calls) {
    if (only != all_calls && each.index != only) continue;
    if (!open_ || blocks_.back().kind != BlockKind::call || blocks_.back().call != each.index)
      open(BlockKind::call, each, listener);
    grow(BlockKind::call, each.arguments, listener);
  }
}

void OutputBlocks::add(const api::ChoicePart& part, Listener& listener) {
  grow(BlockKind::reasoning, part.reasoning, listener);
  // A text in the same piece stands between the call that is open and the next ones.
  const bool in_call = open_ && blocks_.back().kind == BlockKind::call;
  const int current = in_call ? blocks_.back().call : all_calls;
  if (in_call) add_calls(part.calls, current, listener);
  grow(BlockKind::text, part.text, listener);
  std::vector<api::CallPart> others = part.calls;
  if (in_call)
    std::erase_if(others, [&](const api::CallPart& call) { return call.index == current; });
  add_calls(others, all_calls, listener);
}

void OutputBlocks::finish(Listener& listener) {
  if (blocks_.empty()) open(BlockKind::text, {.index = -1}, listener);
  close(listener);
}

}  // namespace troupe::launch::serve::formats
