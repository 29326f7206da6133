#include "launch/config/fields.h"

#include "launch/profile/fields.h"
#include "launch/recipes/held_out.h"
#include "launch/recipes/lora.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/sampling/sampling.h"

namespace troupe::launch {

namespace {

// The lambda is what turns a member into a slot; a macro would be shorter and is not allowed here.
constexpr Field common[] = {
    {"algorithm", [](RunConfig& c) { return Slot(&c.algorithm); },
     "what to train with; also given as --algorithm; required", "", any},
    {"dialect", [](RunConfig& c) { return Slot(&c.dialect); },
     "whose defaults and whose way of computing where tools differ (docs/dialects.md); empty: as "
     "the keys below say",
     "|trl|verl|openrlhf|mindspeed", any},
    {"model", [](RunConfig& c) { return Slot(&c.model); },
     "Hugging Face model directory to start from; required", "", any},
    {"output", [](RunConfig& c) { return Slot(&c.output); },
     "directory of the run: metrics, samples, checkpoints; required", "", any},
    {"resume", [](RunConfig& c) { return Slot(&c.resume); },
     "auto: go on from the newest checkpoint in output, if there is one; never: refuse to touch an "
     "earlier run; or a checkpoint directory",
     "", any},
    {"chat_template", [](RunConfig& c) { return Slot(&c.chat_template); },
     "template file for messages, or the name of one of MindSpeed's prompt types (qwen, llama3, "
     "...); empty: the model's own",
     "", any},
    {"data.path", [](RunConfig& c) { return Slot(&c.data.path); },
     "file, folder, pattern (data/*.jsonl), or list of them (jsonl, json, csv, tsv, txt, each also "
     ".gz; parquet, arrow); this or data.mix "
     "is "
     "required",
     "", any},
    {"data.mix", [](RunConfig& c) { return Slot(&c.data.mix); },
     "instead of data.path: sources drawn from by weight, each {path, weight, epochs, format, "
     "columns}; epochs: passes after which a "
     "source "
     "gives no more, 0 for ever",
     "", any},
    {"data.format", [](RunConfig& c) { return Slot(&c.data.format); },
     "what a row holds; auto looks at the first row's keys",
     "auto|token_ids|messages|prompt_completion|question_answer|alpaca|text|pairwise|steps|"
     "placeholders|prm800k|prompt_answer",
     any},
    {"data.columns", [](RunConfig& c) { return Slot(&c.data.columns); },
     "map from the name expected here to the file's own, such as {prompt: question}; dots go into "
     "objects and lists, \"\" leaves a column "
     "unused. data.map_keys takes MindSpeed's --map-keys instead",
     "", any},
    {"data.tags", [](RunConfig& c) { return Slot(&c.data.tags); },
     "names in conversations that are not ShareGPT's or OpenAI's: role_tag, content_tag, user_tag, "
     "assistant_tag, system_tag, "
     "observation_tag, function_tag",
     "", any},
    {"data.sample_by", [](RunConfig& c) { return Slot(&c.data.sample_by); },
     "what a row of a text file is: a line, a paragraph (up to a blank line), the whole document, "
     "or the lines up to data.separator",
     "line|paragraph|document|separator", any},
    {"data.separator", [](RunConfig& c) { return Slot(&c.data.separator); },
     "a line that ends a document of a text file", "", any},
    {"data.column_names", [](RunConfig& c) { return Slot(&c.data.column_names); },
     "of csv and tsv files without a header; empty: their first line has the names", "", any},
    {"data.stream", [](RunConfig& c) { return Slot(&c.data.stream); },
     "read the data as the run goes, for files larger than memory; needs train.steps", "", any},
    {"data.shuffle_buffer",
     [](RunConfig& c) { return Slot(&c.data.shuffle_buffer); },
     "examples of a stream that are in memory and shuffled at a time",
     "",
     {1, 1 << 30}},
    {"data.shuffle", [](RunConfig& c) { return Slot(&c.data.shuffle); },
     "a new order each epoch, from train.seed", "", any},
    {"data.chat", [](RunConfig& c) { return Slot(&c.data.chat); },
     "send plain texts through the chat template as a user's message; auto: alpaca rows only, when "
     "the model has a template",
     "auto|always|never", any},
    {"data.max_bad_rows", [](RunConfig& c) { return Slot(&c.data.max_bad_rows); },
     "malformed rows that are reported, counted and left out; one more stops the run", "",
     at_least_0},
    {"train.steps", [](RunConfig& c) { return Slot(&c.train.steps); },
     "optimizer steps; wins over train.epochs; 0: as many as the epochs make", "", at_least_0},
    {"train.epochs", [](RunConfig& c) { return Slot(&c.train.epochs); },
     "passes over the data when train.steps is 0", "", at_least_1},
    {"train.batch_size",
     [](RunConfig& c) { return Slot(&c.train.batch_size); },
     "rows, pairs or prompts an optimizer step",
     "",
     {1, 1 << 20}},
    {"train.micro_batch_tokens",
     [](RunConfig& c) { return Slot(&c.train.micro_batch_tokens); },
     "tokens in one forward and backward pass; trades memory for speed, never changes the loss",
     "",
     {1, 1 << 30}},
    {"train.recompute", [](RunConfig& c) { return Slot(&c.train.recompute); },
     "what the forward pass does not keep and the backward pass computes again, for less memory "
     "and the same bits: full (all but each "
     "layer's input), attention (what others call selective), activation (of the MLPs), norm; a "
     "list may have several, and [] keeps all",
     "full|attention|activation|norm", any},
    {"train.share_prefixes", [](RunConfig& c) { return Slot(&c.train.share_prefixes); },
     "what neighbouring sequences of a micro-batch begin with (the prompt of a group's samples, of "
     "a pair) is computed once: less time and "
     "memory; a loss keeps its bits, gradients are the same sums in another order, and their last "
     "bits depend on train.micro_batch_tokens",
     "", any},
    {"train.max_length",
     [](RunConfig& c) { return Slot(&c.train.max_length); },
     "tokens of a sequence; 0: what the model was made for",
     "",
     {0, 1 << 24}},
    {"train.learning_rate",
     [](RunConfig& c) { return Slot(&c.train.learning_rate); },
     "peak learning rate",
     "",
     {0, 10}},
    {"train.schedule", [](RunConfig& c) { return Slot(&c.train.schedule); },
     "how the learning rate falls after the warm-up", "constant|linear|cosine|inverse_sqrt|wsd",
     any},
    {"train.warmup_steps", [](RunConfig& c) { return Slot(&c.train.warmup_steps); },
     "steps of linear rise from 0", "", at_least_0},
    {"train.decay_steps", [](RunConfig& c) { return Slot(&c.train.decay_steps); },
     "wsd: steps of the final decay; 0: a tenth of the run", "", at_least_0},
    {"train.min_lr_ratio", [](RunConfig& c) { return Slot(&c.train.min_lr_ratio); },
     "the schedule ends at this part of the learning rate", "", fraction},
    {"train.betas", [](RunConfig& c) { return Slot(&c.train.betas); },
     "AdamW's decay rates of the two moments", "", below_1, 2},
    {"train.eps", [](RunConfig& c) { return Slot(&c.train.eps); }, "AdamW's epsilon", "", above_0},
    {"train.weight_decay", [](RunConfig& c) { return Slot(&c.train.weight_decay); },
     "decoupled weight decay of matrices (vectors never decay)", "", at_least_0},
    {"train.max_grad_norm", [](RunConfig& c) { return Slot(&c.train.max_grad_norm); },
     "clip the global gradient norm to this; 0: no clipping", "", at_least_0},
    {"train.dtype", [](RunConfig& c) { return Slot(&c.train.dtype); },
     "inputs of matrix products; sums, master weights (but for train.stochastic_rounding) and "
     "optimizer are always f32",
     "f32|bf16", any},
    {"train.stochastic_rounding", [](RunConfig& c) { return Slot(&c.train.stochastic_rounding); },
     "weights are bf16 after each update, rounded up or down by chance so that small updates are "
     "not lost on the mean: no f32 master",
     "", any},
    {"train.seed", [](RunConfig& c) { return Slot(&c.train.seed); }, "shuffling and sampling", "",
     at_least_0},
    {"train.threads",
     [](RunConfig& c) { return Slot(&c.train.threads); },
     "0: as many as the process may use; never changes a result",
     "",
     {0, 1024}},
    {"train.pin_threads", [](RunConfig& c) { return Slot(&c.train.pin_threads); },
     "each thread of the engine stays on a processor of its own; only where the process may use "
     "just as many processors as it has threads",
     "", any},
    {"train.save_every", [](RunConfig& c) { return Slot(&c.train.save_every); },
     "steps between checkpoints; 0: only the last step", "", at_least_0},
    {"train.keep_last", [](RunConfig& c) { return Slot(&c.train.keep_last); },
     "checkpoints kept, at least 2; 0: all", "", at_least_0},
    {"train.log_every", [](RunConfig& c) { return Slot(&c.train.log_every); },
     "steps between progress lines when stderr is not a terminal; 0: none", "", at_least_0},
    {"train.patience",
     [](RunConfig& c) { return Slot(&c.train.patience); },
     "seconds that one answer of an actor may take (samples of a batch, an update, a save) before "
     "the run ends with a timeout",
     "",
     {1, 604800}},
    {"parallel.tp",
     [](RunConfig& c) { return Slot(&c.parallel.tp); },
     "tensor parallel: ranks that share every matrix of the policy",
     "",
     {1, 1024}},
    {"parallel.dp",
     [](RunConfig& c) { return Slot(&c.parallel.dp); },
     "data parallel: replicas of the policy that share each batch",
     "",
     {1, 1024}},
};

std::vector<Field> all_fields() {
  std::vector<Field> all(std::begin(common), std::end(common));
  const auto add = [&all](std::span<const Field> more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  add(profile_fields()), add(lora_fields());
  for (const Recipe& recipe : recipes()) add(recipe.fields);
  add(eval_fields()), add(rollout_fields()), add(reward_fields());
  return all;
}

}  // namespace

std::span<const Field> fields() {
  static const std::vector<Field> all = all_fields();
  return all;
}

}  // namespace troupe::launch
