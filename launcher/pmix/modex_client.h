// What ranks of this node ask of single ranks elsewhere, and what they are asked (direct modex). Included only by
// launcher/pmix/*.cpp.
#pragma once

#include <pmix_server.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "launcher/loop/event_loop.h"
#include "launcher/message/message.h"

namespace ddl::launcher {

/// Gives data to the library, which keeps it as long as it needs it. done may be null.
void give(pmix_modex_cbfunc_t done, void* context, pmix_status_t status, const std::string& data);

/// Lives on the loop's thread.
class ModexClient {
 public:
  using Say = std::function<void(message::Any&&)>;
  ModexClient(EventLoop& loop, Say say) : loop_(loop), say_(std::move(say)) {}

  /// Asks the head for what a rank of another node has put; timeout_seconds 0: waits for ever.
  void ask(int rank, int timeout_seconds, pmix_modex_cbfunc_t done, void* context);
  /// The answer. One that nobody waits for any more is ignored.
  void take(const message::PmixModexData& answer) { answer_waiting(answer.id, answer.status, answer.data); }

  /// Another node's question about process, which is a rank of this one: answered to the head, on the loop, once that
  /// rank has put its data.
  void serve(const message::PmixModex& question, const pmix_proc_t& process);

 private:
  void answer_waiting(std::int64_t id, pmix_status_t status, const std::string& data);

  struct Waiting {
    std::function<void(pmix_status_t, const std::string&)> answer;
    EventLoop::Timer timeout;
  };

  EventLoop& loop_;
  Say say_;
  std::map<std::int64_t, Waiting> waiting_;
  std::int64_t next_id_ = 1;
};

}  // namespace ddl::launcher
