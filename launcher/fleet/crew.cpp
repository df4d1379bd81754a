#include "launcher/fleet/crew.h"

#include <cctype>
#include <span>
#include <utility>

#include "base/text.h"
#include "launcher/fleet/telling_lines.h"
#include "launcher/message/codec.h"
#include "net/job_key.h"

namespace ddl::launcher {

Crew::Crew(EventLoop& loop, StartedCrew started, std::function<void(StartFailure)> on_over)
    : in_(std::move(started.in)),
      out_(std::move(started.out)),
      errors_(std::move(started.errors)),
      process_(std::move(started.process)) {
  errors_.begin(loop);
  out_.begin(loop, [this, on_over = std::move(on_over)] {
    errors_.catch_up();
    on_over(process_->why_not_started(out_.text(), errors_.text()));
  });
}

void Crew::tell(const message::Join& join) {
  if (!in_) return;
  net::Frame frame = message::encode(join);
  std::string bytes;
  net::append_frame(bytes, frame.type, frame.payload);
  // Far less than a pipe holds.
  (void)write_all(in_.get(), bytes.data(), bytes.size());
  net::wipe(std::as_writable_bytes(std::span(bytes)));
  net::wipe(std::as_writable_bytes(std::span(frame.payload)));
  // It stays open: of a task that comes late srun may drop what it has for it when the input ends.
}

std::string Crew::said_by(const std::string& node) const {
  const std::string beginning = "ddlrun agent on " + node + ": ";
  std::string_view about_it;
  for (const std::string_view line : split(errors_.text(), '\n')) {
    if (const std::size_t at = line.find(beginning); at != std::string_view::npos)
      return telling_lines(line.substr(at + beginning.size()));
    const std::size_t at = line.find(node);
    const bool is_name = at != std::string_view::npos &&
                         (at + node.size() == line.size() ||
                          std::isalnum(static_cast<unsigned char>(line[at + node.size()])) == 0);
    if (is_name && line.find("error") != std::string_view::npos) about_it = line;
  }
  return telling_lines(about_it);
}

void Crew::close() {
  in_.reset();
  out_.stop();
  errors_.stop();
}

}  // namespace ddl::launcher
