// Requests of this node's ranks that need the head: the data of one rank elsewhere (direct modex), and publish,
// lookup and unpublish. Included only by launcher/pmix/*.cpp.
#pragma once

#include <pmix_server.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launcher/loop/event_loop.h"
#include "launcher/protocol/messages.h"

namespace ddl::launcher {

// Direct modex, in both directions: also the requests of other nodes for the data of a rank here.

/// Gives data to the library, which keeps it as long as it needs it. done may be null.
void give(pmix_modex_cbfunc_t done, void* context, pmix_status_t status, const std::string& data);

/// Lives on the loop's thread.
class ModexClient {
 public:
  using Report = std::function<void(const message::AgentToHead&)>;
  ModexClient(EventLoop& loop, Report report) : loop_(loop), report_(std::move(report)) {}

  /// Asks the head for what a rank of another node has put; timeout_seconds 0: waits for ever.
  void ask(int rank, int timeout_seconds, pmix_modex_cbfunc_t done, void* context);
  /// The head's answer. It is ignored if its request has timed out.
  void take(const message::PmixModexData& answer) { answer_waiting(answer.id, answer.status, answer.data); }

  /// Another node's request for the data of process, which is a rank of this node: answered to the head, on the loop,
  /// once that rank has put its data.
  void serve(const message::PmixModex& question, const pmix_proc_t& process);

 private:
  void answer_waiting(std::int64_t id, pmix_status_t status, const std::string& data);

  struct Waiting {
    std::function<void(pmix_status_t, const std::string&)> answer;
    EventLoop::Timer timeout;
  };

  EventLoop& loop_;
  Report report_;
  std::map<std::int64_t, Waiting> waiting_;
  std::int64_t next_id_ = 1;
};

/// Publish, lookup and unpublish: the head stores the names of the job. Lives on the loop's thread. The library keeps
/// the arguments of a request alive until its callback is called, which is when the head's answer comes.
class NamesClient {
 public:
  /// report: sends a request to the head.
  explicit NamesClient(std::function<void(const message::AgentToHead&)> report)
      : report_(std::move(report)) {}

  void publish(int publisher, const pmix_info_t* infos, std::size_t count, pmix_op_cbfunc_t done, void* data);
  /// Publishers in the answer are processes of nspace.
  void look_up(const pmix_nspace_t& nspace, std::vector<std::string> keys, const pmix_info_t* infos,
               std::size_t count, pmix_lookup_cbfunc_t done, void* data);
  void unpublish(int publisher, std::vector<std::string> keys, pmix_op_cbfunc_t done, void* data);

  /// The head's answer to one of them; an answer to no pending request is ignored.
  void take(const message::PmixNames& answer);

 private:
  std::function<void(const message::AgentToHead&)> report_;
  std::map<std::int64_t, std::function<void(const message::PmixNames&)>> waiting_;
  std::int64_t next_id_ = 1;
};

}  // namespace ddl::launcher
