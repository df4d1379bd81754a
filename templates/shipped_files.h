// The profiles that ddlrun was built with.
#pragma once

#include <span>

#include "base/embedded_file.h"

namespace ddl::templates {

/// By path, below templates/.
std::span<const EmbeddedFile> shipped_files();

}  // namespace ddl::templates
