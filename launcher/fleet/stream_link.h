// A link over one or two byte-stream descriptors: a socket pair, or the pipes of a child.
#pragma once

#include <memory>

#include "base/fd.h"
#include "launcher/fleet/link.h"
#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

/// Takes the descriptors over and makes them non-blocking. write may be empty: then read is used both ways (a socket).
/// first_bytes: what was read from it already.
std::unique_ptr<Link> make_stream_link(EventLoop& loop, UniqueFd read, UniqueFd write = {},
                                       std::string_view first_bytes = {});

}  // namespace ddl::launcher
