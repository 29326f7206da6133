// The stages that decoder.cpp builds chains of.
#pragma once

#include <string>
#include <string_view>

#include "engine/tokenizer/decoders/decoder.h"
#include "engine/tokenizer/replacement.h"

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

/// <0xE4> and its like become bytes; a run of them that is not UTF-8 becomes one U+FFFD a byte, so
/// a run is held back until it ends.
class ByteFallbackStage : public WholeTokenStage {
 public:
  void finish() override;

 private:
  void token(std::string_view text) override;
  void flush();
  std::string bytes_;
};

/// All tokens become one.
class FuseStage : public DecodeStage {
 public:
  void push(std::string_view text, bool begins, bool ends) override;
  void finish() override;

 private:
  bool begun_ = false;
};

/// Cuts up to `start` characters `content` from the start of each token and up to `stop` from its
/// end.
class StripStage : public DecodeStage {
 public:
  StripStage(std::string content, std::size_t start, std::size_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void push(std::string_view text, bool begins, bool ends) override;

 private:
  std::string content_;
  std::size_t start_, stop_;
  std::size_t left_ = 0;  // characters still to be cut at the start
  std::size_t held_ = 0;  // characters held back because the token may end after them
};

/// SentencePiece's space sign becomes a space; the first token loses its own when `drop_first`.
class MetaspaceStage : public WholeTokenStage {
 public:
  MetaspaceStage(std::string sign, bool drop_first) : sign_(std::move(sign)), drop_(drop_first) {}

 private:
  void token(std::string_view text) override;
  std::string sign_;
  bool drop_;
};

/// The characters of byte-level tokens become bytes, and the bytes text (ill-formed parts: U+FFFD).
class ByteLevelStage : public WholeTokenStage {
 public:
  void finish() override;

 private:
  void token(std::string_view text) override;
  std::string bytes_;
  bool begun_ = false;
};

/// The suffix that ends words becomes a space, except at the very end.
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

/// A space before each token that does not begin with the prefix of continued words, which goes;
/// spaces before punctuation go, too.
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

/// Equal neighbours become one, padding goes, the word delimiter becomes a space (with `cleanup`).
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

/// A space between tokens.
class SpacedStage : public WholeTokenStage {
 private:
  void token(std::string_view text) override;
  bool any_ = false;
};

}  // namespace troupe::engine::tokenizer
