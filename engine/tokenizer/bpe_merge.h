// Byte-pair merging of one word: the pair of the lowest rank first, the leftmost of equals (Sennrich et al., arXiv:1508.07909).
#pragma once

#include <vector>

#include "engine/tokenizer/merge_table.h"

namespace troupe::engine::tokenizer {

/// Memory of merge_pairs, kept between words.
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
  std::vector<MergeTable::Merge> pairs;
};

/// Merges `symbols` in place until no adjacent pair has a rank. Short words by scanning, long ones with a heap: n log n in their length.
void merge_pairs(std::vector<TokenId>& symbols, const MergeTable& merges, MergeScratch& scratch);

}  // namespace troupe::engine::tokenizer
