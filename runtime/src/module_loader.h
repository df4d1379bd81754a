// On-demand modules: parts of libddl that link what not every machine has.
#pragma once

#include <string>

#include "base/error.h"
#include "runtime/src/settings.h"

namespace ddl::runtime {

/// Where modules lie: DDL_MODULE_DIR, or the folder "ddl" beside libddl.so; no slash at the end.
std::string module_directory(const Settings& settings);

/// The symbol of the module, which is loaded and never closed: vendors' libraries leave thread-local destructors and exit
/// handlers behind. kNotFound with the loader's words.
Result<void*> load_symbol(const std::string& file, const char* symbol);

}  // namespace ddl::runtime
