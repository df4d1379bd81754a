// The page that shows a timeline: one file of HTML with its own script and its own data, which needs no network.
#pragma once

#include <string>

#include "base/error.h"
#include "report/timeline.h"

namespace ddl::report {

/// The page. Its Content-Security-Policy admits nothing but its style and this one script, by its hash. All that is of
/// the file lies in the page as base64 of compressed bytes, so that no text of a user becomes a part of it. About a tenth
/// of the file's size, and as much memory again while it is made. title: of the page, the name of the file. Error: zlib
/// is missing.
Result<std::string> timeline_view(const Timeline& timeline, const std::string& title);

}  // namespace ddl::report
