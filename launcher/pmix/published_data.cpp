#include "launcher/pmix/published_data.h"

#include <pmix_deprecated.h>

#include <cstring>

namespace ddl::launcher {
namespace {

// Pairs in a publish call that steer it rather than being data (PMIx standard, section on publishing).
bool is_directive(const pmix_info_t& info) {
  for (const char* key :
       {PMIX_RANGE, PMIX_PERSISTENCE, PMIX_TIMEOUT, PMIX_ACCESS_PERMISSIONS, PMIX_USERID, PMIX_GRPID}) {
    if (std::strncmp(info.key, key, PMIX_MAX_KEYLEN) == 0) return true;
  }
  return false;
}

bool same_process(const pmix_proc_t& a, const pmix_proc_t& b) {
  return a.rank == b.rank && std::strncmp(a.nspace, b.nspace, PMIX_MAX_NSLEN) == 0;
}

}  // namespace

PublishedData::~PublishedData() {
  while (!items_.empty()) erase(items_.begin());
}

pmix_status_t PublishedData::publish(const pmix_proc_t& publisher, const pmix_info_t* infos,
                                     std::size_t count) {
  bool first_read_only = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::strncmp(infos[i].key, PMIX_PERSISTENCE, PMIX_MAX_KEYLEN) == 0) {
      first_read_only = infos[i].value.data.persist == PMIX_PERSIST_FIRST_READ;
    }
    if (!is_directive(infos[i]) && items_.contains(infos[i].key)) return PMIX_ERR_DUPLICATE_KEY;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (is_directive(infos[i])) continue;
    const auto [place, is_new] = items_.try_emplace(infos[i].key);
    if (!is_new) continue;  // named twice in one call: the first one counts
    place->second.publisher = publisher;
    place->second.first_read_only = first_read_only;
    PMIX_VALUE_CONSTRUCT(&place->second.value);
    const pmix_status_t status =
        PMIx_Value_xfer(&place->second.value, const_cast<pmix_value_t*>(&infos[i].value));
    if (status != PMIX_SUCCESS) {
      erase(place);
      return status;
    }
  }
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    if (!has_all(waiting->keys)) {
      ++waiting;
      continue;
    }
    answer_now(waiting->keys, waiting->answer);
    waiting = waiting_.erase(waiting);
  }
  return PMIX_SUCCESS;
}

std::optional<PublishedData::LookupId> PublishedData::lookup(std::vector<std::string> keys, bool wait,
                                                             Answer answer) {
  if (!wait || has_all(keys)) {
    answer_now(keys, answer);
    return std::nullopt;
  }
  waiting_.push_back({++last_id_, std::move(keys), std::move(answer)});
  return last_id_;
}

void PublishedData::time_out(LookupId id) {
  for (auto waiting = waiting_.begin(); waiting != waiting_.end(); ++waiting) {
    if (waiting->id != id) continue;
    waiting->answer(PMIX_ERR_TIMEOUT, {});
    waiting_.erase(waiting);
    return;
  }
}

void PublishedData::unpublish(const pmix_proc_t& publisher, const std::vector<std::string>& keys) {
  for (auto item = items_.begin(); item != items_.end();) {
    const auto current = item++;
    bool named = keys.empty();
    for (const auto& key : keys) named = named || key == current->first;
    if (named && same_process(current->second.publisher, publisher)) erase(current);
  }
}

void PublishedData::answer_now(const std::vector<std::string>& keys, const Answer& answer) {
  std::vector<Found> found;
  for (const auto& key : keys) {
    const auto item = items_.find(key);
    if (item != items_.end()) found.push_back({key, item->second.publisher, &item->second.value});
  }
  const pmix_status_t status = found.empty()                ? PMIX_ERR_NOT_FOUND
                               : found.size() < keys.size() ? PMIX_ERR_PARTIAL_SUCCESS
                                                            : PMIX_SUCCESS;
  answer(status, found);
  for (const Found& one : found) {
    const auto item = items_.find(one.key);
    if (item != items_.end() && item->second.first_read_only) erase(item);
  }
}

bool PublishedData::has_all(const std::vector<std::string>& keys) const {
  for (const auto& key : keys) {
    if (!items_.contains(key)) return false;
  }
  return true;
}

void PublishedData::erase(std::map<std::string, Item>::iterator item) {
  PMIX_VALUE_DESTRUCT(&item->second.value);
  items_.erase(item);
}

}  // namespace ddl::launcher
