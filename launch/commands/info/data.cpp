#include "launch/commands/info/data.h"

#include <optional>
#include <utility>

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
  std::int64_t prompts = 0, unanswered = 0;  // prompts without an answer, of those with a layout
  std::string first_bad;
  Json uses = Json::Object{};  // layouts_of() the first row
  std::string first_file, other_file;
  Json other_uses = Json::Object{};
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
  for (const Recipe& recipe : recipes()) {
    engine::data::LayoutOptions options;
    options.purpose = recipe.rows;
    const auto layout = engine::data::detect_layout(row, options);
    const bool automatic = recipe.layout == engine::data::Layout::automatic;
    if (layout && (automatic || recipe.layout == *layout))
      uses.set(std::string(recipe.name), std::string(name_of(*layout)));
  }
  return uses;
}

/// Whether the row has an answer for reward rules; nullopt: it is not a prompt.
std::optional<bool> has_answer(const engine::data::Row& row) {
  engine::data::LayoutOptions options;
  options.purpose = engine::data::Purpose::prompts;
  const auto layout = engine::data::detect_layout(row, options);
  if (!layout) return std::nullopt;
  options.layout = *layout;
  const auto sample = engine::data::to_sample(row, options);
  if (!sample) return std::nullopt;
  return !sample->answer.is_null();
}

void report_layouts(const engine::data::Row& row, const Json& uses, Report& report) {
  std::vector<std::string> none;
  report_columns(row, report);
  report.fact("uses", uses);
  const std::string answer = has_answer(row).value_or(false)
                                 ? ", with an answer for the reward rules"
                                 : ", without an answer: for reward rules that need none";
  for (const Recipe& recipe : recipes()) {
    const Json* layout = uses.find(recipe.name);
    const bool prompts = recipe.rows == engine::data::Purpose::prompts;
    if (layout)
      report.line(cat("for ", recipe.name, ": ", layout->string(), prompts ? answer : ""));
    else
      none.emplace_back(recipe.name);
  }
  if (!none.empty()) report.line(cat("not without data.columns: ", join(none, ", ")));
  if (uses.object().empty())
    report.note(
        "no algorithm reads these rows as they are; --set data.columns.NAME=COLUMN maps them "
        "(docs/formats.md)");
}

/// The first row of a file: its layouts are reported, or compared with those of the files before.
void see_first_row(const engine::data::Row& row, Rows& rows, Report& report) {
  Json uses = layouts_of(row);
  if (rows.good == 0) {
    report_layouts(row, uses, report);
    rows.uses = std::move(uses);
    rows.first_file = row.file;
  } else if (rows.other_file.empty() && uses != rows.uses) {
    rows.other_file = row.file;
    rows.other_uses = std::move(uses);
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
                                     " is read ", uses_text(rows.uses), "; ", rows.other_file, " ",
                                     uses_text(rows.other_uses),
                                     "; give each layout a source of its own in data.mix")});
  if (rows.bad > 0) {
    report.problem({Errc::bad_input, cat(rows.bad, " malformed rows; the first: ", rows.first_bad,
                                         "; fix them, or raise data.max_bad_rows to drop them")});
  }
  if (rows.good == 0) report.problem({Errc::bad_input, "no rows"});
}

Result<> read_file(const std::string& path, const engine::data::ReadOptions& options, Rows& rows,
                   Report& report) {
  auto reader = engine::data::open_rows(path, options);
  RETURN_IF_ERROR(reader);
  bool first = true;
  for (;;) {
    auto row = (*reader)->next();
    if (!row && row.error().code != Errc::bad_input) return fail(row);
    if (row && !*row) return {};
    if (row) {
      if (std::exchange(first, false)) see_first_row(**row, rows, report);
      ++rows.good;
      const auto answer = has_answer(**row);
      rows.prompts += answer.has_value();
      rows.unanswered += !answer.value_or(true);
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
  report_problems(rows, report);
}

}  // namespace troupe::launch
