// The files whose texts are in ddlrun, because manual pages are made of them: cli/CMakeLists.txt lists them.
#pragma once

#include <span>

#include "templates/shipped_files.h"

namespace ddl::cli {

/// By path below the root of the sources. They live as long as the program.
std::span<const templates::ShippedFile> embedded_files();

}  // namespace ddl::cli
