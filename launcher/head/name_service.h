// What ranks have published for each other (PMIx_Publish), for all nodes of a job.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/message/message.h"

namespace ddl::launcher {

/// Keys to values, each with its publisher. Lookups may wait for keys that are still to come. Values are bytes.
/// Not thread-safe; answers are given from inside the calls.
class NameService {
 public:
  using Status = message::PmixNames::Status;
  using Pairs = std::vector<message::PmixPair>;
  using Answer = std::function<void(Status, Pairs)>;
  using LookupId = std::uint64_t;

  /// kDuplicate, storing nothing, if one of the keys is there already; of a key named twice the first counts. Answers
  /// lookups that waited for them. first_read_only: each goes with its first reader.
  Status publish(Pairs pairs, bool first_read_only);
  /// Calls answer now, or, if wait is true, once all keys are there. Returns an id while it waits.
  std::optional<LookupId> lookup(std::vector<std::string> keys, bool wait, Answer answer);
  /// Ends a waiting lookup with kTimedOut; nothing if it has been answered.
  void time_out(LookupId id);
  /// Removes the publisher's own keys; all of them if keys is empty.
  void unpublish(int publisher, const std::vector<std::string>& keys);

 private:
  struct Item {
    message::PmixPair pair;
    bool first_read_only = false;
  };
  struct Waiting {
    LookupId id;
    std::vector<std::string> keys;
    Answer answer;
  };
  void answer_now(const std::vector<std::string>& keys, const Answer& answer);
  bool has_all(const std::vector<std::string>& keys) const;

  std::map<std::string, Item> items_;
  std::list<Waiting> waiting_;
  LookupId last_id_ = 0;
};

}  // namespace ddl::launcher
