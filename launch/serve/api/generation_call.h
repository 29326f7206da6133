// GenerationCall: one request that generates text from its submission to the end of its answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "launch/serve/api/answer_json.h"
#include "launch/serve/api/answer_queue.h"
#include "launch/serve/api/assembled_answer.h"
#include "launch/serve/api/generation_request.h"
#include "launch/serve/api/metrics.h"
#include "launch/serve/api/model_set.h"
#include "launch/serve/api/output_text.h"
#include "launch/serve/api/request_bounds.h"
#include "launch/serve/api/sampled_tokens.h"
#include "launch/serve/http/held_bytes.h"
#include "launch/serve/http/request.h"
#include "launch/serve/http/response.h"

namespace troupe::launch::serve::api {

/// What a call uses.
struct Backend {
  ServedPointer served;
  // These outlive the call.
  Metrics& metrics;
  AnswerQueue& answers;
  const HeldTotal& waiting;                 ///< requests, until they are answered
  const HeldTotal& results;                 ///< results of answers that are not complete
  std::shared_ptr<const void> in_progress;  ///< counts the call while it lives
  /// Receives what the policy of a run has sampled; nullptr: nobody asks.
  SampledTokens* sampled = nullptr;

  const ServedModel& model() const { return *served->model; }
  engine::serving::GenerationThread& service() const { return *served->generation; }
};

/// The service's callbacks hold it, so that it lives until its last sequence has ended.
class GenerationCall : public std::enable_shared_from_this<GenerationCall> {
 public:
  /// Writes the answer in another format than those of /v1/completions and /v1/chat/completions;
  /// the request is one of a conversation with one choice.
  using Assembled = std::unique_ptr<AssembledAnswer>;

  /// Submits the sequences; the answer follows. Throws ApiFailure if the engine refuses them.
  static void start(const Backend& backend, GenerationRequest request, const http::Request& from,
                    http::Responder responder, Assembled assembled = nullptr);

  GenerationCall(const Backend& backend, GenerationRequest request, const http::Request& from,
                 http::Responder responder, Assembled assembled);

 private:
  using Clock = std::chrono::steady_clock;
  /// A token of a stream that waits: for the scores of its prompt, which another choice computes,
  /// or for the end of its output, which is at hand.
  struct HeldToken {
    ReportedToken token;
    std::uint64_t version = 0;
    std::string mask = {};
    float sampling_logp = 0;
  };
  struct Choice {
    std::size_t prompt = 0;
    int index = 0;                         // in the response; of best_of: before the selection
    std::optional<OutputText> output;      // of a stream
    std::optional<MessageReader> message;  // where the output has parts
    bool sent = false;
    std::vector<HeldToken> held;
    std::optional<HeldToken> last;
    bool has_ended = false;
    TextPlace place;  // behind the tokens that were sent
    std::optional<Clock::time_point> started, first_token, last_token;
    SampledTokens::Chain chain = 0;  // of prompt and output so far
    engine::generate::Generation result;
  };

  using SharedRequest = std::shared_ptr<const engine::generate::Request>;
  void check_bytes();
  engine::generate::Request make_request(std::size_t prompt) const;
  std::vector<engine::serving::Job> make_jobs();
  engine::serving::Job make_job(std::size_t prompt, int index, SharedRequest request);
  void submit(const std::string& client);
  void cancel_all();

  // From here on, in the service's thread. What they throw is the error of the sequence's on_end().

  void hold(std::size_t bytes);
  SequenceTimes times_of(const Choice& choice) const;
  void on_prompt(std::size_t prompt, const engine::generate::PromptScores& scores);
  void on_token(Choice& choice, const engine::generate::TokenEvent& event);
  void on_end(Choice& choice, Result<engine::generate::Generation> result);
  void fail_call(const Error& error);
  void finish();
  void respond();  // or in the thread of the answers
  std::string whole_answer();
  std::int64_t reported() const;
  const PromptPart& prompt_part(std::size_t prompt);
  std::vector<const Choice*> best_choices() const;
  ChoicePart whole_part(const Choice& choice, int index);
  std::string finish_reason(const Choice& choice, int calls) const;
  static ChoicePart part_of(const Choice& choice);
  TextPlace first_place(std::size_t prompt) const;
  std::vector<engine::generate::Alternative> alternatives_of(
      std::int32_t token, float logp, std::span<const engine::generate::Alternative> top) const;
  bool waits_for_scores(const Choice& choice) const;
  void read_token(Choice& choice, HeldToken token, ChoicePart& part);
  void read_message(MessageReader& reader, bool ends, ChoicePart& part);
  void send_token(Choice& choice, HeldToken token);
  void send_end(Choice& choice);
  /// Whether the answer is made of pieces: a stream, or one that is assembled.
  bool in_pieces() const { return request_.stream || assembled_ != nullptr; }
  void send(Choice& choice, ChoicePart part);
  bool send_assembled(const ChoicePart& part);
  std::string final_text(const Choice& choice) const;
  bool drops_end_token() const { return request_.message.has_parts() && !request_.skip_special; }
  bool is_end_token(std::int32_t token) const;
  Json stop_reason(const engine::generate::Generation& result) const;

  Backend backend_;
  GenerationRequest request_;
  http::Responder responder_;
  AnswerJson json_;
  Assembled assembled_;
  Clock::time_point received_;
  std::vector<TextAfterPrompt> texts_;                   // by prompt; empty without a tokenizer
  std::vector<engine::generate::PromptScores> scores_;   // by prompt
  std::vector<std::optional<PromptPart>> prompt_parts_;  // by prompt, where they were needed
  http::HeldBytes waiting_bytes_, result_bytes_;
  std::size_t held_results_ = 0;
  std::vector<Choice> choices_;
  std::size_t left_ = 0;
  Usage usage_;
  bool failed_ = false, streaming_ = false;

  std::mutex mutex_;  // of what follows
  std::vector<std::uint64_t> ids_;
  bool cancelled_ = false;
};

}  // namespace troupe::launch::serve::api
