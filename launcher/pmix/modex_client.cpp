#include "launcher/pmix/modex_client.h"

#include <memory>

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
  say_(message::PmixModex{id, 0, rank});
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
            [&self, answer = std::move(answered->answer)]() mutable { self.say_(std::move(answer)); });
      },
      asked.get());
  if (status == PMIX_SUCCESS) {
    asked.release();
  } else {
    asked->answer.status = status;
    say_(std::move(asked->answer));
  }
}

}  // namespace ddl::launcher
