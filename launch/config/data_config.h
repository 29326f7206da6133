// The section `data` of a run file: files, layouts, and the order of rows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/base/fields.h"
#include "engine/base/ranges.h"
#include "engine/data/layouts/sample.h"
#include "engine/data/loader/sampler.h"
#include "launch/config/yaml.h"

namespace troupe::launch::config {

/// One of several sources, sampled by weight.
struct MixSource {
  std::vector<std::string> path;
  double weight = 1;
  std::int64_t epochs = 0;
  engine::data::Layout format = engine::data::Layout::automatic;
  std::map<std::string, std::string> columns;
  std::string system;

  static void each_field(auto& self, auto&& field) {
    field("path", self.path, "file, folder, pattern, or list of them");
    field("weight", self.weight, above_0, "sampling weight");
    field("epochs", self.epochs, passes_from_0, "passes after which the source ends; 0: no limit");
    field("format", self.format, "row layout");
    field("columns", self.columns, "column names");
    field("system", self.system, "system message of its rows that have none");
  }
};

struct DataConfig {
  std::vector<std::string> path;
  std::vector<MixSource> mix;
  engine::data::Layout format = engine::data::Layout::automatic;
  std::map<std::string, std::string> columns;  ///< our name to the file's ("prompt": "question")
  std::map<std::string, std::string> tags;     ///< engine/data/layouts/columns.h
  std::string system;
  engine::data::SampleBy sample_by = engine::data::SampleBy::automatic;
  std::string separator = "<|endoftext|>";
  std::vector<std::string> column_names;
  bool stream = false;
  std::int64_t shuffle_buffer = 10000;
  bool shuffle = true;
  std::int64_t max_samples = 0;
  double split = 0;
  engine::data::LastBatch last_batch = engine::data::LastBatch::join;
  bool chunk = true;
  engine::data::ChatUse chat = engine::data::ChatUse::automatic;
  engine::data::BeginToken begin_token = engine::data::BeginToken::text;
  engine::data::AnswerStart answer_start = engine::data::AnswerStart::own;
  engine::data::EndToken end_token = engine::data::EndToken::text;
  std::int64_t max_bad_rows = 0;

  static void each_field(auto& self, auto&& field) {
    field("path", self.path,
          "file, folder, pattern (data/*.jsonl), or list of them (jsonl, json, csv, tsv, txt, each "
          "also .gz; parquet, arrow); this or data.mix is required");
    field("mix", self.mix,
          "instead of data.path: weighted sources, each {path, weight, epochs, format, columns, "
          "system}; epochs 0: repeat without limit");
    field("format", self.format, "row layout; auto: detected from the keys of the first row");
    field("columns", self.columns,
          "map from the expected column name to the file's, such as {prompt: question}; dots "
          "address nested values, \"\" ignores a column. data.map_keys accepts MindSpeed's "
          "--map-keys");
    field("tags", self.tags,
          "names used in conversations where they differ from ShareGPT's and OpenAI's: role_tag, "
          "content_tag, user_tag, assistant_tag, system_tag, observation_tag, function_tag");
    field("system", self.system,
          "system message of rows without one in a column or message; data.mix: its own");
    field("sample_by", self.sample_by,
          "row of a text file: a line, a paragraph (up to a blank line), the whole document, or "
          "the lines up to data.separator; auto: a line; for pretraining separator where the file "
          "has lines that are the separator, else document");
    field("separator", self.separator, "line that ends a document of a text file");
    field("column_names", self.column_names,
          "column names of csv and tsv files without a header; empty: the first line is the "
          "header");
    each_order_field(self, field);
    field("chunk", self.chunk,
          "split documents of the text layout longer than train.max_length; false: truncate them");
    each_answer_field(self, field);
    field("max_bad_rows", self.max_bad_rows, count_from_0,
          "malformed rows that are skipped and counted; one more stops the run");
  }

 private:
  /// What a row's tokens are beside those of its texts.
  static void each_answer_field(auto& self, auto& field) {
    field("chat", self.chat,
          "apply the chat template to plain prompts as a user message; auto: alpaca rows only, if "
          "the model has a template");
    field(
        "begin_token", self.begin_token,
        "begin token of rows: text: as the tokenizer adds it to plain text, and the chat template "
        "writes it in conversations; always: before every row that does not begin with it");
    field("answer_start", self.answer_start,
          "where the answers of a pair begin if a token crosses the end of the prompt: own: each "
          "with its first token that is not the prompt's; common: both where the first of them "
          "does");
    field("end_token", self.end_token,
          "end token of answers: text: after plain text, not after conversations, which end as the "
          "chat template ends them; always: after every row that does not end with it");
  }

  /// Which rows are used, and in what order.
  static void each_order_field(auto& self, auto& field) {
    field("stream", self.stream,
          "read the data while training, for files larger than memory; needs train.steps");
    field("shuffle_buffer", self.shuffle_buffer, Range{1, 1 << 30},
          "streaming: examples in the shuffle buffer");
    field("shuffle", self.shuffle, "shuffle each epoch, seeded by train.seed");
    field("max_samples", self.max_samples, count_from_0, "rows of each source to use; 0: all");
    field("split", self.split, from_0_below_1,
          "fraction of the rows to evaluate on, and not to train on; instead of eval.path");
    field(
        "last_batch", self.last_batch,
        "rows at the end of an epoch that do not fill a batch: join completes the batch with rows "
        "of the next epoch, keep makes a shorter batch, drop leaves them out");
  }
};

constexpr std::string_view column_maps_key = "data.map_keys";

/// `node` is their map, or its text: {prompt, query, response, history, system, chosen, rejected}
/// of Alpaca's rows; {messages, tags: {...}, system, tools, chosen, rejected, kto_tag} of
/// ShareGPT's. An empty text or null is a column that is not used. Returns "" or what is wrong.
std::string apply_map_keys(const YamlNode& node, DataConfig& data);

}  // namespace troupe::launch::config
