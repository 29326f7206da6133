// Reader: the items of a body, one after the other, each checked against what is expected and
// against what is there before anything is allocated. Whatever is wrong is a Failure(bad_input)
// that names the message, the field (by place, from 0), what was expected and what was found. The
// codec (codec.h) calls it; the msgpack library is in reader.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/shared_array.h"
#include "transports/wire/part.h"

namespace troupe::transports::wire {

class Reader {
 public:
  /// `body` and `what` outlive the reader. `what` begins every sentence ("message 'generate'").
  Reader(const WireBody& body, std::string_view what) : Reader(body.header, body.parts, what) {}
  Reader(std::string_view header, const std::vector<Part>& parts, std::string_view what)
      : header_(header), parts_(parts), what_(what), used_(parts.size()) {}

  /// The length of a list whose elements take at least `least` bytes each.
  std::size_t list(std::size_t least);
  /// A list of exactly `count`, which is called `what` ("fields").
  void list_of(std::size_t count, std::string_view what);
  bool boolean();
  std::int64_t integer(std::int64_t least, std::int64_t most);
  std::uint64_t natural(std::uint64_t most);
  float real32();
  double real64();
  std::string text();
  Json json(std::size_t depth = 0);
  /// The bytes of an array of numbers, as many as `dtype` and its count say: in the header, or a
  /// part that is not copied.
  struct Numbers {
    Part bytes;  ///< no owner: the bytes stand in the header
    std::size_t count = 0;
  };
  Numbers numbers(Dtype dtype);
  /// Nothing may follow, no part may be left.
  void finish();

  /// Bytes of the header behind what was read.
  std::string_view rest() const { return header_.substr(at_); }
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const;

  /// While it lives, errors are about element or field `index` of the present one.
  class Inside {
   public:
    Inside(Reader& reader, std::size_t index) : reader_(reader) { reader.path_.push_back(index); }
    Inside(const Inside&) = delete;
    ~Inside() { reader_.path_.pop_back(); }

   private:
    Reader& reader_;
  };

 private:
  struct Token;
  struct Visitor;
  Token next();
  Json::Object members(std::size_t count, std::size_t depth);
  Numbers part(Dtype dtype);
  void check_room(std::size_t count, std::size_t least) const;

  std::string_view header_;
  const std::vector<Part>& parts_;
  std::string_view what_;
  std::size_t at_ = 0;
  std::vector<std::size_t> path_;
  std::vector<bool> used_;  // by part
};

}  // namespace troupe::transports::wire
