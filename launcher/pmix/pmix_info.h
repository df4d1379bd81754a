// PMIx key-value data: arrays of pmix_info_t, values as bytes for other nodes, and the array that describes a job to
// its ranks. Included only by launcher/pmix/*.cpp and tests.
#pragma once

#include <pmix_common.h>
#include <pmix_deprecated.h>
#include <pmix_server.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/plan/launch_plan.h"

namespace ddl::launcher {

/// A growing array of PMIx key-value pairs. Owns its values; PMIx copies what it keeps.
class InfoList {
 public:
  InfoList() = default;
  ~InfoList() {
    for (auto& info : infos_) PMIX_INFO_DESTRUCT(&info);
  }
  InfoList(InfoList&& other) noexcept : infos_(std::move(other.infos_)) { other.infos_.clear(); }
  InfoList(const InfoList&) = delete;
  InfoList& operator=(const InfoList&) = delete;

  void add(const char* key, const std::string& value) { load(key, value.c_str(), PMIX_STRING); }
  void add(const char* key, std::uint32_t value) { load(key, &value, PMIX_UINT32); }
  void add_uint16(const char* key, std::uint16_t value) { load(key, &value, PMIX_UINT16); }
  void add_rank(const char* key, int rank) {
    const pmix_rank_t value = rank;
    load(key, &value, PMIX_PROC_RANK);
  }
  void add_bool(const char* key, bool value) { load(key, &value, PMIX_BOOL); }
  /// What PMIx_generate_regex and PMIx_generate_ppn return: may hold more than a C string.
  void add_regex(const char* key, const char* value) { load(key, value, PMIX_REGEX); }
  /// A nested array of pairs, such as PMIX_PROC_DATA; copied.
  void add_array(const char* key, InfoList& nested) {
    pmix_data_array_t array;
    array.type = PMIX_INFO;
    array.size = nested.size();
    array.array = nested.data();
    load(key, &array, PMIX_DATA_ARRAY);
  }

  pmix_info_t* data() { return infos_.data(); }
  std::size_t size() const { return infos_.size(); }

 private:
  void load(const char* key, const void* value, pmix_data_type_t type) {
    infos_.emplace_back();
    PMIX_INFO_CONSTRUCT(&infos_.back());
    PMIX_INFO_LOAD(&infos_.back(), key, value, type);
  }
  std::vector<pmix_info_t> infos_;
};

/// The first pair of that name; nullptr if there is none.
inline const pmix_info_t* find_info(const pmix_info_t infos[], std::size_t count, const char* key) {
  for (std::size_t i = 0; i < count; ++i) {
    if (std::strncmp(infos[i].key, key, PMIX_MAX_KEYLEN) == 0) return &infos[i];
  }
  return nullptr;
}

/// How long the caller of a request is willing to wait; 0: for ever.
inline int timeout_seconds_of(const pmix_info_t infos[], std::size_t count) {
  const pmix_info_t* timeout = find_info(infos, count, PMIX_TIMEOUT);
  return timeout != nullptr ? timeout->value.data.integer : 0;
}

/// How the part of this node in a collective call ended: PMIX_ERR_PARTIAL_SUCCESS if it ended without the process of a
/// rank that has left meanwhile.
inline pmix_status_t local_status_of(const pmix_info_t infos[], std::size_t count) {
  const pmix_info_t* status = find_info(infos, count, PMIX_LOCAL_COLLECTIVE_STATUS);
  return status != nullptr ? status->value.data.status : PMIX_SUCCESS;
}

// PMIx values as bytes that every node's PMIx library can read back.

/// Call these only while the library's server runs. Packed pairs include their keys; a packed value has none.
Result<std::string> pack_value(const pmix_value_t& value);
/// The caller destructs the value. Error: bytes that the library does not understand.
Result<pmix_value_t> unpack_value(const std::string& bytes);
Result<std::string> pack_infos(const pmix_info_t* infos, std::size_t count);
/// The caller destructs each.
Result<std::vector<pmix_info_t>> unpack_infos(const std::string& bytes);

/// These nodes, in order, for a pair of the type PMIX_REGEX: as a list, which every libpmix since 4.2 reads.
/// PMIx_generate_regex() of 4.2 writes beyond an array for a name that begins with 50 letters or more, and loses numbers
/// of many digits.
std::string node_map(const std::vector<std::string>& names);

/// What a PMIx server reports to ranks about their job: the pairs for PMIx_server_register_nspace. directory: where
/// clients may keep files.
Result<InfoList> job_info(const JobLaunch& job, int node_index, const std::string& directory);

}  // namespace ddl::launcher
