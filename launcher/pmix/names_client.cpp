#include "launcher/pmix/names_client.h"

#include <cstring>

#include "launcher/pmix/info_list.h"
#include "launcher/pmix/packed.h"

namespace ddl::launcher {
namespace {

// Pairs in a publish call that steer it rather than being data (PMIx standard, section on publishing).
bool is_directive(const char* name) {
  for (const char* key :
       {PMIX_RANGE, PMIX_PERSISTENCE, PMIX_TIMEOUT, PMIX_ACCESS_PERMISSIONS, PMIX_USERID, PMIX_GRPID}) {
    if (std::strncmp(name, key, PMIX_MAX_KEYLEN) == 0) return true;
  }
  return false;
}

pmix_status_t status_of(message::PmixNames::Status status) {
  using enum message::PmixNames::Status;
  switch (status) {
    case kDone: return PMIX_SUCCESS;
    case kDuplicate: return PMIX_ERR_DUPLICATE_KEY;
    case kPartial: return PMIX_ERR_PARTIAL_SUCCESS;
    case kNotFound: return PMIX_ERR_NOT_FOUND;
    case kTimedOut: return PMIX_ERR_TIMEOUT;
  }
  return PMIX_ERROR;
}

void give_found(const message::PmixNames& names, const char* nspace, pmix_lookup_cbfunc_t done, void* data) {
  std::vector<pmix_pdata_t> answers;
  for (const auto& pair : names.found) {
    auto value = unpack_value(pair.value);
    if (!value) continue;
    answers.emplace_back();
    PMIX_PDATA_CONSTRUCT(&answers.back());
    PMIX_LOAD_PROCID(&answers.back().proc, nspace, static_cast<pmix_rank_t>(pair.publisher));
    PMIX_LOAD_KEY(answers.back().key, pair.key.c_str());
    answers.back().value = *value;
  }
  done(status_of(names.status), answers.data(), answers.size(), data);
  for (auto& answer : answers) PMIX_PDATA_DESTRUCT(&answer);
}

}  // namespace

void NamesClient::publish(int publisher, const pmix_info_t* infos, std::size_t count, pmix_op_cbfunc_t done,
                          void* data) {
  message::PmixPublish request;
  request.id = next_id_++;
  const pmix_info_t* persistence = find_info(infos, count, PMIX_PERSISTENCE);
  request.first_read_only =
      persistence != nullptr && persistence->value.data.persist == PMIX_PERSIST_FIRST_READ;
  for (std::size_t i = 0; i < count; ++i) {
    if (is_directive(infos[i].key)) continue;
    auto value = pack_value(infos[i].value);
    if (!value) return done(PMIX_ERR_PACK_FAILURE, data);
    request.pairs.push_back({infos[i].key, std::move(*value), publisher});
  }
  waiting_[request.id] = [done, data](const message::PmixNames& names) {
    done(status_of(names.status), data);
  };
  say_(std::move(request));
}

void NamesClient::look_up(const pmix_nspace_t& nspace, std::vector<std::string> keys,
                          const pmix_info_t* infos, std::size_t count, pmix_lookup_cbfunc_t done,
                          void* data) {
  message::PmixLookup request{next_id_++, std::move(keys), find_info(infos, count, PMIX_WAIT) != nullptr,
                              timeout_seconds_of(infos, count)};
  waiting_[request.id] = [nspace = std::string(nspace), done, data](const message::PmixNames& names) {
    give_found(names, nspace.c_str(), done, data);
  };
  say_(std::move(request));
}

void NamesClient::unpublish(int publisher, std::vector<std::string> keys, pmix_op_cbfunc_t done, void* data) {
  const auto id = next_id_++;
  waiting_[id] = [done, data](const message::PmixNames&) { done(PMIX_SUCCESS, data); };
  say_(message::PmixUnpublish{id, publisher, std::move(keys)});
}

void NamesClient::take(const message::PmixNames& answer) {
  auto waiting = waiting_.extract(answer.id);
  if (waiting) waiting.mapped()(answer);
}

}  // namespace ddl::launcher
