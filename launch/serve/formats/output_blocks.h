// OutputBlocks: the blocks of an answer - reasoning, text and calls, in the order in which the
// model writes them - while its pieces arrive.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/serve/api/answer_json.h"

namespace troupe::launch::serve::formats {

enum class BlockKind : std::uint8_t { reasoning, text, call };

struct OutputBlock {
  BlockKind kind = BlockKind::text;
  std::size_t index = 0;  ///< in the answer
  std::string text;       ///< of a call: its arguments
  std::string name;       ///< of a call
  int call = -1;          ///< CallPart::index
};

class OutputBlocks {
 public:
  /// Is told what a piece changes, in this order for each block.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void opened(const OutputBlock& block) = 0;
    virtual void grown(const OutputBlock& block, const std::string& piece) = 0;
    virtual void closed(const OutputBlock& block) = 0;

   protected:
    Listener() = default;
    Listener(const Listener&) = default;
    Listener& operator=(const Listener&) = default;
  };

  /// Reads reasoning, text and calls of a piece.
  void add(const api::ChoicePart& part, Listener& listener);
  /// Closes the last block. An answer without any has a text without characters.
  void finish(Listener& listener);

  const std::vector<OutputBlock>& all() const { return blocks_; }
  bool has_calls() const;

 private:
  void add_calls(const std::vector<api::CallPart>& calls, int only, Listener& listener);
  void grow(BlockKind kind, const std::string& piece, Listener& listener);
  void open(BlockKind kind, const api::CallPart& call, Listener& listener);
  void close(Listener& listener);

  std::vector<OutputBlock> blocks_;
  bool open_ = false;  // the last one
};

}  // namespace troupe::launch::serve::formats
