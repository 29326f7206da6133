// SuiteModel: answers of a model to the items of evaluation tasks, on an engine of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/serving/engine.h"
#include "launch/evaluation/scores.h"
#include "launch/model/model.h"
#include "launch/run/text_model.h"

namespace troupe::launch::commands {

/// An item and the task that it belongs to; both outlive the answer.
struct AskedItem {
  const evaluation::TaskConfig* task = nullptr;
  const evaluation::TaskItem* item = nullptr;
};

struct AnsweredItem {
  evaluation::ItemAnswer answer;
  bool truncated = false;  ///< a context or a text was cut
};

class SuiteModel {
 public:
  /// Loads the model. Throws Failure.
  explicit SuiteModel(const model::ModelOptions& options);
  SuiteModel(const SuiteModel&) = delete;

  const engine::adapter::ModelFolders& folders() const { return model_.folders(); }
  /// Answers all items; `write` gets the answers in their order. An answer depends on no other
  /// item. Contexts are cut as lm-evaluation-harness cuts them for a server: a context and its
  /// continuation to the last max_positions - 1 tokens, that of a generated answer to
  /// max_positions - 1 less its new tokens, and a text of rolling perplexity into windows with one
  /// token of context. Throws Failure.
  void answer(const std::vector<AskedItem>& items, const std::function<void(AnsweredItem)>& write);
  /// Rows computed, and tokens of prompts that the cache had.
  engine::serving::ServiceCounters counters() const { return engine_->counters(); }
  /// The last token of a text, as Scored::last_token has it.
  std::int32_t last_token(const std::string& text) const;

 private:
  /// What is asked of the engine about an item.
  struct Open {
    AnsweredItem answered;
    std::size_t left = 0;  ///< requests that have not ended
    std::optional<Error> failed;
  };
  using OpenItem = std::shared_ptr<Open>;

  void start(const AskedItem& asked);
  std::pair<std::vector<std::int32_t>, std::size_t> scored_tokens(
      const AskedItem& asked, std::size_t i, const std::vector<std::int32_t>& context) const;
  void start_scores(const AskedItem& asked, const OpenItem& open);
  void start_whole_texts(const AskedItem& asked, const OpenItem& open);
  void start_windows(const std::string& text, const OpenItem& open);
  void start_texts(const AskedItem& asked, const OpenItem& open);
  /// Scores the tokens from `from` on; adds their sum, divided, to a likelihood of the item.
  void submit_scores(std::vector<std::int32_t> tokens, std::size_t from, std::size_t likelihood,
                     const OpenItem& open, double divisor = 1);
  void submit(engine::serving::Job job, const OpenItem& open,
              std::function<void(engine::generate::Generation&)> on_end);
  std::vector<std::int32_t> encode(const std::string& text) const;
  std::int32_t prefix_token() const;

  model::Model model_;
  std::shared_ptr<run::TextModel> text_;
  std::string begin_text_, end_text_;  ///< texts of BOS and EOS, or empty
  std::unique_ptr<engine::serving::Engine> engine_;
  std::deque<OpenItem> open_;  ///< started and not written, in their order
  std::uint64_t next_id_ = 0;
};

}  // namespace troupe::launch::commands
