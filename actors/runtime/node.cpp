#include "actors/runtime/node.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "actors/runtime/actor_state.h"
#include "actors/runtime/asker.h"
#include "actors/runtime/detached.h"
#include "engine/base/errors/check.h"
#include "engine/base/log/log.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/progress.h"

namespace troupe::actors {
namespace {

/// Detects repeated requests of one sender. A sender's ids increase, but a transport may repeat or
/// reorder frames.
class DuplicateWindow {
 public:
  /// True for a new id. An id older than the last 4096 counts as seen: handling a request twice is
  /// worse than losing it.
  bool first(std::uint64_t id) {
    if (id <= floor_ || !seen_.insert(id).second) return false;
    if (seen_.size() > 4096) {
      floor_ = *seen_.begin();
      seen_.erase(seen_.begin());
    }
    return true;
  }

 private:
  std::uint64_t floor_ = 0;  // ids up to this one are no longer stored
  std::set<std::uint64_t> seen_;
};

}  // namespace

using transports::Address;
using transports::Body;
using transports::Frame;
using transports::Kind;

/// Used on the control executor, except for `names`, `spawned` and `stopped`. Jobs in flight share
/// it.
class Node::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(std::string node, Scheduler& where, transports::Transport& network, NodeOptions given)
      : name(std::move(node)),
        scheduler(where),
        transport(network),
        options(std::move(given)),
        control(where.executor(name + "/control")),
        asker(std::make_shared<Asker>(name, where, control, network)) {
    asker->set_observer(options.on_answered);
  }

  void receive(Frame frame);  // any thread
  void add(std::shared_ptr<ActorState> actor) { actors.emplace(actor->name, std::move(actor)); }
  void begin_stop(std::promise<void>& when_drained);
  void log_running_handlers(Duration since_stop);

  const std::string name;
  Scheduler& scheduler;
  transports::Transport& transport;
  const NodeOptions options;
  Executor& control;
  const std::shared_ptr<Asker> asker;
  std::map<std::string, std::shared_ptr<ActorState>> actors;
  std::atomic<std::uint64_t> unexpected = 0, duplicates = 0, refused = 0, undeliverable = 0;

  // Used only on the thread that created the node.
  std::set<std::string> names;
  std::vector<std::shared_ptr<ActorState>> spawned;  // in order
  bool stopped = false;

 private:
  std::string path(const ActorState& actor) const { return to_string(Address{name, actor.name}); }
  void deliver(Frame frame);
  Result<> accept(Frame& frame);
  Error too_many(const ActorState& actor, const Frame& frame);
  void pump(const std::shared_ptr<ActorState>& actor);
  struct Computation;
  Result<> interrupt(const std::shared_ptr<ActorState>& actor, Frame& frame,
                     const Handler& handler);
  void compute(const std::shared_ptr<ActorState>& actor, Frame frame, const Handler& handler);
  void compute_step(const std::shared_ptr<Computation>& running);
  Detached run_async(std::shared_ptr<Core> self, std::shared_ptr<ActorState> actor, Frame frame);
  void complete(const std::shared_ptr<ActorState>& actor, const Frame& frame,
                HandlerOutcome outcome);
  void answer(const Frame& request, Result<Body> result, std::int64_t began = 0,
              std::int64_t ended = 0);
  void mark_dead(ActorState& actor, const std::string& death_reason);
  void reject_waiting(ActorState& actor, const Error& why);
  void notify_if_drained();

  std::map<std::string, DuplicateWindow> seen;  // per asking node
  bool stopping = false;
  std::atomic<bool> ends_early = false;   // stopping, for computations in steps
  std::promise<void>* drained = nullptr;  // set while a stopping node waits for handlers
};

void Node::Core::receive(Frame frame) {
  auto shared = std::make_shared<Frame>(std::move(frame));
  control.post([self = shared_from_this(), shared] { self->deliver(std::move(*shared)); });
}

void Node::Core::deliver(Frame frame) {
  if (frame.kind != Kind::request) {
    if (asker->expects(frame.id)) {
      asker->answer(std::move(frame));
      return;
    }
    ++unexpected;
    if (options.on_late) options.on_late(std::move(frame));
    return;
  }
  if (!seen[frame.from.node].first(frame.id)) {
    ++duplicates;
    return;
  }
  if (Result<> accepted = accept(frame); !accepted)
    answer(frame, fail(std::move(accepted.error())));
}

Result<> Node::Core::accept(Frame& frame) {
  const std::string who = to_string(frame.to);
  if (stopping) return fail(Errc::closed, cat("node '", name, "' is stopping"));
  const auto found = actors.find(frame.to.actor);
  if (found == actors.end()) {
    std::vector<std::string> known;
    for (const auto& entry : actors) known.push_back(entry.first);
    return fail(Errc::not_found,
                cat("there is no actor ", quote(who), "; this node has: ", join(known, ", ")));
  }
  ActorState& actor = *found->second;
  if (actor.death_reason) return fail(Errc::closed, cat(who, " has ended: ", *actor.death_reason));
  const auto handler = actor.behavior.find(frame.type);
  if (handler == actor.behavior.end()) return fail(not_handled(actor, who, frame.type));
  if (handler->second.interrupts) return interrupt(found->second, frame, handler->second);
  if (!actor.mailbox.push(frame)) return fail(too_many(actor, frame));
  pump(found->second);
  return {};
}

Error Node::Core::too_many(const ActorState& actor, const Frame& frame) {
  ++refused;
  return {Errc::full, cat(path(actor), " refused '", frame.type, "': ", actor.mailbox.capacity(),
                          " messages are already waiting; send fewer requests at a time")};
}

void Node::Core::pump(const std::shared_ptr<ActorState>& actor) {
  while (actor->running < actor->max_concurrency) {
    std::optional<Frame> frame = actor->mailbox.pop();
    if (!frame) return;
    ++actor->running;
    actor->handling = frame->type;
    const Handler& handler = actor->behavior.find(frame->type)->second;
    if (handler.computes())
      compute(actor, std::move(*frame), handler);
    else
      run_async(shared_from_this(), actor, std::move(*frame));
  }
}

// Interrupting messages wait in the executor, behind at most one step of a computation. As many may
// wait as in the mailbox.
Result<> Node::Core::interrupt(const std::shared_ptr<ActorState>& actor, Frame& frame,
                               const Handler& handler) {
  if (actor->interrupting >= actor->mailbox.capacity()) return fail(too_many(*actor, frame));
  ++actor->interrupting;
  compute(actor, std::move(frame), handler);
  return {};
}

/// A compute handler from its message to its answer, on one of the actor's executors.
struct Node::Core::Computation {
  std::shared_ptr<ActorState> actor;
  Frame frame;
  const Handler& handler;
  Executor* executor;
  std::optional<Stepwise<Body>> steps = {};
  std::int64_t began = 0;

  /// The answer; nullopt when further steps follow.
  std::optional<Body> step() {
    if (handler.compute) return handler.compute(std::move(frame.body));
    if (!steps) steps = handler.begin(std::move(frame.body));
    return steps->next();
  }
};

void Node::Core::compute(const std::shared_ptr<ActorState>& actor, Frame frame,
                         const Handler& handler) {
  Executor* executor = actor->executor;
  if (!handler.interrupts) {
    executor = actor->idle.back();
    actor->idle.pop_back();
  }
  auto running =
      std::make_shared<Computation>(Computation{actor, std::move(frame), handler, executor});
  executor->post([self = shared_from_this(), running] { self->compute_step(running); });
}

void Node::Core::compute_step(const std::shared_ptr<Computation>& running) {
  auto outcome = std::make_shared<HandlerOutcome>();
  const progress::Operation watched(cat("'", running->frame.type, "'"));
  if (running->began == 0) running->began = nanoseconds(scheduler.now());
  try {
    if (running->steps && ends_early)
      throw Failure({Errc::closed, cat("node '", name, "' is stopping")});
    auto answer = running->step();
    if (!answer) {
      running->executor->post(
          [self = shared_from_this(), running] { self->compute_step(running); });
      return;
    }
    outcome->answer = std::move(*answer);
  } catch (...) {
    *outcome = failed_handler(to_string(running->frame.to), running->frame.type);
  }
  running->steps.reset();  // on this executor, as the actor's own objects
  outcome->began = running->began;
  outcome->ended = nanoseconds(scheduler.now());
  control.post([self = shared_from_this(), running, outcome] {
    if (!running->handler.interrupts) running->actor->idle.push_back(running->executor);
    self->complete(running->actor, running->frame, std::move(*outcome));
  });
}

Detached Node::Core::run_async(std::shared_ptr<Core> self, std::shared_ptr<ActorState> actor,
                               Frame frame) {
  HandlerOutcome outcome;
  const Time began = self->scheduler.now();
  try {
    const Handler& handler = actor->behavior.find(frame.type)->second;
    Body body = co_await handler.run_async(std::move(frame.body));
    outcome.answer = std::move(body);
  } catch (...) {
    outcome = failed_handler(to_string(frame.to), frame.type);
  }
  outcome.began = nanoseconds(began);
  outcome.ended = nanoseconds(self->scheduler.now());
  // Posted, so that a handler that never suspends does not run the next one of its mailbox on this
  // stack.
  auto ended = std::make_shared<HandlerOutcome>(std::move(outcome));
  auto shared = std::make_shared<Frame>(std::move(frame));
  self->control.post(
      [self, actor, shared, ended] { self->complete(actor, *shared, std::move(*ended)); });
}

void Node::Core::complete(const std::shared_ptr<ActorState>& actor, const Frame& frame,
                          HandlerOutcome outcome) {
  --(actor->behavior.find(frame.type)->second.interrupts ? actor->interrupting : actor->running);
  if (outcome.death_reason) mark_dead(*actor, *outcome.death_reason);
  answer(frame, std::move(outcome.answer), outcome.began, outcome.ended);
  if (stopping)
    notify_if_drained();
  else
    pump(actor);
}

void Node::Core::answer(const Frame& request, Result<Body> result, std::int64_t began,
                        std::int64_t ended) {
  const Kind kind = result ? Kind::reply : Kind::error;
  Body body = result ? std::move(*result) : Body::of(std::move(result.error()));
  if (!transport.send(Frame{.to = request.from,
                            .from = request.to,
                            .id = request.id,
                            .kind = kind,
                            .type = request.type,
                            .body = std::move(body),
                            .began = began,
                            .ended = ended}))
    ++undeliverable;
}

void Node::Core::mark_dead(ActorState& actor, const std::string& death_reason) {
  if (actor.death_reason) return;
  actor.death_reason = death_reason;
  log_error(death_reason);
  reject_waiting(actor, {Errc::closed, cat(path(actor), " has ended: ", death_reason)});
  if (options.on_death) options.on_death(Death{{name, actor.name}, death_reason});
}

void Node::Core::reject_waiting(ActorState& actor, const Error& why) {
  while (std::optional<Frame> frame = actor.mailbox.pop()) answer(*frame, fail(why));
}

void Node::Core::begin_stop(std::promise<void>& when_drained) {
  stopping = true;
  ends_early = true;
  drained = &when_drained;
  asker->cancel_all({Errc::cancelled, cat("node '", name, "' is stopping")});
  for (const auto& [unused, actor] : actors)
    reject_waiting(*actor, {Errc::closed, cat("node '", name, "' is stopping")});
  notify_if_drained();
}

void Node::Core::log_running_handlers(Duration since_stop) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_stop).count();
  for (const auto& [unused, actor] : actors) {
    if (actor->running > 0)
      log_warning(cat(path(*actor), " still handles '", actor->handling, "', ", seconds,
                      " s after the request to stop"));
  }
}

void Node::Core::notify_if_drained() {
  for (const auto& [unused, actor] : actors) {
    if (actor->running + actor->interrupting > 0) return;
  }
  if (auto* promise = std::exchange(drained, nullptr)) promise->set_value();
}

namespace {

/// Runs a job on an executor and waits for its end.
void run_on_executor(Scheduler& scheduler, Executor& executor, const Job& job) {
  std::promise<void> promise;
  std::future<void> done = promise.get_future();
  executor.post([&] {
    job();
    promise.set_value();
  });
  scheduler.drive(done, [] {});
}

}  // namespace

Node::Node(std::string name, Scheduler& scheduler, transports::Transport& transport,
           NodeOptions options)
    : core_(std::make_shared<Core>(std::move(name), scheduler, transport, std::move(options))) {
  // Weak, so that a frame that arrives during destruction is dropped.
  const std::uint64_t incarnation =
      transport.attach(core_->name, [weak = std::weak_ptr(core_)](Frame frame) {
        if (const auto core = weak.lock()) core->receive(std::move(frame));
      });
  core_->asker->set_incarnation(incarnation);
}

Node::~Node() {
  try {
    stop();
  } catch (const std::exception& error) {
    log_error(cat("node '", core_->name, "' did not stop cleanly: ", error.what()));
  }
}

void Node::install(const std::string& name, Behavior behavior, const Placed& placed) {
  const ActorOptions& options = placed.options;
  check(!core_->stopped, "an actor cannot be spawned on a stopped node");
  check(core_->names.insert(name).second, "two actors of a node have the same name");
  bool computes = false, waits = false, interrupts = false;
  for (const auto& [unused, handler] : behavior) {
    computes |= handler.computes();
    waits |= !handler.computes();
    interrupts |= handler.interrupts;
  }
  check(
      options.max_concurrency == 1 || (options.max_concurrency > 1 &&
                                       (!computes || (placed.concurrent && !waits && !interrupts))),
      "max_concurrency above 1 requires that every handler is a coroutine, or none, none "
      "interrupts another, and the actor is a ConcurrentActor");
  std::vector<Executor*> executors;
  for (std::size_t i = computes ? options.max_concurrency : 0; i-- > 0;) {
    const std::string number = i == 0 ? "" : cat("-", i);
    executors.push_back(
        &core_->scheduler.executor(cat(core_->name, "/", options.executor, number)));
  }
  Executor& executor = computes ? *executors.back() : core_->control;
  auto actor = std::make_shared<ActorState>(ActorState{.name = name,
                                                       .behavior = std::move(behavior),
                                                       .executor = &executor,
                                                       .idle = std::move(executors),
                                                       .mailbox = Mailbox(options.mailbox),
                                                       .max_concurrency = options.max_concurrency,
                                                       .handling = {},
                                                       .death_reason = {}});
  core_->spawned.push_back(actor);
  core_->control.post([core = core_, actor] { core->add(actor); });
}

Reply<void> Node::after(Duration delay) {
  return Reply<void>(core_->asker->after(delay));
}

void Node::cancel_asks() {
  core_->control.post([core = core_] {
    core->asker->cancel_all({Errc::cancelled, "the run was interrupted"});
    if (core->options.on_cancelled) core->options.on_cancelled();
  });
}

void Node::stop() {
  if (std::exchange(core_->stopped, true)) return;
  std::promise<void> promise;
  std::future<void> drained = promise.get_future();
  core_->control.post([core = core_, &promise] { core->begin_stop(promise); });
  // A handler cannot be interrupted. While the node waits for one, the log names it every 10 s.
  const Time began = core_->scheduler.now();
  Duration last_report = std::chrono::seconds(0);
  core_->scheduler.drive(drained, [&] {
    const Duration waited = core_->scheduler.now() - began;
    if (waited - last_report < std::chrono::seconds(10)) return;
    last_report = waited;
    core_->control.post([core = core_, waited] { core->log_running_handlers(waited); });
  });
  core_->transport.detach(core_->name);
  for (; !core_->spawned.empty(); core_->spawned.pop_back()) {
    ActorState& actor = *core_->spawned.back();
    run_on_executor(core_->scheduler, *actor.executor, [&] { actor.behavior.clear(); });
  }
  // Queued behind everything that was posted before detach(): afterwards the node no longer uses
  // the transport.
  run_on_executor(core_->scheduler, core_->control, [&] { core_->actors.clear(); });
}

const std::string& Node::name() const {
  return core_->name;
}
Scheduler& Node::scheduler() const {
  return core_->scheduler;
}
Executor& Node::control() const {
  return core_->control;
}
const std::shared_ptr<Asker>& Node::asker() const {
  return core_->asker;
}
NodeStats Node::stats() const {
  return {core_->unexpected, core_->duplicates, core_->refused, core_->undeliverable};
}

}  // namespace troupe::actors
