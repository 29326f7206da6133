#include "engine/data/readers/arrow_library.h"

#include <utility>

#include "engine/base/module.h"
#include "engine/base/text.h"
#include "engine/data/readers/arrow_reader.h"
#include "engine/data/readers/parquet_reader.h"

namespace troupe::engine::data {
namespace {

using OpenedReader = Result<std::unique_ptr<RowReader>>;
using OpenParquet = decltype(troupe_open_parquet);
using OpenArrow = decltype(troupe_open_arrow);

template <class Open>
Result<Open*> load(const char* symbol_name) {
  const auto symbol = load_from_module("libtroupe_parquet.so", symbol_name);
  if (symbol) return reinterpret_cast<Open*>(*symbol);
  if (symbol.error().code != Errc::not_found)
    return fail(
        Errc::unsupported,
        cat("reading parquet and Arrow files needs their library, but ", symbol.error().what,
            ": run cmake/fetch_arrow.sh with the build folder and build again"));
  return fail(Errc::unsupported, cat("reading parquet and Arrow files needs Arrow's library, which "
                                     "this build was made without (",
                                     symbol.error().what,
                                     "): run cmake/fetch_arrow.sh with the build folder, then "
                                     "cmake and the build again, or convert the file to .jsonl"));
}

template <class Open, class... More>
OpenedReader open_with(const Result<Open*>& open, const std::string& path, More&&... more) {
  if (!open) return fail(open.error().code, cat(path, ": ", open.error().what));
  OpenedReader reader = fail(Errc::internal, "");
  (*open)(path, std::forward<More>(more)..., reader);
  return reader;
}

}  // namespace

OpenedReader open_parquet(const std::string& path) {
  static const auto open = load<OpenParquet>("troupe_open_parquet");
  return open_with(open, path);
}

OpenedReader open_arrow(const std::string& path, MappedFile file) {
  static const auto open = load<OpenArrow>("troupe_open_arrow");
  return open_with(open, path, std::make_shared<const MappedFile>(std::move(file)));
}

}  // namespace troupe::engine::data
