// HeadExchange: Ulysses attention (Jacobs et al. 2023, arXiv:2309.14509). The ranks of a
// context-parallel group exchange their rows of all heads for all rows of some heads: each then
// computes attention as a single rank does, with its bits.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/nn/context_part.h"

namespace troupe::engine::nn {

/// Heads of one rank. kv_heads[i] serves the next heads.size() / kv_heads.size() query heads; a
/// key/value head may be listed repeatedly, and by several ranks.
struct OwnHeads {
  parallel::Range heads;
  std::vector<std::int64_t> kv_heads;
};

/// The heads of every rank. Groups of query heads stay whole where there are at least as many as
/// ranks; otherwise ranks share key/value heads. A rank has no heads where there are fewer query
/// heads than ranks.
std::vector<OwnHeads> divide_heads(int heads, int kv_heads, int ranks);

/// One exchange of rows: which heads (blocks of columns) every rank takes.
class HeadExchange {
 public:
  /// heads[r]: the heads of rank r, of `count`; `size`: columns of a head. `part` outlives this.
  HeadExchange(const ContextPart& part, std::vector<std::vector<std::int64_t>> heads,
               std::int64_t count, int size);

  /// x [own rows, count * size] -> [rows, own heads * size], the rows that the ranks divide.
  /// Collective; `what` names the operation in errors.
  Tensor to_heads(ops::Device& device, const Tensor& x, std::string_view what) const;
  /// The opposite direction: x [rows, own heads * size] -> [own rows, count * size]. A head that
  /// several ranks have, or one has repeatedly, becomes their sum in the order of the ranks: the
  /// gradient of to_heads().
  Tensor to_rows(ops::Device& device, const Tensor& x, std::string_view what) const;

 private:
  std::size_t own_heads() const { return heads_[static_cast<std::size_t>(part_.rank())].size(); }
  /// Numbers of values of the own rows' heads of every rank, and of the own heads of every rank's
  /// rows.
  std::vector<std::size_t> counts_by_heads() const;
  std::vector<std::size_t> counts_by_rows() const;
  /// Of the own rows [rows * count, size], head by head: those of each rank's heads, in the order
  /// in which they are sent.
  std::vector<std::int32_t> blocks() const;

  const ContextPart& part_;
  std::vector<std::vector<std::int64_t>> heads_;
  std::int64_t count_;
  int size_;
};

/// The exchanges of an attention layer, and its shape on this rank.
struct AttentionExchange {
  HeadExchange queries, keys;
  ops::AttentionShape shape;
  std::int64_t first_head;  ///< number of its first head among those before the exchange
};
AttentionExchange attention_exchange(const ContextPart& part, const ops::AttentionShape& whole);

}  // namespace troupe::engine::nn
