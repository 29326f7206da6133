#include "engine/tokenizer/normalizers/precompiled.h"

#include <unicode/brkiter.h>
#include <unicode/utext.h>

#include <cstring>
#include <memory>

#include "engine/base/errors/check.h"
#include "engine/base/json/json.h"
#include "engine/base/text/base64.h"
#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/tokenizer/base/growth.h"

namespace troupe::engine::tokenizer {
namespace {

// A unit of a double array: a label, whether a value belongs to it, and the distance to its
// children; or a value.
std::uint32_t label_of(std::uint32_t unit) {
  return unit & 0x800000FFu;
}
bool has_value(std::uint32_t unit) {
  return ((unit >> 8) & 1) != 0;
}
std::uint32_t value_of(std::uint32_t unit) {
  return unit & 0x7FFFFFFFu;
}
std::uint32_t offset_of(std::uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/// Ends of the grapheme clusters of a text (UAX 29), in order.
class Graphemes {
 public:
  explicit Graphemes(std::string_view text) {
    UErrorCode status = U_ZERO_ERROR;
    text_ = utext_openUTF8(nullptr, text.data(), static_cast<std::int64_t>(text.size()), &status);
    breaks_.reset(icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
    check(U_SUCCESS(status) && breaks_, "ICU: its rules of grapheme clusters are missing");
    breaks_->setText(text_, status);
    check(U_SUCCESS(status), "ICU: a text cannot be cut into grapheme clusters");
    breaks_->first();
  }
  Graphemes(const Graphemes&) = delete;
  ~Graphemes() {
    breaks_.reset();
    utext_close(text_);
  }
  std::size_t next() { return static_cast<std::size_t>(breaks_->next()); }

 private:
  UText* text_ = nullptr;
  std::unique_ptr<icu::BreakIterator> breaks_;
};

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(CharacterMap map) : map_(std::move(map)) {}

  // Looks up whole grapheme clusters of less than six bytes first, and replaces all of a cluster by
  // the value of the shortest key that begins it, as the library does.
  bool apply(std::string& text, std::size_t limit) const override {
    std::string out;
    out.reserve(text.size());
    Graphemes graphemes(text);
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = graphemes.next();
      const std::string_view cluster = std::string_view(text).substr(begin, end - begin);
      begin = end;
      check_growth(out.size(), limit, "normalizer");
      if (cluster.size() < 6) {
        if (const auto whole = map_.shortest(cluster)) {
          out.append(*whole);
          continue;
        }
      }
      for (std::size_t at = 0; at < cluster.size();) {
        const std::string_view character = cluster.substr(at, utf8_length(cluster[at]));
        out.append(map_.shortest(character).value_or(character));
        at += character.size();
      }
    }
    text = std::move(out);
    return false;  // the library does not count what went at the beginning
  }

 private:
  CharacterMap map_;
};

}  // namespace

Result<CharacterMap> CharacterMap::read(std::string_view bytes, std::string_view where) {
  CharacterMap out;
  std::uint32_t size = 0;
  if (bytes.size() >= sizeof size) std::memcpy(&size, bytes.data(), sizeof size);
  if (bytes.size() < sizeof size || size == 0 || size % sizeof(std::uint32_t) != 0 ||
      size > bytes.size() - sizeof size)
    return fail(Errc::bad_input, cat(where, ": the character map is ", bytes.size(),
                                     " bytes long, and says that its trie has ", size));
  out.units_.resize(size / sizeof(std::uint32_t));
  std::memcpy(out.units_.data(), bytes.data() + sizeof size, size);
  out.texts_ = bytes.substr(sizeof size + size);
  if (!valid_utf8(out.texts_))
    return fail(Errc::bad_input, cat(where, ": the texts of the character map are not UTF-8"));
  if (!out.texts_.empty() && out.texts_.back() != '\0')
    return fail(Errc::bad_input, cat(where, ": the last text of the character map has no end"));
  if (!out.is_sound())
    return fail(Errc::bad_input, cat(where, ": the character map points outside itself"));
  return out;
}

// Checks every key: a whole block of 256 units for each node's children, and a text for each value.
bool CharacterMap::is_sound() const {
  std::vector<bool> seen(units_.size());
  std::vector<std::size_t> open{0};
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    const std::size_t children = at ^ offset_of(units_[at]);
    if ((children | 0xFF) >= units_.size()) return false;
    if (has_value(units_[at])) {
      const std::size_t value = value_of(units_[children]);
      if (value >= texts_.size() || (static_cast<unsigned char>(texts_[value]) & 0xC0) == 0x80)
        return false;
    }
    for (std::size_t label = 0; label < 256; ++label) {
      const std::size_t child = children ^ label;
      if (label_of(units_[child]) != label || seen[child]) continue;
      seen[child] = true;
      open.push_back(child);
    }
  }
  return true;
}

std::optional<std::string_view> CharacterMap::shortest(std::string_view text) const {
  std::size_t at = offset_of(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    at ^= byte;
    if (byte == 0 || label_of(units_[at]) != byte) return std::nullopt;
    const std::uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (!has_value(unit)) continue;
    const std::string_view rest = std::string_view(texts_).substr(value_of(units_[at]));
    return rest.substr(0, rest.find('\0'));
  }
  return std::nullopt;
}

Result<std::unique_ptr<Normalizer>> make_precompiled(const Json& options, std::string_view where) {
  auto text = get_string(options, "precompiled_charsmap", where);
  RETURN_IF_ERROR(text);
  auto bytes = decode_base64(*text);
  if (!bytes) return fail(Errc::bad_input, cat(where, ": \"precompiled_charsmap\" is not base64"));
  auto map = CharacterMap::read(*bytes, where);
  RETURN_IF_ERROR(map);
  return std::make_unique<Precompiled>(std::move(*map));
}

}  // namespace troupe::engine::tokenizer
