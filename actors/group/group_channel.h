// GroupChannel: what the leader of a group (rank 0) and its followers say to each other between the
// collectives of their work: which message is next, and how it went.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/parallel/communicator.h"
#include "transports/wire/part.h"

namespace troupe::actors::group {

/// A message as the leader passes it on.
struct GroupCall {
  std::string actor;  ///< of all that share the group, the one that it is for
  std::string type;   ///< the message's name
  transports::wire::WireBody body;
};

/// One a rank and group. When the communicator fails, the group has ended: whoever notices throws
/// Bug with the words of the rank that ended it, since an actor cannot go on with a part of itself.
class GroupChannel {
 public:
  /// `own` is used for nothing else (world.split(0, world.rank())): a rank that failed early waits
  /// here, and its words are not taken for the data of a collective that the others are in.
  explicit GroupChannel(std::unique_ptr<engine::parallel::Communicator> own);
  /// The leader's tells the followers to end.
  ~GroupChannel();
  GroupChannel(const GroupChannel&) = delete;

  int rank() const { return own_->rank(); }
  int size() const { return own_->size(); }

  /// Leader: held while a message is passed on and handled. A second one at the same time is a Bug:
  /// the actors of one group share an engine executor.
  class ExclusiveCall {
   public:
    explicit ExclusiveCall(GroupChannel& channel);
    ~ExclusiveCall() { channel_.busy_ = false; }
    ExclusiveCall(const ExclusiveCall&) = delete;

   private:
    GroupChannel& channel_;
  };

  /// Leader: every follower's next() returns this.
  void send(const GroupCall& call);
  /// Follower: the leader's next message; naps until it comes. Nothing: the leader has ended.
  std::optional<GroupCall> next();

  /// Every rank: runs `work`, then hears how it went on the others. Throws Failure on all ranks
  /// when it was thrown on any: the words of the first rank that failed, with its number unless all
  /// say the same. Any other exception ends the group. The collectives of `work` are its own: a
  /// rank that fails while others wait for it in one is missed there when the deadline passes.
  void run_on_all_ranks(std::string_view what, const std::function<void()>& work);

 private:
  [[noreturn]] void lost(std::string_view words);

  std::unique_ptr<engine::parallel::Communicator> own_;
  std::atomic<bool> busy_ = false;
  bool ended_ = false;
};

}  // namespace troupe::actors::group
