#include "cli/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/fd.h"

namespace ddl::cli {

Status write_new_file(const std::string& path, std::string_view text, mode_t mode, bool replaces) {
  const std::string draft = path + "." + std::to_string(::getpid()) + ".new";
  const auto give_up = [&](int error) {
    ::unlink(draft.c_str());
    return fail(errno_error(path, error));
  };
  const UniqueFd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file) return fail(errno_error(path, errno));
  if (const auto written = write_all(file.get(), text.data(), text.size()); !written)
    return give_up(written.error().system_errno());
  // link() refuses where rename() would replace.
  if (replaces) {
    if (::rename(draft.c_str(), path.c_str()) != 0) return give_up(errno);
    return {};
  }
  if (::link(draft.c_str(), path.c_str()) != 0) return give_up(errno);
  ::unlink(draft.c_str());
  return {};
}

}  // namespace ddl::cli
