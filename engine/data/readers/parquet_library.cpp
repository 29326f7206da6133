#include "engine/data/readers/parquet_library.h"

#include "engine/base/module.h"
#include "engine/base/text.h"

namespace troupe::engine::data {
namespace {

using Open = void(const std::string&, Result<std::unique_ptr<RowReader>>&);

Result<Open*> load() {
  const auto symbol = load_from_module("libtroupe_parquet.so", "troupe_open_parquet");
  if (symbol) return reinterpret_cast<Open*>(*symbol);
  if (symbol.error().code != Errc::not_found)
    return fail(Errc::unsupported, cat("reading parquet needs its library, but ", symbol.error().what,
                                       ": run cmake/fetch_arrow.sh with the build folder and build again"));
  return fail(Errc::unsupported,
              cat("reading parquet needs Arrow, which this build was made without (", symbol.error().what,
                  "): run cmake/fetch_arrow.sh with the build folder, then cmake and the build again, or convert the file to .jsonl"));
}

}  // namespace

Result<std::unique_ptr<RowReader>> open_parquet(const std::string& path) {
  static const Result<Open*> open = load();
  if (!open) return fail(open.error().code, cat(path, ": ", open.error().what));
  Result<std::unique_ptr<RowReader>> reader = fail(Errc::internal, "");
  (*open)(path, reader);
  return reader;
}

}  // namespace troupe::engine::data
