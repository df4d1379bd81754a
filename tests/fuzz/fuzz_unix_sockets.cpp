// The names of Unix sockets with arbitrary text in place of /proc/net/unix: any user can take any name. A socket that
// is accepted as a job's must stand in the text under exactly its name.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "launcher/control/job_socket.h"
#include "launcher/node/job_presence.h"
#include "net/abstract_socket.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto stands = [text](const std::string& name) {
    return text.find(" @" + name) != std::string_view::npos;
  };
  for (const ddl::launcher::JobSocket& one : ddl::launcher::job_sockets(text)) {
    if (!stands(one.name()) || one.uid < 0 || one.pid < 1) std::abort();
    if (!ddl::launcher::head_pid_of(one.job_id)) std::abort();
  }
  for (const ddl::launcher::AnnouncedHead& one : ddl::launcher::announced_heads(text, "ddlrun/1000/7/", "")) {
    if (!stands(one.socket) || one.head.pid < 1 || !ddl::net::is_name_part(one.head.host)) std::abort();
  }
  return 0;
}
