// How the members of a new process set exchange texts while nobody but they takes part: through a store of the
// program's (ddl_store).
//
// In each exchange every member puts its text under a key of its own. The first member takes all texts, and puts them
// together under one more key, where each of the others finds them. Lists of members are compared on the way. A member
// that fails puts the reason in these places instead, so that the others fail too, before their time has passed.
//
// Values stay in the store, so no key is used twice: it holds the number of the context, the name of the set, how many
// sets of this name have been made, and the number of the exchange. The store may still hold values of another job. So
// each member draws a random token, and a member that is given values without the tokens of this making fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ddl/ddl.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/shm/abort.h"
#include "runtime/src/shm/channel.h"

namespace ddl::runtime {

/// The making of a process set by its members, from the view of one of them.
struct SetMaking {
  std::string name;        ///< of the set
  std::string key;         ///< how keys begin: the same on all members, and of no other making of this job
  std::vector<int> ranks;  ///< of the members in the job, in the order of the set
  int own = 0;             ///< this rank, as an index of ranks
  Call call;               ///< for messages
  CallDeadline deadline;
};

/// Used by one thread, which alone calls the store's functions.
class StoreExchange {
 public:
  /// What a member puts.
  struct Note {
    std::string token;   ///< its own; after the first exchange, a digest of those of all
    std::string ranks;   ///< the members that it was given, for people
    std::string digest;  ///< of these
    std::string text;
  };

  /// store, and abort, which is the world's, outlive this.
  StoreExchange(const ddl_store& store, const AbortDomain& abort, SetMaking making);

  /// A text of every member, in the order of the set. Collective over the members. An error has the message of
  /// failure().
  Result<std::vector<std::string>> gather(const std::string& own);
  /// Fails, and lets the others fail. Nothing but failure() may follow.
  void give_up(ddl_status status, const std::string& why) { fail_with({status, why}); }
  /// Why gather() has failed, or what give_up() was given.
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  /// Failures without the name of the set.
  template <class T>
  using OrFailure = tl::expected<T, Failure>;

  std::string label(std::size_t member) const { return "rank " + std::to_string(making_.ranks[member]); }
  std::string key_of(std::size_t member, const char* what, int exchange) const;
  OrFailure<std::vector<Note>> exchange();
  /// On the first member: the notes of all.
  OrFailure<std::vector<Note>> collect();
  /// Of those that are missing, takes the notes that have arrived, and returns the others.
  OrFailure<std::vector<std::size_t>> take(const std::vector<std::size_t>& missing, std::vector<Note>& notes,
                                           Deadline deadline);
  /// On the others: the notes that the first member has collected.
  OrFailure<std::vector<Note>> receive();
  /// That the member was given the same list as this one.
  OrFailure<void> check_list(std::size_t member, const Note& note) const;
  /// That the notes are of this making.
  OrFailure<void> check_tokens(const std::vector<Note>& notes) const;

  OrFailure<void> put(const std::string& key, const std::string& value) const;
  OrFailure<std::optional<std::string>> fetch(const std::string& key, double seconds) const;
  /// fetch() for a short while. Fails if the ranks have been aborted, or if the program wants the wait to end.
  OrFailure<std::optional<std::string>> look(const std::string& key, Deadline deadline) const;
  void fail_with(const Failure& failure);

  const ddl_store& store_;
  const AbortDomain& abort_;
  SetMaking making_;
  Note own_;
  int exchange_ = 0;
  bool is_told_ = false;  ///< another member has told why it fails: the message names it
  std::optional<Failure> failure_;
};

}  // namespace ddl::runtime
