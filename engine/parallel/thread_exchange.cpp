#include "engine/parallel/thread_exchange.h"

#include <cstring>
#include <utility>

#include "engine/base/text/text.h"
#include "engine/parallel/blocks.h"

namespace troupe::engine::parallel {
namespace {

void copy_bytes(std::byte* to, const std::byte* from, std::size_t n) {
  if (n && to != from) std::memcpy(to, from, n);
}

const float* floats(std::span<const std::byte> bytes) {
  return reinterpret_cast<const float*>(bytes.data());
}

void gather_blocks(const std::vector<Post>& posts, const Post& mine) {
  std::size_t at = 0;
  for (const Post& post : posts) {
    copy_bytes(mine.into.data() + at, post.bytes.data(), post.bytes.size());
    at += post.bytes.size();
  }
}

void collect_blocks(const std::vector<Post>& posts, std::size_t index) {
  const Post& mine = posts[index];
  std::size_t at = 0;
  for (std::size_t r = 0; r < posts.size(); at += mine.received[r++])
    copy_bytes(mine.into.data() + at,
               posts[r].bytes.data() + block_begin(posts[r].counts, static_cast<int>(index)),
               mine.received[r]);
}

void reduce_blocks(const std::vector<Post>& posts, std::size_t index) {
  const Post& mine = posts[index];
  const std::size_t begin = block_begin(mine.counts, static_cast<int>(index));
  std::vector<const float*> blocks;
  for (const Post& post : posts) blocks.push_back(floats(post.bytes) + begin);
  sum_blocks(blocks, {reinterpret_cast<float*>(mine.into.data()), mine.counts[index]});
}

}  // namespace

const char* to_string(ExchangeKind kind) {
  switch (kind) {
    case ExchangeKind::broadcast:
      return "broadcast";
    case ExchangeKind::all_gather:
      return "all_gather";
    case ExchangeKind::all_to_all:
      return "all_to_all";
    case ExchangeKind::reduce_scatter:
      return "reduce_scatter";
    case ExchangeKind::transfer:
      return "send and receive";
    case ExchangeKind::split:
      return "split";
  }
  return "";
}

Exchange::Exchange(std::vector<int> names)
    : ranks(std::move(names)),
      posts(ranks.size()),
      here(ranks.size()),
      waits(ranks.size()),
      parts(ranks.size()) {
}

void Exchange::arrive(std::size_t index, Post post) {
  posts[index] = std::move(post);
  here[index] = 1;
  ++arrived;
}

int Exchange::next_part(std::size_t index) const {
  if (!all_here() || dropped) return -1;
  if (parts[index] == Part::open) return static_cast<int>(index);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i] == Part::open && !waits[i]) return static_cast<int>(i);
  return -1;
}

void Exchange::run_part(std::size_t index) {
  const Post& mine = posts[index];
  switch (mine.kind) {
    case ExchangeKind::broadcast: {
      const Post& root = posts[static_cast<std::size_t>(mine.root)];
      return copy_bytes(mine.into.data(), root.bytes.data(), mine.into.size());
    }
    case ExchangeKind::all_gather:
      return gather_blocks(posts, mine);
    case ExchangeKind::all_to_all:
      return collect_blocks(posts, index);
    case ExchangeKind::reduce_scatter:
      return reduce_blocks(posts, index);
    case ExchangeKind::transfer:  // part 0 is the sender's: nothing
      return copy_bytes(mine.into.data(), posts[0].bytes.data(), mine.into.size());
    case ExchangeKind::split:
      return;
  }
}

std::string Exchange::describe(std::size_t index) const {
  const Post& post = posts[index];
  const bool transfer = post.kind == ExchangeKind::transfer;
  const std::size_t bytes = transfer && index == 1 ? post.into.size() : post.bytes.size();
  const std::string call = !transfer ? to_string(post.kind) : index == 0 ? "send" : "receive";
  const std::string root = transfer ? "" : cat(" with root ", post.root);
  return cat("rank ", ranks[index], " calls ", call, " of ", bytes, " bytes", root, " ('",
             post.what, "')");
}

std::string Exchange::contradiction() const {
  const Post& a = posts[0];
  const auto same = [&a](const Post& b) {
    if (a.kind != b.kind || a.root != b.root || a.blocking != b.blocking) return false;
    if (!a.blocking && a.what != b.what) return false;
    if (a.kind == ExchangeKind::transfer) return a.bytes.size() == b.into.size();
    if (a.kind == ExchangeKind::broadcast) return a.bytes.size() == b.bytes.size();
    return a.kind == ExchangeKind::all_to_all || a.counts == b.counts;
  };
  for (std::size_t r = 1; r < posts.size(); ++r)
    if (!same(posts[r])) return cat(describe(0), ", ", describe(r));
  if (a.kind != ExchangeKind::all_to_all) return "";
  for (std::size_t r = 0; r < posts.size(); ++r)
    for (std::size_t s = 0; s < posts.size(); ++s)
      if (posts[r].counts[s] != posts[s].received[r])
        return cat("rank ", ranks[r], " sends ", posts[r].counts[s], " bytes to rank ", ranks[s],
                   ", which expects ", posts[s].received[r], " ('", posts[r].what, "')");
  return "";
}

}  // namespace troupe::engine::parallel
