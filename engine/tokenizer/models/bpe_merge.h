// Byte-pair merging of one word: the pair of the lowest rank first, the leftmost of equals
// (Sennrich et al., arXiv:1508.07909).
#pragma once

#include <vector>

#include "engine/tokenizer/models/merge_table.h"

namespace troupe::engine::tokenizer {

/// Memory of merge_pairs, kept between words. Between words `buckets` and `waiting` are empty.
struct MergeScratch {
  struct Symbol {
    TokenId id;
    std::int32_t previous;
    std::int32_t next;
  };
  struct Candidate {
    std::uint64_t order;  // rank, then position
    TokenId id;
  };
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
  struct Bucket {
    std::int32_t first = -1, last = -1;
  };
  struct Entry {
    std::int32_t position, next;
  };
  std::vector<Bucket> buckets;  // by rank: a list of entries
  std::vector<Entry> entries;
  std::vector<std::uint64_t> waiting;  // bits: the ranks with entries
  std::vector<std::int32_t> positions;
  std::vector<MergeTable::Merge> pairs;
};

/// Merges `symbols` in place until no adjacent pair has a rank. Short words are scanned; long ones
/// are processed rank by rank, in time linear in their length except for sorting positions; merges
/// that are not in order (MergeTable) use a heap.
void merge_pairs(std::vector<TokenId>& symbols, const MergeTable& merges, MergeScratch& scratch);

}  // namespace troupe::engine::tokenizer
