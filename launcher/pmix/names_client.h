// Publish, lookup and unpublish for the ranks of this node, as questions to the head, which keeps the names of the job.
// Included only by launcher/pmix/*.cpp.
#pragma once

#include <pmix_server.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launcher/message/message.h"

namespace ddl::launcher {

/// Lives on the loop's thread. The library keeps the arguments of a request alive until its callback is called, which
/// is when the head's answer comes.
class NamesClient {
 public:
  /// say: a question to the head.
  explicit NamesClient(std::function<void(message::Any&&)> say) : say_(std::move(say)) {}

  void publish(int publisher, const pmix_info_t* infos, std::size_t count, pmix_op_cbfunc_t done, void* data);
  /// Publishers in the answer are processes of nspace.
  void look_up(const pmix_nspace_t& nspace, std::vector<std::string> keys, const pmix_info_t* infos,
               std::size_t count, pmix_lookup_cbfunc_t done, void* data);
  void unpublish(int publisher, std::vector<std::string> keys, pmix_op_cbfunc_t done, void* data);

  /// The head's answer to one of them; one that nobody waits for is ignored.
  void take(const message::PmixNames& answer);

 private:
  std::function<void(message::Any&&)> say_;
  std::map<std::int64_t, std::function<void(const message::PmixNames&)>> waiting_;
  std::int64_t next_id_ = 1;
};

}  // namespace ddl::launcher
