#include "engine/tokenizer/models/sentence_piece.h"

#include <sentencepiece_processor.h>

#include "engine/base/errors/check.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/tokenizer/base/byte_alphabet.h"
#include "engine/tokenizer/decoders/decode_stages.h"

namespace troupe::engine::tokenizer {
namespace {

using Type = SentencePieceFile::Type;

/// SentencePiece's Decode, piece by piece: removes the space added before the text, converts byte
/// pieces to characters, and drops control pieces.
class SentencePieceStage : public WholeTokenStage {
 public:
  SentencePieceStage(const SentencePieceFile& file, const Vocabulary& vocabulary)
      : file_(file), vocabulary_(vocabulary) {}
  void finish() override {
    flush();
    next->finish();
  }

 private:
  void token(std::string_view text) override {
    const TokenId id = vocabulary_.find(text);
    const Type type = id < 0 ? Type::control : file_.pieces[static_cast<std::size_t>(id)].type;
    if (id < 0) {
      flush();
      return write(text);
    }  // an added token
    if (type == Type::byte) {
      bytes_.push_back(static_cast<char>(
          static_cast<unsigned char>(std::stoi(std::string(text.substr(3, 2)), nullptr, 16))));
      return;
    }
    flush();
    if (prefix_seen_ || begun_) at_start_ = false;
    prefix_seen_ = false;
    if (type == Type::control) return;
    if (type == Type::unknown) return write(file_.unknown_surface);
    constexpr std::string_view sign = "\u2581";
    if (at_start_ && (file_.add_dummy_prefix || file_.remove_extra_whitespaces) &&
        text.starts_with(sign)) {
      text.remove_prefix(sign.size());
      prefix_seen_ = !file_.remove_extra_whitespaces;
    }
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const bool space = text.substr(at).starts_with(sign);
      space ? out.push_back(' ') : out.push_back(text[at]);
      at += space ? sign.size() : 1;
    }
    write(valid_utf8(out) ? out : repair_utf8(out));
  }

  void write(std::string_view text) {
    begun_ = begun_ || !text.empty();
    if (!text.empty()) emit(text);
  }

  // Replaces each byte that begins no character by U+FFFD.
  void flush() {
    std::string out;
    for (std::size_t at = 0; at < bytes_.size();) {
      const std::string_view character =
          std::string_view(bytes_).substr(at, utf8_length(bytes_[at]));
      const bool whole = valid_utf8(character);
      out.append(whole ? character : "\xEF\xBF\xBD");
      at += whole ? character.size() : 1;
    }
    bytes_.clear();
    write(out);
  }

  const SentencePieceFile& file_;
  const Vocabulary& vocabulary_;
  std::string bytes_;
  bool at_start_ = true, prefix_seen_ = false, begun_ = false;
};

class SentencePieceDecoder : public Decoder {
 public:
  explicit SentencePieceDecoder(const SentencePiece& model) : model_(model) {}
  std::unique_ptr<DecodeStage> start() const override {
    return std::make_unique<SentencePieceStage>(model_.file(), model_.vocabulary());
  }

 private:
  const SentencePiece& model_;
};

// The library joins consecutive unknown characters by repeated copying, in quadratic time; it does
// not join bytes. So the model gets 256 byte pieces after its own (pieces { piece: "<0x00>", type:
// BYTE }, trainer_spec { byte_fallback: true }; data appended to a protocol-buffer message is
// merged into it), and encode() replaces runs of these by the unknown piece.
std::string with_byte_pieces(const std::string& model) {
  std::string out = model;
  for (std::size_t byte = 0; byte < 256; ++byte)
    out.append("\x0A\x0A\x0A\x06").append(fallback_piece(byte)).append("\x18\x06");
  return out.append("\x12\x03\x98\x02\x01");
}

}  // namespace

struct SentencePiece::Library {
  sentencepiece::SentencePieceProcessor whole;  // puts a space before the text if the model says so
  std::unique_ptr<sentencepiece::SentencePieceProcessor>
      inside;  // never does; null: `whole` everywhere
};

SentencePiece::SentencePiece(SentencePieceFile file)
    : file_(std::move(file)), library_(std::make_unique<Library>()) {
  for (std::size_t i = 0; i < file_.pieces.size(); ++i) {
    vocabulary_.set(file_.pieces[i].text, static_cast<TokenId>(i));
    if (file_.pieces[i].type == SentencePieceFile::Type::unknown)
      unknown_ = static_cast<TokenId>(i);
  }
  nul_byte_ = vocabulary_.find(fallback_piece(0));
  if (nul_byte_ >= 0) nul_piece_ = vocabulary_.find(std::string_view("\0", 1));
}
namespace {

// Whether the first line is that of a tiktoken file: base64, a blank and the rank 0.
bool is_tiktoken_text(std::string_view bytes) {
  const auto line = bytes.substr(0, std::min<std::size_t>(bytes.find('\n'), 200));
  constexpr std::string_view base64 =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
  const auto end = line.find_first_not_of(base64);
  return end != line.npos && end > 0 && line.substr(end).starts_with(" 0");
}

}  // namespace

SentencePiece::~SentencePiece() = default;

Result<std::unique_ptr<SentencePiece>> SentencePiece::read(const std::string& bytes,
                                                           bool prefix_everywhere,
                                                           std::string_view where) {
  if (is_tiktoken_text(bytes))
    return fail(Errc::unsupported,
                cat(where,
                    ": a vocabulary of tiktoken (lines of base64 and rank), as Meta publishes "
                    "Llama 3 and 4, without special tokens and the split pattern; use the "
                    "tokenizer.json of the same model in Hugging Face's format (of GLM-4, add its "
                    "tokenizer_config.json)"));
  auto file = read_sentence_piece_file(bytes, where);
  RETURN_IF_ERROR(file);
  std::unique_ptr<SentencePiece> out(new SentencePiece(std::move(*file)));
  const std::string model =
      out->file_.byte_fallback || out->file_.has_bytes ? bytes : with_byte_pieces(bytes);
  const auto load = [&](sentencepiece::SentencePieceProcessor& into,
                        const std::string& from) -> Result<> {
    std::string why;
    try {
      if (const auto status = into.LoadFromSerializedProto(from); !status.ok())
        why = status.ToString();
    } catch (const std::exception& error) {  // of its trie, for a piece that begins with a NUL
      why = error.what();
    }
    if (why.empty()) return {};
    return fail(Errc::bad_input, cat(where, ": SentencePiece does not take the model: ", why));
  };
  RETURN_IF_ERROR(load(out->library_->whole, model));
  if (!prefix_everywhere && out->file_.add_dummy_prefix) {
    // A repeated message is merged into the first: normalizer_spec { add_dummy_prefix: false }.
    out->library_->inside = std::make_unique<sentencepiece::SentencePieceProcessor>();
    RETURN_IF_ERROR(load(*out->library_->inside, model + std::string("\x1A\x02\x18\x00", 4)));
  }
  return out;
}

void SentencePiece::encode(std::string_view word, Workspace& workspace,
                           std::vector<TokenId>& out) const {
  const auto& processor =
      workspace.at_start || !library_->inside ? library_->whole : *library_->inside;
  std::vector<int> ids;
  const auto status = processor.Encode({word.data(), word.size()}, &ids);
  if (!status.ok())
    throw Failure(
        {Errc::bad_input, cat("SentencePiece cannot encode this text: ", status.ToString())});
  const auto own = static_cast<int>(file_.pieces.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < own)
      out.push_back(ids[i] == nul_piece_ ? nul_byte_ : ids[i]);
    else if (i == 0 || ids[i - 1] < own)
      out.push_back(unknown_);
  }
}

SentencePiece::Roles SentencePiece::roles() const {
  const auto& library = library_->whole;
  return {library.unk_id(), library.bos_id(), library.eos_id(), library.pad_id()};
}

DecoderChain SentencePiece::decoders() const {
  DecoderChain chain;
  chain.push_back(std::make_unique<SentencePieceDecoder>(*this));
  return chain;
}

}  // namespace troupe::engine::tokenizer
