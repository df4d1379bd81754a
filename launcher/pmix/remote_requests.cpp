#include "launcher/pmix/remote_requests.h"

#include <cstring>
#include <memory>

#include "launcher/pmix/pmix_info.h"

namespace ddl::launcher {

void give(pmix_modex_cbfunc_t done, void* context, pmix_status_t status, const std::string& data) {
  if (done == nullptr) return;
  auto* kept = new std::string(data);
  done(
      status, kept->data(), kept->size(), context,
      [](void* object) { delete static_cast<std::string*>(object); }, kept);
}

void ModexClient::ask(int rank, int timeout_seconds, pmix_modex_cbfunc_t done, void* context) {
  const auto id = next_id_++;
  Waiting& waiting = waiting_[id];
  waiting.answer = [done, context](pmix_status_t status, const std::string& data) {
    give(done, context, status, data);
  };
  if (timeout_seconds > 0) {
    // Not from the timer's own call: the answer destroys the timer.
    waiting.timeout = loop_.after(std::chrono::seconds(timeout_seconds), [this, id] {
      loop_.post([this, id] { answer_waiting(id, PMIX_ERR_TIMEOUT, ""); });
    });
  }
  report_(message::PmixModex{id, 0, rank});
}

void ModexClient::answer_waiting(std::int64_t id, pmix_status_t status, const std::string& data) {
  auto waiting = waiting_.extract(id);
  if (waiting) waiting.mapped().answer(status, data);
}

void ModexClient::serve(const message::PmixModex& question, const pmix_proc_t& process) {
  struct Asked {
    ModexClient& self;
    message::PmixModexData answer;
  };
  auto asked = std::make_unique<Asked>(Asked{*this, {question.id, question.node, 0, ""}});
  const pmix_status_t status = PMIx_server_dmodex_request(
      &process,
      // On the library's thread.
      [](pmix_status_t found, char* data, size_t size, void* context) {
        const std::unique_ptr<Asked> answered(static_cast<Asked*>(context));
        answered->answer.status = found;
        if (data != nullptr) answered->answer.data.assign(data, size);
        ModexClient& self = answered->self;
        self.loop_.post(
            [&self, answer = std::move(answered->answer)]() mutable { self.report_(std::move(answer)); });
      },
      asked.get());
  if (status == PMIX_SUCCESS) {
    (void)asked.release();
  } else {
    asked->answer.status = status;
    report_(std::move(asked->answer));
  }
}

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
    PMIX_LOAD_PROCID(&answers.back().proc, nspace, pair.publisher);
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
  report_(std::move(request));
}

void NamesClient::look_up(const pmix_nspace_t& nspace, std::vector<std::string> keys,
                          const pmix_info_t* infos, std::size_t count, pmix_lookup_cbfunc_t done,
                          void* data) {
  message::PmixLookup request{next_id_++, std::move(keys), find_info(infos, count, PMIX_WAIT) != nullptr,
                              timeout_seconds_of(infos, count)};
  waiting_[request.id] = [nspace = std::string(nspace), done, data](const message::PmixNames& names) {
    give_found(names, nspace.c_str(), done, data);
  };
  report_(std::move(request));
}

void NamesClient::unpublish(int publisher, std::vector<std::string> keys, pmix_op_cbfunc_t done, void* data) {
  const auto id = next_id_++;
  waiting_[id] = [done, data](const message::PmixNames&) { done(PMIX_SUCCESS, data); };
  report_(message::PmixUnpublish{id, publisher, std::move(keys)});
}

void NamesClient::take(const message::PmixNames& answer) {
  auto waiting = waiting_.extract(answer.id);
  if (waiting) waiting.mapped()(answer);
}

}  // namespace ddl::launcher
