// What ranks have published for each other (PMIx_Publish). Included only by launcher/pmix/*.cpp and its test.
#pragma once

#include <pmix_server.h>

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ddl::launcher {

/// Keys to values, each with its publisher. Lookups may wait for keys that are still to come.
/// Not thread-safe: used on the event loop's thread.
class PublishedData {
 public:
  struct Found {
    std::string key;
    pmix_proc_t publisher;
    pmix_value_t* value;  ///< owned by the store; valid during the call
  };
  /// Gets what was found when a lookup ends: status PMIX_SUCCESS, PMIX_ERR_PARTIAL_SUCCESS or PMIX_ERR_NOT_FOUND.
  using Answer = std::function<void(pmix_status_t, const std::vector<Found>&)>;
  using LookupId = std::uint64_t;

  PublishedData() = default;
  ~PublishedData();
  PublishedData(const PublishedData&) = delete;
  PublishedData& operator=(const PublishedData&) = delete;

  /// Stores the pairs that are data (directives such as PMIX_PERSISTENCE steer). PMIX_ERR_DUPLICATE_KEY, storing
  /// nothing, if one of the keys is there already. Answers lookups that waited for them.
  pmix_status_t publish(const pmix_proc_t& publisher, const pmix_info_t* infos, std::size_t count);

  /// Calls answer now, or, if wait is true, once all keys are there. Returns an id while it waits.
  std::optional<LookupId> lookup(std::vector<std::string> keys, bool wait, Answer answer);
  /// Ends a waiting lookup with PMIX_ERR_TIMEOUT; nothing if it has been answered.
  void time_out(LookupId id);

  /// Removes the publisher's own keys; all of them if keys is empty.
  void unpublish(const pmix_proc_t& publisher, const std::vector<std::string>& keys);

 private:
  struct Item {
    pmix_proc_t publisher;
    pmix_value_t value;
    bool first_read_only = false;
  };
  struct Waiting {
    LookupId id;
    std::vector<std::string> keys;
    Answer answer;
  };
  void answer_now(const std::vector<std::string>& keys, const Answer& answer);
  bool has_all(const std::vector<std::string>& keys) const;
  void erase(std::map<std::string, Item>::iterator item);

  std::map<std::string, Item> items_;
  std::list<Waiting> waiting_;
  LookupId last_id_ = 0;
};

}  // namespace ddl::launcher
