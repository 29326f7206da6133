#include "benchmarks/support/made_text.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/base/random/random.h"
#include "engine/base/text/text.h"

namespace troupe::benchmarks {
namespace {

// GPT-2's letters for bytes: printable bytes represent themselves, the others are numbered from
// U+0100.
std::string letter(int byte) {
  static const auto points = [] {
    std::vector<int> out;
    for (int b = 0, next = 256; b < 256; ++b)
      out.push_back((b > 32 && b < 127) || (b > 160 && b != 173) ? b : next++);
    return out;
  }();
  const int point = points[static_cast<std::size_t>(byte)];
  if (point < 128) return std::string(1, static_cast<char>(point));
  return {static_cast<char>(0xc0 | point >> 6), static_cast<char>(0x80 | (point & 63))};
}

// The word of a rank: at least two syllables, longer for rarer words.
std::string word(std::int64_t rank) {
  static constexpr std::string_view onsets[] = {"b", "d", "f", "g", "h", "k", "l", "m",
                                                "n", "p", "r", "s", "t", "v", "w", "st"};
  static constexpr std::string_view ends[] = {"a", "e", "i", "o", "u", "an", "er", "in"};
  std::string out;
  for (auto left = static_cast<std::uint64_t>(rank) + 128; left > 0; left /= 128)
    out += cat(onsets[left % 16], ends[left / 16 % 8]);
  return out;
}

}  // namespace

std::string made_tokenizer(std::int64_t vocabulary) {
  Json::Object pieces;
  Json::Array merges;
  std::set<std::string> known;
  const auto add = [&](const std::string& piece) {
    pieces.emplace_back(piece, static_cast<std::int64_t>(pieces.size()));
  };
  for (int byte = 0; byte < 256; ++byte) add(letter(byte));
  for (std::int64_t rank = 0; std::ssize(pieces) < vocabulary; ++rank) {
    std::string piece = letter(' ');
    for (const char next : word(rank)) {
      merges.emplace_back(cat(piece, " ", next));
      piece += next;
      if (known.insert(piece).second) {
        add(piece);
      } else {
        merges.pop_back();
      }
    }
  }
  Json model, bytes, file;
  model.set("type", "BPE").set("vocab", std::move(pieces)).set("merges", std::move(merges));
  bytes.set("type", "ByteLevel")
      .set("add_prefix_space", false)
      .set("trim_offsets", true)
      .set("use_regex", true);
  file.set("version", "1.0")
      .set("added_tokens", Json::Array{})
      .set("normalizer", nullptr)
      .set("pre_tokenizer", bytes);
  file.set("post_processor", nullptr).set("decoder", bytes).set("model", std::move(model));
  return file.dump();
}

std::string made_text(std::int64_t vocabulary, std::size_t bytes) {
  std::string out;
  const double words = static_cast<double>(vocabulary);
  for (std::uint64_t i = 0; out.size() < bytes; ++i) {
    const auto rank = static_cast<std::int64_t>(std::pow(words, uniform(1, 0, i))) -
                      1;  // the rank's logarithm is uniform (Zipf)
    if (i % 200 == 199) {
      out += ".<|endoftext|>";
    } else {
      out += cat(" ", word(rank), i % 12 == 11 ? "." : "");
    }
  }
  return out;
}

}  // namespace troupe::benchmarks
