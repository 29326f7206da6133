#include "launch/commands/info/report.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"
#include "engine/data/layouts/sample.h"
#include "engine/data/loader/dataset.h"
#include "engine/data/readers/file_list.h"
#include "engine/data/readers/row_reader.h"
#include "launch/recipes/recipes.h"

namespace troupe::launch::commands {

namespace {

/// A layout in which some algorithms would read the rows, and what becomes of them.
struct Use {
  engine::data::Purpose purpose;
  engine::data::Layout layout;
  std::vector<std::string> algorithms;
  std::int64_t good = 0, bad = 0;
  std::string first_bad;
  engine::data::DataReport report;  ///< its unread columns
};

/// Counts over all files.
struct Rows {
  std::int64_t good = 0, bad = 0;
  std::int64_t prompts = 0, unanswered = 0;  // prompts without an answer, of those with a layout
  std::string first_bad;
  std::optional<engine::data::Row> first;
  std::vector<Use> uses;          // of the first row
  Json layouts = Json::Object{};  // layouts_of() the first row
  std::string first_file, other_file;
  Json other_layouts = Json::Object{};
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

/// The layout in which each algorithm would read the row: {algorithm: layout}.
Json layouts_of(const engine::data::Row& row) {
  Json uses = Json::Object{};
  for (const recipes::Recipe& recipe : recipes::recipes()) {
    engine::data::LayoutOptions options;
    options.purpose = recipe.rows;
    const auto layout = engine::data::detect_layout(row, options);
    const bool automatic = recipe.layout == engine::data::Layout::automatic;
    if (layout && (automatic || recipe.layout == *layout))
      uses.set(std::string(recipe.name), std::string(name_of(*layout)));
  }
  return uses;
}

std::vector<Use> uses_of(const engine::data::Row& row) {
  std::vector<Use> out;
  for (const recipes::Recipe& recipe : recipes::recipes()) {
    const auto layout = engine::data::detect_layout(row, {.purpose = recipe.rows});
    const bool automatic = recipe.layout == engine::data::Layout::automatic;
    if (!layout || (!automatic && recipe.layout != *layout)) continue;
    const auto same = std::ranges::find_if(
        out, [&](const Use& use) { return use.purpose == recipe.rows && use.layout == *layout; });
    Use& use = same != out.end() ? *same : out.emplace_back(Use{recipe.rows, *layout, {}});
    use.algorithms.emplace_back(recipe.name);
  }
  return out;
}

/// Reads the row in the layout of each use.
void see_row(const engine::data::Row& row, Rows& rows) {
  for (Use& use : rows.uses) {
    const auto sample =
        engine::data::to_sample(row, {.purpose = use.purpose, .layout = use.layout});
    if (!sample && use.bad++ == 0) use.first_bad = sample.error().what;
    if (!sample) continue;
    ++use.good;
    for (const std::string& column : sample->unread) use.report.add_unread(column, 1);
    if (use.purpose != engine::data::Purpose::prompts) continue;
    ++rows.prompts;
    rows.unanswered += sample->answer.is_null();
  }
}

void report_use(const Use& use, bool answered, Report& report) {
  const std::string algorithms = join(use.algorithms, ", ");
  if (use.good == 0)
    return report.line(
        cat("not for ", algorithms, ", as ", name_of(use.layout), ": ", use.first_bad));
  const bool prompts = use.purpose == engine::data::Purpose::prompts;
  for (const std::string& algorithm : use.algorithms)
    report.line(cat("for ", algorithm, ": ", name_of(use.layout),
                    !prompts   ? ""
                    : answered ? ", with an answer for the reward rules"
                               : ", without an answer: for reward rules that need none"));
  if (use.bad > 0)
    report.note(
        cat(use.bad, " rows are malformed for ", algorithms, "; the first: ", use.first_bad));
  if (!use.report.unread.empty())
    report.line(cat("for ", algorithms, ": ", use.report.unread_text()));
}

/// What the algorithms make of the rows, all of which have been read.
void report_layouts(const Rows& rows, Report& report) {
  report_columns(*rows.first, report);
  Json uses = Json::Object{}, unread = Json::Object{};
  std::vector<std::string> none;
  for (const Use& use : rows.uses) {
    auto first =
        engine::data::to_sample(*rows.first, {.purpose = use.purpose, .layout = use.layout});
    report_use(use, first && !first->answer.is_null(), report);
    for (const std::string& algorithm : use.algorithms)
      if (use.good > 0) uses.set(algorithm, std::string(name_of(use.layout)));
    Json::Array columns;
    for (const auto& [column, count] : use.report.unread) columns.emplace_back(column);
    for (const std::string& algorithm : use.algorithms)
      if (!columns.empty()) unread.set(algorithm, columns);
  }
  for (const recipes::Recipe& recipe : recipes::recipes())
    if (!rows.layouts.find(recipe.name)) none.emplace_back(recipe.name);
  if (!none.empty()) report.line(cat("not without data.columns: ", join(none, ", ")));
  if (uses.object().empty())
    report.problem(
        {Errc::bad_input,
         "no algorithm reads these rows as they are; --set data.columns.NAME=COLUMN maps "
         "them (docs/formats.md)"});
  report.fact("uses", std::move(uses));
  report.fact("unread_columns", std::move(unread));
}

/// The first row of a file: its layouts are those of all rows, or compared with those of the files
/// before.
void see_first_row(const engine::data::Row& row, Rows& rows) {
  Json layouts = layouts_of(row);
  if (!rows.first) {
    rows.first = row;
    rows.uses = uses_of(row);
    rows.layouts = std::move(layouts);
    rows.first_file = row.file;
  } else if (rows.other_file.empty() && layouts != rows.layouts) {
    rows.other_file = row.file;
    rows.other_layouts = std::move(layouts);
  }
}

std::string uses_text(const Json& uses) {
  std::vector<std::string> parts;
  for (const auto& [algorithm, layout] : uses.object())
    parts.push_back(cat(algorithm, " as ", layout.string()));
  return parts.empty() ? "by no algorithm" : join(parts, ", ");
}

void report_problems(const Rows& rows, Report& report) {
  if (rows.unanswered > 0 && rows.unanswered < rows.prompts)
    report.note(cat(rows.unanswered, " of ", rows.prompts,
                    " prompts have no answer, which the reward rules exact_match, gsm8k and boxed "
                    "need"));
  if (!rows.other_file.empty())
    report.problem({Errc::usage, cat("the files have different layouts: ", rows.first_file,
                                     " is read ", uses_text(rows.layouts), "; ", rows.other_file,
                                     " ", uses_text(rows.other_layouts),
                                     "; give each layout a source of its own in data.mix")});
  if (rows.bad > 0) {
    report.problem({Errc::bad_input, cat(rows.bad, " malformed rows; the first: ", rows.first_bad,
                                         "; fix them, or raise data.max_bad_rows to drop them")});
  }
  if (rows.good == 0) report.problem({Errc::bad_input, "no rows"});
}

Result<> read_data_file(const std::string& path, const engine::data::ReadOptions& options,
                        Rows& rows) {
  auto reader = engine::data::open_rows(path, options);
  RETURN_IF_ERROR(reader);
  bool first = true;
  for (;;) {
    auto row = (*reader)->next();
    if (!row && row.error().code != Errc::bad_input) return fail(row);
    if (row && !*row) return {};
    if (row) {
      if (std::exchange(first, false)) see_first_row(**row, rows);
      ++rows.good;
      see_row(**row, rows);
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
    if (auto read = read_data_file(file, options, rows); !read) return report.problem(read.error());
  }
  if (rows.first) report_layouts(rows, report);
  report.say("rows", rows.good, cat(rows.good, rows.good == 1 ? " row" : " rows"));
  report_problems(rows, report);
}

}  // namespace troupe::launch::commands
