// The parts of a report's page that are not computed.
#pragma once

#include <span>

#include "base/embedded_file.h"

namespace ddl::report {

std::span<const EmbeddedFile> page_files();

}  // namespace ddl::report
