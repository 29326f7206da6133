#include "engine/data/readers/arrow_library.h"

#include "engine/base/module.h"
#include "engine/base/text.h"

namespace troupe::engine::data {
namespace {

using Open = void(const std::string&, Result<std::unique_ptr<RowReader>>&);

Result<Open*> load(const char* symbol_name) {
  const auto symbol = load_from_module("libtroupe_parquet.so", symbol_name);
  if (symbol) return reinterpret_cast<Open*>(*symbol);
  if (symbol.error().code != Errc::not_found)
    return fail(Errc::unsupported, cat("reading parquet and Arrow files needs their library, but ", symbol.error().what,
                                       ": run cmake/fetch_arrow.sh with the build folder and build again"));
  return fail(Errc::unsupported,
              cat("reading parquet and Arrow files needs Arrow's library, which this build was made without (", symbol.error().what,
                  "): run cmake/fetch_arrow.sh with the build folder, then cmake and the build again, or convert the file to .jsonl"));
}

Result<std::unique_ptr<RowReader>> open_with(const Result<Open*>& open, const std::string& path) {
  if (!open) return fail(open.error().code, cat(path, ": ", open.error().what));
  Result<std::unique_ptr<RowReader>> reader = fail(Errc::internal, "");
  (*open)(path, reader);
  return reader;
}

}  // namespace

Result<std::unique_ptr<RowReader>> open_parquet(const std::string& path) {
  static const Result<Open*> open = load("troupe_open_parquet");
  return open_with(open, path);
}

Result<std::unique_ptr<RowReader>> open_arrow(const std::string& path) {
  static const Result<Open*> open = load("troupe_open_arrow");
  return open_with(open, path);
}

}  // namespace troupe::engine::data
