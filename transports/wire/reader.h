// Reader: reads the items of a wire body in order. Each item is checked against what is expected
// and against the remaining bytes before anything is allocated. Every error is a Failure(bad_input)
// that names the message, the field (by index, from 0), what was expected and what was found. The
// codec (codec.h) calls the reader; only reader.cpp uses the msgpack library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json/json.h"
#include "engine/base/memory/shared_array.h"
#include "transports/wire/part.h"

namespace troupe::transports::wire {

class Reader {
 public:
  /// `body` and `what` outlive the reader. `what` starts every error ("message 'generate'").
  Reader(const WireBody& body, std::string_view what) : Reader(body.header, body.parts, what) {}
  Reader(std::string_view header, const std::vector<BodyPart>& parts, std::string_view what)
      : header_(header), parts_(parts), what_(what), used_(parts.size()) {}

  /// Returns the length of a list whose elements take at least `min_bytes` bytes each.
  std::size_t list(std::size_t min_bytes);
  /// Reads the head of a list of exactly `count` elements; errors call the elements `what`
  /// ("fields").
  void list_of(std::size_t count, std::string_view what);
  bool boolean();
  std::int64_t integer(std::int64_t min, std::int64_t max);
  std::uint64_t unsigned_integer(std::uint64_t max);
  float float32();
  double float64();
  std::string text();
  Json json(std::size_t depth = 0);
  /// The bytes of a numeric array: inside the header, or a part that is not copied.
  struct Numbers {
    BodyPart bytes;  ///< no owner when the bytes are inside the header
    std::size_t count = 0;
  };
  Numbers numbers(Dtype dtype);
  /// Checks that nothing follows and that every part was used.
  void finish();

  /// The unread bytes of the header.
  std::string_view rest() const { return header_.substr(at_); }
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const;

  /// Scope in which errors refer to element or field `index` of the current one.
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
  void check_room(std::size_t count, std::size_t min_bytes) const;

  std::string_view header_;
  const std::vector<BodyPart>& parts_;
  std::string_view what_;
  std::size_t at_ = 0;
  std::vector<std::size_t> path_;
  std::vector<bool> used_;  // one flag per part
};

}  // namespace troupe::transports::wire
