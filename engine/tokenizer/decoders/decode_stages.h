// The stages of decoder chains (decoder.cpp).
#pragma once

#include <string>
#include <string_view>

#include "engine/tokenizer/base/replacement.h"
#include "engine/tokenizer/decoders/decoder.h"

namespace troupe::engine::tokenizer {

/// A stage that needs each token whole.
class WholeTokenStage : public DecodeStage {
 public:
  void push(std::string_view text, bool begins, bool ends) final;

 protected:
  virtual void token(std::string_view text) = 0;
  void emit(std::string_view text) { next->push(text, true, true); }

 private:
  std::string gathered_;
};

/// Replaces a pattern in each token.
class ReplaceStage : public WholeTokenStage {
 public:
  explicit ReplaceStage(const Replacement& replacement) : replacement_(replacement) {}

 private:
  void token(std::string_view text) override;
  const Replacement& replacement_;
};

/// Converts <0xE4> and the like to bytes. A run of bytes that is not UTF-8 becomes one U+FFFD per
/// byte, so a run is buffered until it ends.
class ByteFallbackStage : public WholeTokenStage {
 public:
  void finish() override;

 private:
  void token(std::string_view text) override;
  void flush();
  std::string bytes_;
};

/// Joins all tokens into one.
class FuseStage : public DecodeStage {
 public:
  void push(std::string_view text, bool begins, bool ends) override;
  void finish() override;

 private:
  bool begun_ = false;
};

/// Removes up to `start` characters `content` from the start of each token and up to `stop` from
/// its end.
class StripStage : public DecodeStage {
 public:
  StripStage(std::string content, std::size_t start, std::size_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void push(std::string_view text, bool begins, bool ends) override;

 private:
  std::string content_;
  std::size_t start_, stop_;
  std::size_t left_ = 0;  // characters still to remove at the start
  std::size_t held_ = 0;  // characters buffered because the token may end after them
};

/// Converts SentencePiece's space sign to a space; removes that of the first token if `drop_first`.
class MetaspaceStage : public WholeTokenStage {
 public:
  MetaspaceStage(std::string sign, bool drop_first) : sign_(std::move(sign)), drop_(drop_first) {}

 private:
  void token(std::string_view text) override;
  std::string sign_;
  bool drop_;
};

/// Converts the characters of byte-level tokens to bytes, and the bytes to text (ill-formed parts:
/// U+FFFD).
class ByteLevelStage : public WholeTokenStage {
 public:
  void finish() override;

 private:
  void token(std::string_view text) override;
  std::string bytes_;
  bool begun_ = false;
};

/// Converts the suffix of words to a space, except at the very end.
class WordEndStage : public WholeTokenStage {
 public:
  explicit WordEndStage(std::string suffix) : suffix_(std::move(suffix)) {}
  void finish() override;

 private:
  void token(std::string_view text) override;
  void flush(std::string_view replacement);
  std::string suffix_, last_;
  bool any_ = false;
};

/// Adds a space before each token without the continuation prefix and removes the prefix; with
/// `cleanup` also removes spaces before punctuation.
class WordPieceStage : public WholeTokenStage {
 public:
  WordPieceStage(std::string prefix, bool cleanup)
      : prefix_(std::move(prefix)), cleanup_(cleanup) {}

 private:
  void token(std::string_view text) override;
  std::string prefix_;
  bool cleanup_;
  bool any_ = false;
};

/// Merges equal adjacent tokens, removes padding, and converts the word delimiter to a space (with
/// `cleanup`).
class CtcStage : public WholeTokenStage {
 public:
  CtcStage(std::string pad, std::string delimiter, bool cleanup)
      : pad_(std::move(pad)), delimiter_(std::move(delimiter)), cleanup_(cleanup) {}

 private:
  void token(std::string_view text) override;
  std::string pad_, delimiter_;
  bool cleanup_;
  std::string last_;
  bool any_ = false;
};

/// Adds a space between tokens.
class SpacedStage : public WholeTokenStage {
 private:
  void token(std::string_view text) override;
  bool any_ = false;
};

}  // namespace troupe::engine::tokenizer
