#include "benchmarks/support/options.h"

#include <charconv>
#include <string_view>

#include "engine/base/environment/processors.h"
#include "engine/base/text/text.h"
#include "engine/ops/cpu/cpu_options.h"

namespace troupe::benchmarks {
namespace {

constexpr std::string_view known =
    "--shape a|b|c, --dtype f32|bf16, --threads N, --batch N, --sequence N, --rounds N, --isa NAME "
    "and --peer";

std::int64_t maximum_of(std::string_view flag) {
  return flag == "--vocabulary" || flag == "--kept" ? 1 << 20
         : flag == "--sequence"                     ? 65536
         : flag == "--batch"                        ? 4096
                                                    : 1024;
}

Result<std::int64_t> read_count(std::string_view flag, std::string_view text,
                                std::int64_t maximum) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > maximum)
    return fail(Errc::usage,
                cat(flag, " must be a number from 1 to ", maximum, ", found ", quote(text)));
  return value;
}

Result<> set(Options& out, std::string_view flag, std::string_view text) {
  if (flag == "--shape") {
    auto shape = shape_of(text);
    RETURN_IF_ERROR(shape);
    out.shape = *shape;
  } else if (flag == "--dtype") {
    if (text != "f32" && text != "bf16")
      return fail(Errc::usage, cat("--dtype must be f32 or bf16, found ", quote(text)));
    out.precision = text == "bf16" ? engine::ops::Precision::bf16 : engine::ops::Precision::f32;
  } else if (flag == "--isa") {
    out.isa = text;
  } else {
    const auto count = read_count(flag, text, maximum_of(flag));
    RETURN_IF_ERROR(count);
    if (flag == "--threads") out.threads = static_cast<int>(*count);
    if (flag == "--rounds") out.rounds = static_cast<int>(*count);
    if (flag == "--batch") out.batch = *count;
    if (flag == "--sequence") out.sequence = *count;
    if (flag == "--head-size") out.head_size = *count;
    if (flag == "--vocabulary") out.vocabulary = *count;
    if (flag == "--kept") out.kept = *count;
  }
  return {};
}

bool takes_value(std::string_view flag, const Takes& takes) {
  return (flag == "--head-size" && takes.head_size) ||
         ((flag == "--vocabulary" || flag == "--kept") && takes.masks) || flag == "--shape" ||
         flag == "--dtype" || flag == "--threads" || flag == "--rounds" || flag == "--batch" ||
         flag == "--sequence" || flag == "--isa";
}

// Heads of this size in the same width, with as many query heads for each key/value head.
Result<> set_head_size(ModelShape& shape, std::int64_t size) {
  const std::int64_t group = shape.heads / shape.kv_heads;
  if (shape.width % (size * group) != 0)
    return fail(Errc::usage, cat("--head-size: shape ", shape.name, " has a width of ", shape.width,
                                 ", which is not a multiple of ", group, " heads of ", size));
  shape.heads = shape.width / size;
  shape.kv_heads = shape.heads / group;
  return {};
}

Result<> resolve_defaults(Options& out, const Takes& takes) {
  if (out.sequence > 0) out.shape.sequence = out.sequence;
  if (out.vocabulary > 0) out.shape.vocabulary = out.vocabulary;
  if (out.kept > out.shape.vocabulary)
    return fail(Errc::usage, cat("--kept: expected at most the vocabulary of ",
                                 out.shape.vocabulary, " tokens, found ", out.kept));
  if (out.head_size > 0) RETURN_IF_ERROR(set_head_size(out.shape, out.head_size));
  if (out.batch == 0)
    out.batch = takes.batch
                    ? takes.batch
                    : (out.shape.batch + takes.multiple - 1) / takes.multiple * takes.multiple;
  if (out.batch % takes.multiple == 0) return {};
  return fail(Errc::usage, cat("--batch counts sequences, here a multiple of ", takes.multiple,
                               "; found ", out.batch));
}

}  // namespace

std::unique_ptr<engine::ops::Device> make_device(const Options& options) {
  return engine::ops::make_cpu_device({.threads = options.threads, .isa = options.isa.c_str()});
}

Result<Options> read_options(std::span<const char* const> words, const Takes& takes) {
  Options out;
  out.shape = *shape_of("a");
  out.threads = engine::usable_processors();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i], flag = word.substr(0, word.find('='));
    if (takes_value(flag, takes)) {
      const bool inside = flag.size() < word.size();
      if (!inside && i + 1 == words.size())
        return fail(Errc::usage, cat(flag, " wants a value behind it"));
      auto done =
          set(out, flag, inside ? word.substr(flag.size() + 1) : std::string_view(words[++i]));
      RETURN_IF_ERROR(done);
    } else if (word == "--peer") {
      out.peer = true;
    } else if (word == "--table" && takes.table) {
      out.table = true;
    } else if (word == "--int8" && takes.int8) {
      out.int8 = true;
    } else if (takes.words && !word.starts_with("-")) {
      out.words.emplace_back(word);
    } else {
      return fail(Errc::usage, cat(quote(word), " is not known here; there are ", known,
                                   takes.table       ? ", and --table"
                                   : takes.int8      ? ", and --int8"
                                   : takes.head_size ? ", and --head-size N"
                                   : takes.masks     ? ", and --vocabulary N and --kept N"
                                                     : ""));
    }
  }
  RETURN_IF_ERROR(resolve_defaults(out, takes));
  return out;
}

}  // namespace troupe::benchmarks
