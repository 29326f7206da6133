#include "launch/commands/info/data.h"

#include <filesystem>

#include "engine/base/fields.h"
#include "engine/base/text.h"
#include "engine/data/layouts/sample.h"
#include "engine/data/readers/file_list.h"
#include "engine/data/readers/row_reader.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch {

namespace {

/// Counts over all files.
struct Rows {
  std::int64_t good = 0, bad = 0;
  std::string first_bad;
};

void report_columns(const engine::data::Row& row, Report& report) {
  constexpr std::size_t shown = 20;
  Json::Array names;
  std::vector<std::string> quoted;
  if (row.value.is_object()) {
    for (const auto& [key, value] : row.value.object()) {
      if (quoted.size() < shown) quoted.push_back(quote(key));
      names.emplace_back(key);
    }
  }
  const std::string more = names.size() > shown ? cat(" and ", names.size() - shown, " more") : "";
  report.say("columns", Json(names), cat("columns: ", join(quoted, ", "), more));
}

/// Returns true if some algorithm reads such rows without data.columns.
bool report_layouts(const engine::data::Row& row, Report& report) {
  Json uses = Json::Object{};
  std::vector<std::string> lines, none;
  for (const Recipe& recipe : recipes()) {
    engine::data::LayoutOptions options;
    options.purpose = recipe.rows;
    if (const auto layout = engine::data::detect_layout(row, options)) {
      const std::string name(name_of(*layout));
      uses.set(std::string(recipe.name), name);
      lines.push_back(cat("for ", recipe.name, ": ", name));
    } else {
      none.emplace_back(recipe.name);
    }
  }
  report_columns(row, report);
  report.fact("uses", uses);
  for (const std::string& line : lines) report.line(line);
  if (!none.empty()) report.line(cat("not without data.columns: ", join(none, ", ")));
  return !lines.empty();
}

Result<> read_file(const std::string& path, const engine::data::ReadOptions& options, Rows& rows,
                   Report& report) {
  auto reader = engine::data::open_rows(path, options);
  RETURN_IF_ERROR(reader);
  for (;;) {
    auto row = (*reader)->next();
    if (!row && row.error().code != Errc::bad_input) return fail(row);
    if (row && !*row) return {};
    if (row) {
      if (rows.good++ == 0 && !report_layouts(**row, report)) {
        report.note(
            "no algorithm reads these rows as they are; --set data.columns.NAME=COLUMN maps them "
            "(docs/formats.md)");
      }
    } else if (rows.bad++ == 0) {
      rows.first_bad = row.error().what;
    }
  }
}

}  // namespace

void inspect_data(const std::string& path, const std::vector<std::string>& column_names,
                  Report& report) {
  report.begin("data", path);
  const auto files = engine::data::list_data_files({path});
  if (!files) return report.problem(files.error());
  if (files->size() > 1)
    report.say("files", std::ssize(*files),
               cat(files->size(), " files, ", files->front(), " to ", files->back()));
  engine::data::ReadOptions options;
  options.column_names = column_names;
  Rows rows;
  for (const std::string& file : *files) {
    if (auto read = read_file(file, options, rows, report); !read)
      return report.problem(read.error());
  }
  report.say("rows", rows.good, cat(rows.good, rows.good == 1 ? " row" : " rows"));
  if (rows.bad > 0) {
    report.problem({Errc::bad_input, cat(rows.bad, " malformed rows; the first: ", rows.first_bad,
                                         "; fix them, or raise data.max_bad_rows to drop them")});
  }
  if (rows.good == 0) report.problem({Errc::bad_input, "no rows"});
}

}  // namespace troupe::launch
